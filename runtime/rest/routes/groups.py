"""Groups, their members, and the worker processes of this node."""

from collections.abc import Mapping
from dataclasses import replace

from fastapi import APIRouter
from fastapi.responses import JSONResponse
from starlette.concurrency import run_in_threadpool

from ....events.group import Group, Member
from ....events.placement.orders import worker_name
from ....projections import views
from ....projections.documents import Document
from ...cluster.spec import ProcessView
from ..backend.commands import known
from ..backend.service import Served, Service
from ..http.errors import Unanswered

router = APIRouter(tags=["groups"])


@router.get("/groups")
def list_groups(service: Served) -> JSONResponse:
    """List the groups of this node, a line each."""
    told: list[Document] = []
    for group_id in service.logs.group_ids():
        with service.logs.reading(group_id) as logs:
            told.append(views.group_summary(logs.group))
    return JSONResponse(told)


@router.get("/groups/{group}")
def get_group(service: Served, group: str) -> JSONResponse:
    """Tell all that the log says of a group: epochs, members, target, parked work, losses."""
    known(service, group)
    with service.logs.reading(group) as logs:
        return JSONResponse(views.group_view(logs.group))


@router.get("/workers")
async def list_workers(service: Served) -> JSONResponse:
    """List the members of all groups, and the worker processes of this node.

    A worker is both once it has joined. A member whose process has ended, and whose place a later
    process has taken, is told as `ended`. Without the supervisor `processes_known` is false, and
    only the members are told.
    """
    try:
        node = await service.commands.describe_node()
        processes, known = {each.url: each for each in node.workers}, True
    except Unanswered:
        processes, known = {}, False
    workers = await run_in_threadpool(_workers, service, processes)
    return JSONResponse({"processes_known": known, "workers": workers})


def _workers(service: Service, processes: Mapping[str, ProcessView]) -> list[Document]:
    told: list[Document] = []
    joined: set[str] = set()
    for group_id in service.logs.group_ids():
        with service.logs.reading(group_id) as logs:
            for member in views.members(logs.group):
                url = views.worker_of(member)
                joined.add(url)
                told.append(_worker(url, processes.get(url), logs.group, member))
    told += [_worker(url, processes[url]) for url in sorted(processes.keys() - joined)]
    return told


def _worker(
    url: str,
    process: ProcessView | None,
    group: Group | None = None,
    member: Member | None = None,
) -> Document:
    return {
        "name": url.rpartition("/")[2],
        "worker_id": url,
        "group_id": group.group_id if group else None,
        "member": views.member_view(group, member) if group and member else None,
        "order": _order(group, member) if group and member else None,
        "process": _process(process, member) if process else None,
    }


def _process(process: ProcessView, member: Member | None) -> Document:
    if member is None or member.is_away or process.member_id in {"", member.member_id}:
        return process_view(process)  # of a seat that is away, the one that is about to return
    ended = replace(process, pid=None, state="ended", detail="another process is this worker now")
    return process_view(ended)


def _order(group: Group, member: Member) -> Document | None:
    order = group.worker_orders.get(worker_name(member.metadata))
    return views.worker_order(order) if order else None


def process_view(process: ProcessView) -> Document:
    """Return what is told of a process."""
    return {
        "pid": process.pid,
        "state": process.state,
        "restarts": process.restarts,
        "detail": process.detail,
    }
