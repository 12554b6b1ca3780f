# pyright: basic, reportAttributeAccessIssue=false
"""Decodes Avro records to columns; each record begins with the id of its writer schema.

Records of one schema are decoded together. The columns come from the subject's latest version when
the connector started; `source.schema.evolution` decides about other fields.
"""

from collections.abc import Iterator, Mapping, Sequence
from io import BytesIO
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
from fastavro import schemaless_reader
from pyspark.sql.pandas.types import from_arrow_schema

from ....batches.frames import arrow_schema_of
from ....formats.avro import AvroRefused, AvroSchema, as_columns, avro_schema
from ....formats.evolution.policy import DEAD_LETTER, SchemaPolicy, parse_given
from ....spi.errors import SchemaRefused
from .registry import SchemaRegistry

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

_HEAD: Final = 5
"""The length of the header: a 0 byte, and the schema id in four bytes."""
_DAY_MS: Final = 86_400_000
_NO_HEAD: Final = "it does not begin with a 0 and a schema's id, as records of a registry do"


class Flaws(NamedTuple):
    """Bad records by row, each with the reason."""

    unreadable: dict[int, str]
    """Records that cannot be decoded."""
    unfit: dict[int, str]
    """Records whose schema has new columns that are not allowed."""


class AvroForm(NamedTuple):
    """How the schemas of keys, or of values, become columns."""

    column: str
    """The column of a value that is not a record: `_key`, `_value`."""
    spreads: bool
    """Whether the fields of a record become columns; else the record is one struct column."""

    def of(self, schema: AvroSchema) -> pa.DataType:
        """Return the columns of a schema as a struct, with times in Avro's units."""
        return schema.kind if self.has_fields(schema) else pa.struct([(self.column, schema.kind)])

    def has_fields(self, schema: AvroSchema) -> bool:
        """Return whether the fields of a schema become columns."""
        return self.spreads and bool(schema.name)


KEYS: Final = AvroForm("_key", spreads=False)
VALUES: Final = AvroForm("_value", spreads=True)


class _Part(NamedTuple):
    """Records of one schema: their rows, and their columns in Avro's types."""

    rows: Sequence[int]
    values: Sequence[Mapping[str, Any] | None]
    kind: pa.DataType


class AvroColumns:
    """Decodes keys, or values, of one batch after another."""

    def __init__(
        self, registry: SchemaRegistry, form: AvroForm, ddl: str, policy: SchemaPolicy
    ) -> None:
        """Start with the columns as DDL, and the policy for other columns."""
        self._registry = registry
        self._form = form
        self._ddl = ddl
        self._policy = policy
        self._schema: StructType | None = None
        """The current columns; None: unchanged."""
        self._known: dict[int, AvroSchema | str] = {}
        """The schemas so far by id, or the reason why one is unusable."""
        self._left_out: dict[str, None] = {}
        """The other columns that were left out."""

    @property
    def sets_aside(self) -> bool:
        """Whether records with other columns become bad rows."""
        return self._policy.mode == DEAD_LETTER

    @property
    def remark(self) -> str:
        """Return a remark on the columns that are left out."""
        return self._policy.remark([*self._left_out], "records")

    def decode(self, table: pa.Table, flaws: Flaws) -> pa.Table:
        """Return the columns, with a row for each record; raises `SourceAway`, `ConfigInvalid`.

        Bad rows are null, and added to `flaws`.
        """
        records = table[self._form.column].combine_chunks()
        parts: list[_Part] = []
        for head, rows in _by_head(records):
            schema = self._schema_of(head)
            if isinstance(schema, str):
                flaws.unreadable.update(dict.fromkeys(rows, schema))
            elif self._is_admitted(schema, rows, flaws):
                parts.append(self._read(schema, records, rows, flaws))
        target = arrow_schema_of(self.current)
        nulls = pa.nulls(1, pa.struct(list(target)))
        found = [_columns(each, nulls.type, flaws) for each in parts]
        order = pa.array([row for each in parts for row in each.rows], pa.int64())
        place = pc.index_in(pa.array(range(len(records)), pa.int64()), order)
        made = pa.concat_arrays([*found, nulls]).take(pc.fill_null(place, len(order)))
        return pa.Table.from_arrays(made.flatten(), schema=target)

    @property
    def current(self) -> "StructType":
        """The columns of now, with those that were added."""
        return self._schema or parse_given(self._ddl)

    def _schema_of(self, head: bytes) -> AvroSchema | str:
        if len(head) < _HEAD or head[0]:
            return _NO_HEAD
        number = int.from_bytes(head[1:])
        if number not in self._known:
            told = self._registry.schema(number)
            if told is None:  # not cached: it may be registered later
                return f"the schema registry has no schema {number}"
            try:
                self._known[number] = avro_schema(told)
            except AvroRefused as refused:
                self._known[number] = f"schema {number} cannot be used: {refused}"
        return self._known[number]

    def _is_admitted(self, schema: AvroSchema, rows: Sequence[int], flaws: Flaws) -> bool:
        """Extend the columns by those of a schema; tell whether that is allowed."""
        found = from_arrow_schema(pa.schema(list(as_columns(self._form.of(schema)))))
        try:
            self._schema, left_out = self._policy.admit(
                parse_given(self._ddl), self.current, found, ""
            )
        except SchemaRefused as refused:
            flaws.unfit.update(dict.fromkeys(rows, str(refused).removeprefix(": ")))
            return False
        self._left_out |= dict.fromkeys(left_out)
        return True

    def _read(
        self, schema: AvroSchema, records: pa.Array, rows: Sequence[int], flaws: Flaws
    ) -> _Part:
        values: list[Any] = []
        for row, record in zip(rows, records.take(pa.array(rows)).to_pylist(), strict=True):
            value, why = _value(schema, record)
            if why:
                flaws.unreadable[row] = why
            is_row = why or self._form.has_fields(schema)
            values.append(value if is_row else {self._form.column: value})
        return _Part(rows, values, self._form.of(schema))


