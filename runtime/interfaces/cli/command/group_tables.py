"""Groups, the workers that are their members, and what these compute with, as tables."""

from collections.abc import Sequence

from ...replies.groups import EpochCause, GroupDescription, GroupSummary, LossDescription
from ...replies.node import (
    AssignorList,
    MemberDescription,
    ProcessDescription,
    WorkerDescription,
    WorkerList,
    WorkerOrder,
)
from .phrases import moment, short_form, worker_name
from .printing import FactList, Section, Table


def groups(found: list[GroupSummary]) -> list[Section]:
    """Return the table of `/groups`."""
    columns = ("GROUP", "STATE", "EPOCH", "ASSIGNMENT", "MEMBERS", "CONNECTORS", "ASSIGNED")
    rows = [
        (
            each.group_id,
            each.state,
            str(each.group_epoch),
            str(each.assignment_epoch),
            str(each.members),
            str(each.connectors),
            f"{each.assigned}/{each.configured}",
        )
        for each in found
    ]
    warned = [(each.group_id, each.warning) for each in found if each.warning]
    warnings = [Table(("GROUP", "WARNING"), warned, title="Warnings")] if warned else []
    return [Table(columns, rows, "no groups"), *warnings]


def group(found: GroupDescription) -> list[Section]:
    """Return `/groups/{g}`, which is also what a replay of its log tells."""
    sections: list[Section] = [FactList(_group_facts(found))]
    if found.config:
        sections.append(FactList(sorted(found.config.items()), "Settings"))
    sections.append(_members(found.members))
    if left_out := [(each.id, each.reason) for each in found.target.unplaceable]:
        sections.append(Table(("UNPLACEABLE", "REASON"), left_out, title="Unplaceable"))
    if losses := [_loss_row(each) for each in found.losses]:
        headings = ("LOST WORKER", "CAUSE", "RESOURCES", "PARKED UNTIL")
        sections.append(Table(headings, losses, title="Losses"))
    return sections


def workers(found: WorkerList) -> list[Section]:
    """Return the table of `/workers`."""
    traits, cells = _traits([each.member for each in found.workers])
    columns = ("NAME", "PROCESS", "MEMBER", "EPOCH", "CONNECTORS", "TASKS", *traits)
    rows = [
        (*_worker_row(each), *own, *_pid_and_restarts(each.process))
        for each, own in zip(found.workers, cells, strict=True)
    ]
    return [Table((*columns, "PID", "RESTARTS"), rows, "no workers")]


def worker(found: WorkerDescription) -> list[Section]:
    """Return one worker: the process, and the member that it is once it joined."""
    process = found.process
    worker_facts = (
        ("Name", worker_label(found)),
        ("Worker", found.worker_id),
        ("Group", found.group_id or ""),
        ("Process", process.state if process else ""),
        *zip(("Process id", "Restarts"), _pid_and_restarts(process), strict=True),
        ("Detail", process.detail if process else ""),
        ("Order", _order_word(found.order)),
    )
    if found.member is None:
        return [FactList(worker_facts)]
    return [FactList(worker_facts), FactList(_member_facts(found.member), "Member")]


def assignors(found: AssignorList) -> list[Section]:
    """Return the tables of `/assignors`: which there are, and the process that runs them."""
    rows = [(each.name, each.origin) for each in found.assignors]
    processes = [
        (pid, each.state, restarts, each.detail)
        for each in found.processes
        for pid, restarts in [_pid_and_restarts(each)]
    ]
    return [
        Table(("NAME", "ORIGIN"), rows, "no assignors"),
        Table(("PROCESS", "STATE", "RESTARTS", "DETAIL"), processes, "no process is known"),
    ]


def worker_label(found: WorkerDescription) -> str:
    """Return the short name of a worker of `/workers`."""
    return found.name or worker_name(found.worker_id)


