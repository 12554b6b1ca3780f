"""How much of each class each taker has, and had: all that counts where all weighs the same."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from .allocation import Allocation

AmountsByClass = list[dict[int, int]]
"""How much each taker has, by class, in the order of the takers; a class not named is none."""


@dataclass(frozen=True, slots=True)
class Amounts:
    """The amounts while they are levelled: `has` and `loads` change in place."""

    eligible: Sequence[Sequence[int]]
    """The takers that may run each class."""
    scales: Sequence[int]
    """What turns each taker's load into load per capacity; see `Workers`."""
    had: AmountsByClass
    """What each taker would keep if nothing moved."""
    has: AmountsByClass
    loads: list[int]
    """How much each taker has of all classes together."""

    def fullness(self, index: int) -> int:
        """Return a taker's load per capacity."""
        return self.loads[index] * self.scales[index]

    def with_one_more(self, index: int) -> int:
        """Return what its load per capacity would be with one resource more."""
        return (self.loads[index] + 1) * self.scales[index]

    def shift(self, giver: int, number: int, receiver: int, amount: int) -> None:
        """Let a taker give so much of a class to another."""
        for index, by in ((giver, -amount), (receiver, amount)):
            self.add(index, number, by)

    def add(self, index: int, number: int, amount: int) -> None:
        """Let a taker have so much more of a class, or less."""
        has = self.has[index]
        # Not in place: takers that have the same share one mapping, and `had` may be that too.
        self.has[index] = {**has, number: has.get(number, 0) + amount}
        self.loads[index] += amount


def count_amounts(allocation: Allocation, indices: Iterable[int]) -> Iterator[dict[int, int]]:
    """Yield how much of each class these takers have, where all weighs 1.

    Takers that have just the same share one mapping: of thousands of takers most do.
    """
    found: dict[tuple[tuple[int, int], ...], dict[int, int]] = {}
    for index in indices:
        has = tuple([(number, amount) for (_, number), amount in allocation.amounts(index).items()])
        if has not in found:
            found[has] = dict(has)
        yield found[has]