def _by_head(records: pa.Array) -> Iterator[tuple[bytes, Sequence[int]]]:
    """Yield each distinct header with the rows that have it, without nulls."""
    heads = pc.binary_slice(records, 0, _HEAD).dictionary_encode()
    for number, head in enumerate(heads.dictionary.to_pylist()):
        yield head, pc.indices_nonzero(pc.equal(heads.indices, number)).to_pylist()


def _value(schema: AvroSchema, record: bytes) -> tuple[Any, str]:
    """Return the value of one record, or None and the reason."""
    stream = BytesIO(record)
    stream.seek(_HEAD)
    try:
        value = schemaless_reader(stream, schema.parsed, None)
    except Exception as error:  # noqa: BLE001  # bytes of others may end in any
        return None, f"it is not what its schema says: {str(error) or type(error).__name__}"
    if left := len(record) - stream.tell():
        return None, f"it is not what its schema says: {left} bytes are left over"
    return value, ""


def _columns(part: _Part, target: pa.DataType, flaws: Flaws) -> pa.Array:
    """Return values as the current columns."""
    kind = _shaped(part.kind, target)
    try:
        return _cast(part.values, kind, target)
    except (pa.ArrowException, OverflowError):
        sound = list(part.values)
    for at, value in enumerate(part.values):
        try:
            _cast([value], kind, target)
        except (pa.ArrowException, OverflowError) as error:
            flaws.unreadable[part.rows[at]] = f"a value does not fit its column: {error}"
            sound[at] = None
    return _cast(sound, kind, target)


def _cast(values: Sequence[Any], kind: pa.DataType, target: pa.DataType) -> pa.Array:
    found = pa.array(values, kind)
    _refuse_times_beyond_a_day(found)
    return pc.cast(found, target)


def _refuse_times_beyond_a_day(values: pa.Array) -> None:
    """Raise `pa.ArrowInvalid` for a time of day that is none: Arrow makes an odd text of it."""
    kind = values.type
    if pa.types.is_struct(kind):
        for each in values.flatten():
            _refuse_times_beyond_a_day(each)
    elif pa.types.is_list(kind):
        _refuse_times_beyond_a_day(values.flatten())
    elif pa.types.is_map(kind):
        _refuse_times_beyond_a_day(values.items)
    elif pa.types.is_time(kind):
        numbers = values.cast(pa.int32() if pa.types.is_time32(kind) else pa.int64())
        most = _DAY_MS if pa.types.is_time32(kind) else _DAY_MS * 1_000
        wrong = pc.or_(pc.less(numbers, 0), pc.greater_equal(numbers, most))
        if pc.any(wrong).as_py():
            raise pa.ArrowInvalid(f"{numbers.filter(wrong)[0]} is no time of day")


def _shaped(kind: pa.DataType, target: pa.DataType) -> pa.DataType:
    """Return a type with exactly the target's fields, in its own units."""
    if pa.types.is_struct(kind) and pa.types.is_struct(target):
        mine = {each.name: each.type for each in kind}
        fields = [
            each.with_type(_shaped(mine.get(each.name, each.type), each.type)) for each in target
        ]
        return pa.struct(fields)
    if pa.types.is_list(kind) and pa.types.is_list(target):
        return pa.list_(_shaped(kind.value_type, target.value_type))
    if pa.types.is_map(kind) and pa.types.is_map(target):
        return pa.map_(kind.key_type, _shaped(kind.item_type, target.item_type))
    return kind
