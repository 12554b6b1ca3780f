"""How large the next batch may be: what the last ones say can be done in the time it should take.

A batch costs much, however small (about 70 ms of CPU), so there must be few; and a task that moves
finishes its batch first, so none may take long. That is why batches are sized by time and by what
it went on, never by the count of files.
"""

from collections import deque
from typing import Final, NamedTuple

from ..connectors.spi import Limit, Pace

_FIRST: Final = Limit(250_000, 16 << 20, 4096)
"""The first batch: 16 MB reach 97 % of the speed of all at once, and end within seconds."""

_LEAST: Final = Limit(1_000, 1 << 20, 1)
"""Never less: below this a batch's fixed cost outweighs what a smaller one would save."""

_STEP: Final = 4
"""How many times larger than the last limit the next one may be."""

_LATE: Final = 2
"""How many times longer than it should a batch may take before the next one is smaller."""


class _Past(NamedTuple):
    seconds: float
    rows: int
    bytes: int


class BatchSize:
    """The limit of a task's next batch, within the ceiling that its config sets."""

    def __init__(self, pace: Pace) -> None:
        self._target_s = pace.target_s
        self._ceiling = pace.ceiling
        self._past: deque[_Past] = deque(maxlen=2)
        """The last batches that say how fast the task is."""
        self.limit = _within(_FIRST, pace.ceiling)
        """How much the next batch may hold."""

    def learn(self, seconds: float, rows: int, size: int, *, backlog: bool) -> None:
        """Take up how long a batch took, all phases together, and how much it held, in bytes.

        A batch that held all there was, and was quick, says nothing of how fast a full one is.
        """
        if not backlog and seconds < _LATE * self._target_s:
            return
        self._past.append(_Past(max(seconds, 0.001), rows, size))
        share = self._target_s / sum(each.seconds for each in self._past)
        wanted = Limit(
            max(_LEAST.rows, int(share * sum(each.rows for each in self._past))),
            max(_LEAST.bytes, int(share * sum(each.bytes for each in self._past))),
            self._ceiling.ranges,
        )
        rows, size, ranges = self.limit
        self.limit = _within(
            _within(wanted, Limit(_STEP * rows, _STEP * size, ranges)), self._ceiling
        )


def _within(limit: Limit, ceiling: Limit) -> Limit:
    return Limit(*(max(1, min(each, most)) for each, most in zip(limit, ceiling, strict=True)))
