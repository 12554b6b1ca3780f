"""A story cut down to the faults without which nothing goes wrong.

That is delta debugging (Zeller and Hildebrandt, 2002) over the faults of a schedule: leave out
halves, then quarters, and so on, as long as the same rule is still broken.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Final

from .play import PlayResult, play
from .schedule import Schedule, draw

PLAYS_MAX: Final = 600
"""After so many plays the shortest story so far has to do."""

Play = Callable[[Schedule], PlayResult]


class Shrinker:
    """Looks for a shorter schedule that breaks the same rule."""

    def __init__(self, found: PlayResult, run: Play = play) -> None:
        self._shortest = found
        self._rule = rule_of(found)
        self._run = run
        self._plays = 0

    def shrink(self) -> PlayResult:
        """Return what came of the shortest schedule that was found."""
        self._drop_what_came_after()
        parts = 2
        while parts <= len(self._numbers()) and self._plays < PLAYS_MAX:
            if self._drop_a_part(parts):
                parts = max(2, parts - 1)
            else:
                parts *= 2
        while self._drop_one() or self._make_smaller():
            pass
        return self._shortest

    def _numbers(self) -> Sequence[int]:
        return [fault.number for fault in self._shortest.schedule.faults]

    def _breaks(self, schedule: Schedule) -> bool:
        if self._plays >= PLAYS_MAX:
            return False
        self._plays += 1
        outcome = self._run(schedule)
        if rule_of(outcome) != self._rule:
            return False
        self._shortest = outcome
        return True

    def _drop_what_came_after(self) -> None:
        schedule, end_ms = self._shortest.schedule, self._shortest.cluster_ms
        self._breaks(
            schedule.keeping([each.number for each in schedule.faults if each.at_ms <= end_ms])
        )

    def _drop_a_part(self, parts: int) -> bool:
        numbers = self._numbers()
        for part in _parts(numbers, parts):
            if self._breaks(self._shortest.schedule.keeping(set(numbers) - set(part))):
                return True
        return False

    def _drop_one(self) -> bool:
        return bool(self._numbers()) and self._drop_a_part(len(self._numbers()))

    def _make_smaller(self) -> bool:
        schedule = self._shortest.schedule
        numbers = self._numbers()
        size = schedule.size
        for smaller in (
            replace(size, workers=size.workers - 1),
            replace(size, connectors=size.connectors - 1),
        ):
            is_possible = smaller.workers > 0 and smaller.connectors > 0
            if is_possible and self._breaks(draw(schedule.seed, smaller).keeping(numbers)):
                return True
        return False


def rule_of(outcome: PlayResult) -> str:
    """Return which rule an outcome broke: the invariant's number, or an error's name."""
    return outcome.violation.partition(":")[0]


def _parts(numbers: Sequence[int], parts: int) -> Iterator[Sequence[int]]:
    length = max(1, -(-len(numbers) // parts))
    return (numbers[at : at + length] for at in range(0, len(numbers), length))
