# pyright: basic
"""The columns of records: from the config, from a registry, or inferred from a sample.

A converter makes the decoder: texts and bytes are one column, envelopes bring their columns along.
Plain JSON and Avro need theirs before the first record is read (`schemas_needed`). The connector
finds them when it splits its work, so that all tasks and all attempts have the same, and tasks get
them by their configs. Where each topic is decoded by itself, each has such schemas of its own.

A sample is about the last `SAMPLE` records of each partition. Nothing is inferred of values that
must not be read, and a schema that the config gives is for all topics.
"""

import json
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from itertools import accumulate
from typing import Final

import pyarrow as pa

from ....formats.evolution.policy import DEAD_LETTER, EVOLUTION, FAIL, LEAVE_OUT, SchemaPolicy
from ....formats.inference import infer_json
from ....formats.json.flaws import find_text_flaws, objects_in, values_of
from ....spi.config import ConfigInvalid, ParsedConfig
from ....spi.context import Context, SourceColumns
from ....spi.errors import BadInput, LettersRefused, NotReady, SourceAway
from ....spi.keys.common import QUEUE_TOPIC, TOLERANCE
from ....spi.keys.letters import FORMAT, IS_INFERRED, SCHEMA
from ....spi.offsets import SeekEnd
from ....spi.source import Limit
from .. import keys
from ..cluster import KafkaCluster, TopicPlace
from ..connection import REQUEST_S, Settings
from ..converters import converter_kind
from ..registry_keys import AVRO, is_avro
from . import by_topic
from .by_topic import TopicDecoders, is_by_topic
from .decoding import HeaderDecoder, JsonDecoder, KafkaRows, PlainDecoder, RecordDecoder
from .envelope import EnvelopeDecoder
from .json_keys import JsonKeyDecoder
from .reader import PartitionReader, empty_table

SAMPLE: Final = 500
"""How many of a partition's last records are sampled."""
_SAMPLE_BYTES: Final = 16 << 20
_PAUSE_S: Final = 0.02
_KEYS: Final[Mapping[str, str]] = {"string": "STRING", "bytes": "BINARY"}
_PLAIN: Final[Mapping[str, str]] = {"string": "_value STRING", "bytes": "_value BINARY"}
"""The column of values that are not parsed, by their converter."""
_BESIDE: Final[Mapping[str, str]] = {
    "_topic": "STRING",
    "_partition": "INT",
    "_offset": "BIGINT",
    "_timestamp": "TIMESTAMP",
    "_headers": "ARRAY<STRUCT<key: STRING, value: BINARY>>",
}
_OF_RECORDS: Final = (
    keys.KEY_CONVERTER,
    keys.VALUE_CONVERTER,
    keys.VALUE_SCHEMAS,
    keys.METADATA,
    EVOLUTION,
)
"""The keys that say how a record is decoded; a schema is there, too."""


def decoder(
    context: Context,
    config: Mapping[str, str],
    settings: ParsedConfig,
    sample: Callable[[], pa.Table],
) -> RecordDecoder:
    """Return the decoder of a task's records; `sample` returns the last ones of its partitions."""
    if not is_by_topic(config):
        return _decoder(context, config, settings, sample)
    of_topics: dict[str, dict[str, str]] = json.loads(settings.text(keys.TASK_TOPICS) or "{}")

    def make(topic: str, records: pa.Table) -> RecordDecoder:
        own = of_topics.get(topic)
        if own is None:
            own = schemas_of(context, config, settings, [topic], lambda: records)
        of_topic = ParsedConfig({**settings.values, **own})
        return _decoder(context, config, of_topic, lambda: by_topic.of_topic(sample(), topic))

    return TopicDecoders(_rows(context, config, settings, sample), make)


