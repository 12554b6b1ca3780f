"""A queue of timers, one for each key, that costs little where they are mostly put off."""

import heapq
from collections.abc import Iterator
from typing import Generic, Protocol, TypeVar

K = TypeVar("K")


class Moment(Protocol):
    """A time by the clock on the wall and by a steady one, in milliseconds."""

    @property
    def wall_ms(self) -> int:
        """The wall's: for what is written."""
        ...

    @property
    def steady_ms(self) -> int:
        """The steady one's: for what comes due."""
        ...


class TimerQueue(Generic[K]):
    """For each key one time, in milliseconds of any one clock.

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

    def set(self, key: K, at_ms: int) -> None:
        """Make the key due at a time, and at no other."""
        self._at[key] = at_ms
        queued = self._queued.get(key)
        if queued is None or at_ms < queued:
            self._push(key, at_ms)

    def cancel(self, key: K) -> None:
        """Remove the key's time: it never comes due."""
        self._at.pop(key, None)

    def next_ms(self) -> int | None:
        """Return a time before which nothing is due; None if nothing ever is."""
        return self._heap[0][0] if self._heap else None

    def due(self, now_ms: int) -> Iterator[K]:
        """Yield the keys that are due, each once, and forget them."""
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
