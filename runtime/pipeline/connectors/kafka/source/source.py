# pyright: basic
"""Topics as a source: the partitions of one task, from the offsets that the group's log has.

Kafka is told of no offset, and knows of no group. What identifies a topic is not its name but its
id: one that is deleted and made anew is another, whose offsets say nothing. So an offset holds the
id of its topic, and each batch is held against it before it counts.
"""

import re
import time
from collections.abc import Callable, Collection, Mapping, Sequence
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
from .decoding import RecordDecoder, with_records
from .read_ahead import ReadAhead
from .reader import OutOfRange, PartitionReader, empty_table
from .topics import OFFSET, TOPIC_ID, document_of, offset_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_BLAMED: Final = re.compile(r"the record of \S+ at offset \d+: [^\n\[]*")
_LOOK_S: Final = 10.0
"""How long nothing may come before somebody looks whether the brokers answer at all.

One that hangs keeps its connections: librdkafka waits a minute for what it has asked for.
"""
_SQLSTATE: Final = re.compile(r"\s*SQLSTATE: \w+.*")


@dataclass(frozen=True, slots=True)
class StartRules:
    """Where to begin, and what to do if what was to come next is gone."""

    first: Seek = SeekEnd.EARLIEST
    """Where a partition without an offset begins."""
    out_of_range: str = "fail"
    is_committed: bool = True
    """Whether only records count whose transactions were committed."""
    later: frozenset[TopicPlace] = frozenset()
    """Partitions that came after the first start: they begin with their first record."""

    @property
    def is_first_kept(self) -> bool:
        """Whether the first offset must be logged before anything is read: it would be another."""
        return self.first is not SeekEnd.EARLIEST


class Listeners(NamedTuple):
    """Whom a source tells: people of what is lost, and a group of Kafka's of what counts."""

    warn: Callable[[str], None]
    shadow: ShadowGroup | None = None


