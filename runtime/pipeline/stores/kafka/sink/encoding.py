# pyright: basic, reportAttributeAccessIssue=false
"""Encodes rows as records: topics, keys and values, by the converters.

It runs when a batch is staged, so that rows that cannot be encoded are refused before the commit.
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import msgspec
import pyarrow as pa
import pyarrow.compute as pc

from ....formats.connect import envelope_of
from ....spi.errors import RowsRefused, SchemaRefused

if TYPE_CHECKING:
    from ..avro.encoding import AvroEncoder

LONE: Final = "_value"
_OBJECTS: Final = ("json", "avro")
"""Converters that can write several columns."""
RECORD: Final = pa.schema(
    [
        ("topic", pa.string()),
        ("key", pa.binary()),
        ("value", pa.binary()),
        ("timestamp", pa.int64()),
        ("headers", pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))),
        ("partition", pa.int32()),
    ]
)
"""The schema of encoded records; times in ms since 1970, and a partition only if it is given."""

_NOT_FINITE: Final[Mapping[str, object]] = {
    "nan": "NaN",
    "inf": "Infinity",
    "-inf": "-Infinity",
}
"""The numbers that JSON does not have, as Connect's converter writes them."""
_TOPIC: Final = re.compile(r"(?!\.{1,2}$)[a-zA-Z0-9._-]{1,249}")
_ENCODE: Final = msgspec.json.Encoder(decimal_format="number").encode


@dataclass(frozen=True, slots=True)
class Converter:
    """The format of a key or a value."""

    kind: str
    """`string`, `bytes`, `json` or `avro`."""
    has_schemas: bool = False
    """Whether JSON is in Connect's envelope."""
    avro: "AvroEncoder | None" = None
    """The encoder, for `avro`."""


class _Topics(NamedTuple):
    """The topics of rows: the distinct names (at least one), and the topic of each row."""

    names: Sequence[str]
    of_rows: pa.ChunkedArray


@dataclass(frozen=True, slots=True)
class RecordEncoder:
    """Encodes rows by a config; `topic` is the topic of all rows unless there is a topic column."""

    topic: str
    topic_column: str
    """The column that names topics; empty: there is none."""
    key_columns: tuple[str, ...]
    key: Converter
    value: Converter

    def check(self, schema: pa.Schema) -> None:
        """Raise `SchemaRefused` if rows of a schema cannot be written."""
        named = (self.topic_column, *self.key_columns) if self.topic_column else self.key_columns
        if missing := [name for name in named if name not in schema.names]:
            there = ", ".join(schema.names)
            raise SchemaRefused(f"there is no column {', '.join(missing)}; there are {there}")
        try:
            self.encode(schema.empty_table())
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
            raise SchemaRefused(f"rows cannot be encoded as records: {error}") from None

    def encode(self, rows: pa.Table) -> pa.Table:
        """Return the encoded records; raises `SchemaRefused`, `RowsRefused`."""
        there = rows.column_names
        topics = self._topics(rows)
        columns = (
            topics.of_rows,
            self._keys(rows, topics),
            self._values(rows, topics),
            _times(rows) if "_timestamp" in there else None,
            pc.cast(rows["_headers"], RECORD.field(4).type) if "_headers" in there else None,
            None,
        )
        made = [
            _nulls(rows, number) if each is None else each for number, each in enumerate(columns)
        ]
        return pa.Table.from_arrays(made, schema=RECORD)

    def _topics(self, rows: pa.Table) -> _Topics:
        if not self.topic_column:
            every = pa.repeat(pa.scalar(self.topic), rows.num_rows)
            return _Topics([self.topic], pa.chunked_array([every]))
        topics = pc.cast(rows[self.topic_column], pa.string())
        if topics.null_count:
            raise RowsRefused(
                f"{topics.null_count} rows have no topic in column {self.topic_column}"
            )
        names = pc.unique(topics).to_pylist()
        if wrong := [each for each in names if not _TOPIC.fullmatch(each)]:
            raise RowsRefused(
                f"a row has {wrong[0]!r} in column {self.topic_column}, which is no topic's name: "
                "it has at most 249 letters, digits, dots, underscores and hyphens"
            )
        return _Topics(names, topics)

    def _keys(self, rows: pa.Table, topics: _Topics) -> pa.ChunkedArray | None:
        if self.key_columns:
            return _converted(rows.select(list(self.key_columns)), self.key, "key", topics)
        if "_key" not in rows.column_names:
            return None
        lone = rows.select(["_key"])
        if pa.types.is_struct(lone.schema[0].type) and self.key.kind in _OBJECTS:
            lone = pa.Table.from_arrays(
                lone["_key"].combine_chunks().flatten(), schema=_inside(lone)
            )
            made = _converted(lone, self.key, "key", topics)
            return pc.if_else(
                pc.is_valid(rows["_key"].combine_chunks()), made.combine_chunks(), None
            )
        return _converted(lone, self.key, "key", topics)

    def _values(self, rows: pa.Table, topics: _Topics) -> pa.ChunkedArray:
        names = [
            each
            for each in rows.column_names
            if not each.startswith("_") and each != self.topic_column
        ]
        names = names or [each for each in rows.column_names if each == LONE]
        if not names:
            raise SchemaRefused("no column is left for the value: all names begin with _")
        values = rows.select(names)
        if "_key" not in rows.column_names or self.value.kind not in _OBJECTS:
            return _converted(values, self.value, "value", topics)
        is_there = pc.is_valid(values.column(0))
        for column in values.columns[1:]:
            is_there = pc.or_(is_there, pc.is_valid(column))
        there = _Topics(topics.names, topics.of_rows.filter(is_there))
        made = _converted(values.filter(is_there), self.value, "value", there)
        place = pc.subtract(pc.cumulative_sum(pc.cast(is_there, pa.int64())), 1)
        return made.take(pc.if_else(is_there, place, None))  # None: a tombstone