def schemas_of(
    context: Context,
    config: Mapping[str, str],
    settings: ParsedConfig,
    topics: Collection[str],
    sample: Callable[[], pa.Table],
) -> dict[str, str]:
    """Return the schemas that a task needs beforehand for records of some topics, by task key.

    `sample` returns some of these. Raises `NotReady`, `Away`, `ConfigInvalid`.
    """
    return {
        key: schema_of(converter, context, config, settings, topics, sample)
        for key, converter in schemas_needed(settings).items()
    }


def schemas_needed(settings: ParsedConfig) -> Mapping[str, str]:
    """Return the task keys of the schemas that must be known before the read: by converter."""
    needed = {
        keys.TASK_SCHEMA: (needs_schema, keys.VALUE_CONVERTER),
        keys.TASK_KEY_SCHEMA: (needs_key_schema, keys.KEY_CONVERTER),
    }
    return {key: of for key, (needs, of) in needed.items() if needs(settings)}


def schema_of(
    converter: str,
    context: Context,
    config: Mapping[str, str],
    settings: ParsedConfig,
    topics: Collection[str],
    sample: Callable[[], pa.Table],
) -> str:
    """Return the columns of a converter; see `schemas_of`."""
    is_key = converter == keys.KEY_CONVERTER
    if not is_key and (given := settings.text(keys.SCHEMA)):
        return given
    if not is_avro(converter, config):
        if is_key and (given := settings.text(keys.KEY_SCHEMA)):
            return key_column(given)
        return (infer_key_column if is_key else infer_columns)(sample())
    from .avro import registered_columns, shared_registry  # noqa: PLC0415  # loads fastavro

    registry = shared_registry(context, config, converter)
    return registered_columns(registry, config, converter, topics, sample)


def _rows(
    context: Context,
    config: Mapping[str, str],
    settings: ParsedConfig,
    sample: Callable[[], pa.Table],
) -> KafkaRows:
    return KafkaRows(
        _metadata(settings.items(keys.METADATA)),
        has_text_keys=converter_kind(settings.text(keys.KEY_CONVERTER)) == "string",
        separates_bad=settings.text(TOLERANCE) == "all",
        keeps_records=keeps_records(config),
        by_arrow=context.by_arrow,
        sample=sample,
    )


def _decoder(
    context: Context,
    config: Mapping[str, str],
    settings: ParsedConfig,
    sample: Callable[[], pa.Table],
) -> RecordDecoder:
    rows = _rows(context, config, settings, sample)
    decodes = _key_decoder(rows, context, config, settings)
    return HeaderDecoder(rows, decodes) if reads_headers(settings) else decodes


def _key_decoder(
    rows: KafkaRows, context: Context, config: Mapping[str, str], settings: ParsedConfig
) -> RecordDecoder:
    """Return the decoder of keys and values."""
    values = _value_decoder(rows, context, config, settings)
    if not has_typed_keys(settings):
        return values
    if not has_avro_keys(settings):
        return JsonKeyDecoder(rows, settings.text(keys.TASK_KEY_SCHEMA), values)
    from .avro import key_decoder, shared_registry  # noqa: PLC0415  # loads fastavro

    return key_decoder(rows, shared_registry(context, config, keys.KEY_CONVERTER), settings, values)


def _value_decoder(
    rows: KafkaRows, context: Context, config: Mapping[str, str], settings: ParsedConfig
) -> RecordDecoder:
    kind = converter_kind(settings.text(keys.VALUE_CONVERTER))
    if kind == AVRO:
        from .avro import shared_registry, value_decoder  # noqa: PLC0415  # as above

        registry = shared_registry(context, config, keys.VALUE_CONVERTER)
        return value_decoder(rows, registry, settings)
    if kind != "json":
        return PlainDecoder(rows, has_texts=kind == "string")
    if settings.flag(keys.VALUE_SCHEMAS):
        return EnvelopeDecoder(rows)
    is_given, mode = bool(settings.text(keys.SCHEMA)), settings.text(EVOLUTION)
    policy = SchemaPolicy.of(mode, is_given=is_given, is_exact=True)
    return JsonDecoder(rows, settings.text(keys.TASK_SCHEMA), policy)


