"""Tables of groups, workers and assignors."""

from collections.abc import Callable, Mapping, Sequence
from typing import Final

from ...replies.groups import (
    EpochCause,
    GenerationDescription,
    GroupDescription,
    GroupSummary,
    LossDescription,
    ParkedResource,
    UnplaceableResource,
)
from ...replies.node import (
    AssignorDescription,
    AssignorList,
    MemberDescription,
    ProcessDescription,
    WorkerDescription,
    WorkerList,
    WorkerOrder,
)
from ..output.layout import TableLayout
from ..output.phrases import format_ids, format_reply_cause, format_time, shorten_worker
from ..output.printing import FactList, Section
from .client_groups import (
    CLIENT_GROUPS,
    map_member_names,
    tabulate_client_group,
    tabulate_subscriptions,
)


def tabulate_groups(groups: Sequence[GroupSummary]) -> list[Section]:
    """Lay out `/groups`: groups of workers, and those of Kafka clients."""
    return [
        GROUPS.lay_out(each for each in groups if each.shard is None),
        *WARNINGS.lay_out_any(each for each in groups if each.warning),
        *CLIENT_GROUPS.lay_out_any(each for each in groups if each.shard is not None),
    ]


def tabulate_group(group: GroupDescription) -> list[Section]:
    """Lay out `/groups/{g}`, also of a replay of its log."""
    if group.shard is not None:
        return tabulate_client_group(group)
    settings = [FactList(sorted(group.config.items()), "Settings")] if group.config else []
    return [
        GROUP_FACTS.lay_out_facts(group),
        *settings,
        MEMBERS.lay_out(group.members),
        *tabulate_subscriptions(group, map_member_names(())),
        *UNPLACEABLE.lay_out_any(group.target.unplaceable),
        *LOSSES.lay_out_any(group.losses),
    ]


def tabulate_workers(workers: WorkerList) -> list[Section]:
    """Lay out `/workers`."""
    return [WORKERS.lay_out(workers.workers)]


def summarize_engine(process: ProcessDescription | None) -> list[tuple[str, str]]:
    """Return the fact about the JVM that workers share; nothing if they share none."""
    if process is None:
        return []
    pid = "" if process.pid is None else f", pid {process.pid}"
    return [("Shared JVM", f"{process.state}{pid}, restarts {process.restarts}")]


def tabulate_worker(worker: WorkerDescription) -> list[Section]:
    """Lay out one worker: its process, and its member once it has joined."""
    process = WORKER_FACTS.lay_out_facts(worker)
    if worker.member is None:
        return [process]
    return [process, MEMBER_FACTS.lay_out_facts(worker.member, "Member")]


def tabulate_assignors(assignors: AssignorList) -> list[Section]:
    """Lay out `/assignors`: all assignors, and the process that runs them."""
    return [ASSIGNORS.lay_out(assignors.assignors), PROCESSES.lay_out(assignors.processes)]


def label_worker(worker: WorkerDescription) -> str:
    """Return the short name of a worker of `/workers`."""
    return worker.name or shorten_worker(worker.worker_id)


def _format_parked(parked: Sequence[ParkedResource]) -> str:
    return "; ".join(f"{each.id} until {format_time(each.deadline_ms)}" for each in parked)


def _format_generation(last: GenerationDescription) -> str:
    """Return the members, the leader and the protocol of a classic group's generation."""
    names = ", ".join(last.members) or "nobody"
    led = f", {last.protocol_type} {last.protocol}, led by {last.leader}" if last.members else ""
    return f"{last.generation} ({last.cause} {last.subject}){led}: {names}"


def _list_states(member: MemberDescription | None) -> list[str]:
    """Return the state of a member, and `cold` if it takes no work yet."""
    if member is None:
        return []
    return [member.state] if member.capacity else [member.state, "cold"]


def _name_order(order: WorkerOrder) -> str:
    """Return the word for the strongest operator order of a worker; "" for none."""
    wishes = {
        "removing": order.removing,
        "draining": order.draining,
        "cordoned": order.cordoned,
    }
    return next((word for word, is_wished in wishes.items() if is_wished), "")


def _format_rebalance(last: EpochCause) -> str:
    cause = format_reply_cause(last.cause, last.subject)
    return ", ".join(filter(None, (cause, format_time(last.time_ms))))


def _format_capacity(capacity: int) -> str:
    return str(capacity or "")


