"""Tables of a group's epochs: their list, one in full, and the moves of one resource."""

from collections.abc import Iterator, Sequence
from typing import Final

from .....projections.explain.lists import EpochLine, EpochList
from ...replies.epochs import AbsenceInfo, EpochExplanation, GenerationInfo, TargetChangeInfo
from ...replies.handovers import HandoverInfo
from ...replies.moves import ResourceHistory
from ..output.member_names import MemberNames
from ..output.phrases import format_first, format_seconds, format_time, group_ids
from ..output.printing import FactList, Section, Table

_USUAL: Final = {"NEW", "KEPT"}
"""The counts that are always shown; others only if they are not 0."""
DELETED: Final = "deleted"
NOBODY: Final = "nobody"
"""The new owner of a resource that stopped since no worker may run it."""
CONSUMER: Final = "consumer"
OF_HANDOVER: Final = ("REASON", "FROM", "TO", "DOWN")


def tabulate_history(reply: EpochList) -> list[Section]:
    """Return the table of `/groups/{g}/history`."""
    counts = _counts(reply.epochs)
    columns = ("EPOCH", "TIME", "CAUSE", "BY", "MOVED", *counts, "SETTLED")
    names = MemberNames(reply.clients)
    rows = [
        (
            *_line(each, names),
            *(cells[row] for cells in counts.values()),
            _settled(each, reply.last_epoch),
        )
        for row, each in enumerate(reply.epochs)
    ]
    empty = "no epochs: nobody has joined the group yet"
    sections: list[Section] = [Table(columns, rows, empty, folded=("CAUSE", "BY"))]
    if reply.is_trimmed:
        sections.append(FactList([("Trimmed", _trimmed(reply.first_epoch))]))
    return sections


def tabulate_explanation(reply: EpochExplanation) -> list[Section]:
    """Return the sections of `/groups/{g}/explain/{epoch}`."""
    phases = [(each.phase, format_seconds(each.took_ms), each.note) for each in reply.phases]
    total = ("total", format_seconds(reply.total_ms), "")
    names = MemberNames(reply.clients)
    handovers = [(each.id, *_handover(each, names)) for each in reply.handovers]
    generation = reply.generation
    is_of_consumers = CONSUMER in {reply.type, generation.protocol_type if generation else ""}
    columns = ("PARTITION" if is_of_consumers else "RESOURCE", *OF_HANDOVER)
    sections: list[Section] = [
        FactList(list(_facts(reply, names))),
        Table(("PHASE", "TOOK", "NOTE"), [*phases, total]),
        Table(columns, handovers, "nothing moved", rigid=True),
    ]
    if waits := [_wait(each, names) for each in reply.waits]:
        sections.append(Table(("AWAY", "SINCE", "UNTIL", "KEPT FOR IT"), waits, title="Waits"))
    return sections


def tabulate_moves(reply: ResourceHistory) -> list[Section]:
    """Return the table of `/groups/{g}/moves/{resource}`."""
    names = MemberNames(reply.clients)
    rows = [
        (
            str(each.group_epoch),
            _to_the_second(each.time_ms),
            *ways,
            f"{'; '.join(map(names.cause, each.causes, each.subjects))}: {reason}",
        )
        for each in reply.moves
        for reason, *ways in [_handover(each.handover, names)]
    ]
    return [Table(("EPOCH", "TIME", *OF_HANDOVER[1:], "WHY"), rows, folded=("WHY",))]


def _counts(epochs: Sequence[EpochLine]) -> dict[str, list[str]]:
    """Return the counts of each epoch besides moves, by heading."""
    counts = {
        "NEW": [each.placed for each in epochs],
        "KEPT": [each.kept for each in epochs],
        "PARKED": [each.parked for each in epochs],
        "LEFT OUT": [each.unplaceable for each in epochs],
    }
    return {
        heading: ["" if count is None else str(count) for count in column]
        for heading, column in counts.items()
        if heading in _USUAL or any(column)
    }


def _trimmed(first_epoch: int | None) -> str:
    if first_epoch is None:
        return "the log tells of no epoch any more"
    return f"what was before epoch {first_epoch} is not in the log any more"


def _line(each: EpochLine, names: MemberNames) -> tuple[str, ...]:
    """Return the cells of an epoch: its cause, and the number of moves."""
    return (
        str(each.group_epoch),
        _to_the_second(each.time_ms),
        ": ".join(filter(None, (names.cause(each.cause, each.subject), each.changed))),
        each.actor or "",
        "" if each.moved is None else str(each.moved + (each.returned or 0)),
    )


