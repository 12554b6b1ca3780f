# pyright: basic, reportAttributeAccessIssue=false
"""Encodes columns as Avro records, with a schema of the topic's subject in the registry.

The schema is registered or looked up before the first row is encoded: a schema that the registry
refuses fails the batch before its commit, and staged records have the ids of their schemas.
"""

from collections.abc import Mapping, Sequence
from io import BytesIO
from typing import Final, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
from fastavro import schemaless_writer

from ....formats.avro import (
    AvroRefused,
    AvroSchema,
    RegisteredSchema,
    as_numbers,
    avro_schema,
    optional_of,
    schema_of,
)
from ....spi.context import ProbeResult
from ....spi.errors import RowsRefused, SchemaRefused
from ..registry_keys import BY_RECORD, register_key, subject_of, subject_strategy
from .registry import SchemaRegistry, look_at_registry

_NAME: Final = "io.confluent.connect.avro.ConnectDefault"
"""Connect's name of a record without a name."""


class _Target(NamedTuple):
    """The schema and the record header for the rows of one topic."""

    head: bytes
    """The header: a 0 byte, and the schema's id."""
    schema: AvroSchema


class AvroEncoder:
    """Encodes keys, or values; not thread-safe."""

    def __init__(
        self,
        registry: SchemaRegistry,
        converter: str,
        config: Mapping[str, str],
        *,
        registers: bool,
    ) -> None:
        """Start with the converter's key, and the config with its subject name strategy.

        `registers`: the schemas of rows are registered; else the latest ones are used.
        """
        self._registry = registry
        self._converter = converter
        self._strategy = subject_strategy(converter, config)
        """How subjects are named."""
        self._registers = registers
        self._targets: dict[tuple[str, pa.Schema, bool], _Target] = {}
        """The known targets by topic, columns, and `is_lone`."""

    def encode(
        self, columns: pa.Table, topics: Sequence[str], topic_of: pa.ChunkedArray, *, is_lone: bool
    ) -> pa.ChunkedArray:
        """Return the encoded rows; `topics` are the distinct topics, at least one.

        Raises `SchemaRefused`, `RowsRefused`, `SinkAway`, `ConfigInvalid`.
        """
        parts, places = [pa.array([], pa.binary())], [pa.array([], pa.uint64())]
        for topic in topics:
            target = self._target(topic, columns.schema, is_lone=is_lone)
            places.append(pc.indices_nonzero(pc.equal(topic_of, topic)))
            rows = _numbers(columns.take(places[-1]), target.schema, is_lone=is_lone)
            parts.append(_written(rows, target, is_lone=is_lone))
        order = pc.sort_indices(pa.concat_arrays(places))
        return pa.chunked_array([pa.concat_arrays(parts).take(order)])

    def _target(self, topic: str, columns: pa.Schema, *, is_lone: bool) -> _Target:
        key = (topic, columns, is_lone)
        if key not in self._targets:
            try:
                found = self._found(topic, columns, is_lone=is_lone)
                schema = avro_schema(found)
                _refuse_unfit(schema, columns, is_lone=is_lone)
            except AvroRefused as refused:
                raise SchemaRefused(f"topic {topic}: {refused}") from None
            self._targets[key] = _Target(b"\0" + found.id.to_bytes(4), schema)
        return self._targets[key]

    def _found(self, topic: str, columns: pa.Schema, *, is_lone: bool) -> RegisteredSchema:
        """Return the registered schema for rows with these columns."""
        subject = subject_of(self._strategy, topic, self._converter, _NAME)
        latest = self._registry.latest(subject)
        if not self._registers:
            if latest is None:
                raise SchemaRefused(_no_subject(subject, self._converter))
            return latest
        name = (latest and _name_of(latest)) or _NAME
        made = optional_of(columns[0].type, name) if is_lone else schema_of(columns, name)
        return self._registry.register(subject, made)


def probe_subject(
    converter: str, config: Mapping[str, str], topic: str, *, registers: bool
) -> ProbeResult:
    """Check that a topic's subject exists; an empty topic: rows have a topic column."""
    named_by = subject_strategy(converter, config)

    def ask(registry: SchemaRegistry) -> str:
        if not topic and named_by != BY_RECORD:
            registry.reach()
            return ""
        subject = subject_of(named_by, topic, converter, _NAME)
        is_there = registry.latest(subject) is not None
        return "" if is_there or registers else _no_subject(subject, converter)

    return look_at_registry(converter, config, ask)


def _no_subject(subject: str, converter: str) -> str:
    return (
        f"the schema registry has no subject {subject}: register a schema, or set "
        f"{register_key(converter)}=true"
    )


def _name_of(latest: RegisteredSchema) -> str:
    """Return the record name of a subject, which later versions must keep."""
    try:
        return avro_schema(latest).name
    except AvroRefused:
        return ""


def _refuse_unfit(schema: AvroSchema, columns: pa.Schema, *, is_lone: bool) -> None:
    """Raise `AvroRefused` for columns that a schema lacks, or needs."""
    if schema.has_branches:
        raise AvroRefused("the subject's schema has a union of several types, which is only read")
    if is_lone:
        return
    if not schema.name:
        raise AvroRefused("the subject's schema is no record")
    fields = {each.name for each in schema.kind}
    if more := [name for name in columns.names if name not in fields]:
        raise AvroRefused(f"the subject's schema has no field {', '.join(more)}")
    if less := sorted(schema.needed - {*columns.names}):
        raise AvroRefused(f"there is no column {', '.join(less)}, which the subject's schema needs")


def _numbers(columns: pa.Table, schema: AvroSchema, *, is_lone: bool) -> pa.Table:
    """Return columns with times as numbers, in the units of the schema."""
    kinds = (
        [schema.kind]
        if is_lone
        else [schema.kind.field(each).type for each in columns.column_names]
    )
    numbers = []
    for name, column, kind in zip(columns.column_names, columns.columns, kinds, strict=True):
        try:
            numbers.append(pc.cast(pc.cast(column, kind), as_numbers(kind)))
        except (pa.ArrowNotImplementedError, pa.ArrowTypeError):
            told = f"column {name} is {column.type}, and the subject's schema wants {kind}"
            raise SchemaRefused(told) from None
        except pa.ArrowInvalid as error:
            raise RowsRefused(f"column {name}: {error}") from None
    return pa.table(numbers, columns.column_names)


def _written(rows: pa.Table, target: _Target, *, is_lone: bool) -> pa.Array:
    lists = [each.to_pylist(maps_as_pydicts="strict") for each in rows.columns]
    names = rows.column_names
    values = (
        lists[0]
        if is_lone
        else (dict(zip(names, row, strict=True)) for row in zip(*lists, strict=True))
    )
    records: list[bytes | None] = []
    for value in values:
        stream = BytesIO(target.head)
        stream.seek(len(target.head))
        try:
            schemaless_writer(stream, target.schema.parsed, value)
        except Exception as error:  # noqa: BLE001  # whatever its checks end in
            raise RowsRefused(f"a row is not what its schema says: {error}") from None
        records.append(None if value is None else stream.getvalue())
    return pa.array(records, pa.binary())
