"""Tables of a group's epochs: their list, one in full, and the moves of one resource."""

from collections.abc import Callable, Iterator
from typing import Any, Final

from .....projections.explain.causes.owners import OwnerTerm
from .....projections.explain.lists import EpochLine, EpochList
from ...replies.epochs import (
    AbsenceInfo,
    EpochExplanation,
    GenerationInfo,
    PhaseInfo,
    TargetChangeInfo,
)
from ...replies.handovers import HandoverInfo, ResourceHistory, ResourceMove
from ..output.layout import TableLayout
from ..output.member_names import MemberNames
from ..output.phrases import format_first, format_seconds, format_time, group_ids
from ..output.printing import FactList, Section

DELETED: Final = "deleted"
NOBODY: Final = "nobody"
"""The new owner of a resource that stopped since no worker may run it."""
CONSUMER: Final = "consumer"


PHASES: Final = TableLayout(
    PhaseInfo, "PHASE: phase, TOOK: took_ms, NOTE: note", {"TOOK": format_seconds}
)


def tabulate_history(history: EpochList) -> list[Section]:
    """Lay out `/groups/{g}/history`."""
    names = MemberNames(history.clients)
    layout = TableLayout(
        EpochLine,
        "EPOCH: group_epoch, TIME: time_ms, CAUSE, BY: actor, MOVED, NEW: placed, KEPT: kept, "
        "PARKED: parked, LEFT OUT: unplaceable, SETTLED",
        {
            "TIME": _format_whole_seconds,
            "CAUSE": lambda it: ": ".join(
                filter(None, (names.format_cause(it.cause, it.subject), it.changed))
            ),
            "MOVED": lambda it: None if it.moved is None else it.moved + (it.returned or 0),
            "SETTLED": lambda it: _format_settling(it, history.last_epoch),
        },
        shown_if={"PARKED": any, "LEFT OUT": any},
        empty="no epochs: nobody has joined the group yet"
        if history.compacted is None
        else "no epochs that can be told",
        folded=("CAUSE", "BY"),
    )
    sections: list[Section] = [layout.lay_out(history.epochs)]
    if history.compacted is not None:
        before = history.compacted.describe_gap(history.first_epoch)
        sections.append(FactList([("Before", before)]))
    elif history.is_trimmed:
        sections.append(FactList([("Trimmed", _describe_trim(history.first_epoch))]))
    if history.owners:
        sections.append(_lay_out_owners(history.owners))
    return sections


def _lay_out_owners(owners: list[OwnerTerm]) -> Section:
    layout = TableLayout(
        OwnerTerm,
        "OWNER: epoch, NODE: node, SINCE: since_ms, AFTER SILENCE: silence_ms, "
        "GIVEN UP: resigned_ms",
        {
            "SINCE": _format_whole_seconds,
            "AFTER SILENCE": format_seconds,
            "GIVEN UP": lambda ms: "" if ms is None else _format_whole_seconds(ms),
        },
        shown_if={"GIVEN UP": any},
    )
    return layout.lay_out(owners)


def tabulate_explanation(epoch: EpochExplanation) -> list[Section]:
    """Lay out `/groups/{g}/explain/{epoch}`."""
    names = MemberNames(epoch.clients)
    generation = epoch.generation
    is_of_consumers = CONSUMER in {epoch.type, generation.protocol_type if generation else ""}
    handovers = TableLayout(
        HandoverInfo,
        f"{'PARTITION' if is_of_consumers else 'RESOURCE'}: id, REASON, FROM: giver, TO, DOWN",
        {"REASON": _format_reason, **_handover_formats(names)},
        empty="nothing moved",
        rigid=True,
    )
    waits = TableLayout(
        AbsenceInfo,
        "AWAY: seat, SINCE: since_ms, UNTIL, KEPT FOR IT: resources",
        {
            "AWAY": names.of,
            "SINCE": format_time,
            "UNTIL": _format_end,
            "KEPT FOR IT": format_first,
        },
        title="Waits",
    )
    return [
        FactList(list(_epoch_facts(epoch, names))),
        PHASES.lay_out([*epoch.phases, PhaseInfo("total", None, None, epoch.total_ms, "")]),
        handovers.lay_out(epoch.handovers),
        *waits.lay_out_any(epoch.waits),
        *([_lay_out_owners(epoch.owners)] if epoch.owners else []),
    ]