def _to_the_second(time_ms: int) -> str:
    whole, point, _ = format_time(time_ms).partition(".")
    return f"{whole}Z" if point else whole


def _settled(each: EpochLine, last_epoch: int | None) -> str:
    """Return the duration of an epoch, or the later epoch whose target answers it."""
    if each.assignment_epoch is None:
        return "unanswered"
    if each.assignment_epoch != each.group_epoch:
        return f"with {each.assignment_epoch}"
    unsettled = "not yet" if each.assignment_epoch == last_epoch else "overtaken"
    return format_seconds(each.settled_after_ms) or unsettled


def _wait(each: AbsenceInfo, names: MemberNames) -> tuple[str, ...]:
    """Return the cells of a wait for a member's return, and its outcome."""
    outcome = "it was back" if each.is_back else "others were given it"
    outcome = f"goes on in {each.superseded_by}" if each.superseded_by else outcome
    until = format_time(each.until_ms)
    return (
        names.of(each.seat),
        format_time(each.since_ms),
        f"{until}, {outcome}" if until else "it waits still",
        format_first(each.resources),
    )


def _facts(reply: EpochExplanation, names: MemberNames) -> Iterator[tuple[str, str]]:
    yield "Epoch", str(reply.group_epoch)
    yield "Time", format_time(reply.time_ms)
    yield "Cause", names.cause(reply.cause, reply.subject)
    yield "Changed", reply.changed
    yield "Asked by", reply.actor or ""
    yield "Warning", reply.warning
    for each in reply.attempts:
        failed = each.error.strip().partition("\n")[0]
        yield "Failed", f"{format_time(each.time_ms)}: {failed}"
    if reply.generation is not None:
        yield from _generation_facts(reply.generation, names)
        if reply.target_change is not None:
            yield "Kept", _kept(reply.target_change, names)
    elif reply.target_change is None:
        yield "Target", "none"
    else:
        yield from _target_facts(reply.target_change, names)


def _generation_facts(generation: GenerationInfo, names: MemberNames) -> Iterator[tuple[str, str]]:
    yield "Members", ", ".join(map(names.full_name, generation.members)) or "nobody"
    if generation.members:
        yield "Protocol", f"{generation.protocol_type} {generation.protocol}"
        yield "Led by", generation.leader_name or generation.leader
        yield "Assigned", format_time(generation.assigned_ms) or "not yet"


def _target_facts(change: TargetChangeInfo, names: MemberNames) -> Iterator[tuple[str, str]]:
    yield "Target", f"assignment epoch {change.assignment_epoch}"
    yield "Assignor", change.assignor
    yield "Computed by", names.of(change.computed_by) or "the coordinator"
    yield "Kept", _kept(change, names)
    for due, parked in group_ids((each.deadline_ms, each.id) for each in change.parked):
        yield "Parked", f"{parked} until {format_time(due)}"
    if change.next_moves_at_ms:
        yield "More moves", f"at {format_time(change.next_moves_at_ms)}"
    for reason, left_out in group_ids((each.reason, each.id) for each in change.unplaceable):
        yield "Left out", f"{left_out}: {reason}"


def _kept(change: TargetChangeInfo, names: MemberNames) -> str:
    counts = [(names.of(each.seat), len(each.resources)) for each in change.kept]
    members = ", ".join(f"{member} {count}" for member, count in counts)
    return f"{sum(count for _, count in counts)}{f' ({members})' if members else ''}"


def _handover(each: HandoverInfo, names: MemberNames) -> tuple[str, ...]:
    """Return the cells of a handover: cause, workers, downtime."""
    taker = names.of(each.taker)
    if not taker and each.reason != DELETED:
        taker = NOBODY
    return (
        ", ".join(filter(None, (each.reason, each.detail))),
        names.of(each.giver),
        f"{taker}, superseded by {each.superseded_by}" if each.superseded_by else taker,
        _down(each),
    )


def _down(each: HandoverInfo) -> str:
    """Return the downtime of a resource, or its known bounds."""
    if each.freed_by:
        return f"see {each.freed_by}"
    at_least, at_most = (
        format_seconds(each.downtime_at_least_ms),
        format_seconds(each.downtime_at_most_ms),
    )
    if each.downtime_ms is not None or not at_least:
        return format_seconds(each.downtime_ms)
    return f"{at_least} to {at_most}" if at_most else f"at least {at_least}"
