"""The routes of workers and assignors: members, and the processes of this node."""

from collections.abc import Iterable
from dataclasses import replace

from msgspec import structs
from starlette.concurrency import run_in_threadpool

from ......events.group import Group, Member
from ......events.placement import worker_name
from ......projections import views
from .....cluster.messages import NodeView, ProcessView
from .....cluster.node_files import EngineFile, read_engines
from .....node.assignors.discovery import known_assignors
from .....security.rights import Access, Right
from ....replies.building.node import describe_member, worker_order
from ....replies.node import (
    AssignorDescription,
    AssignorList,
    MemberDescription,
    ProcessDescription,
    WorkerDescription,
    WorkerList,
)
from ...commands.service import CallerAccess, Served, Service
from ...server.errors import Unanswered
from ...server.permissions import Reach, RouteRights
from ...server.routing import Routes

routes = Routes("groups")


@routes.add("GET /workers", RouteRights(Right.VIEW, Reach.VISIBLE))
async def list_workers(service: Served, access: CallerAccess) -> WorkerList:
    """List the members of all groups, and the worker processes of this node.

    A worker that has joined has both. A member whose process has ended and was replaced has the
    state `ended`. While the supervisor does not answer at once, the processes are those that it
    told `processes_age_ms` ago; then `processes_known` is false, and only members are listed.
    """
    node, age_ms = await find_processes(service)

    def describe() -> WorkerList:
        with service.logs.reading_all() as groups:
            of_groups = [each.group for each in groups.values()]
            return limit_workers(describe_workers(service, of_groups, node, age_ms), access)

    return await run_in_threadpool(describe)


@routes.add("GET /assignors", RouteRights(Right.VIEW, Reach.VISIBLE))
async def list_assignors(service: Served, access: CallerAccess) -> AssignorList:
    """List the assignors that `group.local.assignors` can name, and the assignor process.

    Installed ones are listed by their entry points; only the process shows whether they can be
    loaded. If the supervisor does not answer, `processes_known` is false.
    """
    assignors = [AssignorDescription(each.name, each.origin) for each in known_assignors()]
    node, _ = await find_processes(service)
    processes = [_describe_process(each) for each in node.assignors] if node else []
    if access.is_limited:
        processes = [_without_reason(each) for each in processes]
    return AssignorList(assignors, processes_known=node is not None, processes=processes)


async def find_processes(service: Service) -> tuple[NodeView | None, int]:
    """Return the processes of this node, and how old that is in milliseconds.

    None if the supervisor does not answer, and is not known to have answered just before.
    """
    try:
        return await service.processes.read(service.commands.describe_node)
    except Unanswered:
        return None, 0


def describe_workers(
    service: Service, groups: Iterable[Group], node: NodeView | None, age_ms: int
) -> WorkerList:
    """Return the members of groups, then the processes that have not joined, by URL."""
    processes = {each.url: each for each in node.workers} if node else {}
    workers: list[WorkerDescription] = []
    joined: set[str] = set()
    for group in groups:
        for member in views.sorted_members(group):
            url = member.metadata.worker_url
            joined.add(url)
            workers.append(_describe_worker(url, processes.get(url), group, member))
    for url in sorted(processes.keys() - joined):
        process = _describe_process(processes[url])
        workers.append(WorkerDescription(_last_part(url), url, None, None, None, process))
    engine = _describe_engine(read_engines(service.run_folder).get(""))
    return WorkerList(node is not None, workers, engine, age_ms)


def limit_workers(listed: WorkerList, access: Access) -> WorkerList:
    """Return workers without the connectors that a caller does not see.

    The reasons of processes are left out, too: they may name one.
    """
    if not access.is_limited:
        return listed
    workers = [
        structs.replace(
            each,
            member=_limit_member(each.member, access) if each.member else None,
            process=each.process and _without_reason(each.process),
        )
        for each in listed.workers
    ]
    engine = listed.engine and _without_reason(listed.engine)
    return structs.replace(listed, workers=workers, engine=engine)


def _limit_member(member: MemberDescription, access: Access) -> MemberDescription:
    return structs.replace(
        member,
        assigned=[each for each in member.assigned if access.sees(each.connector)],
        pending_revocation=[
            each for each in member.pending_revocation if access.sees(each.connector)
        ],
        target=[each for each in member.target if access.sees(each.connector)],
    )


def _without_reason(process: ProcessDescription) -> ProcessDescription:
    return structs.replace(process, detail="")


def _describe_engine(shared: EngineFile | None) -> ProcessDescription | None:
    """Return the JVM that the workers share, None if each has its own."""
    if shared is None:
        return None
    return ProcessDescription(shared.pid, shared.state, shared.restarts, shared.detail)


def _describe_worker(
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
        return _describe_process(process)  # for a member that is away: its next process
    why = "another process is this worker now"
    return _describe_process(replace(process, pid=None, state="ended", detail=why))


def _describe_process(process: ProcessView) -> ProcessDescription:
    return ProcessDescription(process.pid, process.state, process.restarts, process.detail)


def _last_part(url: str) -> str:
    return url.rpartition("/")[2]
