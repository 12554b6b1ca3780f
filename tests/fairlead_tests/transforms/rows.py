# pyright: basic
"""Records for Connect's transforms and ours: the same values as JSON and as rows.

A type is a name of Spark's, or `{"array": T}`, `{"map": [K, V]}`, `{"decimal": [p, s]}`,
`{"struct": [[name, T], …]}`. Scalars are texts: days for dates, milliseconds for timestamps.
"""

import base64
import struct
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession, types

from fairlead.runtime.pipeline.transforms.connect.record import METADATA

Type = str | dict[str, Any]
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
HEADERS = pa.list_(pa.struct([("key", pa.string()), ("value", pa.string())]))


@dataclass(frozen=True, slots=True)
class Record:
    """One record; its value is a list of a struct's fields, or a scalar, or None."""

    value: Any = None
    key: Any = None
    topic: str | None = "t"
    partition: int = 3
    offset: int = 1 << 40
    timestamp: str | None = "1577934245006"
    headers: Sequence[tuple[str, str | None]] = ()

    def as_json(self) -> dict[str, Any]:
        return asdict(self)


@dataclass(frozen=True, slots=True)
class Rows:
    """Records of one type."""

    records: Sequence[Record]
    value_type: Any
    key_type: Any = None
    is_from_kafka: bool = field(default=True)
    """Whether the rows have Kafka's metadata."""
    value_name: str = ""
    """What the schema of the values is called."""

    @property
    def has_struct(self) -> bool:
        return isinstance(self.value_type, dict) and "struct" in self.value_type

    def frame(self, spark: SparkSession) -> DataFrame:
        """Return the records as rows that come from Arrow, as those of batches do."""
        fields = self.value_type["struct"] if self.has_struct else [["_value", self.value_type]]
        schema = [(name, arrow_type(kind)) for name, kind in fields]
        if self.key_type is not None:
            schema.append(("_key", arrow_type(self.key_type)))
        if self.is_from_kafka:
            kinds = ("string", "int", "bigint", "timestamp")
            names = ("_topic", "_partition", "_offset", "_timestamp")
            schema += zip(names, map(arrow_type, kinds), strict=True)
            schema.append(("_headers", HEADERS))
        columns = zip(*map(self._row, self.records), strict=True)
        arrays = [pa.array(c, kind) for c, (_, kind) in zip(columns, schema, strict=True)]
        return spark.createDataFrame(pa.table(arrays, pa.schema(schema)))

    def _row(self, record: Record) -> tuple[Any, ...]:
        if self.has_struct:
            kinds = [kind for _, kind in self.value_type["struct"]]
            values = record.value if record.value is not None else [None] * len(kinds)
            row = [read(kind, each) for kind, each in zip(kinds, values, strict=True)]
        else:
            row = [read(self.value_type, record.value)]
        if self.key_type is not None:
            row.append(read(self.key_type, record.key))
        if self.is_from_kafka:
            row += [record.topic, record.partition, record.offset]
            row += [read("timestamp", record.timestamp), [tuple(each) for each in record.headers]]
        return tuple(row)


def arrow_type(kind: Type) -> pa.DataType:
    if isinstance(kind, str):
        return SCALARS[kind]
    ((name, inner),) = kind.items()
    if name == "decimal":
        return pa.decimal128(*inner)
    if name == "array":
        return pa.list_(arrow_type(inner))
    if name == "map":
        return pa.map_(arrow_type(inner[0]), arrow_type(inner[1]))
    return pa.struct([(each, arrow_type(kind)) for each, kind in inner])


SCALARS: dict[str, pa.DataType] = {
    "tinyint": pa.int8(),
    "smallint": pa.int16(),
    "int": pa.int32(),
    "bigint": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "boolean": pa.bool_(),
    "string": pa.string(),
    "binary": pa.binary(),
    "date": pa.date32(),
    "timestamp": pa.timestamp("us", "UTC"),
}


