"""`history` and `explain`: what became of a group's epochs, with or without a cluster.

A cluster that runs is asked, so that it is told the same as everybody; without one the log's
files are read. All that is told is in the log, so both say the same.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Annotated, Final, TypeVar

import typer

from .....events.log.errors import NoLogError
from .....events.log.reader import LogReader
from .....projections.explain.cache import EpochCache, EpochLine, EpochList, NotToldError
from ...replies.epochs import (
    AbsenceInfo,
    EpochExplanation,
    GenerationInfo,
    HandoverInfo,
    SeatInfo,
    TargetChangeInfo,
    describe_epoch,
)
from ..command.client import Client, client_of, note_of
from ..command.logs import GroupFolder, LogName
from ..command.options import ReadThere, takes
from ..command.phrases import cause_of, first_of, group_ids, member_name, moment, seconds
from ..command.printing import FactList, Failed, Section, Table, Unreachable, show

T = TypeVar("T")
LINES: Final = 50
_USUAL: Final = {"NEW", "KEPT"}
"""The counts that are shown in any case: the others only where there is anything."""
DELETED: Final = "deleted"
NOBODY: Final = "nobody"
"""Stands for the taker of what stopped because no worker may run it."""

Group = Annotated[
    str | None, typer.Option("--group", metavar="NAME", help="Another group than the node's.")
]


@takes(ReadThere)
def history(
    place: ReadThere,
    limit: Annotated[
        int, typer.Option("--limit", metavar="N", min=1, max=10_000, help="How many epochs.")
    ] = LINES,
    group: Group = None,
) -> None:
    """List the last epochs: cause, who asked, what moved, stayed and waits, how long it took."""

    def ask(client: Client, group_id: str) -> EpochList:
        return client.get(EpochList, "groups", group_id, "history", limit=str(limit))

    def read(log: LogReader) -> EpochList:
        return EpochCache(log).history(limit)

    reply = _read(place, group, ask, read)
    show(place.output, reply, history_tables(reply))


@takes(ReadThere)
def explain(
    place: ReadThere,
    epoch: Annotated[
        int | None,
        typer.Argument(metavar="EPOCH", help="Default: the latest.", show_default=False),
    ] = None,
    group: Group = None,
) -> None:
    """Explain an epoch: its cause, its target, how long each phase took, what moved and why.

    From the log alone: also for epochs of long ago, and where no cluster runs.
    """

    def ask(client: Client, group_id: str) -> EpochExplanation:
        wanted = "latest" if epoch is None else str(epoch)
        return client.get(EpochExplanation, "groups", group_id, "explain", wanted)

    reply = _read(place, group, ask, lambda log: _explained(log, epoch))
    show(place.output, reply, explanation_tables(reply))


def _explained(log: LogReader, epoch: int | None) -> EpochExplanation:
    try:
        return describe_epoch(EpochCache(log).explain(epoch))
    except NotToldError as untold:
        raise Failed(str(untold)) from None


def _read(
    place: ReadThere,
    group: str | None,
    ask: Callable[[Client, str], T],
    read: Callable[[LogReader], T],
) -> T:
    """Return what the cluster at `--url` or on this node answers, or else what its files say.

    `--data-dir` means the files, whatever runs.
    """
    if group is not None:
        place = replace(place, overrides=[*(place.overrides or ()), f"group.id={group}"])
    config = place.configured()
    if place.url is not None:
        return ask(client_of(place), config.group_id)
    if place.data_dir is None and note_of(config).exists():
        with suppress(Unreachable):  # it was killed, and its word of how it is reached is left
            return ask(client_of(place), config.group_id)
    try:
        with GroupFolder(place).open(LogName.CONTROL) as log:
            return read(log)
    except NoLogError:
        if place.data_dir is not None:
            raise
    return ask(client_of(place), config.group_id)


def history_tables(reply: EpochList) -> list[Section]:
    """Return the table of `/groups/{g}/history`."""
    counts = _counts(reply.epochs)
    columns = ("EPOCH", "TIME", "CAUSE", "BY", "MOVED", *counts, "SETTLED")
    rows = [
        (*_line(each), *(cells[row] for cells in counts.values()), _settled(each, reply.last_epoch))
        for row, each in enumerate(reply.epochs)
    ]
    empty = "no epochs: nobody has joined the group yet"
    sections: list[Section] = [Table(columns, rows, empty, folded=("CAUSE", "BY"))]
    if reply.is_trimmed:
        sections.append(FactList([("Trimmed", _trimmed(reply.first_epoch))]))
    return sections


def explanation_tables(reply: EpochExplanation) -> list[Section]:
    """Return the sections of `/groups/{g}/explain/{epoch}`."""
    phases = [(each.phase, seconds(each.took_ms), each.note) for each in reply.phases]
    total = ("total", seconds(reply.total_ms), "")
    handovers = [_handover(each) for each in reply.handovers]
    columns = ("RESOURCE", "REASON", "FROM", "TO", "DOWN")
    sections: list[Section] = [
        FactList(list(_facts(reply))),
        Table(("PHASE", "TOOK", "NOTE"), [*phases, total]),
        Table(columns, handovers, "nothing moved", rigid=True),
    ]
    if waits := [_wait(each) for each in reply.waits]:
        sections.append(Table(("AWAY", "SINCE", "UNTIL", "KEPT FOR IT"), waits, title="Waits"))
    return sections


def _counts(epochs: Sequence[EpochLine]) -> dict[str, list[str]]:
    """Return what is counted of each epoch besides what moved, by heading."""
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


def _line(each: EpochLine) -> tuple[str, ...]:
    """Return what an epoch was, and how much moved."""
    return (
        str(each.group_epoch),
        _to_the_second(each.time_ms),
        ": ".join(filter(None, (cause_of(each.cause, each.subject), each.changed))),
        each.actor or "",
        "" if each.moved is None else str(each.moved + (each.returned or 0)),
    )


def _to_the_second(time_ms: int) -> str:
    whole, point, _ = moment(time_ms).partition(".")
    return f"{whole}Z" if point else whole


def _settled(each: EpochLine, last_epoch: int | None) -> str:
    """Return how long an epoch took, or which later one took it along."""
    if each.assignment_epoch is None:
        return "unanswered"
    if each.assignment_epoch != each.group_epoch:
        return f"with {each.assignment_epoch}"
    unsettled = "not yet" if each.assignment_epoch == last_epoch else "overtaken"
    return seconds(each.settled_after_ms) or unsettled


def _wait(each: AbsenceInfo) -> tuple[str, ...]:
    """Return for whose return something waited, and what came of it."""
    outcome = "it was back" if each.is_back else "others were given it"
    outcome = f"goes on in {each.superseded_by}" if each.superseded_by else outcome
    until = moment(each.until_ms)
    return (
        _member(each.seat),
        moment(each.since_ms),
        f"{until}, {outcome}" if until else "it waits still",
        first_of(each.resources),
    )


def _facts(reply: EpochExplanation) -> Iterator[tuple[str, str]]:
    yield "Epoch", str(reply.group_epoch)
    yield "Time", moment(reply.time_ms)
    yield "Cause", cause_of(reply.cause, reply.subject)
    yield "Changed", reply.changed
    yield "Asked by", reply.actor or ""
    yield "Warning", reply.warning
    for each in reply.attempts:
        failed = each.error.strip().partition("\n")[0]
        yield "Failed", f"{moment(each.time_ms)}: {failed}"
    if reply.generation is not None:
        yield from _generation_facts(reply.generation)
    elif reply.target_change is None:
        yield "Target", "none"
    else:
        yield from _target_facts(reply.target_change)


def _generation_facts(generation: GenerationInfo) -> Iterator[tuple[str, str]]:
    yield "Members", ", ".join(generation.members) or "nobody"
    if generation.members:
        yield "Protocol", f"{generation.protocol_type} {generation.protocol}"
        yield "Led by", generation.leader
        yield "Assigned", moment(generation.assigned_ms) or "not yet"


def _target_facts(change: TargetChangeInfo) -> Iterator[tuple[str, str]]:
    yield "Target", f"assignment epoch {change.assignment_epoch}"
    yield "Assignor", change.assignor
    yield "Computed by", _member(change.computed_by) or "the coordinator"
    yield "Kept", _kept(change)
    for due, parked in group_ids((each.deadline_ms, each.id) for each in change.parked):
        yield "Parked", f"{parked} until {moment(due)}"
    if change.next_moves_at_ms:
        yield "More moves", f"at {moment(change.next_moves_at_ms)}"
    for reason, left_out in group_ids((each.reason, each.id) for each in change.unplaceable):
        yield "Left out", f"{left_out}: {reason}"


def _kept(change: TargetChangeInfo) -> str:
    counts = [(_member(each.seat), len(each.resources)) for each in change.kept]
    members = ", ".join(f"{member} {count}" for member, count in counts)
    return f"{sum(count for _, count in counts)}{f' ({members})' if members else ''}"


def _handover(each: HandoverInfo) -> tuple[str, ...]:
    taker = _member(each.taker)
    if not taker and each.reason != DELETED:
        taker = NOBODY
    return (
        each.id,
        ", ".join(filter(None, (each.reason, each.detail))),
        _member(each.giver),
        f"{taker}, superseded by {each.superseded_by}" if each.superseded_by else taker,
        _down(each),
    )


def _down(each: HandoverInfo) -> str:
    """Return for how long nobody ran a resource, as far as the log tells."""
    if each.freed_by:
        return f"see {each.freed_by}"
    at_least, at_most = seconds(each.downtime_at_least_ms), seconds(each.downtime_at_most_ms)
    if each.downtime_ms is not None or not at_least:
        return seconds(each.downtime_ms)
    return f"{at_least} to {at_most}" if at_most else f"at least {at_least}"


def _member(seat: SeatInfo | None) -> str:
    return "" if seat is None else member_name(seat.worker, seat.member_id)
