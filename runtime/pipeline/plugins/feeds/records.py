# pyright: basic, reportAttributeAccessIssue=false
"""Rows as the records that a plugin host makes of them: their places, their schemas, their bytes.

A record has a topic, a partition and an offset. Rows of topics have theirs. All others have the
topic that their column `_topic` names, or else the only one of the config, the number of their task
as partition, and offsets that are counted on from those in the log.

So have letters that are retried, whatever they were: their own offsets lie behind what a plugin has
had of their partition, and a plugin that remembers offsets would pass them by.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple
from zlib import crc32

import pyarrow as pa
import pyarrow.compute as pc

from .....events.commits import Document, identity
from ...formats.connect import (
    MICRO_TIMESTAMP,
    TIMESTAMP,
    WrittenTimes,
    cut_times,
    envelope_of,
)
from ...spi.errors import SchemaRefused
from ...spi.keys.plugin_sink import (
    KEY_COLUMNS,
    RECORD_OFFSET,
    RECORD_PARTITION,
    RECORD_TOPIC,
    TIME_PRECISION,
)
from ...spi.rows import RECORD_PLACE, ArrowTable
from ..batches.pair import BATCH

_LONE: Final = "_value"
_BESIDE: Final = ("_key", "_timestamp", "_headers")
_PLACE: Final = (*RECORD_PLACE.values(),)
_CHUNK_BYTES: Final = 8 << 20
"""How much a plugin host is given at once, about."""
MILLISECONDS: Final = "milliseconds"
MICROSECONDS: Final = "microseconds"
TRUNCATED: Final = "truncated"
_ADVICE: Final = (
    f"set {TIME_PRECISION}={MICROSECONDS} for a plugin that knows Debezium's MicroTimestamp, or "
    f"{TIME_PRECISION}={TRUNCATED} to lose them"
)
TIME_FORMS: Final = {
    MILLISECONDS: WrittenTimes(TIMESTAMP, _ADVICE),
    MICROSECONDS: WrittenTimes(MICRO_TIMESTAMP),
    TRUNCATED: WrittenTimes(TIMESTAMP),
}
"""How times are written, by the words of the key."""
_PLAIN: Final[Mapping[pa.DataType, pa.DataType]] = {
    pa.large_string(): pa.string(),
    pa.large_binary(): pa.binary(),
    pa.uint8(): pa.int16(),
    pa.uint16(): pa.int32(),
    pa.uint32(): pa.int64(),
    pa.null(): pa.string(),
}


class Fed(NamedTuple):
    """Rows as a host takes them."""

    key: Mapping[str, Any] | None
    """The schema of keys, in Connect's notation; None: there are none, or they are bytes."""
    value: Mapping[str, Any] | None
    """The schema of values; None: they are bytes."""
    lone: bool
    """Whether a value is no struct, but a single column."""
    table: ArrowTable
    batch: int | None = None
    """The number of the batch of a source that the host holds; None: the table has all."""

    def chunks(self) -> Iterator[bytes]:
        """Yield the rows in streams of Arrow of a bounded size."""
        table: Any = self.table
        step = max(1, table.num_rows * _CHUNK_BYTES // max(table.nbytes, 1))
        for start in range(0, table.num_rows, step):
            part = table.slice(start, step).combine_chunks()
            stream = pa.BufferOutputStream()
            with pa.ipc.new_stream(stream, part.schema) as writer:
                writer.write_table(part)
            yield stream.getvalue()


class RecordForm(NamedTuple):
    """How rows become records."""

    is_raw: bool = False
    """Whether keys and values are bytes that the plugin's own converters read."""
    keys: Sequence[str] = ()
    """The columns of a record's key; with them a deleted row has no value."""
    is_letter: bool = False
    """Whether rows are letters: the places that they have are not theirs any more."""
    times: str = MILLISECONDS
    """A word of `TIME_FORMS`."""


class PlacedRows:
    """Makes records of rows, and counts the offsets of those that have none."""

    def __init__(self, topic: str, partition: int, form: RecordForm) -> None:
        """Begin at offset 0; `topic` is that of rows without one, "" if there is none."""
        self._topic, self._partition, self._form = topic, partition, form
        self._logged: Mapping[str, Document] = {}
        self._next: dict[str, int] = {}
        """The offset of the next row, by topic."""

    def begin(self, offsets: Mapping[str, Document]) -> None:
        """Go on behind the offsets in the log, which are keyed by partition identity."""
        self._logged = offsets

    def _document(self, topic: str) -> Document:
        return {RECORD_TOPIC: topic, RECORD_PARTITION: self._partition}

    def ends(self) -> Iterator[tuple[Document, Document]]:
        """Yield the partitions whose offsets are counted here, and the next offset of each."""
        for topic, offset in self._next.items():
            yield self._document(topic), {RECORD_OFFSET: offset}

    def make(self, rows: ArrowTable) -> Fed:
        """Return rows as records; raises `SchemaRefused`, and `RowsRefused` as `envelope_of`."""
        fed = self.check(rows)
        return fed._replace(table=pa.table({**self._placed(rows), **_columns(fed.table)}))

    def check(self, given: ArrowTable) -> Fed:
        """Return rows as they are but for their places, without counting them; raises as `make`."""
        rows = self._with_keys(given)
        beside = {each: rows[each] for each in _BESIDE if each in rows.column_names}
        if "_timestamp" in beside:
            millis = pc.cast(beside["_timestamp"], pa.timestamp("ms", "UTC"), safe=False)
            beside["_timestamp"] = pc.cast(millis, pa.int64())
        names = [each for each in rows.column_names if each not in {*_PLACE, *_BESIDE}]
        if not names:
            raise SchemaRefused("no column is left for the value: all are about the record")
        number = (rows.schema.metadata or {}).get(BATCH)
        if self._form.is_raw or number is not None:
            if names != [_LONE]:
                raise SchemaRefused(f"a value of bytes is the column {_LONE}, not {names}")
            table = pa.table({**beside, _LONE: rows[_LONE]})
            batch = None if number is None else int(number)
            return Fed(key=None, value=None, lone=True, table=table, batch=batch)
        lone, key = names == [_LONE], None
        value, columns = self._envelope(rows.select(names), is_lone=lone)
        if "_key" in beside:
            key, keys = self._envelope(pa.table({"_key": beside["_key"]}), is_lone=True)
            beside["_key"] = keys["_key"]
        return Fed(key, value, lone, pa.table({**beside, **_columns(columns)}))

    def _envelope(self, rows: pa.Table, *, is_lone: bool) -> tuple[dict[str, Any], pa.Table]:
        plain, times = _plain(rows), self._form.times
        plain = cut_times(plain) if times == TRUNCATED else plain
        return envelope_of(plain, is_lone=is_lone, times=TIME_FORMS[times])

    def _with_keys(self, given: ArrowTable) -> pa.Table:
        """Return rows with a key of some columns, if the config wants that."""
        rows: Any = given
        if not self._form.keys:
            return rows
        if missing := [each for each in self._form.keys if each not in rows.column_names]:
            raise SchemaRefused(f"{KEY_COLUMNS}: rows have no column {', '.join(missing)}")
        columns = [rows[each].combine_chunks() for each in self._form.keys]
        keyed = rows.append_column("_key", pa.StructArray.from_arrays(columns, [*self._form.keys]))
        gone = _deleted(rows)
        if gone is None or not pc.any(gone).as_py():
            return keyed
        kept = pc.if_else(gone, None, pa.array(range(rows.num_rows), pa.int64()))
        for at, name in enumerate(rows.column_names):
            if name not in {*_PLACE, *_BESIDE}:
                keyed = keyed.set_column(at, name, rows[name].take(kept))
        return keyed

    def _placed(self, given: ArrowTable) -> dict[str, pa.ChunkedArray | pa.Array]:
        rows: Any = given
        if not self._form.is_letter and all(each in rows.column_names for each in _PLACE):
            kinds = (pa.string(), pa.int32(), pa.int64())
            return {
                each: pc.cast(rows[each], kind) for each, kind in zip(_PLACE, kinds, strict=True)
            }
        topics = self._topics(rows)
        offsets = pa.array(map(self._count, topics.to_pylist()), pa.int64())
        partitions = pa.repeat(pa.scalar(self._partition, pa.int32()), rows.num_rows)
        return dict(zip(_PLACE, (topics, partitions, offsets), strict=True))

    def _topics(self, rows: pa.Table) -> pa.ChunkedArray | pa.Array:
        if "_topic" not in rows.column_names:
            if not self._topic:
                raise SchemaRefused(
                    "rows have no column _topic, and the config does not name a single topic in "
                    "topics: set topics to the one that these rows are of"
                )
            return pa.repeat(pa.scalar(self._topic), rows.num_rows)
        topics = pc.cast(rows["_topic"], pa.string())
        if topics.null_count:
            raise SchemaRefused(f"{topics.null_count} rows have no topic in their column _topic")
        return topics

    def _count(self, topic: str) -> int:
        if topic not in self._next:
            logged = self._logged.get(identity(self._document(topic)), {})
            self._next[topic] = int(str(logged.get(RECORD_OFFSET, 0)))
        self._next[topic] += 1
        return self._next[topic] - 1


def _deleted(rows: pa.Table) -> pa.ChunkedArray | None:
    """Return which rows are deletions, as sources of changes tell it; None: none is."""
    if "__op" not in rows.column_names:
        return None
    if pc.any(pc.equal(rows["__op"], "t")).as_py():
        raise SchemaRefused(
            "a TRUNCATE has no key, and is no record: leave it out (source.skipped.operations=t)"
        )
    return pc.equal(rows["__op"], "d")


def partition_of_letters(connector: str) -> int:
    """Return the partition of letters that a connector retries by its first task.

    It is one that no topic has, and another one for each connector: a plugin may name files by
    partition and offset.
    """
    return (1 << 30) + crc32(connector.encode()) % ((1 << 30) - (1 << 16))


def is_counted(partition: str) -> bool:
    """Return whether the identity of a partition is that of offsets that are counted here."""
    return partition.startswith(f"{RECORD_PARTITION}=")


def _columns(given: ArrowTable) -> dict[str, pa.ChunkedArray]:
    rows: Any = given
    return dict(zip(rows.column_names, rows.columns, strict=True))


def _plain(rows: pa.Table) -> pa.Table:
    """Return columns with the types that a host reads."""
    kinds = [
        each.type.value_type if pa.types.is_dictionary(each.type) else each.type
        for each in rows.schema
    ]
    fields = [
        (name, _PLAIN.get(kind, kind)) for name, kind in zip(rows.column_names, kinds, strict=True)
    ]
    return rows.cast(pa.schema(fields))
