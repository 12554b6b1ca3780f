"""A story cut down to the troubles without which nothing goes wrong.

That is delta debugging (Zeller and Hildebrandt, 2002) over the troubles of a plan: leave out
halves, then quarters, and so on, as long as the same rule is still broken.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Final

from .plan import Plan, draw
from .play import Outcome, play

PLAYS_MAX: Final = 600
"""After so many plays the shortest story so far has to do."""

Play = Callable[[Plan], Outcome]


class Shrinker:
    """Looks for a shorter plan that breaks the same rule."""

    def __init__(self, found: Outcome, run: Play = play) -> None:
        self._shortest = found
        self._rule = rule_of(found)
        self._run = run
        self._plays = 0

    def shrink(self) -> Outcome:
        """Return what came of the shortest plan that was found."""
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
        return [trouble.number for trouble in self._shortest.plan.troubles]

    def _breaks(self, plan: Plan) -> bool:
        if self._plays >= PLAYS_MAX:
            return False
        self._plays += 1
        outcome = self._run(plan)
        if rule_of(outcome) != self._rule:
            return False
        self._shortest = outcome
        return True

    def _drop_what_came_after(self) -> None:
        plan, end_ms = self._shortest.plan, self._shortest.cluster_ms
        self._breaks(plan.keeping([each.number for each in plan.troubles if each.at_ms <= end_ms]))

    def _drop_a_part(self, parts: int) -> bool:
        numbers = self._numbers()
        for part in _parts(numbers, parts):
            if self._breaks(self._shortest.plan.keeping(set(numbers) - set(part))):
                return True
        return False

    def _drop_one(self) -> bool:
        return bool(self._numbers()) and self._drop_a_part(len(self._numbers()))

    def _make_smaller(self) -> bool:
        plan = self._shortest.plan
        numbers = self._numbers()
        size = plan.size
        for smaller in (
            replace(size, workers=size.workers - 1),
            replace(size, connectors=size.connectors - 1),
        ):
            is_possible = smaller.workers > 0 and smaller.connectors > 0
            if is_possible and self._breaks(draw(plan.seed, smaller).keeping(numbers)):
                return True
        return False


def rule_of(outcome: Outcome) -> str:
    """Return which rule an outcome broke: the invariant's number, or an error's name."""
    return outcome.violation.partition(":")[0]


def _parts(numbers: Sequence[int], parts: int) -> Iterator[Sequence[int]]:
    length = max(1, -(-len(numbers) // parts))
    return (numbers[at : at + length] for at in range(0, len(numbers), length))
