# pyright: basic
"""A source whose rows a plugin keeps to itself for some time: it reads on, and logs what counts.

A batch of rows is put to the plugin, and advances nothing: the task goes on to read from its own
*positions*. What the plugin agrees to, perhaps many batches later, becomes a batch without rows,
whose advances lead from the logged offsets to where those rows end. So the log has nothing but what
counts, and another attempt begins there.
"""

from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import pyarrow as pa

from .....events.commits import Advance, Document, Lag, identity
from ...spi.errors import BadInput, FailedElsewhere, SinkAway
from ...spi.rows import LaneCount, Rejects
from ...spi.source import BatchPlan, Limit, Source
from ..batches.source import PluginSource
from .errant import ErrantRecords
from .feed import Feed
from .records import PlacedRows, is_counted

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_COUNTS: Final = object()
"""The range of a batch that has no rows, but advances."""
_End = tuple[Document, Document | None]
"""A partition, and its new offset."""


class _Pending(NamedTuple):
    """A batch that the plugin has been given."""

    last: int
    """The last number that it has in the host."""
    rows: int
    """How many rows the task had been given with it."""
    ends: Sequence[_End]
    batch: int
    """Its number at a source that is a plugin."""


class FedSource(Source[Any]):
    """Reads another source on behalf of a plugin."""

    def __init__(
        self, inner: Source[Any], feed: Feed, placed: PlacedRows, errant: ErrantRecords
    ) -> None:
        self._inner = inner
        self._plugin = inner if isinstance(inner, PluginSource) else None
        self._feed, self._placed, self._errant = feed, placed, errant
        self._positions: dict[str, Document] | None = None
        """How far the rows were put; None: none was yet."""
        self._planned: BatchPlan[Any] = BatchPlan()
        """The plan of rows that is at work."""
        self._lag: Lag | None = None
        """What the source held beyond the last rows."""
        self._is_counting = False
        """Whether the last plan was one without rows."""
        self._pending: deque[_Pending] = deque()
        """The batches that do not count yet."""
        self._rows = 0
        """How many rows count, of all that the task was given."""
        self._ready: dict[str, _End] = {}
        """What counts and is not logged yet, by partition."""
        self._ready_batch = self._confirmed = 0
        """The last batch of a plugin that counts, and that of which it has heard that."""

    def plan(self, offsets: Mapping[str, Document], limit: Limit) -> BatchPlan[Any]:
        """Plan what counts, if there is any, or else more rows; raises as the inner source.

        Raises `SinkAway`, `NotReady` and `FailedElsewhere` for the plugin.
        """
        try:
            self._feed.open()
        except (FailedElsewhere, SinkAway):
            # The last of what counts has come before, since the plugin was asked when it ended.
            if counted := self._counted(offsets):
                return counted
            raise
        if counted := self._counted(offsets):
            return counted
        if not self._feed.is_put:
            return BatchPlan(remark=self._feed.look())
        if self._positions is None:
            self._placed.begin(offsets)
            self._positions = {key: each for key, each in offsets.items() if not is_counted(key)}
        self._inner.leave_out(self._feed.paused)
        self._planned = self._inner.plan(self._positions, limit)
        if self._planned.ranges and self._plugin is not None and self._plugin.is_held:
            self._feed.require_host_of(self._plugin)
        self._lag = self._planned.lag if self._planned.ranges else self._lag
        return replace(self._planned, advances=())

    def conclude(self, offsets: Mapping[str, Document]) -> BatchPlan[Any]:
        """Stop the plugin's task, and plan what counts by then."""
        self._feed.stop()
        return self._counted(offsets) or BatchPlan()

    def _counted(self, offsets: Mapping[str, Document]) -> BatchPlan[Any] | None:
        """Return the batch of what counts and is not logged yet; None: there is none."""
        counted = self._count(offsets)
        self._is_counting = bool(counted.ranges)
        return counted if self._is_counting else None

    def _count(self, offsets: Mapping[str, Document]) -> BatchPlan[Any]:
        counts, rows = self._feed.counts, self._rows
        while self._pending and self._pending[0].last <= counts:
            _, rows, ends, self._ready_batch = self._pending.popleft()
            self._ready.update((identity(partition), (partition, end)) for partition, end in ends)
        letters = self._errant.take(self._feed.take_errant(), counts, rows - self._rows)
        self._rows = rows
        advances = tuple(
            Advance(partition, offsets.get(key), end)
            for key, (partition, end) in self._ready.items()
            if offsets.get(key) != end
        )
        if not (advances or letters):
            self._confirm()
            return BatchPlan()
        return BatchPlan((_COUNTS,), advances, rows=0, lag=self._lag)

    def acknowledge(self, advances: Sequence[Advance]) -> None:
        """Note that a batch has been put; or that what counts is logged, and tell the source."""
        if self._is_counting:
            self._ready.clear()
            self._errant.clear()
            own = [each for each in advances if not is_counted(identity(each.partition))]
            if self._plugin is None:
                self._inner.acknowledge(own)
            self._confirm()
            return
        planned, self._planned = self._planned, BatchPlan()
        ends: list[_End] = [(each.partition, each.end) for each in planned.advances]
        every = (*ends, *self._placed.ends())
        batch = 0 if self._plugin is None else self._plugin.pass_on()
        self._pending.append(_Pending(self._feed.last, self._feed.rows, every, batch))
        for partition, end in ends:
            self._move(identity(partition), end)

    def _confirm(self) -> None:
        """Tell a plugin that all counts which is not to be logged any more."""
        if self._plugin is not None and self._ready_batch > self._confirmed:
            self._confirmed = self._ready_batch
            self._plugin.confirm(self._confirmed)

    def _move(self, key: str, end: Document | None) -> None:
        positions = self._positions if self._positions is not None else {}
        if end is None:
            positions.pop(key, None)
        else:
            positions[key] = end

    # -- what the inner source does

    @property
    def holds_tables(self) -> bool:
        """Whether the inner source does."""
        return self._inner.holds_tables

    def table(self, ranges: Sequence[Any]) -> Any:  # noqa: ANN401  # a table of pyarrow
        """Return the rows; none of what counts."""
        return pa.table({}) if self._is_counting else self._inner.table(ranges)

    def read(self, spark: "SparkSession", ranges: Sequence[Any]) -> Any:  # noqa: ANN401  # as above
        """Return the rows; none of what counts."""
        return pa.table({}) if self._is_counting else self._inner.read(spark, ranges)

    def verify(self, ranges: Sequence[Any]) -> None:
        """Raise `BadInput` if ranges have changed."""
        if not self._is_counting:
            self._inner.verify(ranges)

    def blame(self, error: Exception) -> BadInput | None:
        """Return the `BadInput` behind an error."""
        return self._inner.blame(error)

    def narrow(self, error: Exception) -> bool:
        """Tell whether a second read can tell the range of an error."""
        return not self._is_counting and self._inner.narrow(error)

    def defer(self, ranges: Sequence[Any]) -> str:
        """Plan ranges in smaller batches from now on."""
        return "" if self._is_counting else self._inner.defer(ranges)

    def rejects(self) -> Sequence[Rejects]:
        """Return the bad rows of the last read."""
        return () if self._is_counting else self._inner.rejects()

    def lane_count(self) -> LaneCount:
        """Return how many ranges of the last read Arrow may read."""
        return LaneCount() if self._is_counting else self._inner.lane_count()

    def release(self) -> None:
        """Drop external state of a STOPPED connector."""
        self._inner.release()

    def remove_external_state(self) -> None:
        """Remove the external state of a deleted connector."""
        self._inner.remove_external_state()

    def close(self) -> None:
        """Release the resources of the inner source."""
        self._inner.close()
