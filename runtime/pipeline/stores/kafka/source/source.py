# pyright: basic
"""The Kafka source: reads the partitions of one task from the offsets in the group's offset log.

It uses no consumer group of Kafka. A topic is identified by its id, not by its name: if it is
deleted and created again, old offsets are meaningless. So an offset has the id of its topic, and
each batch is checked against it before the commit.
"""

import re
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final, NamedTuple

import pyarrow as pa

from ......events.commits import Advance, Document, Lag, identity
from ....spi.errors import BadInput, SourceAway
from ....spi.offsets import Seek, SeekEnd
from ....spi.rows import Rejects
from ....spi.source import BatchPlan, Fetched, FetchingSource, Limit
from ..cluster import KafkaCluster, TopicFacts, TopicPlace
from ..shadow_group import ShadowGroup
from .bad_records import with_records
from .decoding import RecordDecoder
from .reader import OutOfRange, PartitionReader, Records, empty_table
from .topics import OFFSET, TOPIC_ID, document_of, offset_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_BLAMED: Final = re.compile(r"the record of \S+ at offset \d+: [^\n\[]*")
_LOOK_S: Final = 10.0
"""How long no record may arrive before the source checks that the brokers answer.

A hanging broker keeps its connections: librdkafka waits a minute for an answer.
"""
_SQLSTATE: Final = re.compile(r"\s*SQLSTATE: \w+.*")


@dataclass(frozen=True, slots=True)
class StartRules:
    """Where to begin, and what to do if the next records are gone."""

    first: Seek = SeekEnd.EARLIEST
    """The start of a partition without an offset."""
    out_of_range: str = "fail"
    """`fail`, `earliest` or `latest`."""
    is_committed: bool = True
    """Whether to read committed records only."""
    later: frozenset[TopicPlace] = frozenset()
    """Partitions added after the first start, which begin with their first record."""

    @property
    def is_first_kept(self) -> bool:
        """Whether to commit the first offset before reading, since it would differ later."""
        return self.first is not SeekEnd.EARLIEST


class Listeners(NamedTuple):
    """The warning log, and the shadow group for committed offsets."""

    warn: Callable[[str], None]
    shadow: ShadowGroup | None = None
    """The group that shows offsets to monitoring tools; None: there is none."""


class ReadAhead:
    """A reader, and the batch that it prefetches while Spark works on the current one.

    Only one thread at a time may use a consumer, so a read waits for the prefetch. A batch that
    does not start at the requested offsets is discarded.
    """

    def __init__(self, reader: PartitionReader) -> None:
        """Start with a reader that nobody else uses."""
        self._reader = reader
        self._thread = ThreadPoolExecutor(1, "kafka-ahead")
        """The one that prefetches."""
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