def tabulate_moves(history: ResourceHistory) -> list[Section]:
    """Lay out `/groups/{g}/moves/{resource}`."""
    names = MemberNames(history.clients)

    def format_why(move: ResourceMove) -> str:
        causes = "; ".join(map(names.format_cause, move.causes, move.subjects))
        return f"{causes}: {_format_reason(move.handover)}"

    layout = TableLayout(
        ResourceMove,
        "EPOCH: group_epoch, TIME: time_ms, FROM: handover.giver, TO: handover, DOWN: handover, "
        "WHY",
        {"TIME": _format_whole_seconds, "WHY": format_why, **_handover_formats(names)},
        folded=("WHY",),
    )
    return [layout.lay_out(history.moves)]


def _describe_trim(first_epoch: int | None) -> str:
    if first_epoch is None:
        return "the log tells of no epoch any more"
    return f"what was before epoch {first_epoch} is not in the log any more"


def _format_whole_seconds(time_ms: int) -> str:
    whole, point, _ = format_time(time_ms).partition(".")
    return f"{whole}Z" if point else whole


def _format_settling(each: EpochLine, last_epoch: int | None) -> str:
    """Return the duration of an epoch, or the later epoch whose target answers it."""
    if each.assignment_epoch is None:
        return "unanswered"
    if each.assignment_epoch != each.group_epoch:
        return f"with {each.assignment_epoch}"
    unsettled = "not yet" if each.assignment_epoch == last_epoch else "overtaken"
    return format_seconds(each.settled_after_ms) or unsettled


def _format_end(wait: AbsenceInfo) -> str:
    """Return when a wait for a member ended, and how."""
    outcome = "it was back" if wait.is_back else "others were given it"
    outcome = f"goes on in {wait.superseded_by}" if wait.superseded_by else outcome
    until = format_time(wait.until_ms)
    return f"{until}, {outcome}" if until else "it waits still"


def _epoch_facts(epoch: EpochExplanation, names: MemberNames) -> Iterator[tuple[str, str]]:
    yield "Epoch", str(epoch.group_epoch)
    yield "Time", format_time(epoch.time_ms)
    yield "Cause", names.format_cause(epoch.cause, epoch.subject)
    yield "Changed", epoch.changed
    yield "Asked by", epoch.actor or ""
    yield "Warning", epoch.warning
    for each in epoch.attempts:
        failed = each.error.strip().partition("\n")[0]
        yield "Failed", f"{format_time(each.time_ms)}: {failed}"
    if epoch.generation is not None:
        yield from _generation_facts(epoch.generation, names)
        if epoch.target_change is not None:
            yield "Kept", _format_kept(epoch.target_change, names)
    elif epoch.target_change is None:
        yield "Target", "none"
    else:
        yield from _target_facts(epoch.target_change, names)


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
    yield "Kept", _format_kept(change, names)
    for due, parked in group_ids((each.deadline_ms, each.id) for each in change.parked):
        yield "Parked", f"{parked} until {format_time(due)}"
    if change.next_moves_at_ms:
        yield "More moves", f"at {format_time(change.next_moves_at_ms)}"
    for reason, left_out in group_ids((each.reason, each.id) for each in change.unplaceable):
        yield "Left out", f"{left_out}: {reason}"


def _format_kept(change: TargetChangeInfo, names: MemberNames) -> str:
    counts = [(names.of(each.seat), len(each.resources)) for each in change.kept]
    members = ", ".join(f"{member} {count}" for member, count in counts)
    return f"{sum(count for _, count in counts)}{f' ({members})' if members else ''}"


def _handover_formats(names: MemberNames) -> dict[str, Callable[[Any], object]]:
    return {
        "FROM": names.of,
        "TO": lambda handover: _format_taker(handover, names),
        "DOWN": _format_downtime,
    }


def _format_reason(handover: HandoverInfo) -> str:
    return ", ".join(filter(None, (handover.reason, handover.detail)))


def _format_taker(handover: HandoverInfo, names: MemberNames) -> str:
    taker = names.of(handover.taker)
    if not taker and handover.reason != DELETED:
        taker = NOBODY
    return f"{taker}, superseded by {handover.superseded_by}" if handover.superseded_by else taker


def _format_downtime(handover: HandoverInfo) -> str:
    """Return the downtime of a resource, or its known bounds."""
    if handover.freed_by:
        return f"see {handover.freed_by}"
    at_least, at_most = (
        format_seconds(handover.downtime_at_least_ms),
        format_seconds(handover.downtime_at_most_ms),
    )
    if handover.downtime_ms is not None or not at_least:
        return format_seconds(handover.downtime_ms)
    return f"{at_least} to {at_most}" if at_most else f"at least {at_least}"
