"""Tables of groups, workers and assignors."""

from collections.abc import Callable, Mapping, Sequence
from typing import Final

from ...replies.clients import GenerationDescription
from ...replies.groups import (
    EpochCause,
    GroupDescription,
    GroupSummary,
    LossDescription,
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
        FactList(_group_facts(group)),
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
    process = worker.process
    pid = "" if process is None or process.pid is None else str(process.pid)
    worker_facts = (
        ("Name", label_worker(worker)),
        ("Worker", worker.worker_id),
        ("Group", worker.group_id or ""),
        ("Process", process.state if process else ""),
        ("Process id", pid),
        ("Restarts", str(process.restarts) if process else ""),
        ("Detail", process.detail if process else ""),
        ("Order", _name_order(worker.order)),
    )
    if worker.member is None:
        return [FactList(worker_facts)]
    return [FactList(worker_facts), FactList(_member_facts(worker.member), "Member")]


def tabulate_assignors(assignors: AssignorList) -> list[Section]:
    """Lay out `/assignors`: all assignors, and the process that runs them."""
    return [ASSIGNORS.lay_out(assignors.assignors), PROCESSES.lay_out(assignors.processes)]


def label_worker(worker: WorkerDescription) -> str:
    """Return the short name of a worker of `/workers`."""
    return worker.name or shorten_worker(worker.worker_id)


def _group_facts(group: GroupDescription) -> Sequence[tuple[str, str]]:
    parked = (f"{each.id} until {format_time(each.deadline_ms)}" for each in group.parked)
    return (
        ("Group", group.group_id),
        ("Type", group.type),
        ("State", group.state),
        ("Generation", _format_generation(group.generation)),
        ("Group epoch", str(group.group_epoch)),
        ("Assignment epoch", str(group.assignment_epoch)),
        ("Last rebalance", _format_rebalance(group.last_rebalance)),
        ("Assignor", group.target.assignor),
        ("Assignor's error", group.target.error),
        ("Configured", format_ids(group.configured)),
        ("Unassigned", format_ids(group.unassigned)),
        ("Kept for who is away", format_ids(group.awaited)),
        ("Parked", "; ".join(parked)),
        ("More moves", format_time(group.next_moves_at_ms)),
        ("Log end", str(group.log_end)),
        ("Unknown records", str(group.unknown_records or "")),
        ("Warning", group.warning),
    )


def _format_generation(last: GenerationDescription | None) -> str:
    """Return the members, the leader and the protocol of a classic group's generation."""
    if last is None:
        return ""
    names = ", ".join(last.members) or "nobody"
    led = f", {last.protocol_type} {last.protocol}, led by {last.leader}" if last.members else ""
    return f"{last.generation} ({last.cause} {last.subject}){led}: {names}"


def _member_facts(member: MemberDescription) -> Sequence[tuple[str, str]]:
    return (
        ("State", member.state),
        ("Epoch", str(member.member_epoch)),
        ("Holds", format_ids(member.assigned)),
        ("Gives up", format_ids(member.pending_revocation)),
        ("Target", format_ids(member.target)),
        ("Member id", member.member_id),
        ("Zone", member.rack or ""),
        ("Tags", ",".join(member.tags)),
        ("Capacity", str(member.capacity or "none yet, its engine is cold")),
        ("Protocol", member.protocol),
    )


def _list_states(member: MemberDescription | None) -> list[str]:
    """Return the state of a member, and `cold` if it takes no work yet."""
    if member is None:
        return []
    return [member.state] if member.capacity else [member.state, "cold"]


def _name_order(order: WorkerOrder | None) -> str:
    """Return the word for the strongest operator order of a worker; "" for none."""
    if order is None:
        return ""
    wishes = {
        "removing": order.removing,
        "draining": order.draining,
        "cordoned": order.cordoned,
    }
    return next((word for word, is_wished in wishes.items() if is_wished), "")


def _format_rebalance(last: EpochCause | None) -> str:
    if last is None:
        return ""
    cause = format_reply_cause(last.cause, last.subject)
    return ", ".join(filter(None, (cause, format_time(last.time_ms))))


GROUPS: Final = TableLayout[GroupSummary](
    {
        "GROUP": lambda it: it.group_id,
        "TYPE": lambda it: it.type,
        "STATE": lambda it: it.state,
        "EPOCH": lambda it: it.group_epoch,
        "ASSIGNMENT": lambda it: it.assignment_epoch,
        "MEMBERS": lambda it: it.members,
        "CONNECTORS": lambda it: it.connectors,
        "ASSIGNED": lambda it: f"{it.assigned}/{it.configured}",
        "ASSIGNOR": lambda it: it.assignor,
    },
    shown_if={"ASSIGNOR": any},
    empty="no groups",
)
WARNINGS: Final = TableLayout[GroupSummary](
    {"GROUP": lambda it: it.group_id, "WARNING": lambda it: it.warning}, title="Warnings"
)
UNPLACEABLE: Final = TableLayout[UnplaceableResource](
    {"UNPLACEABLE": lambda it: it.id, "REASON": lambda it: it.reason}, title="Unplaceable"
)
LOSSES: Final = TableLayout[LossDescription](
    {
        "LOST WORKER": lambda it: shorten_worker(it.worker_id),
        "CAUSE": lambda it: it.cause,
        "RESOURCES": lambda it: format_ids(it.resources),
        "PARKED UNTIL": lambda it: format_time(it.deadline_ms),
    },
    title="Losses",
)

TRAITS: Final[Mapping[str, Callable[[MemberDescription], object]]] = {
    "ZONE": lambda it: it.rack,
    "TAGS": lambda it: it.tags,
    "CAP": lambda it: it.capacity or None,
    "PROTOCOL": lambda it: it.protocol,
}
"""The cells of a member that are shown where members differ in them."""
DIFFERING: Final[Mapping[str, Callable[[Sequence[object]], bool]]] = {
    "ZONE": any,
    "TAGS": any,
    "CAP": lambda capacities: not {None, 1}.issuperset(capacities),
    "PROTOCOL": lambda protocols: len({*protocols} - {None}) > 1,
}
MEMBERS: Final = TableLayout[MemberDescription](
    {
        "MEMBER": lambda it: shorten_worker(it.worker_id),
        "STATE": _list_states,
        "EPOCH": lambda it: it.member_epoch,
        **TRAITS,
        "HOLDS": lambda it: format_ids(it.assigned),
        "GIVES UP": lambda it: format_ids(it.pending_revocation),
        "MEMBER ID": lambda it: it.member_id,
    },
    shown_if=DIFFERING,
    empty="no members",
)


def _of_member(
    cell: Callable[[MemberDescription], object],
) -> Callable[[WorkerDescription], object]:
    """Return the cell of a worker's member; None before it has joined."""
    return lambda worker: worker.member and cell(worker.member)


WORKERS: Final = TableLayout[WorkerDescription](
    {
        "NAME": label_worker,
        "PROCESS": lambda it: it.process and it.process.state,
        "MEMBER": lambda it: [*_list_states(it.member), _name_order(it.order)],
        "EPOCH": _of_member(lambda it: it.member_epoch),
        "CONNECTORS": _of_member(lambda it: sum(each.task is None for each in it.assigned)),
        "TASKS": _of_member(lambda it: sum(each.task is not None for each in it.assigned)),
        **{heading: _of_member(cell) for heading, cell in TRAITS.items()},
        "PID": lambda it: it.process and it.process.pid,
        "RESTARTS": lambda it: it.process and it.process.restarts,
    },
    shown_if=DIFFERING,
    empty="no workers",
)
ASSIGNORS: Final = TableLayout[AssignorDescription](
    {"NAME": lambda it: it.name, "ORIGIN": lambda it: it.origin}, empty="no assignors"
)
PROCESSES: Final = TableLayout[ProcessDescription](
    {
        "PROCESS": lambda it: it.pid,
        "STATE": lambda it: it.state,
        "RESTARTS": lambda it: it.restarts,
        "DETAIL": lambda it: it.detail,
    },
    empty="no process is known",
)
