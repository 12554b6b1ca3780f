# pyright: basic, reportAttributeAccessIssue=false
"""Decoders of records with Avro values or Avro keys."""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

import pyarrow as pa

from ....formats.avro import AvroRefused, RegisteredSchema, as_columns, avro_schema
from ....formats.evolution.arrow_columns import to_ddl
from ....formats.evolution.names import find_duplicates
from ....formats.evolution.policy import EVOLUTION, SchemaPolicy
from ....formats.json.columns import merge_columns
from ....spi.config import ConfigInvalid, ParsedConfig
from ....spi.context import Context, ProbeResult
from ....spi.errors import BadInput, NotReady, SchemaRefused, SourceAway
from ....spi.rows import Rejects
from .. import keys
from ..avro.columns import KEYS, VALUES, AvroColumns, Flaws
from ..avro.registry import SchemaRegistry, look_at_registry
from ..registry_keys import BY_TOPIC, registry_access, subject_of, subject_strategy
from .bad_records import record_error, reject_records, without_rows
from .decoding import KafkaRows, RecordDecoder, columns_clash
from .reader import empty_table

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


class AvroDecoder(RecordDecoder):
    """Decodes values in Avro; their columns are known beforehand."""

    def __init__(self, rows: KafkaRows, columns: AvroColumns) -> None:
        """Start with the decoder of the columns."""
        super().__init__(rows)
        self._columns = columns
        self._rejects: list[Rejects] = []

    @property
    def separates_bad_rows(self) -> bool:
        """Whether the rows may be fewer than the records."""
        return self._rows.separates_bad or self._columns.sets_aside

    @property
    def remark(self) -> str:
        """Return a remark on the columns that are left out."""
        return self._columns.remark

    def rejects(self) -> Sequence[Rejects]:
        """Return the records that were left out."""
        return self._rejects

    def decode(self, spark: "SparkSession", table: pa.Table) -> pa.Table:
        """Return the rows in Arrow; raises `BadInput`, `SchemaRefused`."""
        self._rejects, flaws = [], Flaws({}, {})
        decoded = self._columns.decode(table, flaws)
        if duplicates := find_duplicates(self._columns.current, self._rows.metadata):
            raise ConfigInvalid(columns_clash(*duplicates))
        beside = self._metadata(table)
        for name, column in zip(beside.column_names, beside.columns, strict=True):
            decoded = decoded.append_column(name, column)
        return self._without(spark, table, decoded, flaws)

    def _without(
        self, spark: "SparkSession", table: pa.Table, decoded: pa.Table, flaws: Flaws
    ) -> pa.Table:
        """Remove bad rows, or raise for the first of them."""
        bad = flaws.unreadable | flaws.unfit
        if flaws.unreadable and not self._rows.separates_bad:
            row = min(flaws.unreadable)
            raise BadInput(record_error(table, row, bad[row]))
        if flaws.unfit and not self._columns.sets_aside:
            row = min(flaws.unfit)
            raise SchemaRefused(record_error(table, row, bad[row]))
        if bad:
            self._rejects.append(reject_records(spark, table, bad))
            return without_rows(decoded, bad)
        return decoded


class AvroKeyDecoder(AvroDecoder):
    """Decodes keys in Avro; another decoder decodes the values."""

    def __init__(self, rows: KafkaRows, columns: AvroColumns, values: RecordDecoder) -> None:
        """Start with the decoders of keys and of values."""
        super().__init__(rows, columns)
        self._values = values

    @property
    def separates_bad_rows(self) -> bool:
        """Whether the rows may be fewer than the records."""
        return super().separates_bad_rows or self._values.separates_bad_rows

    @property
    def remark(self) -> str:
        """Return a remark on the columns that are left out."""
        return self._values.remark or super().remark

    def rejects(self) -> Sequence[Rejects]:
        """Return the records with a bad key or a bad value."""
        return [*self._rejects, *self._values.rejects()]

    def decode(self, spark: "SparkSession", table: pa.Table) -> "DataFrame | pa.Table":
        """Return the decoded values with the decoded keys."""
        self._rejects, flaws = [], Flaws({}, {})
        (keys,) = self._columns.decode(table, flaws).columns
        place = table.column_names.index("_key")
        keyed = self._without(spark, table, table.set_column(place, "_key", keys), flaws)
        return self._values.decode(spark, keyed)


