# pyright: basic
"""A sink that is a task of a sink connector of Kafka Connect's.

Nothing is staged: rows are put as they come, and count once the plugin has agreed to them, which
its source learns (`source.py`). Until then they are not logged, and may be put again.
"""

from typing import TYPE_CHECKING, Any, ClassVar

from .....events.commits import CommitId, Manifest
from .....events.model import Resource, Token
from ...spi.rows import ArrowTable, Rejects
from ...spi.sink import Sink
from ...spi.source import Source
from .errant import ErrantRecords
from .feed import Feed
from .records import PlacedRows
from .source import FedSource

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import SparkSession

_NOTHING = Manifest("", "", 0, 0, 0)


class PluginSink(Sink[ArrowTable]):
    """Gives rows to the plugin's task."""

    takes_arrow: ClassVar[bool] = True

    def __init__(self, feed: Feed, placed: PlacedRows, errant: ErrantRecords) -> None:
        """Start nothing yet."""
        self._feed, self._placed, self._errant = feed, placed, errant

    @property
    def writes_at_once(self) -> bool:
        """Whether rows are put before they count: always."""
        return True

    def paired(self, source: Source[Any]) -> Source[Any]:
        """Return a source that reads on while the plugin holds rows."""
        return FedSource(source, self._feed, self._placed, self._errant)

    def stage(self, rows: ArrowTable, commit_id: CommitId, input_bytes: int) -> Manifest:
        """Put nothing: it is asked for parts of rows when the plugin cannot have all of them.

        Raises `SchemaRefused`, `RowsRefused`.
        """
        del commit_id, input_bytes
        self._placed.check(rows)
        return _NOTHING

    def write(self, rows: ArrowTable, commit_id: CommitId, input_bytes: int) -> Manifest:
        """Put rows; raises as `stage`, and `SinkAway`, `NotReady`, `FailedElsewhere`."""
        del commit_id, input_bytes
        if rows.num_rows:
            self._feed.give(self._placed.make(rows))
        return _NOTHING

    @property
    def rejected(self) -> int:
        """How many errant records count with this batch."""
        return self._errant.count

    def rejects(self, spark: "SparkSession") -> "Sequence[Rejects]":
        """Return the errant records that count with this batch."""
        return self._errant.rejects(spark)

    def publish(self, manifest: Manifest, commit_id: CommitId, sequence: int) -> None:
        """Do nothing: no batch has files."""

    def discard(self, commit_id: CommitId) -> None:
        """Do nothing: what was put stays."""

    def sweep(self, resource: Resource, token: Token) -> None:
        """Do nothing: nothing is staged."""

    def close(self) -> None:
        """Stop the task, and leave its host."""
        self._feed.close()