GROUPS: Final = TableLayout(
    GroupSummary,
    "GROUP: group_id, TYPE: type, STATE: state, EPOCH: group_epoch, ASSIGNMENT: assignment_epoch, "
    "MEMBERS: members, CONNECTORS: connectors, ASSIGNED, ASSIGNOR: assignor",
    {"ASSIGNED": lambda it: f"{it.assigned}/{it.configured}"},
    shown_if={"ASSIGNOR": any},
    empty="no groups",
)
GROUP_FACTS: Final = TableLayout(
    GroupDescription,
    "Group: group_id, Type: type, State: state, Generation: generation, Group epoch: group_epoch, "
    "Assignment epoch: assignment_epoch, Last rebalance: last_rebalance, "
    "Assignor: target.assignor, Assignor's error: target.error, Configured: configured, "
    "Unassigned: unassigned, Kept for who is away: awaited, Parked: parked, "
    "More moves: next_moves_at_ms, Log end: log_end, Unknown records: unknown_records, "
    "Warning: warning",
    {
        "Generation": _format_generation,
        "Last rebalance": _format_rebalance,
        **dict.fromkeys(("Configured", "Unassigned", "Kept for who is away"), format_ids),
        "Parked": _format_parked,
        "More moves": format_time,
        "Unknown records": lambda count: count or None,
    },
)
WARNINGS: Final = TableLayout(GroupSummary, "GROUP: group_id, WARNING: warning", title="Warnings")
UNPLACEABLE: Final = TableLayout(
    UnplaceableResource, "UNPLACEABLE: id, REASON: reason", title="Unplaceable"
)
LOSSES: Final = TableLayout(
    LossDescription,
    "LOST WORKER: worker_id, CAUSE: cause, RESOURCES: resources, PARKED UNTIL: deadline_ms",
    {"LOST WORKER": shorten_worker, "RESOURCES": format_ids, "PARKED UNTIL": format_time},
    title="Losses",
)
DIFFERING: Final[Mapping[str, Callable[[Sequence[object]], bool]]] = {
    "ZONE": any,
    "TAGS": any,
    "CAP": lambda capacities: not {None, "", "1"}.issuperset(capacities),
    "PROTOCOL": lambda protocols: len({*protocols} - {None}) > 1,
}
"""The traits of members that are shown if members differ in them."""
MEMBERS: Final = TableLayout(
    MemberDescription,
    "MEMBER: worker_id, STATE, EPOCH: member_epoch, ZONE: rack, TAGS: tags, CAP: capacity, "
    "PROTOCOL: protocol, HOLDS: assigned, GIVES UP: pending_revocation, MEMBER ID: member_id",
    {
        "MEMBER": shorten_worker,
        "STATE": _list_states,
        "CAP": _format_capacity,
        "HOLDS": format_ids,
        "GIVES UP": format_ids,
    },
    shown_if=DIFFERING,
    empty="no members",
)
MEMBER_FACTS: Final = TableLayout(
    MemberDescription,
    "State: state, Epoch: member_epoch, Holds: assigned, Gives up: pending_revocation, "
    "Target: target, Member id: member_id, Zone: rack, Tags: tags, Capacity: capacity, "
    "Protocol: protocol",
    {
        **dict.fromkeys(("Holds", "Gives up", "Target"), format_ids),
        "Capacity": lambda capacity: capacity or "none yet, its engine is cold",
    },
)
WORKER_FACTS: Final = TableLayout(
    WorkerDescription,
    "Name, Worker: worker_id, Group: group_id, Process: process.state, Process id: process.pid, "
    "Restarts: process.restarts, Detail: process.detail, Order: order",
    {"Name": label_worker, "Order": _name_order},
)
WORKERS: Final = TableLayout(
    WorkerDescription,
    "NAME, PROCESS: process.state, MEMBER, EPOCH: member.member_epoch, "
    "CONNECTORS: member.assigned, TASKS: member.assigned, ZONE: member.rack, TAGS: member.tags, "
    "CAP: member.capacity, PROTOCOL: member.protocol, PID: process.pid, "
    "RESTARTS: process.restarts",
    {
        "NAME": label_worker,
        "MEMBER": lambda it: [*_list_states(it.member), it.order and _name_order(it.order)],
        "CONNECTORS": lambda assigned: sum(each.task is None for each in assigned),
        "TASKS": lambda assigned: sum(each.task is not None for each in assigned),
        "CAP": _format_capacity,
    },
    shown_if=DIFFERING,
    empty="no workers",
)
ASSIGNORS: Final = TableLayout(
    AssignorDescription, "NAME: name, ORIGIN: origin", empty="no assignors"
)
PROCESSES: Final = TableLayout(
    ProcessDescription,
    "PROCESS: pid, STATE: state, RESTARTS: restarts, DETAIL: detail",
    empty="no process is known",
)
