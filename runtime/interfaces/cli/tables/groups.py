"""Tables of groups, workers and assignors."""

from collections.abc import Sequence

from ...replies.clients import GenerationDescription
from ...replies.groups import EpochCause, GroupDescription, GroupSummary, LossDescription
from ...replies.node import (
    AssignorList,
    MemberDescription,
    ProcessDescription,
    WorkerDescription,
    WorkerList,
    WorkerOrder,
)
from ..output.phrases import format_ids, format_reply_cause, format_time, shorten_worker
from ..output.printing import FactList, Section, Table
from . import client_groups as client_tables


def groups(reply: list[GroupSummary]) -> list[Section]:
    """Return the tables of `/groups`: groups of workers, and those of Kafka clients."""
    columns = ("GROUP", "TYPE", "STATE", "EPOCH", "ASSIGNMENT", "MEMBERS", "CONNECTORS", "ASSIGNED")
    of_workers = [each for each in reply if each.shard is None]
    has_assignors = any(each.assignor for each in of_workers)
    more = ("ASSIGNOR",) if has_assignors else ()
    rows = [
        (
            each.group_id,
            each.type,
            each.state,
            str(each.group_epoch),
            str(each.assignment_epoch),
            str(each.members),
            str(each.connectors),
            f"{each.assigned}/{each.configured}",
            *([each.assignor] if has_assignors else ()),
        )
        for each in of_workers
    ]
    warned = [(each.group_id, each.warning) for each in reply if each.warning]
    warnings = [Table(("GROUP", "WARNING"), warned, title="Warnings")] if warned else []
    return [Table((*columns, *more), rows, "no groups"), *warnings, *client_tables.groups(reply)]


def group(reply: GroupDescription) -> list[Section]:
    """Return the sections of `/groups/{g}`, also for a replay of its log."""
    if reply.shard is not None:
        return client_tables.group(reply)
    sections: list[Section] = [FactList(_group_facts(reply))]
    if reply.config:
        sections.append(FactList(sorted(reply.config.items()), "Settings"))
    sections.append(_members(reply.members))
    sections += client_tables.topics_and_subscriptions(reply, client_tables.map_member_names(()))
    if left_out := [(each.id, each.reason) for each in reply.target.unplaceable]:
        sections.append(Table(("UNPLACEABLE", "REASON"), left_out, title="Unplaceable"))
    if losses := [_loss_row(each) for each in reply.losses]:
        headings = ("LOST WORKER", "CAUSE", "RESOURCES", "PARKED UNTIL")
        sections.append(Table(headings, losses, title="Losses"))
    return sections


def workers(reply: WorkerList) -> list[Section]:
    """Return the table of `/workers`."""
    traits, cells = _traits([each.member for each in reply.workers])
    columns = ("NAME", "PROCESS", "MEMBER", "EPOCH", "CONNECTORS", "TASKS", *traits)
    rows = [
        (*_worker_row(each), *own, *_pid_and_restarts(each.process))
        for each, own in zip(reply.workers, cells, strict=True)
    ]
    return [Table((*columns, "PID", "RESTARTS"), rows, "no workers")]


def engine(process: ProcessDescription | None) -> list[tuple[str, str]]:
    """Return the summary of the JVM that workers share; nothing if they share none."""
    if process is None:
        return []
    pid = "" if process.pid is None else f", pid {process.pid}"
    return [("Shared JVM", f"{process.state}{pid}, restarts {process.restarts}")]


def worker(reply: WorkerDescription) -> list[Section]:
    """Return the sections of one worker: its process, and its member once it has joined."""
    process = reply.process
    worker_facts = (
        ("Name", label_worker(reply)),
        ("Worker", reply.worker_id),
        ("Group", reply.group_id or ""),
        ("Process", process.state if process else ""),
        *zip(("Process id", "Restarts"), _pid_and_restarts(process), strict=True),
        ("Detail", process.detail if process else ""),
        ("Order", _order_word(reply.order)),
    )
    if reply.member is None:
        return [FactList(worker_facts)]
    return [FactList(worker_facts), FactList(_member_facts(reply.member), "Member")]


def assignors(reply: AssignorList) -> list[Section]:
    """Return the tables of `/assignors`: all assignors, and the process that runs them."""
    rows = [(each.name, each.origin) for each in reply.assignors]
    processes = [
        (pid, each.state, restarts, each.detail)
        for each in reply.processes
        for pid, restarts in [_pid_and_restarts(each)]
    ]
    return [
        Table(("NAME", "ORIGIN"), rows, "no assignors"),
        Table(("PROCESS", "STATE", "RESTARTS", "DETAIL"), processes, "no process is known"),
    ]


