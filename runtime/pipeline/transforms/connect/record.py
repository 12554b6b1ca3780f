"""A row as a Connect record (value, key, metadata), with each column as an SQL expression.

A record's value is the columns of its row. Metadata is in the columns of `METADATA`, if the source
has it. A value that is not a struct (such as the result of `ExtractField` for a number) is in the
single column `_value`. A row that has the column `_key`, and nulls in all columns of its value, is
a tombstone; rows without that column never are. So a struct of nulls and a null struct are the same
here, and a tombstone stays one whatever its transforms insert.

A record is built from a schema, without Spark, and is immutable; finally it gives the select list
that computes the changed rows.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from typing import Final, NamedTuple

from pyspark.sql.types import DataType, StringType, StructField, StructType

from ...engines.spelling import NULL, literal, quoted, refusal
from ...spi.config import ConfigInvalid

KEY, TOPIC, PARTITION, OFFSET = "_key", "_topic", "_partition", "_offset"
TIMESTAMP, HEADERS = "_timestamp", "_headers"
METADATA: Final[Mapping[str, str]] = {
    KEY: "the key: records from Kafka have it, and the transform ValueToKey makes one",
    TOPIC: "the topic: records from Kafka have it",
    PARTITION: "the partition in Kafka: records from Kafka have it",
    OFFSET: "the offset in Kafka: records from Kafka have it",
    TIMESTAMP: "the time of the record: records from Kafka have it",
    HEADERS: "the headers: records from Kafka have them, and InsertHeader and HeaderFrom make some",
}
"""The metadata columns, with what provides them."""

LONE_VALUE: Final = "_value"


class Field(NamedTuple):
    """A column, or a field of one: its SQL expression and type."""

    sql: str
    type: DataType


class RecordPart(Enum):
    """The part of a record that a transform works on."""

    KEY = "Key"
    VALUE = "Value"


@dataclass(frozen=True, slots=True)
class ConnectRecord:
    """The transformed columns in order, as expressions over the input columns.

    `where` is the condition of rows to keep; empty: all.
    """

    columns: Mapping[str, Field]
    where: str = ""

    @classmethod
    def of(cls, schema: StructType) -> "ConnectRecord":
        """Return the unchanged record of a schema."""
        return cls({each.name: Field(quoted(each.name), each.dataType) for each in schema.fields})

    @property
    def value(self) -> Mapping[str, Field]:
        """The columns of the value."""
        return {name: each for name, each in self.columns.items() if name not in METADATA}

    @property
    def tombstone(self) -> str:
        """The condition of a tombstone; empty: there can be none."""
        if KEY not in self.columns or not self.value:
            return ""
        return " AND ".join(f"{each.sql} IS NULL" for each in self.value.values())

    @property
    def select_list(self) -> list[str]:
        """The select list over the input columns."""
        return [f"{each.sql} AS {quoted(name)}" for name, each in self.columns.items()]

    @property
    def query(self) -> str:
        """The query over the table `input`."""
        where = f" WHERE {self.where}" if self.where else ""
        return f"SELECT {', '.join(self.select_list)} FROM input{where}"  # noqa: S608  # all quoted

    def keeps(self, schema: StructType) -> bool:
        """Return whether rows of this schema stay unchanged."""
        return list(self.columns.items()) == list(ConnectRecord.of(schema).columns.items())

    def metadata(self, name: str) -> Field:
        """Return a metadata column; raises `ConfigInvalid` if the rows do not have it."""
        if name not in self.columns:
            raise ConfigInvalid(f"the rows have no column {name} with {METADATA[name]}")
        return self.columns[name]

    def whole(self, part: RecordPart) -> Field:
        """Return the key or the value as one expression."""
        if part is RecordPart.KEY:
            return self.metadata(KEY)
        if set(self.value) == {LONE_VALUE}:
            return self.columns[LONE_VALUE]
        return struct_of(self.value, self.tombstone)

    def fields(self, part: RecordPart) -> Mapping[str, Field]:
        """Return the fields of the key or value; raises `ConfigInvalid` if it is not a struct."""
        if part is RecordPart.VALUE and set(self.value) != {LONE_VALUE}:
            return self.value
        whole = self.whole(part)
        if not isinstance(whole.type, StructType):
            kind = whole.type.simpleString()
            raise ConfigInvalid(f"the record's {part.value.lower()} is no struct but {kind}")
        return fields_in(whole)

    def with_fields(
        self, part: RecordPart, fields: Mapping[str, Field], purpose: str = ""
    ) -> "ConnectRecord":
        """Return the record with new fields in its key or its value; null stays null.

        With a `purpose`, a null key fails the job with that text.
        """
        if part is RecordPart.VALUE:
            return self._with_value(fields)
        whole = struct_of(fields)
        told = refusal(literal(f"the record has no key for {purpose}")) if purpose else NULL
        sql = f"IF({self.metadata(KEY).sql} IS NULL, {told}, {whole.sql})"
        return self.with_metadata(KEY, whole._replace(sql=sql))

    def with_whole(self, part: RecordPart, whole: Field) -> "ConnectRecord":
        """Return the record with another key or value, a struct or not."""
        if part is RecordPart.KEY:
            return self.with_metadata(KEY, whole)
        is_struct = isinstance(whole.type, StructType)
        return self._with_value(fields_in(whole) if is_struct else {LONE_VALUE: whole})

    def with_metadata(self, name: str, field: Field) -> "ConnectRecord":
        """Return the record with another metadata column."""
        return replace(self, columns={**self.columns, name: field})

    def only_where(self, condition: str) -> "ConnectRecord":
        """Return the record with only the rows that meet a condition."""
        return replace(self, where=condition)

    def only_if(self, condition: str, before: "ConnectRecord") -> "ConnectRecord":
        """Return this record for rows that meet a condition, and `before` for other rows.

        A column that one of them lacks is null there; raises `ConfigInvalid` if a column has
        different types in them.
        """
        names = dict.fromkeys((*self.columns, *before.columns))
        columns = {
            name: _either(name, condition, self.columns.get(name), before.columns.get(name))
            for name in names
        }
        where = f"NOT ({condition}) OR ({self.where})" if self.where else ""
        return ConnectRecord(columns, where)

    def _with_value(self, fields: Mapping[str, Field]) -> "ConnectRecord":
        refuse_duplicates(tuple(fields))
        if taken := [name for name in fields if name in METADATA]:
            raise ConfigInvalid(f"{taken[0]} is kept for {METADATA[taken[0]]}")
        metadata = {name: each for name, each in self.columns.items() if name in METADATA}
        if not (fields or metadata):
            raise ConfigInvalid("no column would be left")
        return replace(self, columns={**fields, **metadata})


def refuse_duplicates(names: Sequence[str]) -> None:
    """Raise `ConfigInvalid` if two names differ at most in case."""
    seen: dict[str, str] = {}
    for name in names:
        if (other := seen.setdefault(name.lower(), name)) != name or names.count(name) > 1:
            told = f"{name} and {other}" if other != name else f"{name} twice"
            raise ConfigInvalid(f"the rows would have {told}: give one of them another name")


def fields_in(struct: Field) -> Mapping[str, Field]:
    """Return the fields of a struct as expressions."""
    return {each.name: taken_from(struct, each) for each in _fields_of(struct.type)}


def taken_from(struct: Field, field: StructField) -> Field:
    """Return one field of a struct."""
    return Field(f"{struct.sql}.{quoted(field.name)}", field.dataType)


def struct_of(fields: Mapping[str, Field], is_null: str = "") -> Field:
    """Return fields as a struct, which is null if a condition holds."""
    refuse_duplicates(tuple(fields))
    made = ", ".join(f"{literal(name)}, {each.sql}" for name, each in fields.items())
    kind = StructType([StructField(name, each.type) for name, each in fields.items()])
    sql = f"named_struct({made})"
    return Field(f"IF({is_null}, NULL, {sql})" if is_null else sql, kind)


def unless(condition: str, field: Field) -> Field:
    """Return a field that is null if a condition holds; empty: never."""
    return Field(f"IF({condition}, NULL, {field.sql})", field.type) if condition else field


def text(sql: str) -> Field:
    """Return a text field of an expression."""
    return Field(sql, StringType())


def _either(name: str, condition: str, new: Field | None, old: Field | None) -> Field:
    if new and old and new.type.simpleString() != old.type.simpleString():
        here, there = new.type.simpleString(), old.type.simpleString()
        raise ConfigInvalid(
            f"{name} would be {here} where the predicate holds and {there} where it does not: "
            "a column has one type"
        )
    if new == old and new:
        return new
    kind = (new or old or text("")).type
    return Field(f"IF({condition}, {new.sql if new else NULL}, {old.sql if old else NULL})", kind)


def _fields_of(kind: DataType) -> Iterator[StructField]:
    if isinstance(kind, StructType):
        yield from kind.fields