Records = Callable[[], pa.Table]
"""Returns the last records of some topics."""
_HEAD = 5


def shared_registry(context: Context, config: Mapping[str, str], converter: str) -> SchemaRegistry:
    """Return the registry client of a converter, which all tasks on this worker share."""
    how, away = registry_access(converter, config), SourceAway
    return context.shared.get(("schema registry", how), lambda: SchemaRegistry(how, away))


def value_decoder(
    rows: KafkaRows, registry: SchemaRegistry, settings: ParsedConfig
) -> RecordDecoder:
    """Return the decoder of Avro values."""
    is_given = bool(settings.text(keys.SCHEMA))
    policy = SchemaPolicy.of(settings.text(EVOLUTION), is_given=is_given, is_exact=True)
    columns = AvroColumns(registry, VALUES, settings.text(keys.TASK_SCHEMA), policy)
    return AvroDecoder(rows, columns)


def key_decoder(
    rows: KafkaRows, registry: SchemaRegistry, settings: ParsedConfig, values: RecordDecoder
) -> RecordDecoder:
    """Return the decoder of Avro keys, around that of values."""
    policy = SchemaPolicy.of(settings.text(EVOLUTION), is_given=False, is_exact=True)
    columns = AvroColumns(registry, KEYS, settings.text(keys.TASK_KEY_SCHEMA), policy)
    return AvroKeyDecoder(rows, columns, values)


def registered_columns(
    registry: SchemaRegistry,
    config: Mapping[str, str],
    converter: str,
    topics: Collection[str],
    records: Records,
) -> str:
    """Return the columns of Avro keys or values in all topics, as DDL.

    They come from the latest versions of the topics' subjects; if subjects are named by records,
    from the last records. Raises `NotReady`, `Away`, `ConfigInvalid`.
    """
    form = KEYS if converter == keys.KEY_CONVERTER else VALUES
    named_by = subject_strategy(converter, config)
    if named_by == BY_TOPIC:
        schemas = _of_topics(registry, converter, topics)
    else:
        schemas = _of_records(registry, converter, records()[form.column])
    columns = pa.schema([])
    for subject, schema in schemas.items():
        try:
            kind = as_columns(form.of(avro_schema(schema)))
        except AvroRefused as refused:
            raise ConfigInvalid(f"{converter}: {subject} cannot be used: {refused}") from None
        columns = merge_columns(columns, pa.schema(list(kind)))
    return to_ddl(columns)


def probe_subjects(
    converter: str, config: Mapping[str, str], topics: Collection[str]
) -> ProbeResult:
    """Check that the subjects of the topics exist, if subjects are named by topics.

    Otherwise check only that the registry answers and accepts the user.
    """

    def ask(registry: SchemaRegistry) -> str:
        if topics and subject_strategy(converter, config) == BY_TOPIC:
            registered_columns(registry, config, converter, topics, empty_table)
        else:
            registry.reach()
        return ""

    return look_at_registry(converter, config, ask)


def _of_topics(
    registry: SchemaRegistry, converter: str, topics: Iterable[str]
) -> Mapping[str, RegisteredSchema]:
    subjects = [subject_of(BY_TOPIC, each, converter, "") for each in topics]
    latest = ((f"subject {each}", registry.latest(each)) for each in subjects)
    found = {name: told for name, told in latest if told is not None}
    if not found:
        names = ", ".join(sorted(subjects))
        raise NotReady(f"the schema registry has no subject {names}: the connector waits for it")
    return found


def _of_records(
    registry: SchemaRegistry, converter: str, records: pa.ChunkedArray
) -> Mapping[str, RegisteredSchema]:
    heads = {each[1:_HEAD] for each in records.to_pylist() if each and each[0] == 0}
    schemas = (registry.schema(int.from_bytes(each)) for each in sorted(heads))
    found = {f"schema {told.id}": told for told in schemas if told is not None}
    if not found:
        raise NotReady(f"{converter}: no record is there that names a schema of the registry")
    return found
