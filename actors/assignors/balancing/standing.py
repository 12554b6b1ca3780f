"""How much of each class each taker has, and had: all that counts where all weighs the same."""

from collections.abc import Sequence
from dataclasses import dataclass

from .hands import Hands

Amounts = list[dict[int, int]]
"""How much of each class, by taker; what is not named is none."""


@dataclass(frozen=True, slots=True)
class Standing:
    """The amounts, changed in place; `had` is what each taker would keep if nothing moved."""

    seated: Sequence[Sequence[int]]
    scales: Sequence[int]
    had: Amounts
    has: Amounts
    loads: list[int]

    def fullness(self, index: int) -> int:
        """Return a taker's load per capacity."""
        return self.loads[index] * self.scales[index]

    def with_one_more(self, index: int) -> int:
        """Return what its load per capacity would be with one resource more."""
        return (self.loads[index] + 1) * self.scales[index]

    def shift(self, giver: int, number: int, receiver: int, amount: int) -> None:
        """Let a taker give so much of a class to another."""
        for index, by in ((giver, -amount), (receiver, amount)):
            self.has[index][number] = self.has[index].get(number, 0) + by
            self.loads[index] += by


def amounts(hands: Hands) -> Amounts:
    """Return how much of each class each taker has in hand, where all weighs 1."""
    return [{number: amount for (_, number), amount in has.items()} for has in hands.amounts]