def _group_facts(found: GroupDescription) -> Sequence[tuple[str, str]]:
    parked = (f"{each.id} until {moment(each.deadline_ms)}" for each in found.parked)
    return (
        ("Group", found.group_id),
        ("State", found.state),
        ("Group epoch", str(found.group_epoch)),
        ("Assignment epoch", str(found.assignment_epoch)),
        ("Last rebalance", _cause(found.last_rebalance)),
        ("Assignor", found.target.assignor),
        ("Assignor's error", found.target.error),
        ("Configured", short_form(found.configured)),
        ("Unassigned", short_form(found.unassigned)),
        ("Kept for who is away", short_form(found.awaited)),
        ("Parked", "; ".join(parked)),
        ("More moves", moment(found.next_moves_at_ms)),
        ("Log end", str(found.log_end)),
        ("Unknown records", str(found.unknown_records or "")),
        ("Warning", found.warning),
    )


def _member_facts(member: MemberDescription) -> Sequence[tuple[str, str]]:
    return (
        ("State", member.state),
        ("Epoch", str(member.member_epoch)),
        ("Holds", short_form(member.assigned)),
        ("Gives up", short_form(member.pending_revocation)),
        ("Target", short_form(member.target)),
        ("Member id", member.member_id),
        ("Zone", member.rack or ""),
        ("Tags", ",".join(member.tags)),
        ("Capacity", str(member.capacity)),
    )


def _worker_row(found: WorkerDescription) -> tuple[str, ...]:
    member, process = found.member, found.process
    held = [each.task for each in member.assigned] if member else []
    state = member.state if member else ""
    return (
        worker_label(found),
        process.state if process else "",
        ",".join(filter(None, (state, _order_word(found.order)))),
        str(member.member_epoch) if member else "",
        str(held.count(None)) if member else "",
        str(len(held) - held.count(None)) if member else "",
    )


def _pid_and_restarts(process: ProcessDescription | None) -> tuple[str, str]:
    if process is None:
        return "", ""
    return "" if process.pid is None else str(process.pid), str(process.restarts)


def _members(found: Sequence[MemberDescription]) -> Table:
    traits, cells = _traits(found)
    columns = ("MEMBER", "STATE", "EPOCH", *traits, "HOLDS", "GIVES UP", "MEMBER ID")
    rows = [
        (
            worker_name(each.worker_id),
            each.state,
            str(each.member_epoch),
            *own,
            short_form(each.assigned),
            short_form(each.pending_revocation),
            each.member_id,
        )
        for each, own in zip(found, cells, strict=True)
    ]
    return Table(columns, rows, "no members")


def _traits(
    members: Sequence[MemberDescription | None],
) -> tuple[Sequence[str], Sequence[Sequence[str]]]:
    """Return the headings and the cells of what sets workers apart, where anything does."""
    cells_by_heading = {
        "ZONE": [(each.rack or "") if each else "" for each in members],
        "TAGS": [",".join(each.tags) if each else "" for each in members],
        "CAP": [str(each.capacity) if each else "" for each in members],
    }
    usual = {"ZONE": {""}, "TAGS": {""}, "CAP": {"", "1"}}
    shown = {
        heading: cells
        for heading, cells in cells_by_heading.items()
        if not usual[heading].issuperset(cells)
    }
    return tuple(shown), [[cells[row] for cells in shown.values()] for row in range(len(members))]


def _order_word(order: WorkerOrder | None) -> str:
    """Return what operators want of a worker, in a word."""
    if order is None:
        return ""
    wishes = {
        "removing": order.removing,
        "draining": order.draining,
        "cordoned": order.cordoned,
    }
    return next((word for word, is_wished in wishes.items() if is_wished), "")


def _loss_row(found: LossDescription) -> tuple[str, ...]:
    return (
        worker_name(found.worker_id),
        found.cause,
        short_form(found.resources),
        moment(found.deadline_ms),
    )


def _cause(found: EpochCause | None) -> str:
    if found is None:
        return ""
    cause = f"{found.cause} {worker_name(found.subject)}".strip()
    return ", ".join(filter(None, (cause, moment(found.time_ms))))
