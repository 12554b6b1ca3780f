"""`sink.type=kafka`: sends each batch to topics in one transaction."""

from collections.abc import Iterator, Mapping, Sequence
from functools import reduce
from pathlib import Path
from typing import ClassVar

from ......events.commits import Manifest
from ....spi.config import ConfigDef, ConfigInvalid, Definition, ParsedConfig, any_reference
from ....spi.connector import Delivery, Promise
from ....spi.context import Context, ExternalAccess, ProbeResult
from ....spi.errors import Away, SinkAway
from ....spi.keys.delivery import is_at_least_once, promise_of
from ....spi.keys.plugin_source import RECORDS
from ....spi.lineage import Dataset
from ....spi.types import SinkType, WrittenColumns
from .. import keys
from ..cluster import KafkaCluster
from ..connection import (
    LOOK_S,
    client_settings,
    complaints,
    datasets_in,
    java_settings,
    locations,
)
from ..converters import converter_kind
from ..registry_keys import AVRO, is_avro, register_key, registry_access
from ..registry_keys import complaints as avro_complaints
from .encoding import Converter, RecordEncoder
from .finished_records import FinishedRecords
from .publishing import Publisher
from .sending import RecordSender
from .sink import KafkaSink, MarkRules
from .staging import StagingFolder

_COLUMN_KEYS = (keys.SINK_KEY_COLUMNS, keys.SINK_KEY_CONVERTER, keys.SINK_VALUE_CONVERTER)
_NO_COLUMNS = (
    "this is for rows with columns, which the records of a plugin of Kafka Connect's are not: its"
    " own converters (key.converter, value.converter) make keys and values, and its transforms may"
    " change topics. Leave it out, or add a transform of fairlead's, which makes rows of them"
)


class KafkaSinkType(SinkType):
    """Topics of a cluster; exactly once for readers with `isolation.level=read_committed`."""

    version: ClassVar[str] = "1.0"
    delivery: ClassVar[Delivery] = Delivery.EXACTLY_ONCE
    prefixes: ClassVar[tuple[str, ...]] = (keys.PRODUCER,)

    @classmethod
    def keys(cls) -> Sequence[Definition]:
        """Return the keys of the sink."""
        return keys.SINK

    @classmethod
    def families(cls) -> Sequence[Definition]:
        """Return the producer overrides."""
        return (keys.OVERRIDES[keys.PRODUCER],)

    @classmethod
    def complaints(cls, config: Mapping[str, str]) -> Mapping[str, str]:
        """Return errors of keys that do not fit together, by the key to change."""
        errors = dict(complaints("sink", config, keys.PRODUCER))
        if RECORDS in config:
            return errors | dict.fromkeys(_of_rows(config), _NO_COLUMNS)
        if bool(config.get(keys.SINK_TOPIC)) == bool(config.get(keys.SINK_TOPIC_COLUMN)):
            errors[keys.SINK_TOPIC] = f"give either {keys.SINK_TOPIC} or {keys.SINK_TOPIC_COLUMN}"
        kind = converter_kind(config.get(keys.SINK_KEY_CONVERTER, "string"))
        if kind not in {"json", AVRO} and "," in config.get(keys.SINK_KEY_COLUMNS, ""):
            errors[keys.SINK_KEY_CONVERTER] = "a key of several columns needs json or avro"
        errors |= avro_complaints((keys.SINK_KEY_CONVERTER, keys.SINK_VALUE_CONVERTER), config)
        return errors

    @classmethod
    def delivery_of(cls, config: Mapping[str, str]) -> Promise:
        """Return the guarantee that `delivery.guarantee` asks for."""
        return promise_of(config)

    @classmethod
    def datasets(cls, config: Mapping[str, str], manifest: Manifest) -> Sequence[Dataset]:
        """Return the topic; the topics of a topic column are unknown after the batch."""
        del manifest
        return datasets_in("sink", config, [config.get(keys.SINK_TOPIC, "")])

    @classmethod
    def probe(cls, config: Mapping[str, str], outside: ExternalAccess) -> ProbeResult:
        """Check that the cluster, the topic, the registry and its subjects exist."""
        if any_reference("sink.", config):
            return ProbeResult()
        for key, path in _paths(config).items():
            if flaw := outside.reach.flaw_in_path(path):
                return ProbeResult({key: flaw})
        return reduce(ProbeResult.plus, _registries(config), _probe(config))

    @classmethod
    def wants_columns(cls, config: Mapping[str, str]) -> bool:
        """Ask for the columns if the config names some."""
        return bool(_named(config))

    @classmethod
    def check_columns(cls, config: Mapping[str, str], columns: WrittenColumns) -> ProbeResult:
        """Check that the columns in the config exist."""
        missing = [(key, name) for key, name in _named(config) if name not in columns.names]
        there = ", ".join(columns.names)
        errors = {key: f"there is no column {name}; there are {there}" for key, name in missing}
        if columns.may_grow:
            return ProbeResult(
                warnings=tuple(f"{key}: by a sample, {why}" for key, why in errors.items())
            )
        return ProbeResult(errors)

    @classmethod
    def sink(cls, context: Context, config: Mapping[str, str], settings: ParsedConfig) -> KafkaSink:
        """Make the sink of one task; raises `ConfigInvalid`."""
        for key, path in _paths(config).items():
            context.check_path(key, path)
        client = client_settings("sink", config, keys.PRODUCER)
        cluster = KafkaCluster(client, SinkAway)
        rules = MarkRules(settings.number(keys.RETENTION_MS), settings.text(keys.UNMARKED))
        sink = KafkaSink(
            FinishedRecords() if RECORDS in config else _encoder(config, settings),
            StagingFolder(staging_root(context, settings.text(keys.STAGING))),
            cluster,
            Publisher(client, cluster, f"fairlead.{context.resource}"),
            rules,
            context.cluster_id,
        )
        if is_at_least_once(config):
            sink.at_once = RecordSender(client, {"enable.idempotence": True})
        return sink


