# pyright: basic
"""The partitions of one task, read on and on by one consumer that no group knows.

A consumer is kept for as long as its task works: one that begins anew waits for half a second.
What it fetches ahead while a batch runs is what the next batch begins with.
"""

from collections.abc import Mapping, Sequence
from typing import ClassVar, Final, NamedTuple

import pyarrow as pa
from confluent_kafka import TIMESTAMP_NOT_AVAILABLE, Consumer, KafkaError, Message, TopicPartition

from ....spi.errors import Away
from ....spi.source import Limit
from ..cluster import NO_TOPIC, OUT_OF_RANGE, PARTITION_END, LastError, TopicPlace, make_client
from ..connection import SERVERS, Settings

_CHUNK: Final = 2_000
"""How many records are asked for at once, and made columns of before the next are asked for.

As objects they are a burden: with 10,000 at a time each takes half as much of a core again, with
all of a batch three times as much, for memory that is cold by then and for Python's collector.
"""
_FIRST: Final = 500
"""How many at first, when nobody knows how large they are."""
_WAIT_S: Final = 0.02
"""How long more is waited for while it comes."""

_HEADERS: Final = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))
Headers = Sequence[tuple[str, bytes]] | None
"""The headers of one record."""
_TIME: Final = pa.timestamp("us", tz="UTC")

OWN_SETTINGS: Final[Settings] = {
    "enable.auto.commit": False,
    "enable.auto.offset.store": False,
    "enable.partition.eof": True,
    "auto.offset.reset": "error",
}
DEFAULTS: Final[Settings] = {"fetch.queue.backoff.ms": 20}
"""A full queue would be filled again only a second after it has room."""


class OutOfRange(Exception):  # noqa: N818  # a state of the world, not a mistake
    """A partition has nothing at the offset that it was to be read from."""

    def __init__(self, place: TopicPlace) -> None:
        super().__init__(f"{place} has no record at its offset")
        self.place = place


class Records(NamedTuple):
    """Some records as Kafka has them, and how far they go in each partition that has any."""

    table: pa.Table
    ends: Mapping[TopicPlace, int]
    backlog: bool