def keeps_records(config: Mapping[str, str]) -> bool:
    """Return whether dead letters keep their records, headers included."""
    return bool(config.get(QUEUE_TOPIC))


def needs_schema(settings: ParsedConfig) -> bool:
    """Return whether the columns of values must be known before the read."""
    kind = converter_kind(settings.text(keys.VALUE_CONVERTER))
    return kind == AVRO or (kind == "json" and not settings.flag(keys.VALUE_SCHEMAS))


def reads_headers(settings: ParsedConfig) -> bool:
    """Return whether the headers of records are a column."""
    return "_headers" in _metadata(settings.items(keys.METADATA))


def has_avro_keys(settings: ParsedConfig) -> bool:
    """Return whether keys are in Avro."""
    return converter_kind(settings.text(keys.KEY_CONVERTER)) == AVRO


def has_typed_keys(settings: ParsedConfig) -> bool:
    """Return whether keys are read, and are of other types than texts and bytes."""
    is_typed = converter_kind(settings.text(keys.KEY_CONVERTER)) not in _KEYS
    return is_typed and "_key" in _metadata(settings.items(keys.METADATA))


def needs_key_schema(settings: ParsedConfig) -> bool:
    """Return whether the type of keys must be known before the read."""
    is_alone = has_avro_keys(settings) or not settings.flag(keys.KEY_SCHEMAS)
    return has_typed_keys(settings) and is_alone


def declared_columns(settings: ParsedConfig) -> SourceColumns:
    """Return the columns, if the config determines them."""
    kind = converter_kind(settings.text(keys.VALUE_CONVERTER))
    values = _PLAIN.get(kind, "")
    if needs_schema(settings):
        values = settings.text(keys.SCHEMA)
    if not values or has_typed_keys(settings):
        return SourceColumns()
    key = _KEYS.get(converter_kind(settings.text(keys.KEY_CONVERTER)), "")
    types = {**_BESIDE, "_key": key}
    beside = (f"{name} {types[name]}" for name in _metadata(settings.items(keys.METADATA)))
    return SourceColumns(", ".join((values, *beside)), keys.SCHEMA, is_given=True)


def letter_keys(config: Mapping[str, str], task_config: Mapping[str, str]) -> Mapping[str, str]:
    """Return how dead letters of records are read again; see `SourceType.letter_keys`.

    A topic has the records, with key, time and headers; a folder has the texts of values.
    """
    kind = converter_kind(config.get(keys.VALUE_CONVERTER, "string"))
    has_records = keeps_records(config)
    if config.get(keys.METADATA) and not has_records:
        raise LettersRefused(
            f"{keys.METADATA} adds columns to its rows, and the text of a letter has none of these"
        )
    columns = _PLAIN.get(kind) or _columns_of_letters(kind, config, task_config)
    if not has_records:
        if kind != "json":
            return {FORMAT: "json", SCHEMA: columns}
        is_inferred = not config.get(SCHEMA, "").strip()
        mode = {EVOLUTION: config[EVOLUTION]} if EVOLUTION in config else {}
        return {
            FORMAT: "json",
            SCHEMA: columns,
            IS_INFERRED: str(is_inferred).lower(),
            **mode,
        }
    key = converter_kind(config.get(keys.KEY_CONVERTER, "string"))
    names = map(str.strip, config.get(keys.METADATA, "").split(","))
    if key not in _KEYS and "_key" in _metadata([*names]):
        raise LettersRefused(
            f"its rows have the column _key of {keys.KEY_CONVERTER}={key}, and only texts and "
            "bytes are read again"
        )
    # A letter with columns that would fail the first connector is refused again instead.
    is_lenient = config.get(EVOLUTION, LEAVE_OUT if config.get(SCHEMA) else FAIL) != FAIL
    mode = {} if is_lenient else {EVOLUTION: DEAD_LETTER}
    return {**{key: config[key] for key in _OF_RECORDS if key in config}, SCHEMA: columns, **mode}