_DAY_US: Final = 86_400_000_000
_MILLIS: Final = pa.timestamp("ms", tz="UTC")


def _times(rows: pa.Table) -> pa.ChunkedArray:
    """Return the timestamps of records, at least 1: librdkafka takes 0 for the present time."""
    times = pc.cast(pc.cast(rows["_timestamp"], _MILLIS, safe=False), pa.int64())
    if (pc.min(times).as_py() or 0) < 0:
        why = "a row has a _timestamp before 1970, which a Kafka record cannot have"
        raise RowsRefused(why)
    return pc.max_element_wise(times, 1, skip_nulls=False)


def _converted(
    columns: pa.Table, converter: Converter, what: str, topics: _Topics
) -> pa.ChunkedArray:
    """Encode columns with a converter."""
    lone = columns.column_names in ([LONE], ["_key"])
    if converter.avro is not None:
        return converter.avro.encode(columns, topics.names, topics.of_rows, is_lone=lone)
    if converter.kind == "json":
        return _json(columns, converter, is_lone=lone)
    if columns.num_columns != 1:
        names = ", ".join(columns.column_names)
        raise SchemaRefused(f"a {what} as {converter.kind} is made of one column, not of {names}")
    (column,), kind = columns.columns, columns.schema[0].type
    is_text = pa.types.is_string(kind) or pa.types.is_large_string(kind)
    is_bytes = pa.types.is_binary(kind) or pa.types.is_large_binary(kind)
    if converter.kind == "bytes" and not (is_text or is_bytes):
        raise SchemaRefused(f"a {what} as bytes: column {columns.column_names[0]} is {kind}")
    try:
        return pc.cast(column if is_text or is_bytes else pc.cast(column, pa.string()), pa.binary())
    except pa.ArrowNotImplementedError:
        raise SchemaRefused(
            f"a {what} as text: column {columns.column_names[0]} is {kind}; write it as json"
        ) from None


def _json(columns: pa.Table, converter: Converter, *, is_lone: bool) -> pa.ChunkedArray:
    """Return rows in JSON; a single value is not put into an object."""
    before, behind = b"", b""
    if converter.has_schemas:
        schema, columns = envelope_of(columns, is_lone=is_lone)
        before, behind = b'{"schema":%s,"payload":' % json.dumps(schema).encode(), b"}"
    lists = [_listed(each) for each in columns.columns]
    if is_lone:
        made = [None if value is None else before + _ENCODE(value) + behind for value in lists[0]]
    else:
        rows = _objects(columns.column_names, lists)
        made = [before + _ENCODE(each) + behind for each in rows]
    return pa.chunked_array([pa.array(made, pa.binary())])


def _listed(column: pa.ChunkedArray) -> list[object]:
    """Return the values of a column; the option for maps is slow, so only nested columns get it."""
    _refuse_end_of_day(column)
    how = {"maps_as_pydicts": "strict"} if pa.types.is_nested(column.type) else {}
    try:
        found: list[object] = column.to_pylist(**how)
    except OverflowError:
        why = "a row has a time before the year 1 or after 9999, which cannot be written as JSON"
        raise RowsRefused(why) from None
    return found if _is_finite(column) else [*map(_spelled, found)]


def _refuse_end_of_day(column: pa.ChunkedArray) -> None:
    """Raise `RowsRefused` for 24:00:00, which PostgreSQL has, and Python takes for 00:00:00."""
    if pa.types.is_list(column.type):
        column = pc.list_flatten(column)
    if not pa.types.is_time64(column.type):
        return
    micros = pc.cast(pc.cast(column, pa.time64("us"), safe=False), pa.int64())
    if pc.any(pc.greater_equal(micros, _DAY_US)).as_py():
        raise RowsRefused(
            "a row has the time of day 24:00:00, which cannot be written as JSON: make it a text "
            "by a transform"
        )


def _is_finite(column: pa.ChunkedArray) -> bool:
    """Return whether all numbers of a column are finite, at any depth."""
    kind = column.type
    if pa.types.is_floating(kind):
        return pc.all(pc.is_finite(column)).as_py() is not False
    if pa.types.is_struct(kind):
        return all(map(_is_finite, column.flatten()))
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        return _is_finite(pc.list_flatten(column))
    if pa.types.is_map(kind):
        return all(_is_finite(pa.chunked_array([each.items])) for each in column.chunks)
    return True


def _spelled(value: object) -> object:
    if isinstance(value, float):
        return _NOT_FINITE.get(str(value), value)
    if isinstance(value, dict):
        return {name: _spelled(each) for name, each in value.items()}
    return [*map(_spelled, value)] if isinstance(value, list) else value


def _objects(names: Sequence[str], lists: Sequence[list[object]]) -> Iterator[object]:
    """Return rows as msgspec structs, which are fastest to encode, or as dicts for odd names."""
    fields = {f"f{number}": name for number, name in enumerate(names)}
    try:
        row = msgspec.defstruct("Row", [(each, Any) for each in fields], rename=fields, gc=False)
    except ValueError:
        return (dict(zip(names, each, strict=True)) for each in zip(*lists, strict=True))
    return map(row, *lists)


def _inside(lone: pa.Table) -> pa.Schema:
    return pa.schema(list(lone.schema[0].type))


def _nulls(rows: pa.Table, number: int) -> pa.ChunkedArray:
    return pa.chunked_array([pa.nulls(rows.num_rows, RECORD.field(number).type)])