def read(kind: Type, value: Any) -> Any:
    """Convert a value for Arrow."""
    if value is None:
        return None
    if isinstance(kind, str):
        return READ.get(kind, int)(value)
    ((name, inner),) = kind.items()
    if name == "array":
        return [read(inner, each) for each in value]
    if name == "map":
        return {read(inner[0], key): read(inner[1], each) for key, each in value}
    if name == "struct":
        return tuple(read(each, item) for (_, each), item in zip(inner, value, strict=True))
    return Decimal(value)


READ: dict[str, Callable[[str], Any]] = {
    "date": lambda text: date(1970, 1, 1) + timedelta(days=int(text)),
    "timestamp": lambda text: EPOCH + timedelta(milliseconds=int(text)),
    "float": float,
    "double": float,
    "boolean": lambda text: text == "true",
    "binary": base64.b64decode,
    "string": str,
}
"""The parsers of scalars other than integers."""


def written(kind: types.DataType, value: Any) -> Any:
    """Convert an Arrow value to the peer's format."""
    if value is None:
        return None
    if isinstance(kind, types.StructType):
        return {"struct": [[f.name, written(f.dataType, value[f.name])] for f in kind.fields]}
    if isinstance(kind, types.ArrayType):
        return {"array": [written(kind.elementType, each) for each in value]}
    if isinstance(kind, types.MapType):
        pairs = [[written(kind.keyType, k), written(kind.valueType, v)] for k, v in value]
        return {"map": pairs}
    name, spell = WRITTEN.get(type(kind), (kind.simpleString(), str))
    return {name: spell(value)}


WRITTEN: dict[type[types.DataType], tuple[str, Callable[[Any], str]]] = {
    types.DecimalType: ("decimal", lambda value: f"{value:f}"),
    types.DateType: ("date", lambda value: str((value - date(1970, 1, 1)).days)),
    types.TimestampType: (
        "timestamp",
        lambda value: str((value - EPOCH) // timedelta(milliseconds=1)),
    ),
    types.BinaryType: ("binary", lambda value: base64.b64encode(value).decode()),
    types.BooleanType: ("boolean", lambda value: str(value).lower()),
}
"""The formatters of scalars that `str` does not format."""


def told(frame: DataFrame) -> list[dict[str, Any]]:
    """Convert rows to the peer's format; a tombstone equals a struct of nulls."""
    schema = frame.schema
    kinds = {each.name: each.dataType for each in schema.fields}
    names = [each for each in kinds if each not in METADATA]
    value = types.StructType([schema[name] for name in names])
    rows = frame.toArrow().to_pylist()
    found: list[dict[str, Any]] = []
    for row in rows:
        whole = written(value, row)
        if names == ["_value"]:
            whole = written(kinds["_value"], row["_value"])
        found.append(
            {
                "topic": row.get("_topic"),
                "key": written(kinds["_key"], row["_key"]) if "_key" in kinds else None,
                "value": whole,
                "headers": [[each["key"], each["value"]] for each in row.get("_headers") or []],
            }
        )
    return [normal(each) for each in found]


def normal(told: Any) -> Any:
    """Normalise a result: numbers in one format, and structs of only nulls as null."""
    if isinstance(told, list):
        return [normal(each) for each in told]
    if not isinstance(told, dict):
        return told
    if len(told) == 1:
        ((name, value),) = told.items()
        if spell := NORMAL.get(name):
            return spell(value)
    return {name: normal(each) for name, each in told.items()}


def _struct(fields: Any) -> Any:
    found = normal(fields)
    return {"struct": found} if any(each is not None for _, each in found) else None


NORMAL: dict[str, Callable[[Any], Any]] = {
    "struct": _struct,
    "map": lambda pairs: {"map": sorted(normal(pairs), key=repr)},
    "float": lambda text: {"float": repr(*struct.unpack("f", struct.pack("f", float(text))))},
    "double": lambda text: {"double": repr(float(text))},
    "decimal": lambda text: {"decimal": f"{Decimal(text).normalize():f}"},
}
