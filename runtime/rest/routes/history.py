"""What became of a group's epochs, read from its log: a line for each, or one in full.

A log may be long: it is read in a thread of its own, and what was told is kept for the next.
"""

from typing import Annotated, Final, Literal

from fastapi import APIRouter, Path, Query
from fastapi.responses import JSONResponse
from starlette.concurrency import run_in_threadpool

from ....projections.explain.cache import LINES_MAX, NotToldError
from ..backend.commands import known
from ..backend.service import Served
from ..http.errors import not_found

router = APIRouter(tags=["groups"])
LINES: Final = 50
Limit = Annotated[int, Query(ge=1, le=LINES_MAX, description="How many epochs, the last ones.")]
Epoch = Annotated[int | Literal["latest"], Path(description="A group epoch, or `latest`.")]


@router.get("/groups/{group}/history")
async def get_history(service: Served, group: str, limit: Limit = LINES) -> JSONResponse:
    """List a group's last epochs: cause, who asked, how much moved, how long it took.

    `first_epoch` is the first that the log tells of, `is_trimmed` whether there were others
    before. What a target changed is counted at the last of the epochs that it answers.
    """

    def told() -> JSONResponse:
        with service.logs.reading_epochs(group) as epochs:
            return JSONResponse(epochs.history(limit).to_json())

    await run_in_threadpool(known, service, group)
    return await service.explaining.run(told)


@router.get("/groups/{group}/explain/{epoch}")
async def explain_epoch(service: Served, group: str, epoch: Epoch) -> JSONResponse:
    """Explain one epoch: its cause, its target, each phase, and each resource that moved.

    An epoch that the log does not tell of is a 404 that says of which ones it does.
    """

    def told() -> JSONResponse:
        with service.logs.reading_epochs(group) as epochs:
            try:
                found = epochs.explain(None if epoch == "latest" else epoch)
            except NotToldError as untold:
                raise not_found(str(untold)) from None
            return JSONResponse(found.to_json())

    await run_in_threadpool(known, service, group)
    return await service.explaining.run(told)
