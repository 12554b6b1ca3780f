"""The assignors that this node's workers can be told to compute with, and their process."""

from fastapi import APIRouter
from fastapi.responses import JSONResponse

from ...assignors.finding import known_assignors
from ..backend.service import Served
from ..http.errors import Unanswered
from .groups import process_view

router = APIRouter(tags=["groups"])


@router.get("/assignors")
async def list_assignors(service: Served) -> JSONResponse:
    """List what `group.local.assignors` can name, and the process that runs what it names.

    Installed ones are listed by their entry points: whether they load is seen in the process
    alone. Without the supervisor `processes_known` is false.
    """
    told = [{"name": each.name, "origin": each.origin} for each in known_assignors()]
    try:
        node = await service.commands.describe_node()
        processes, known = [process_view(each) for each in node.assignors], True
    except Unanswered:
        processes, known = [], False
    return JSONResponse({"assignors": told, "processes_known": known, "processes": processes})
