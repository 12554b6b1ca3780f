# pyright: basic
"""The Avro decoders of a source, and the columns of its subjects in the registry."""

from collections.abc import Callable, Collection, Iterable, Mapping

import pyarrow as pa

from ....formats.evolution.arrow_columns import to_ddl
from ....formats.evolution.json_columns import merge_columns
from ....formats.evolution.policy import EVOLUTION, SchemaPolicy
from ....spi.config import ConfigInvalid, ParsedConfig
from ....spi.context import Context
from ....spi.errors import NotReady, SourceAway
from ....spi.types import Look
from .. import keys
from ..avro.columns import KEYS, VALUES, AvroColumns
from ..avro.registry import RegisteredSchema, SchemaRegistry, look_at_registry
from ..avro.schemas import AvroRefused, as_columns, avro_schema
from ..registry_keys import BY_TOPIC, registry_access, subject_of, subject_strategy
from .avro import AvroDecoder, AvroKeyDecoder
from .decoding import KafkaRows, RecordDecoder
from .reader import empty_table

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
        found = _of_topics(registry, converter, topics)
    else:
        found = _of_records(registry, converter, records()[form.column])
    columns = pa.schema([])
    for subject, told in found.items():
        try:
            kind = as_columns(form.of(avro_schema(told)))
        except AvroRefused as refused:
            raise ConfigInvalid(f"{converter}: {subject} cannot be used: {refused}") from None
        columns = merge_columns(columns, pa.schema(list(kind)))
    return to_ddl(columns)


def look_at_subjects(converter: str, config: Mapping[str, str], topics: Collection[str]) -> Look:
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
