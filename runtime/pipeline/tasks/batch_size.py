"""How large the next batch may be, and how soon it may begin.

Each batch has a fixed cost (about 70 ms of CPU), so batches must be few. A task that moves finishes
its batch first, so batches must be short. Their size is therefore derived from a target time and
the measured speed in rows, bytes and ranges; ranges count because each file costs some milliseconds
whatever its size. A config may set a rate limit: then a batch holds at most one second of it, and
the task waits until the rate allows the next one. A sink may ask that batches fill up first.
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
"""The first batch: 16 MB reach 97 % of the maximum throughput, and take a few seconds at most.

So do 512 files on a busy machine. A task that moves has some seconds to finish its batch. With a
longer first batch, a task that moves often would never complete one.
"""

_SMALLEST: Final = Limit(1_000, 1 << 20, 64)
"""The smallest limit: below it the fixed cost of a batch outweighs the benefit of a smaller one."""

_STEP: Final = 4
"""The largest ratio of the next limit to the last one."""

_BURST_S: Final = 1.0
"""How many seconds of the rate an idle task saves up for its next batch."""

_REMARK_AFTER_S: Final = 5.0
"""How many seconds batches must wait one after another before the status mentions the limit."""

_MOST_PLANS: Final = 3
"""How many plans a source may make until one fits into memory."""

_SLOW_FACTOR: Final = 2
"""How many times the target time a batch without a backlog may take before it is a sample."""


class _Sample(NamedTuple):
    """The duration and the size of one batch."""

    seconds: float
    rows: int
    bytes: int
    ranges: int


class BatchSize:
    """The limit of a task's next batch, from the speed of its last batches and the target time.

    It uses the speed of the last two batches, or of the last one if that was faster, since a JVM
    becomes faster from batch to batch at first. The limit does not exceed the config's ceiling, nor
    one second of the rate limit.
    """

    def __init__(self, pace: Pace) -> None:
        self._target_s = pace.target_s
        rows, size, ranges = pace.ceiling
        self._ceiling = Limit(
            max(1, int(min(rows, pace.rows_per_s))),
            max(1, int(min(size, pace.bytes_per_s))),
            ranges,
        )
        self._samples: deque[_Sample] = deque(maxlen=2)
        """The last batches that show how fast the task is."""
        self.limit = _within(_FIRST, self._ceiling)
        """The largest size of the next batch."""

    def learn(self, seconds: float, held: Limit, *, backlog: bool) -> None:
        """Learn from the duration of a batch, all phases together, and from its size.

        A fast batch that left no backlog is ignored: it does not show the speed of a full batch.
        """
        if not backlog and seconds < _SLOW_FACTOR * self._target_s:
            return
        self._samples.append(_Sample(max(seconds, 0.001), *held))
        both = _Sample(*map(sum, zip(*self._samples, strict=True)))
        wanted = Limit(*map(max, _SMALLEST, self._in_time(both), self._in_time(self._samples[-1])))
        step = Limit(*(_STEP * each for each in self.limit))
        self.limit = _within(_within(wanted, step), self._ceiling)

    def cap_rows(self, rows: int) -> None:
        """Limit all later batches to this many rows."""
        self._ceiling = self._ceiling._replace(rows=max(1, rows))
        self.limit = _within(self.limit, self._ceiling)

    def _in_time(self, sample: _Sample) -> Limit:
        """Return the size that takes the target time at the speed of a sample."""
        share = self._target_s / sample.seconds
        return Limit(*(int(share * each) for each in (sample.rows, sample.bytes, sample.ranges)))


def plan_within(
    source: Source[Any], offsets: Mapping[str, Document], size: BatchSize, memory: int
) -> BatchPlan[Any]:
    """Return a plan of a source whose ranges hold at most `memory` bytes of rows.

    A source may know only the number of its rows, so a plan that is too large is planned again with
    fewer rows. Only ranges with `nbytes`, such as Arrow tables, count. Raises `ContractBroken`.
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
        size.cap_rows(rows * memory // (2 * held))
        del plan  # free its memory before the next plan
    raise ContractBroken(
        f"source.plan holds {held} bytes of rows: a task may hold {memory} (task.memory). "
        "Nothing was committed. Lower batch.max.bytes or batch.max.rows, or raise task.memory"
    )


class RateLimit:
    """The rate limit of a task: a token bucket that a batch may overdraw.

    The size of a batch is charged after the batch, since the number of its rows is often unknown
    before. The next batch begins when the bucket is no longer overdrawn. So in any T seconds a task
    reads at most T + 2 seconds of its rate, unless a single range is larger than one second of it.
    """

    def __init__(
        self,
        rows_per_s: float = math.inf,
        bytes_per_s: float = math.inf,
        rotate_s: float = 0.0,
    ) -> None:
        self._rows_per_s, self._bytes_per_s = rows_per_s, bytes_per_s
        self._rotate_s = rotate_s
        self._filling_until = -math.inf
        """The monotonic time until which the next batch fills up."""
        self._used_until = time.monotonic()
        """The monotonic time until which the rate is used up."""
        self._waiting_since = math.inf
        """The monotonic time since which each batch has overdrawn the bucket."""

    @classmethod
    def of(cls, pace: Pace) -> Self:
        """Return the rate limit of a pipeline."""
        return cls(pace.rows_per_s, pace.bytes_per_s, pace.rotate_s)

    @property
    def pause_s(self) -> float:
        """How long the next batch must wait, in seconds; 0 or less: it may begin."""
        return max(self._used_until, self._filling_until) - time.monotonic()

    def consume(self, seconds: float, rows: int, size: int, *, backlog: bool) -> None:
        """Charge a finished batch that took `seconds` and held `rows` and `size` bytes.

        With a backlog the next batch is full already and does not wait to fill up.
        """
        now = time.monotonic()
        self._filling_until = -math.inf if backlog else now - seconds + self._rotate_s
        used_s = max(rows / self._rows_per_s, size / self._bytes_per_s)
        self._used_until = max(self._used_until, now - seconds - _BURST_S) + used_s
        self._waiting_since = min(self._waiting_since, now) if self._used_until > now else math.inf

    def note_idle(self) -> None:
        """Note that there is no input, so that the rate limit holds no batch back."""
        self._waiting_since = math.inf

    @property
    def remark(self) -> str:
        """A remark for the status if the rate limit slows the task down; else empty."""
        if time.monotonic() - self._waiting_since < _REMARK_AFTER_S:
            return ""
        rates = (self._rows_per_s, "rows"), (self._bytes_per_s, "bytes")
        limits = [f"{rate:g} {unit}" for rate, unit in rates if rate < math.inf]
        return f"its batches wait for its rate limit: {' and '.join(limits)} per second"


def _within(limit: Limit, ceiling: Limit) -> Limit:
    return Limit(*(max(1, min(each, most)) for each, most in zip(limit, ceiling, strict=True)))
