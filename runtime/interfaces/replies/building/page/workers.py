"""Builds the workers of a page: members of the group, and processes that have not joined."""

from collections.abc import Mapping

from ......events.group import Group, Member
from ......events.placement import last_part, worker_name
from ......projections.views import sorted_members
from .....cluster.messages import ProcessView
from ...live.state import PageWorker
from .facts import NodeFacts

RUNNING, AWAY = "running", "away"


def make_workers(
    group: Group, facts: NodeFacts, tasks: Mapping[str, int]
) -> tuple[list[PageWorker], Mapping[str, int]]:
    """Return the workers, and the index of each member's; `tasks` has how many a member has."""
    processes = {each.url: each for each in facts.processes}
    workers: list[PageWorker] = []
    places: dict[str, int] = {}
    joined: set[str] = set()
    for member in sorted_members(group):
        url = member.metadata.worker_url
        joined.add(url)
        places[member.member_id] = len(workers)
        process = processes.get(url)
        count = tasks.get(member.member_id, 0)
        workers.append(_of_member(group, member, process, facts, count))
    apart = sorted(processes.keys() - joined)
    workers += [_of_process(processes[each], facts) for each in apart]
    return workers, places


def _of_member(
    group: Group, member: Member, process: ProcessView | None, facts: NodeFacts, tasks: int
) -> PageWorker:
    is_its = process is not None and process.member_id in {"", member.member_id}
    own = process if is_its or member.is_away else None
    state = AWAY if member.is_away else RUNNING
    order = group.worker_orders.get(worker_name(member.metadata))
    wanted = (
        "drained" if order and order.draining else "cordoned" if order and order.cordoned else ""
    )
    usage = facts.usage.get(own.pid) if own and own.pid else None
    return PageWorker(
        last_part(member.metadata.worker_url),
        member.member_id,
        member.metadata.client_host,
        own.state if own else state,
        wanted,
        tasks,
        usage.cpu if usage else None,
        usage.memory_bytes if usage else None,
        None if member.is_away else facts.heartbeat_ages.get(member.member_id),
        own.restarts if own else 0,
        usage.started_ms if usage else None,
        own.detail if own else "",
    )


def _of_process(process: ProcessView, facts: NodeFacts) -> PageWorker:
    usage = facts.usage.get(process.pid) if process.pid else None
    return PageWorker(
        last_part(process.url),
        process.member_id,
        "",
        process.state,
        "",
        0,
        usage.cpu if usage else None,
        usage.memory_bytes if usage else None,
        None,
        process.restarts,
        usage.started_ms if usage else None,
        process.detail,
    )
