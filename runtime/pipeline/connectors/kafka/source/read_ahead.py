# pyright: basic
"""The next batch is fetched while Spark works on the one before: neither waits for the other.

A consumer may be used by one thread at a time. So whoever wants it waits until what is read ahead
is there; and what was read ahead from elsewhere than the log goes on is read again.
"""

from collections.abc import Mapping
from concurrent.futures import Future, ThreadPoolExecutor

from ....spi.source import Limit
from ..cluster import TopicPlace
from .reader import PartitionReader, Records


class ReadAhead:
    """One reader, and the batch that it reads before it is asked for."""

    def __init__(self, reader: PartitionReader) -> None:
        """Take a reader that nobody else uses."""
        self._reader = reader
        self._thread = ThreadPoolExecutor(1, "kafka-ahead")
        self._begun: Future[Records | None] | None = None
        """The batch that is being read; None: nothing is."""
        self._from: Mapping[TopicPlace, int] = {}
        """Where that batch begins."""
        self._limit: Limit | None = None
        """What it may hold; None: there is no more to read than what was asked for."""

    def read(self, starts: Mapping[TopicPlace, int], limit: Limit) -> Records | None:
        """Return what comes behind some offsets, as `PartitionReader.read` does."""
        begun, self._begun = self._begun, None
        found = begun.result() if begun is not None else None
        if found is None or self._from != starts:
            self._reader.go_to(starts)
            found = self._reader.read(limit)
        self._limit = limit if found is not None and found.backlog else None
        return found

    def prefetch(self) -> None:
        """Read the next batch meanwhile, if it is known that there is more."""
        if self._limit is not None and self._begun is None:
            self._from = dict(self._reader.position)
            self._begun = self._thread.submit(self._reader.read, self._limit)
            self._limit = None

    @property
    def lag(self) -> tuple[int, int]:
        """How many records are still to be read, and how many bytes they have; see the reader."""
        return self._reader.lag

    @property
    def is_troubled(self) -> bool:
        """Tell whether something went wrong since this was last asked; see the reader."""
        return self._reader.is_troubled

    def close(self) -> None:
        """Let go of the connections."""
        self._thread.shutdown()
        self._reader.close()
