"""Workers: the members of all groups, this node's processes, and what these compute with."""

from collections.abc import Mapping
from dataclasses import replace

from starlette.concurrency import run_in_threadpool

from .....events.group import Group, Member
from .....events.orders import worker_name
from .....projections import views
from ....cluster.messages import ProcessView
from ....node.assignors.finding import known_assignors
from ...replies.members import describe_member, worker_order
from ...replies.node import (
    AssignorDescription,
    AssignorList,
    ProcessDescription,
    WorkerDescription,
    WorkerList,
)
from ..backend.errors import Unanswered
from ..backend.schema import Routes
from ..backend.service import Served, Service

routes = Routes("groups")


@routes.add("GET /workers")
async def list_workers(service: Served) -> WorkerList:
    """List the members of all groups, and the worker processes of this node.

    A worker is both once it has joined. A member whose process has ended, and whose place a later
    process has taken, is told as `ended`. Without the supervisor `processes_known` is false, and
    only the members are told.
    """
    try:
        node = await service.commands.describe_node()
        processes, is_known = {each.url: each for each in node.workers}, True
    except Unanswered:
        processes, is_known = {}, False
    return WorkerList(is_known, await run_in_threadpool(_describe_workers, service, processes))


@routes.add("GET /assignors")
async def list_assignors(service: Served) -> AssignorList:
    """List what `group.local.assignors` can name, and the process that runs what it names.

    Installed ones are listed by their entry points: whether they load is seen in the process
    alone. Without the supervisor `processes_known` is false.
    """
    assignors = [AssignorDescription(each.name, each.origin) for each in known_assignors()]
    try:
        node = await service.commands.describe_node()
    except Unanswered:
        return AssignorList(assignors, processes_known=False, processes=[])
    processes = [_describe_process(each) for each in node.assignors]
    return AssignorList(assignors, processes_known=True, processes=processes)


def _describe_workers(
    service: Service, processes: Mapping[str, ProcessView]
) -> list[WorkerDescription]:
    """Return the members of all groups, and then the processes that have not joined, by URL."""
    workers: list[WorkerDescription] = []
    joined: set[str] = set()
    for group_id in service.logs.group_ids():
        with service.logs.reading(group_id) as logs:
            for member in views.members(logs.group):
                url = views.worker_of(member)
                joined.add(url)
                workers.append(_describe_member(url, processes.get(url), logs.group, member))
    for url in sorted(processes.keys() - joined):
        process = _describe_process(processes[url])
        workers.append(WorkerDescription(_last_part(url), url, None, None, None, process))
    return workers


def _describe_member(
    url: str, process: ProcessView | None, group: Group, member: Member
) -> WorkerDescription:
    order = group.worker_orders.get(worker_name(member.metadata))
    return WorkerDescription(
        _last_part(url),
        url,
        group.group_id,
        describe_member(group, member),
        worker_order(order) if order else None,
        _describe_process_of(member, process) if process else None,
    )


def _describe_process_of(member: Member, process: ProcessView) -> ProcessDescription:
    if member.is_away or process.member_id in {"", member.member_id}:
        return _describe_process(process)  # of a member that is away, the one about to return
    why = "another process is this worker now"
    return _describe_process(replace(process, pid=None, state="ended", detail=why))


def _describe_process(process: ProcessView) -> ProcessDescription:
    return ProcessDescription(process.pid, process.state, process.restarts, process.detail)


def _last_part(url: str) -> str:
    return url.rpartition("/")[2]
