"""The story of a group in lines: for every epoch its cause, and what it led to."""

from collections.abc import Iterable, Iterator

from ...events.model import Resource
from ...projections.explain.epochs import Answer, Chapter, Seat, Transfer
from .log_words import cause_in_words, listed, member_name
from .moments import moment

INDENT = "    "


def tell(chapter: Chapter) -> Iterator[str]:
    """Yield the lines of one chapter, the first one its cause."""
    bump, answer = chapter.bump, chapter.answer
    asked = f" (asked by {bump.actor})" if bump.actor else ""
    cause = cause_in_words(bump.cause)
    yield f"epoch {bump.group_epoch}  {moment(bump.time_ms)}  {cause}{asked}"
    for attempt in chapter.attempts:
        yield f"{INDENT}failed at {moment(attempt.time_ms)}: {_first_line(attempt.error)}"
    if answer is None:
        yield f"{INDENT}not answered"
        return
    by = f" at {_who(answer.computed_by)}" if answer.computed_by else ""
    assignor = f", {answer.assignor}{by}" if answer.assignor else ""
    yield (
        f"{INDENT}answered by assignment epoch {answer.assignment_epoch}"
        f" after {_seconds(chapter.took_ms)}{assignor}"
    )
    if answer.assignment_epoch == bump.group_epoch:
        yield from (INDENT + line for line in _changes(answer))


def _changes(answer: Answer) -> Iterator[str]:
    """Yield what a target changed; told once, at the last of the epochs that it answers."""
    yield from _transfers("moved", answer.moved)
    yield from _transfers("returned", answer.returned)
    yield from _transfers("placed", answer.placed)
    for due in sorted(set(answer.parked.values())):
        parked = (each for each, until in answer.parked.items() if until == due)
        yield f"parked    {listed(parked)} until {moment(due)}"
    if answer.next_moves_at_ms is not None:
        yield f"more      moves at {moment(answer.next_moves_at_ms)}"
    for giver in sorted(set(answer.displaced.values())):
        stopped = (each for each, had in answer.displaced.items() if had == giver)
        yield f"stopped   {listed(stopped)} at {_who(giver)}"
    for resource in sorted(answer.unplaceable):
        yield f"left out  {resource}: {_first_line(answer.unplaceable[resource])}"
    if answer.retired:
        yield f"retired   {listed(answer.retired)}"
    shares = ", ".join(f"{_who(seat)} {len(answer.kept[seat])}" for seat in sorted(answer.kept))
    yield f"kept      {answer.kept_count}{f' ({shares})' if shares else ''}"
    if answer.settled_ms is not None:
        yield f"settled   {_seconds(max(0, answer.settled_ms - answer.time_ms))} later"


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


def _seconds(milliseconds: int | None) -> str:
    return "" if milliseconds is None else f"{milliseconds / 1000:.3f} s"


def _first_line(text: str) -> str:
    return text.strip().partition("\n")[0]
