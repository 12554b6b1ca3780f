"""How large the next batch may be, and how soon it may begin.

A batch costs much, however small (about 70 ms of CPU), so there must be few; and a task that moves
finishes its batch first, so none may take long. That is why batches are sized by time and by what
it went on: rows and bytes, and ranges as well, since each file costs some milliseconds, whatever is
in it. A config may set a rate: then a batch holds no more than one second of it, and a task waits
until the rate has caught up with what it took. A sink may ask that batches fill before they begin.
"""

import math
import time
from collections import deque
from collections.abc import Mapping
from typing import Any, Final, NamedTuple, Self

from ....events.commits import Document
from ..spi.connector import Pace
from ..spi.errors import ContractBroken
from ..spi.source import BatchPlan, Limit, Source
from .plugins.results import check_plan

_FIRST: Final = Limit(250_000, 16 << 20, 512)
"""The first batch: 16 MB reach 97 % of the speed of all at once, and end within seconds.

So do 512 files on a busy machine. A task that moves has some seconds to finish its batch: with a
first one that takes longer, tasks that move often would get nothing done.
"""

_LEAST: Final = Limit(1_000, 1 << 20, 64)
"""Never less: below this a batch's fixed cost outweighs what a smaller one would save."""

_STEP: Final = 4
"""How many times larger than the last limit the next one may be."""

_SAVED_S: Final = 1.0
"""For how long a rate adds up while nothing is taken, in seconds."""

_HELD_S: Final = 5.0
"""How long batches wait for their rate, one after another, before a status tells it, in seconds."""

_MOST_PLANS: Final = 3
"""How often a source is asked for a batch that fits into memory."""

_LATE: Final = 2
"""How many times longer than it should a batch may take before the next one is smaller."""


class _Past(NamedTuple):
    seconds: float
    rows: int
    bytes: int
    ranges: int


class BatchSize:
    """The limit of a task's next batch: what the last ones say can be done in the target time.

    That is the speed of the last two, or of the last one if it was faster: a JVM becomes faster
    from batch to batch at first. The limit keeps within the ceiling that the config sets, and
    within one second of the rate.
    """

    def __init__(self, pace: Pace) -> None:
        self._target_s = pace.target_s
        rows, size, ranges = pace.ceiling
        self._ceiling = Limit(
            max(1, int(min(rows, pace.rows_per_s))),
            max(1, int(min(size, pace.bytes_per_s))),
            ranges,
        )
        self._past: deque[_Past] = deque(maxlen=2)
        """The last batches that say how fast the task is."""
        self.limit = _within(_FIRST, self._ceiling)
        """How much the next batch may hold."""

    def learn(self, seconds: float, held: Limit, *, backlog: bool) -> None:
        """Take up how long a batch took, all phases together, and how much it held.

        A batch that held all there was, and was quick, says nothing of how fast a full one is.
        """
        if not backlog and seconds < _LATE * self._target_s:
            return
        self._past.append(_Past(max(seconds, 0.001), *held))
        both = _Past(*map(sum, zip(*self._past, strict=True)))
        wanted = Limit(*map(max, _LEAST, self._in_time(both), self._in_time(self._past[-1])))
        step = Limit(*(_STEP * each for each in self.limit))
        self.limit = _within(_within(wanted, step), self._ceiling)

    def take_fewer(self, rows: int) -> None:
        """Take at most so many rows from now on."""
        self._ceiling = self._ceiling._replace(rows=max(1, rows))
        self.limit = _within(self.limit, self._ceiling)

    def _in_time(self, past: _Past) -> Limit:
        """Return what can be done in the target time at the speed of what is past."""
        share = self._target_s / past.seconds
        return Limit(int(share * past.rows), int(share * past.bytes), int(share * past.ranges))


def plan_within(
    source: Source[Any], offsets: Mapping[str, Document], size: BatchSize, memory: int
) -> BatchPlan[Any]:
    """Have a source plan a batch that holds at most `memory` bytes of rows.

    A source may know of rows only how many there are: it is asked again, for fewer of them. Those
    of Arrow tables count, others are not known. Raises `ContractBroken`.
    """
    held = 0
    for _ in range(_MOST_PLANS):
        plan = check_plan(source.plan(offsets, size.limit), offsets)
        held = sum(
            nbytes for each in plan.ranges if isinstance(nbytes := getattr(each, "nbytes", 0), int)
        )
        if held <= memory:
            return plan
        rows = min(size.limit.rows, plan.rows) if plan.rows > 0 else size.limit.rows
        size.take_fewer(rows * memory // (2 * held))
        del plan  # before there is another one
    raise ContractBroken(
        f"source.plan holds {held} bytes of rows: a task may hold {memory} (task.memory). "
        "Nothing was committed. Lower batch.max.bytes or batch.max.rows, or raise task.memory"
    )


class Rate:
    """How long a task has to wait for what it took beyond its rate: a token bucket.

    What a batch holds counts once it is known, after the batch: rows are often not known before.
    So a batch begins when nothing is owed, and within any T seconds a task takes no more than
    T + 2 seconds of its rate, unless a single range is larger than one second of it.
    """

    def __init__(
        self,
        rows_per_s: float = math.inf,
        bytes_per_s: float = math.inf,
        rotate_s: float = 0.0,
    ) -> None:
        self._rows_per_s, self._bytes_per_s = rows_per_s, bytes_per_s
        self._rotate_s = rotate_s
        self._fills_until = -math.inf
        """Until when the next batch is let fill, on the monotonic clock."""
        self._used_until = time.monotonic()
        """Until when the rate is used up, on the monotonic clock."""
        self._held_since = math.inf
        """Since when each batch has left something owed, on the monotonic clock."""

    @classmethod
    def of(cls, pace: Pace) -> Self:
        """Return the rate that a pipeline is to keep."""
        return cls(pace.rows_per_s, pace.bytes_per_s, pace.rotate_s)

    @property
    def pause_s(self) -> float:
        """How long the next batch has to wait, in seconds; 0 or less: not at all."""
        return max(self._used_until, self._fills_until) - time.monotonic()

    def take(self, seconds: float, rows: int, size: int, *, backlog: bool) -> None:
        """Count a batch that is over: how long it took, and how much it held, in bytes.

        With a backlog the next one is full already, and need not be let fill.
        """
        now = time.monotonic()
        self._fills_until = -math.inf if backlog else now - seconds + self._rotate_s
        used_s = max(rows / self._rows_per_s, size / self._bytes_per_s)
        self._used_until = max(self._used_until, now - seconds - _SAVED_S) + used_s
        self._held_since = min(self._held_since, now) if self._used_until > now else math.inf

    def rest(self) -> None:
        """Take note that there is nothing to read: what is owed keeps nothing back."""
        self._held_since = math.inf

    @property
    def remark(self) -> str:
        """What a status tells of a task that could be faster; nothing if its rate is no matter."""
        if time.monotonic() - self._held_since < _HELD_S:
            return ""
        rates = (self._rows_per_s, "rows"), (self._bytes_per_s, "bytes")
        limits = [f"{rate:g} {what}" for rate, what in rates if rate < math.inf]
        return f"its batches wait for its rate limit: {' and '.join(limits)} per second"


def _within(limit: Limit, ceiling: Limit) -> Limit:
    return Limit(*(max(1, min(each, most)) for each, most in zip(limit, ceiling, strict=True)))
