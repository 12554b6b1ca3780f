"""Virtual time: what is due when, in an order that depends on nothing but the seed."""

import heapq
from collections.abc import Callable
from itertools import count


class Clock:
    """Runs what was asked for, in order of time, then of asking; times in milliseconds."""

    def __init__(self) -> None:
        self.now_ms = 0
        self._due: list[tuple[int, int, Callable[[], None]]] = []
        self._order = count()

    def after(self, delay_ms: int, act: Callable[[], None]) -> None:
        """Run `act` once, when the delay is over."""
        heapq.heappush(self._due, (self.now_ms + delay_ms, next(self._order), act))

    def run(self, until_ms: int) -> None:
        """Run all that falls due up to a moment."""
        while self._due and self._due[0][0] <= until_ms:
            self.now_ms, _, act = heapq.heappop(self._due)
            act()
        self.now_ms = until_ms
