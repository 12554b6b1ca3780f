"""Time for all that decides, which reads no clock: a moment as it is handed in, timers, back-off.

`Backoff` is the one of the product. The pause before another attempt grows by a factor with each
attempt in a row, up to a longest one, as Kafka's `ExponentialBackoff` does. The unit is the
caller's, and so is the random generator that jitter is drawn from.
"""

import heapq
from collections.abc import Iterator
from dataclasses import dataclass
from random import Random
from typing import Final, Generic, TypeVar

K = TypeVar("K")
N = TypeVar("N", int, float)
"""Whole milliseconds, or seconds."""

_MOST_STEPS: Final = 62
"""After so many steps any pause is the longest; a power beyond it need not be computed."""


@dataclass(frozen=True, slots=True)
class Now:
    """One moment on two clocks, in milliseconds: the wall's for records, the other for timers."""

    wall_ms: int
    """Since 1970, UTC; it may jump."""
    steady_ms: int
    """Since an arbitrary start; it never runs backwards."""


def earliest(*times: int | None) -> int | None:
    """Return the first of the times that are not None."""
    first: int | None = None
    for each in times:
        if each is not None and (first is None or each < first):
            first = each
    return first


class TimerQueue(Generic[K]):
    """One time for each key, in milliseconds of one clock; cheap for times that are often put off.

    Setting a key to a later time touches no heap: the earlier entry is found stale when it
    comes up, and goes back in with the later time.
    """

    def __init__(self) -> None:
        self._at: dict[K, int] = {}
        """When each key is due."""
        self._queued: dict[K, int] = {}
        """The time of the one entry of each key in the heap that counts; others are stale."""
        self._heap: list[tuple[int, int, K]] = []
        """Time, number of the entry, key: keys need no order of their own."""
        self._count = 0
        self._extended_ms = 0
        """By how much all times were extended: the times above are by a clock that stood still."""

    def set(self, key: K, at_ms: int) -> None:
        """Make the key due at a time, and at no other."""
        at_ms -= self._extended_ms
        self._at[key] = at_ms
        queued = self._queued.get(key)
        if queued is None or at_ms < queued:
            self._push(key, at_ms)

    def cancel(self, key: K) -> None:
        """Remove the key's time, so that it never comes due."""
        self._at.pop(key, None)

    def extend(self, late_ms: int) -> None:
        """Postpone all timers by this time."""
        self._extended_ms += late_ms

    def next_ms(self) -> int | None:
        """Return a time before which nothing is due; None if the queue is empty."""
        return self._heap[0][0] + self._extended_ms if self._heap else None

    def due(self, now_ms: int) -> Iterator[K]:
        """Yield the keys that are due, each once, and forget them."""
        now_ms -= self._extended_ms
        while self._heap and self._heap[0][0] <= now_ms:
            queued_ms, _, key = heapq.heappop(self._heap)
            if self._queued.get(key) != queued_ms:
                continue
            del self._queued[key]
            at_ms = self._at.get(key)
            if at_ms is None:
                continue
            if at_ms > now_ms:
                self._push(key, at_ms)
            else:
                del self._at[key]
                yield key

    def _push(self, key: K, at_ms: int) -> None:
        self._count += 1
        self._queued[key] = at_ms
        heapq.heappush(self._heap, (at_ms, self._count, key))


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
        """Return the pause with jitter, so that many failed callers do not retry at once."""
        return self.pause(attempts) * rng.uniform(1 - self.jitter, 1)


class Attempts(Generic[N]):
    """The number of attempts in a row, and the pauses between them."""

    def __init__(self, backoff: Backoff[N]) -> None:
        self._backoff: Backoff[N] = backoff
        self.count = 0
        """How many attempts there were since the last reset."""

    def next_pause(self) -> N:
        """Count an attempt; return the pause after it."""
        self.count += 1
        return self._backoff.pause(self.count)

    def reset(self) -> None:
        """Start anew after a success."""
        self.count = 0
