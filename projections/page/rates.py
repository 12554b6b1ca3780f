"""How many rows a second connectors committed in the last seconds."""

from collections import deque
from collections.abc import Iterator
from typing import Final

WINDOW_MS: Final = 10_000


class RowRates:
    """The rates of connectors, from their committed rows at several moments.

    A rate is of the last ten seconds, not of all time: it is 0 soon after the last batch.
    """

    def __init__(self) -> None:
        self._counts: dict[str, deque[tuple[int, int]]] = {}
        """Moments with the rows by then, the one before the window first, by connector."""

    def add(self, connector: str, rows: int, now_ms: int) -> None:
        """Record how many rows a connector has committed so far."""
        counts = self._counts.setdefault(connector, deque())
        if counts and (rows < counts[-1][1] or now_ms < counts[-1][0]):
            counts.clear()  # it was deleted and created again, or the clock was set back
        if not counts or rows != counts[-1][1]:
            counts.append((now_ms, rows))

    def drop(self, connector: str) -> None:
        """Forget a connector."""
        self._counts.pop(connector, None)

    def rate(self, connector: str, now_ms: int) -> float:
        """Return rows a second, with one decimal."""
        counts = self._counts.get(connector)
        if not counts:
            return 0.0
        while len(counts) > 1 and counts[1][0] <= now_ms - WINDOW_MS:
            counts.popleft()
        rows = counts[-1][1] - counts[0][1]
        began_ms = max(counts[0][0], now_ms - WINDOW_MS)
        return round(rows * 1000 / max(now_ms - began_ms, 1000), 1)

    def moving(self) -> Iterator[str]:
        """Yield the connectors whose rate changes by itself as time passes."""
        return (name for name, counts in self._counts.items() if len(counts) > 1)