class KafkaSource(FetchingSource):
    """Reads the partitions of one task; a batch's range is a table of undecoded records."""

    def __init__(
        self,
        places: Sequence[TopicPlace],
        cluster: KafkaCluster,
        make_reader: Callable[[], PartitionReader],
        decoder: RecordDecoder,
        rules: StartRules,
        listeners: Listeners,
    ) -> None:
        """Start with the partitions and settings, without a connection yet."""
        self._places = {identity(document_of(place)): place for place in places}
        self._cluster = cluster
        self._make_reader = make_reader
        self._reader: ReadAhead | None = None
        """None: nothing was read yet."""
        self._decoder = decoder
        self._rules = rules
        self._warn, self._shadow = listeners
        self._facts: Mapping[str, TopicFacts] = {}
        """The topics at the start of the source."""
        self._records: pa.Table | None = None
        """The last records, if dead letters keep their bytes."""
        self._look_at = 0.0
        """The monotonic time of the next check that the brokers answer."""
        self._is_begun = False
        """Whether the offsets were checked against the topics."""
        self._moved: dict[TopicPlace, tuple[Document | None, int]] = {}
        """The offset to continue at, with the logged offset (None: none) that it replaces."""
        self._left_out: frozenset[tuple[str, int]] = frozenset()

    def fetch(self, offsets: Mapping[str, Document], limit: Limit) -> Fetched | None:
        """Fetch new records; the first batch may only commit the start offsets."""
        reader = self._reader = self._reader or self._begin()
        logged = {place: offsets.get(key) for key, place in self._places.items()}
        self._begin_anew(logged)
        fresh = [place for place, at in logged.items() if at is None]
        if fresh and self._rules.is_first_kept:  # until the log has them
            firsts = {place: self._start(place, None) for place in fresh}
            return Fetched(empty_table(), self._advances(logged, firsts), backlog=True)
        wanted = [place for place in logged if place not in self._left_out]
        starts = {place: self._start(place, logged[place]) for place in wanted}
        try:
            records = reader.read(starts, limit)
        except OutOfRange as gone:
            self._skip(gone.place, logged[gone.place])
            return None
        if records is None:
            if reader.is_troubled or time.monotonic() >= self._look_at:
                self._look_at_topics()
            return None
        self._look_at = time.monotonic() + _LOOK_S
        return Fetched(records.table, self._advances(logged, records.ends), records.backlog)

    def plan(self, offsets: Mapping[str, Document], limit: Limit) -> "BatchPlan[pa.Table]":
        """Fetch the next batch, and report the lag."""
        plan = replace(super().plan(offsets, limit), remark=self._decoder.remark)
        if self._reader is None or not plan.ranges:
            return plan
        rows = -1 if self._decoder.separates_bad_rows else plan.rows
        records, size = self._reader.lag
        return replace(plan, rows=rows, lag=Lag(records, size, records))

    def read(self, spark: "SparkSession", ranges: Sequence[pa.Table]) -> "pa.Table":
        """Decode the fetched records, and prefetch the next ones."""
        return self._decoder.decode(spark, self._fetched(ranges))

    @property
    def holds_tables(self) -> bool:
        """Whether records are decoded without Spark."""
        return not self._decoder.needs_spark

    def table(self, ranges: Sequence[pa.Table]) -> "pa.Table | None":
        """Decode the fetched records without Spark, and prefetch the next ones."""
        return self._decoder.decode_held(self._fetched(ranges))

    def rejects(self) -> Sequence[Rejects]:
        """Return the bad records of the last read."""
        found, records = self._decoder.rejects(), self._records
        if records is None:
            return found
        return [with_records(each, records) if each.count() else each for each in found]

    def verify(self, ranges: Sequence[pa.Table]) -> None:
        """Raise if a topic was deleted or created again meanwhile."""
        del ranges
        self._look_at_topics()

    def acknowledge(self, advances: Sequence[Advance]) -> None:
        """Commit the offsets to the shadow group, if there is one."""
        if self._shadow is not None:
            ends = ((self._places[identity(each.partition)], each.end) for each in advances)
            self._shadow.commit({at: int(str(end[OFFSET])) for at, end in ends if end is not None})

    def blame(self, error: Exception) -> BadInput | None:
        """Return `BadInput` with the record that caused an error of Spark."""
        found = _BLAMED.search(str(error))
        return found and BadInput(_SQLSTATE.sub("", found[0]).strip())

    def leave_out(self, places: Collection[tuple[str, int]]) -> None:
        """Fetch no records of some partitions until the next call."""
        self._left_out = frozenset(places)

    def close(self) -> None:
        """Close the connections."""
        if self._reader is not None:
            self._reader.close()
            self._reader = None
        if self._shadow is not None:
            self._shadow.close()

    def _fetched(self, ranges: Sequence[pa.Table]) -> pa.Table:
        """Return the records of a batch, and prefetch the next ones."""
        (table,) = ranges
        self._records = table if self._decoder.keeps_records else None
        if self._reader is not None:
            self._reader.prefetch()
        return table

    def _begin(self) -> ReadAhead:
        topics = {place.topic for place in self._places.values()}
        facts = self._cluster.facts(topics)
        if missing := topics - facts.keys():
            raise SourceAway(f"topic {', '.join(sorted(missing))} does not exist")
        self._facts = facts
        return ReadAhead(self._make_reader())

    def _look_at_topics(self) -> None:
        """Raise `SourceAway` unless the topics are the same as when the source began."""
        facts = self._cluster.facts(self._facts.keys())
        self._look_at = time.monotonic() + _LOOK_S
        for name, known in self._facts.items():
            if name not in facts:
                raise SourceAway(f"topic {name} does not exist")
            if facts[name].id != known.id:
                raise SourceAway(f"topic {name} was deleted and created again while it was read")

    def _start(self, place: TopicPlace, logged: Document | None) -> int:
        """Return the offset to read from."""
        known, at = self._moved.get(place, (None, 0))
        return at if logged == known or logged is None else int(str(logged[OFFSET]))

    def _begin_anew(self, logged: Mapping[TopicPlace, Document | None]) -> None:
        """Find, once, the start of partitions without an offset, or with one of another topic."""
        if self._is_begun:
            return
        fresh = {place for place, at in logged.items() if at is None}
        begins = self._offsets(fresh - self._rules.later, self._rules.first)
        later = self._offsets(fresh & self._rules.later, SeekEnd.EARLIEST)
        self._moved = {place: (None, at) for place, at in {**begins, **later}.items()}
        for place, at in logged.items():
            known = self._facts[place.topic].id
            if at is not None and at.get(TOPIC_ID, known) != known:
                told = f"topic {place.topic} was deleted and created again since {place} was read"
                self._lose(place, at, told)
        self._is_begun = True

    def _offsets(self, places: Collection[TopicPlace], to: Seek) -> Mapping[TopicPlace, int]:
        return self._cluster.offsets(places, to, is_committed=self._rules.is_committed)

    def _skip(self, place: TopicPlace, logged: Document | None) -> None:
        """Continue after lost records, if that is allowed."""
        wanted = self._start(place, logged)
        first = self._offsets([place], SeekEnd.EARLIEST)[place]
        if logged is None:
            self._moved[place] = (None, first)  # deleted after the start offset was found
            return
        if wanted < first:
            told = f"{first - wanted} records of {place} are gone: offsets {wanted} to {first - 1}"
        else:
            told = f"{place} ends before offset {wanted}, up to which it was read: it lost records"
        self._lose(place, logged, told)

    def _lose(self, place: TopicPlace, logged: Document, why: str) -> None:
        """Continue at another offset with a warning; raises `BadInput` if that is not allowed."""
        if self._rules.out_of_range == "fail":
            raise BadInput(
                f"{why}. Nothing was skipped. To go on, set the partition's offset (STOP, then "
                "PATCH …/offsets), or source.offset.out.of.range=earliest or latest"
            )
        offsets = self._offsets([place], SeekEnd(self._rules.out_of_range))
        self._moved[place] = (logged, offsets[place])
        self._warn(f"{why}; reading goes on at offset {offsets[place]}")

    def _advances(
        self, logged: Mapping[TopicPlace, Document | None], ends: Mapping[TopicPlace, int]
    ) -> tuple[Advance, ...]:
        return tuple(
            Advance(document_of(place), logged[place], offset_of(self._facts[place.topic], end))
            for place, end in ends.items()
        )
