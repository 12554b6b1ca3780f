# pyright: basic, reportAttributeAccessIssue=false
"""Reads the partitions of one task with one consumer without a group.

The consumer lives as long as its task, since a new one needs half a second to start. Records that
it fetches in the background during a batch are the beginning of the next batch.
"""

import time
from collections.abc import Mapping, Sequence
from operator import methodcaller
from typing import ClassVar, Final, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
from confluent_kafka import TIMESTAMP_NOT_AVAILABLE, Consumer, KafkaError, Message, TopicPartition

from ....spi.errors import Away
from ....spi.source import Limit
from ..cluster import NO_TOPIC, OUT_OF_RANGE, PARTITION_END, LastError, TopicPlace, make_client
from ..connection import SERVERS, Settings

_CHUNK: Final = 2_000
"""How many records are consumed and converted to columns at once.

With 10,000 objects at a time a record takes 1.5 times the CPU time, with a whole batch three times,
due to cold memory and Python's garbage collector.
"""
_FIRST: Final = 500
"""The first chunk, when the size of records is unknown."""
_WAIT_S: Final = 0.02
"""How long to wait for more records after the first ones."""
_SETTLE_S: Final = 2.0
"""How long no record may arrive before a batch without records goes past transaction markers.

The next record would take the reader past them as well, at no cost. But if none comes, and
retention removes the markers, an offset before them looks like one of records that are lost.
"""

HEADERS: Final = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))
"""The type of the headers of records."""
Headers = Sequence[tuple[str, bytes]] | None
"""The headers of one record."""
_TIME: Final = pa.timestamp("us", tz="UTC")
_NO_TIME: Final = -1
"""The timestamp of a record that has none, as Kafka writes it."""
LATEST_MS: Final = 253_402_300_799_999
"""The end of the year 9999, for later times: clients that write other units than ms have them."""

HEADER_FLAW: Final = "_fairlead_unread"
"""The column with the reason why a record cannot be read whole; null: it can."""
_HEADERS_OF: Final = methodcaller("headers")
"""Returns the headers of a record; raises `SystemError` if the key of one is no UTF-8.

The client then returns pairs without a key, and the error as well. Python's own call of a method
may not look for the error, and go on with such a pair, which ends the process.
"""
_BAD_HEADER: Final = (
    "the key of one of its headers is not in UTF-8: leave headers out of source.metadata.columns "
    "to read it"
)
OWN_SETTINGS: Final[Settings] = {
    "enable.auto.commit": False,
    "enable.auto.offset.store": False,
    "enable.partition.eof": True,
    "auto.offset.reset": "error",
}
DEFAULTS: Final[Settings] = {"fetch.queue.backoff.ms": 20}
"""By default, librdkafka refills a full queue only after a second."""


class OutOfRange(Exception):  # noqa: N818  # a state of the world, not a mistake
    """A partition has no record at the requested offset."""

    def __init__(self, place: TopicPlace) -> None:
        super().__init__(f"{place} has no record at its offset")
        self.place = place


class Records(NamedTuple):
    """Undecoded records, and the next offset of each of their partitions."""

    table: pa.Table
    ends: Mapping[TopicPlace, int]
    """The next offset of each partition after the records."""
    backlog: bool
    """Whether more records wait."""