class PartitionReader:
    """One consumer and where it stands; all methods are called from one thread."""

    columns: ClassVar[tuple[str, ...]] = (
        "_value",
        "_key",
        "_topic",
        "_partition",
        "_offset",
        "_timestamp",
        "_headers",
    )

    def __init__(self, settings: Settings, away: type[Away]) -> None:
        """Make a consumer, which connects when it is asked; raises `ConfigInvalid`."""
        self._trouble = LastError()
        self._consumer: Consumer = make_client(
            Consumer, {**DEFAULTS, **settings}, self._trouble, **OWN_SETTINGS
        )
        self._away = away
        self._servers = settings.get(SERVERS)
        self._next: dict[TopicPlace, int] = {}
        """What comes next in each partition."""
        self._end: dict[TopicPlace, int] = {}
        """Where the reader last came to the end of a partition."""
        self._error: Exception | None = None
        """What is to be told once the records before it are taken."""
        self._size = 0
        """How many bytes a record had, on average, in what was read last."""

    def go_to(self, starts: Mapping[TopicPlace, int]) -> None:
        """Read on from these offsets; costs nothing where the reader stands there already."""
        if starts != self._next:
            self._next, self._end, self._error = dict(starts), {}, None
            self._consumer.assign([TopicPartition(*place, at) for place, at in starts.items()])

    def read(self, limit: Limit) -> Records | None:
        """Return what has come, about as much as the limit says; None: nothing.

        Raises `OutOfRange`, and the end's `Away`.
        """
        found: list[pa.RecordBatch] = []
        rows = size = 0
        while self._error is None and rows < limit.rows and size < limit.bytes:
            wanted = self._chunk(limit, rows, size)
            came = self._consumer.consume(wanted, _WAIT_S if found else 0)
            records = [each for each in came if each.error() is None]
            if records:
                found.append(_columns(records))
                rows += len(records)
                size += sum(map(len, records))
            if len(records) < len(came):
                self._look(came)
            if not came or came[-1].error() is not None:
                break  # it has caught up with one partition at least
        if not found:
            self._tell()
            return None
        self._size = max(1, size // rows)
        table = pa.Table.from_batches(found).combine_chunks()
        ends = _ends(table)
        self._next.update(ends)
        return Records(table, self._past_markers(ends), self.has_more)

    @property
    def position(self) -> Mapping[TopicPlace, int]:
        """What comes next in each partition."""
        return self._next

    @property
    def has_more(self) -> bool:
        """Tell whether the end of some partition is not known to be reached."""
        return self._error is not None or not all(map(self._is_at_end, self._next))

    @property
    def lag(self) -> tuple[int, int]:
        """How many records are still to be read, about, and how many bytes they have."""
        records = 0
        for place, at in self._next.items():
            _, high = self._consumer.get_watermark_offsets(TopicPartition(*place), cached=True)
            records += 0 if self._is_at_end(place) else max(0, high - at)
        return records, records * self._size

    @property
    def is_troubled(self) -> bool:
        """Tell whether librdkafka has said that something is wrong since this was last asked."""
        is_new, self._trouble.is_new = self._trouble.is_new, False
        return is_new

    def close(self) -> None:
        """Let go of the connections."""
        self._consumer.close()

    def _chunk(self, limit: Limit, rows: int, size: int) -> int:
        """Return how many records to ask for: what comes is all taken."""
        fits = (limit.bytes - size) // self._size + 1 if self._size else _FIRST
        return min(_CHUNK, limit.rows - rows, fits)

    def _look(self, came: "Sequence[Message]") -> None:
        """Take note of what came that is no record."""
        events = [(event, error) for event in came if (error := event.error()) is not None]
        for event, error in events:
            place = TopicPlace(event.topic() or "", event.partition() or 0)
            code = error.code()
            if code == PARTITION_END:
                self._end[place] = event.offset() or 0
            elif code in OUT_OF_RANGE:
                self._error = OutOfRange(place)
            elif code in NO_TOPIC:
                self._error = self._away(f"topic {place.topic} does not exist")
            elif code == KafkaError.TOPIC_AUTHORIZATION_FAILED:
                self._error = self._away(f"topic {place.topic}: {error.str()}")
            else:
                self._trouble(error)

    def _tell(self) -> None:
        """Raise what stands between the reader and more."""
        if self._error is not None:
            error, self._error, self._next = self._error, None, {}
            raise error

    def _past_markers(self, ends: Mapping[TopicPlace, int]) -> Mapping[TopicPlace, int]:
        """Return how far the reader is: at an end, markers of transactions lie behind records."""
        for place, end in ends.items():
            self._next[place] = max(end, self._end.get(place, end))
        return {place: self._next[place] for place in ends}

    def _is_at_end(self, place: TopicPlace) -> bool:
        return self._end.get(place, -1) >= self._next[place]


def _columns(found: "Sequence[Message]") -> pa.RecordBatch:
    """Return records as they are; nothing is decoded yet."""
    times = [each.timestamp() for each in found]
    millis = [None if kind == TIMESTAMP_NOT_AVAILABLE else time for kind, time in times]
    headers: list[Headers] = [each.headers() for each in found]  # pyright: ignore
    micros = pa.array(millis, pa.timestamp("ms", tz="UTC")).cast(_TIME)
    return pa.RecordBatch.from_arrays(
        [
            pa.array([each.value() for each in found], pa.binary()),
            pa.array([each.key() for each in found], pa.binary()),
            pa.array([each.topic() for each in found], pa.string()),
            pa.array([each.partition() for each in found], pa.int32()),
            pa.array([each.offset() for each in found], pa.int64()),
            micros,
            _pairs(headers),
        ],
        names=list(PartitionReader.columns),
    )


def empty_table() -> pa.Table:
    """Return what `PartitionReader` gives, without a record."""
    return pa.Table.from_batches([_columns([])])


def _pairs(headers: "Sequence[Headers]") -> pa.Array:
    """Return headers as Spark has them; most records have none."""
    if not any(headers):
        return pa.nulls(len(headers), _HEADERS)
    made = [
        [{"key": name, "value": value} for name, value in each] if each else None
        for each in headers
    ]
    return pa.array(made, _HEADERS)


def _ends(table: pa.Table) -> Mapping[TopicPlace, int]:
    """Return what comes behind the last record of each partition."""
    grouped = table.group_by(["_topic", "_partition"]).aggregate([("_offset", "max")])
    rows = grouped.to_pylist()
    return {TopicPlace(row["_topic"], row["_partition"]): row["_offset_max"] + 1 for row in rows}