def label_worker(reply: WorkerDescription) -> str:
    """Return the short name of a worker of `/workers`."""
    return reply.name or shorten_worker(reply.worker_id)


def _group_facts(reply: GroupDescription) -> Sequence[tuple[str, str]]:
    parked = (f"{each.id} until {format_time(each.deadline_ms)}" for each in reply.parked)
    return (
        ("Group", reply.group_id),
        ("Type", reply.type),
        ("State", reply.state),
        ("Generation", _generation(reply.generation)),
        ("Group epoch", str(reply.group_epoch)),
        ("Assignment epoch", str(reply.assignment_epoch)),
        ("Last rebalance", _cause(reply.last_rebalance)),
        ("Assignor", reply.target.assignor),
        ("Assignor's error", reply.target.error),
        ("Configured", format_ids(reply.configured)),
        ("Unassigned", format_ids(reply.unassigned)),
        ("Kept for who is away", format_ids(reply.awaited)),
        ("Parked", "; ".join(parked)),
        ("More moves", format_time(reply.next_moves_at_ms)),
        ("Log end", str(reply.log_end)),
        ("Unknown records", str(reply.unknown_records or "")),
        ("Warning", reply.warning),
    )


def _generation(last: GenerationDescription | None) -> str:
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


def _worker_row(reply: WorkerDescription) -> tuple[str, ...]:
    member, process = reply.member, reply.process
    held = [each.task for each in member.assigned] if member else []
    return (
        label_worker(reply),
        process.state if process else "",
        ",".join(filter(None, (_state(member), _order_word(reply.order)))),
        str(member.member_epoch) if member else "",
        str(held.count(None)) if member else "",
        str(len(held) - held.count(None)) if member else "",
    )


def _state(member: MemberDescription | None) -> str:
    """Return the state of a member; `cold` if it takes no work yet."""
    if member is None:
        return ""
    return member.state if member.capacity else f"{member.state},cold"


def _pid_and_restarts(process: ProcessDescription | None) -> tuple[str, str]:
    if process is None:
        return "", ""
    return "" if process.pid is None else str(process.pid), str(process.restarts)


def _members(reply: Sequence[MemberDescription]) -> Table:
    traits, cells = _traits(reply)
    columns = ("MEMBER", "STATE", "EPOCH", *traits, "HOLDS", "GIVES UP", "MEMBER ID")
    rows = [
        (
            shorten_worker(each.worker_id),
            _state(each),
            str(each.member_epoch),
            *own,
            format_ids(each.assigned),
            format_ids(each.pending_revocation),
            each.member_id,
        )
        for each, own in zip(reply, cells, strict=True)
    ]
    return Table(columns, rows, "no members")


def _traits(
    members: Sequence[MemberDescription | None],
) -> tuple[Sequence[str], Sequence[Sequence[str]]]:
    """Return the headings and cells of traits (zone, tags ...) in which workers differ."""
    cells_by_heading = {
        "ZONE": [(each.rack or "") if each else "" for each in members],
        "TAGS": [",".join(each.tags) if each else "" for each in members],
        "CAP": [str(each.capacity or "") if each else "" for each in members],
        "PROTOCOL": [each.protocol if each else "" for each in members],
    }
    protocols = {each.protocol for each in members if each}
    same = protocols if len(protocols) == 1 else set[str]()
    usual = {"ZONE": {""}, "TAGS": {""}, "CAP": {"", "1"}, "PROTOCOL": {"", *same}}
    shown = {
        heading: cells
        for heading, cells in cells_by_heading.items()
        if not usual[heading].issuperset(cells)
    }
    return tuple(shown), [[cells[row] for cells in shown.values()] for row in range(len(members))]


def _order_word(order: WorkerOrder | None) -> str:
    """Return the operator order for a worker in one word."""
    if order is None:
        return ""
    wishes = {
        "removing": order.removing,
        "draining": order.draining,
        "cordoned": order.cordoned,
    }
    return next((word for word, is_wished in wishes.items() if is_wished), "")


def _loss_row(reply: LossDescription) -> tuple[str, ...]:
    return (
        shorten_worker(reply.worker_id),
        reply.cause,
        format_ids(reply.resources),
        format_time(reply.deadline_ms),
    )


def _cause(reply: EpochCause | None) -> str:
    if reply is None:
        return ""
    cause = format_reply_cause(reply.cause, reply.subject)
    return ", ".join(filter(None, (cause, format_time(reply.time_ms))))