def _probe(config: Mapping[str, str]) -> ProbeResult:
    servers = "sink.bootstrap.servers"
    # Those of a plugin's records may be made for it.
    topic = "" if RECORDS in config else config.get(keys.SINK_TOPIC, "")
    try:
        client = client_settings("sink", config, keys.PRODUCER)
        cluster = KafkaCluster(client, SinkAway, LOOK_S)
    except ConfigInvalid as error:
        return ProbeResult({servers: str(error)})
    try:
        if topic and topic not in cluster.facts([topic]):
            warning = f"{keys.SINK_TOPIC}: {topic} does not exist: the connector waits for it"
            return ProbeResult(warnings=(warning,))
        cluster.topics()
    except ConfigInvalid as error:
        return ProbeResult({"sink.security.protocol": str(error)})
    except Away as away:
        return ProbeResult(warnings=(f"{servers}: {away}",))
    return ProbeResult()


def _registries(config: Mapping[str, str]) -> Iterator[ProbeResult]:
    settings = ConfigDef(keys.SINK).parse(config)
    for kind in (keys.SINK_KEY_CONVERTER, keys.SINK_VALUE_CONVERTER):
        if is_avro(kind, config):
            from ..avro.encoding import probe_subject  # noqa: PLC0415  # loads fastavro

            may_register = settings.flag(register_key(kind))
            topic = config.get(keys.SINK_TOPIC, "")
            yield probe_subject(kind, config, topic, registers=may_register)


def _encoder(config: Mapping[str, str], settings: ParsedConfig) -> RecordEncoder:
    return RecordEncoder(
        settings.text(keys.SINK_TOPIC),
        settings.text(keys.SINK_TOPIC_COLUMN),
        settings.items(keys.SINK_KEY_COLUMNS),
        _converter(config, settings, keys.SINK_KEY_CONVERTER, keys.SINK_KEY_SCHEMAS),
        _converter(config, settings, keys.SINK_VALUE_CONVERTER, keys.SINK_VALUE_SCHEMAS),
    )


def _of_rows(config: Mapping[str, str]) -> Iterator[str]:
    """Yield the keys of a config that say how rows become records."""
    of_rows = (keys.SINK_TOPIC_COLUMN, *_COLUMN_KEYS)
    yield from (key for key, value in config.items() if value and key.startswith(of_rows))


def admin_settings(context: Context, config: Mapping[str, str]) -> Mapping[str, str]:
    """Return the settings of a client of Java's for the sink's cluster; raises `ConfigInvalid`."""
    for key, path in locations("sink", config).items():
        context.check_path(key, path)
    return java_settings(client_settings("sink", config, keys.PRODUCER))


def _converter(
    config: Mapping[str, str], settings: ParsedConfig, kind: str, schemas: str
) -> Converter:
    name = converter_kind(settings.text(kind))
    if name != AVRO:
        return Converter(name, settings.flag(schemas))
    from ..avro.encoding import AvroEncoder  # noqa: PLC0415  # loads fastavro
    from ..avro.registry import SchemaRegistry  # noqa: PLC0415  # as above

    registry = SchemaRegistry(registry_access(kind, config), SinkAway)
    return Converter(
        name, avro=AvroEncoder(registry, kind, config, registers=settings.flag(register_key(kind)))
    )


def _named(config: Mapping[str, str]) -> Sequence[tuple[str, str]]:
    """Return the column names in a config, each with its key."""
    named = [
        (keys.SINK_KEY_COLUMNS, each.strip())
        for each in config.get(keys.SINK_KEY_COLUMNS, "").split(",")
    ]
    named.append((keys.SINK_TOPIC_COLUMN, config.get(keys.SINK_TOPIC_COLUMN, "")))
    return [(key, name) for key, name in named if name]


def _paths(config: Mapping[str, str]) -> Mapping[str, str]:
    staging = config.get(keys.STAGING, "")
    return {**locations("sink", config), **({keys.STAGING: staging} if staging else {})}


def staging_root(context: Context, given: str) -> Path:
    """Return the given staging folder, or the node's own; raises `ConfigInvalid`."""
    if given:
        return Path(given)
    if not context.reach.data_dir:
        raise ConfigInvalid(f"{keys.STAGING} must be set: the node has no data folder")
    return Path(context.reach.data_dir) / "staging" / "kafka"
