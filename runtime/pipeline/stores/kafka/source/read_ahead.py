# pyright: basic
"""Prefetches the next batch while Spark works on the current one.

Only one thread at a time may use a consumer, so a read waits for the prefetch. A batch that does
not start at the requested offsets is discarded.
"""

from collections.abc import Mapping
from concurrent.futures import Future, ThreadPoolExecutor

from ....spi.source import Limit
from ..cluster import TopicPlace
from .reader import PartitionReader, Records


class ReadAhead:
    """A reader, and the batch that it prefetches."""

    def __init__(self, reader: PartitionReader) -> None:
        """Take a reader for exclusive use."""
        self._reader = reader
        self._thread = ThreadPoolExecutor(1, "kafka-ahead")
        self._begun: Future[Records | None] | None = None
        """The batch that is being prefetched; None: there is none."""
        self._from: Mapping[TopicPlace, int] = {}
        """The offsets at which that batch begins."""
        self._limit: Limit | None = None
        """The limit of the next prefetch; None: there is no backlog."""

    def read(self, starts: Mapping[TopicPlace, int], limit: Limit) -> Records | None:
        """Return the records from some offsets on; see `PartitionReader.read`."""
        begun, self._begun = self._begun, None
        found = begun.result() if begun is not None else None
        if found is None or self._from != starts:
            self._reader.go_to(starts)
            found = self._reader.read(limit)
        self._limit = limit if found is not None and found.backlog else None
        return found

    def prefetch(self) -> None:
        """Start to read the next batch, if there is a backlog."""
        if self._limit is not None and self._begun is None:
            self._from = dict(self._reader.position)
            self._begun = self._thread.submit(self._reader.read, self._limit)
            self._limit = None

    @property
    def lag(self) -> tuple[int, int]:
        """The lag in records and bytes; see the reader."""
        return self._reader.lag

    @property
    def is_troubled(self) -> bool:
        """Whether there was an error since the last call; see the reader."""
        return self._reader.is_troubled

    def close(self) -> None:
        """Close the connections."""
        self._thread.shutdown()
        self._reader.close()
