"""The story of a group in lines: for every epoch its cause, and what it led to."""

from collections.abc import Iterable, Iterator

from .....events.model import Resource
from .....projections.explain.diff import Seat, TargetChange, Transfer
from .....projections.explain.epochs import EpochReport
from ..command.phrases import cause_in_words, member_name, moment, seconds
from .narrator import listed

INDENT = "    "


def tell(report: EpochReport) -> Iterator[str]:
    """Yield the lines of one report, the first one its cause."""
    bump, change = report.bump, report.target_change
    asked = f" (asked by {bump.actor})" if bump.actor else ""
    cause = cause_in_words(bump.cause)
    yield f"epoch {bump.group_epoch}  {moment(bump.time_ms)}  {cause}{asked}"
    for attempt in report.attempts:
        yield f"{INDENT}failed at {moment(attempt.time_ms)}: {_first_line(attempt.error)}"
    if change is None:
        yield f"{INDENT}not answered"
        return
    by = f" at {_who(change.computed_by)}" if change.computed_by else ""
    assignor = f", {change.assignor}{by}" if change.assignor else ""
    yield (
        f"{INDENT}answered by assignment epoch {change.assignment_epoch}"
        f" after {seconds(report.took_ms)}{assignor}"
    )
    if change.assignment_epoch == bump.group_epoch:
        yield from (INDENT + line for line in _changes(change))


def _changes(change: TargetChange) -> Iterator[str]:
    """Yield what a target changed; told once, at the last of the epochs that it answers."""
    yield from _transfers("moved", change.moved)
    yield from _transfers("returned", change.returned)
    yield from _transfers("placed", change.placed)
    for due in sorted(set(change.parked.values())):
        parked = (each for each, until in change.parked.items() if until == due)
        yield f"parked    {listed(parked)} until {moment(due)}"
    if change.next_moves_at_ms is not None:
        yield f"more      moves at {moment(change.next_moves_at_ms)}"
    for giver in sorted(set(change.displaced.values())):
        stopped = (each for each, had in change.displaced.items() if had == giver)
        yield f"stopped   {listed(stopped)} at {_who(giver)}"
    for resource in sorted(change.unplaceable):
        yield f"left out  {resource}: {_first_line(change.unplaceable[resource])}"
    if change.retired:
        yield f"retired   {listed(change.retired)}"
    shares = ", ".join(f"{_who(seat)} {len(change.kept[seat])}" for seat in sorted(change.kept))
    yield f"kept      {change.kept_count}{f' ({shares})' if shares else ''}"
    if change.settled_ms is not None:
        yield f"settled   {seconds(max(0, change.settled_ms - change.time_ms))} later"


def _transfers(word: str, transfers: Iterable[Transfer]) -> Iterator[str]:
    """Yield one line for each pair of giver and taker."""
    ways: dict[tuple[Seat | None, Seat], list[Resource]] = {}
    for resource, giver, taker in transfers:
        ways.setdefault((giver, taker), []).append(resource)
    for (giver, taker), resources in ways.items():
        way = f"{_who(giver)} -> {_who(taker)}" if giver else f"at {_who(taker)}"
        yield f"{word:<8}  {listed(resources)} {way}"


def _who(seat: Seat) -> str:
    return member_name(seat.worker, seat.member_id)


def _first_line(text: str) -> str:
    return text.strip().partition("\n")[0]