class KafkaSource(FetchingSource):
    """Reads the partitions of one task; the range of a batch is a table of records as they are."""

    def __init__(
        self,
        places: Sequence[TopicPlace],
        cluster: KafkaCluster,
        make_reader: Callable[[], PartitionReader],
        decoder: RecordDecoder,
        rules: StartRules,
        listeners: Listeners,
    ) -> None:
        """Take what it reads, and whom it tells; nothing is asked of the cluster yet."""
        self._places = {identity(document_of(place)): place for place in places}
        self._cluster = cluster
        self._make_reader = make_reader
        self._reader: ReadAhead | None = None
        self._decoder = decoder
        self._rules = rules
        self._warn, self._shadow = listeners
        self._facts: Mapping[str, TopicFacts] = {}
        """The topics as they were when the source began."""
        self._records: pa.Table | None = None
        """The records read last, if bad ones are handed on as they came."""
        self._look_at = 0.0
        """When to see that the brokers answer if nothing comes until then, monotonic clock."""
        self._is_begun = False
        """Whether the offsets were held against the topics."""
        self._moved: dict[TopicPlace, tuple[Document | None, int]] = {}
        """Where to read on instead of at a logged offset (None: there is none), if that is gone."""

    def fetch(self, offsets: Mapping[str, Document], limit: Limit) -> Fetched | None:
        """Fetch what has come; the first offsets are logged where they would be others later."""
        reader = self._reader = self._reader or self._begin()
        logged = {place: offsets.get(key) for key, place in self._places.items()}
        self._begin_anew(logged)
        fresh = [place for place, at in logged.items() if at is None]
        if fresh and self._rules.is_first_kept:  # again and again, until the log has them
            firsts = {place: self._start(place, None) for place in fresh}
            return Fetched(empty_table(), self._advances(logged, firsts), backlog=True)
        starts = {place: self._start(place, logged[place]) for place in logged}
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
        """Fetch the next batch, and tell what is left behind it: records, and about their bytes."""
        plan = replace(super().plan(offsets, limit), remark=self._decoder.remark)
        if self._reader is None or not plan.ranges:
            return plan
        rows = -1 if self._decoder.parts_rows else plan.rows
        return replace(plan, rows=rows, lag=Lag(*self._reader.lag))

    def read(self, spark: "SparkSession", ranges: Sequence[pa.Table]) -> "pa.Table":
        """Decode what was fetched, and fetch what is next meanwhile."""
        (table,) = ranges
        self._records = table if self._decoder.keeps_records else None
        if self._reader is not None:
            self._reader.prefetch()
        return self._decoder.decode(spark, table)

    def rejects(self) -> Sequence[Rejects]:
        """Return the records read last that cannot be decoded, or must not be as they are."""
        found, records = self._decoder.rejects(), self._records
        if records is None:
            return found
        return [with_records(each, records) if each.count() else each for each in found]

    def verify(self, ranges: Sequence[pa.Table]) -> None:
        """Refuse a batch of a topic that was made anew meanwhile."""
        del ranges
        self._look_at_topics()

    def acknowledge(self, advances: Sequence[Advance]) -> None:
        """Tell the shadow group, if there is one, how far the log is."""
        if self._shadow is not None:
            ends = ((self._places[identity(each.partition)], each.end) for each in advances)
            self._shadow.commit({at: int(str(end[OFFSET])) for at, end in ends if end is not None})

    def blame(self, error: Exception) -> BadInput | None:
        """Name the record, if an error of Spark's is about one."""
        found = _BLAMED.search(str(error))
        return found and BadInput(_SQLSTATE.sub("", found[0]).strip())

    def close(self) -> None:
        """Let go of the connections."""
        if self._reader is not None:
            self._reader.close()
            self._reader = None
        if self._shadow is not None:
            self._shadow.close()

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
                raise SourceAway(f"topic {name} was deleted and made anew while it was read")

    def _start(self, place: TopicPlace, logged: Document | None) -> int:
        """Return where to read on."""
        known, at = self._moved.get(place, (None, 0))
        return at if logged == known or logged is None else int(str(logged[OFFSET]))

    def _begin_anew(self, logged: Mapping[TopicPlace, Document | None]) -> None:
        """Find, once, where to read partitions that have no offset, or one of another topic."""
        if self._is_begun:
            return
        fresh = {place for place, at in logged.items() if at is None}
        begins = self._offsets(fresh - self._rules.later, self._rules.first)
        later = self._offsets(fresh & self._rules.later, SeekEnd.EARLIEST)
        self._moved = {place: (None, at) for place, at in {**begins, **later}.items()}
        for place, at in logged.items():
            known = self._facts[place.topic].id
            if at is not None and at.get(TOPIC_ID, known) != known:
                told = f"topic {place.topic} was deleted and made anew since {place} was read"
                self._lose(place, at, told)
        self._is_begun = True

    def _offsets(self, places: Collection[TopicPlace], to: Seek) -> Mapping[TopicPlace, int]:
        return self._cluster.offsets(places, to, is_committed=self._rules.is_committed)

    def _skip(self, place: TopicPlace, logged: Document | None) -> None:
        """Go on behind what is gone, if that is allowed."""
        wanted = self._start(place, logged)
        first = self._offsets([place], SeekEnd.EARLIEST)[place]
        if logged is None:
            self._moved[place] = (None, first)  # gone since its first record was looked for
            return
        if wanted < first:
            told = f"{first - wanted} records of {place} are gone: offsets {wanted} to {first - 1}"
        else:
            told = f"{place} ends before offset {wanted}, up to which it was read: it lost records"
        self._lose(place, logged, told)

    def _lose(self, place: TopicPlace, logged: Document, told: str) -> None:
        """Go on elsewhere, and warn; raises `BadInput` if that is not allowed."""
        if self._rules.out_of_range == "fail":
            raise BadInput(
                f"{told}. Nothing was skipped. To go on, set the partition's offset (STOP, then "
                "PATCH …/offsets), or source.offset.out.of.range=earliest or latest"
            )
        found = self._offsets([place], SeekEnd(self._rules.out_of_range))
        self._moved[place] = (logged, found[place])
        self._warn(f"{told}; reading goes on at offset {found[place]}")

    def _advances(
        self, logged: Mapping[TopicPlace, Document | None], ends: Mapping[TopicPlace, int]
    ) -> tuple[Advance, ...]:
        return tuple(
            Advance(document_of(place), logged[place], offset_of(self._facts[place.topic], end))
            for place, end in ends.items()
        )