class PartitionReader:
    """A consumer and its position; not thread-safe."""

    columns: ClassVar[tuple[str, ...]] = (
        "_value",
        "_key",
        "_topic",
        "_partition",
        "_offset",
        "_timestamp",
        "_headers",
        HEADER_FLAW,
    )

    def __init__(self, settings: Settings, away: type[Away], *, has_headers: bool = False) -> None:
        """Create a consumer, which connects at the first read; raises `ConfigInvalid`.

        `has_headers`: headers are read, else they are null.
        """
        self._trouble = LastError()
        self._consumer: Consumer = make_client(
            Consumer, {**DEFAULTS, **settings}, self._trouble, **OWN_SETTINGS
        )
        self._away = away
        self._has_headers = has_headers
        self._servers = settings.get(SERVERS)
        self._next: dict[TopicPlace, int] = {}
        """The next offset of each partition."""
        self._end: dict[TopicPlace, int] = {}
        """The last end-of-partition offset of each partition."""
        self._error: Exception | None = None
        """An error to raise after the records before it were returned."""
        self._settled_at = 0.0
        """When a batch without records may go past markers, on the monotonic clock."""
        self._size = 0
        """The average size of a record in the last read, in bytes."""

    def go_to(self, starts: Mapping[TopicPlace, int]) -> None:
        """Seek to these offsets, unless the reader is there already."""
        if starts != self._next:
            self._next, self._end, self._error = dict(starts), {}, None
            self._settled_at = time.monotonic() + _SETTLE_S
            self._consumer.assign([TopicPartition(*place, at) for place, at in starts.items()])

    def read(self, limit: Limit) -> Records | None:
        """Return the records that have arrived, up to about the limit; None: none.

        There may be a batch without records, which goes past transaction markers. Raises
        `OutOfRange`, and the end's `Away`.
        """
        batches: list[pa.RecordBatch] = []
        rows = size = 0
        while self._error is None and rows < limit.rows and size < limit.bytes:
            wanted = self._chunk(limit, rows, size)
            came = self._consumer.consume(wanted, _WAIT_S if batches else 0)
            records = [each for each in came if each.error() is None]
            if records:
                batches.append(_columns(records, has_headers=self._has_headers))
                rows += len(records)
                size += sum(map(len, records))
            if len(records) < len(came):
                self._look(came)
            if not came or came[-1].error() is not None:
                break  # at the end of at least one partition
        if batches:
            self._size = max(1, size // rows)
            return self._advance(pa.Table.from_batches(batches).combine_chunks())
        self._tell()
        if self._is_before_markers and time.monotonic() >= self._settled_at:
            return self._advance(empty_table())
        return None

    @property
    def position(self) -> Mapping[TopicPlace, int]:
        """The next offset of each partition."""
        return self._next

    @property
    def has_more(self) -> bool:
        """Whether the end of some partition is not reached, as far as known."""
        return self._error is not None or not all(map(self._is_at_end, self._next))

    @property
    def lag(self) -> tuple[int, int]:
        """The lag in records, and the estimated bytes."""
        records = 0
        for place, at in self._next.items():
            _, high = self._consumer.get_watermark_offsets(TopicPartition(*place), cached=True)
            records += 0 if self._is_at_end(place) else max(0, high - at)
        return records, records * self._size

    @property
    def is_troubled(self) -> bool:
        """Whether librdkafka has reported an error since the last call."""
        is_new, self._trouble.is_new = self._trouble.is_new, False
        return is_new

    def close(self) -> None:
        """Close the connections."""
        self._consumer.close()

    def _chunk(self, limit: Limit, rows: int, size: int) -> int:
        """Return how many records to consume next."""
        fits = (limit.bytes - size) // self._size + 1 if self._size else _FIRST
        return min(_CHUNK, limit.rows - rows, fits)

    def _look(self, came: "Sequence[Message]") -> None:
        """Handle messages that are not records: ends of partitions, errors."""
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
        """Raise the pending error, if there is one."""
        if self._error is not None:
            error, self._error, self._next = self._error, None, {}
            raise error

    def _advance(self, table: pa.Table) -> Records:
        """Go past records, and past transaction markers at the ends of all partitions."""
        before = dict(self._next)
        self._next |= _ends(table)
        self._next = {place: max(at, self._end.get(place, at)) for place, at in self._next.items()}
        self._settled_at = time.monotonic() + _SETTLE_S
        ends = {place: at for place, at in self._next.items() if at != before[place]}
        return Records(table, ends, self.has_more)

    @property
    def _is_before_markers(self) -> bool:
        """Whether some partition ends after what comes next."""
        return any(end > self._next[place] for place, end in self._end.items())

    def _is_at_end(self, place: TopicPlace) -> bool:
        return self._end.get(place, -1) >= self._next[place]


def _columns(messages: "Sequence[Message]", *, has_headers: bool) -> pa.RecordBatch:
    """Return undecoded records as columns."""
    headers, flaws = headers_of(messages) if has_headers else ([None] * len(messages),) * 2
    return pa.RecordBatch.from_arrays(
        [
            pa.array([each.value() for each in messages], pa.binary()),
            pa.array([each.key() for each in messages], pa.binary()),
            pa.array([each.topic() for each in messages], pa.string()),
            pa.array([each.partition() for each in messages], pa.int32()),
            pa.array([each.offset() for each in messages], pa.int64()),
            _times([each.timestamp() for each in messages]),
            _pairs(headers),
            pa.array(flaws, pa.string()),
        ],
        names=list(PartitionReader.columns),
    )


def _times(timestamps: Sequence[tuple[int, int]]) -> pa.Array:
    """Return the times of records, from pairs of a kind and milliseconds."""
    millis = pa.array(
        [None if kind == TIMESTAMP_NOT_AVAILABLE else time for kind, time in timestamps], pa.int64()
    )
    known = pc.if_else(pc.equal(millis, _NO_TIME), None, millis)
    past = pc.min_element_wise(known, LATEST_MS, skip_nulls=False)
    return past.cast(pa.timestamp("ms", tz="UTC")).cast(_TIME)


def empty_table() -> pa.Table:
    """Return an empty table with the columns of `PartitionReader`."""
    return pa.Table.from_batches([_columns([], has_headers=False)])


def headers_of(messages: "Sequence[Message]") -> tuple[list[Headers], list[str | None]]:
    """Return the headers of records, and the reasons why those of some cannot be read."""
    headers: list[Headers] = []
    flaws: list[str | None] = []
    for each in messages:
        try:
            headers.append(_HEADERS_OF(each))
            flaws.append(None)
        except (SystemError, UnicodeDecodeError):  # the client gives keys as texts only
            headers.append(None)
            flaws.append(_BAD_HEADER)
    return headers, flaws


def _pairs(headers: "Sequence[Headers]") -> pa.Array:
    """Return headers as an Arrow array; most records have none."""
    if not any(headers):
        return pa.nulls(len(headers), HEADERS)
    made = [
        [{"key": name, "value": value} for name, value in each] if each else None
        for each in headers
    ]
    return pa.array(made, HEADERS)


def _ends(table: pa.Table) -> Mapping[TopicPlace, int]:
    """Return the offset after the last record of each partition."""
    grouped = table.group_by(["_topic", "_partition"]).aggregate([("_offset", "max")])
    rows = grouped.to_pylist()
    return {TopicPlace(row["_topic"], row["_partition"]): row["_offset_max"] + 1 for row in rows}
