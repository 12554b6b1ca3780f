"""How long to wait before another attempt: the one back-off of the product.

The pause before another attempt grows by a factor with each attempt in a row, up to a longest one,
as Kafka's `ExponentialBackoff` does. Everything here is pure: the unit is the caller's, and so is
the random generator that jitter is drawn from.
"""

from dataclasses import dataclass
from random import Random
from typing import Final, Generic, TypeVar

N = TypeVar("N", int, float)
"""Whole milliseconds, or seconds."""

_MOST_STEPS: Final = 62
"""After so many steps any pause is the longest; a power beyond it need not be computed."""


@dataclass(frozen=True, slots=True)
class Backoff(Generic[N]):
    """Pauses from `first` to `longest`.

    `jitter` is the part of a pause that chance may take off: with 0.5, from half of it to all.
    """

    first: N
    longest: N
    factor: int = 2
    jitter: float = 0.0

    def pause(self, attempts: int) -> N:
        """Return how long to wait after so many attempts in a row; the first is 1."""
        growth: int = self.factor ** min(attempts - 1, _MOST_STEPS)
        return min(self.first * growth, self.longest)

    def pause_with_jitter(self, attempts: int, rng: Random) -> float:
        """Return the same with jitter, so that many that failed at once do not come at once."""
        return self.pause(attempts) * rng.uniform(1 - self.jitter, 1)


class Attempts(Generic[N]):
    """The attempts in a row of one who waits between them."""

    def __init__(self, backoff: Backoff[N]) -> None:
        self._backoff: Backoff[N] = backoff
        self.count = 0
        """How many attempts there were since the last reset."""

    def next_pause(self) -> N:
        """Count an attempt, and return how long to wait after it."""
        self.count += 1
        return self._backoff.pause(self.count)

    def reset(self) -> None:
        """Begin anew: an attempt did what it was to do."""
        self.count = 0