def _columns_of_letters(
    kind: str, config: Mapping[str, str], task_config: Mapping[str, str]
) -> str:
    """Return the columns of values in JSON, as DDL; raises `LettersRefused`."""
    if kind != "json" or config.get(keys.VALUE_SCHEMAS, "true").strip().lower() != "false":
        told = kind if kind != "json" else f"json with {keys.VALUE_SCHEMAS}=true"
        raise LettersRefused(
            f"values of {keys.VALUE_CONVERTER}={told} cannot be read again from a letter's text"
        )
    schema = config.get(SCHEMA, "").strip() or task_config.get(keys.TASK_SCHEMA, "")
    if not schema:
        raise LettersRefused(
            f"its schema is not known before its first task has run: wait, or set {SCHEMA}"
        )
    return schema


def key_column(ddl: str) -> str:
    """Return the column of keys whose fields are given as DDL."""
    return f"`_key` STRUCT<{ddl}>"


def infer_key_column(sample: pa.Table) -> str:
    """Infer the column of JSON keys as DDL; raises `NotReady` if there is no key."""
    values = values_of(sample["_key"])
    flaws = find_text_flaws(values).to_pylist()
    sound = (text for text, flaw in zip(values.to_pylist(), flaws, strict=True) if not flaw)
    return _infer([b'{"_key": %s}' % each for each in sound if each], keys.KEY_SCHEMA)


def infer_columns(sample: pa.Table) -> str:
    """Infer the columns of JSON values as DDL; raises `NotReady` if there is no value."""
    values = values_of(sample["_value"])
    return _infer([*objects_in(values, find_text_flaws(values))], keys.SCHEMA)


def _infer(texts: Sequence[bytes], key: str) -> str:
    """Infer the columns of JSON objects as DDL; `key` is the config key that gives them."""
    if not texts:
        raise NotReady(f"no record is there to infer columns from; put one there, or give {key}")
    try:
        return infer_json(_sampled(texts), "the last records")
    except BadInput as error:
        raise ConfigInvalid(f"{key}: it cannot be inferred: {error}") from None


def _sampled(texts: Sequence[bytes]) -> bytes:
    """Return texts as lines, as many of the first ones as a sample may have bytes."""
    sizes = accumulate(len(each) + 1 for each in texts)
    some = (each for each, size in zip(texts, sizes, strict=True) if size <= _SAMPLE_BYTES)
    return b"".join(each.replace(b"\n", b" ") + b"\n" for each in some)


def read_sample(
    cluster: KafkaCluster, client: Settings, places: Collection[TopicPlace]
) -> pa.Table:
    """Read about the last `SAMPLE` records of each partition; raises `Away`."""
    ends = cluster.offsets(places, SeekEnd.LATEST)
    begins = cluster.offsets(places, SeekEnd.EARLIEST)
    starts = {each: max(begins[each], ends[each] - SAMPLE) for each in places}
    reader = PartitionReader(client, SourceAway)
    try:
        return _read(reader, {at: starts[at] for at in places if starts[at] < ends[at]})
    finally:
        reader.close()


def _read(reader: PartitionReader, starts: Mapping[TopicPlace, int]) -> pa.Table:
    """Read about `SAMPLE` records of each partition, from some offsets on."""
    tables, rows = [empty_table()], 0
    deadline = time.monotonic() + REQUEST_S
    reader.go_to(starts)
    while reader.has_more and rows < SAMPLE * len(starts) and time.monotonic() < deadline:
        records = reader.read(Limit(SAMPLE * len(starts) - rows, _SAMPLE_BYTES, 1))
        if records is None:
            time.sleep(_PAUSE_S)
        else:
            tables.append(records.table)
            rows += records.table.num_rows
    return pa.concat_tables(tables)


def _metadata(names: Sequence[str]) -> Sequence[str]:
    return [f"_{name.removeprefix('_')}" for name in names]
