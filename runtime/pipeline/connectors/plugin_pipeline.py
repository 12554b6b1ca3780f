"""A connector of Kafka Connect without a topic at one end: a plugin as source, as sink, or both.

Its config is that of the connector, with a `sink.type` or a `source.type` and the keys of that end.
Here it becomes the config of a `SparkPipeline` whose other end has the type `connect`: what the
plugin is to get stands behind a prefix, all that fairlead knows is left as it is. A key that both
know is for both. Kafka's own transforms run where the plugin does, and those of fairlead at the
other end: behind a source, before a sink.

Into Kafka, records go as the plugin's own converters have made them, unless a transform of
fairlead's makes rows of them. `sink.topic` is then a transform of Kafka's, the last one: so topic
and converters are right for each other, and the topic is created if the config says so. A sink gets
the records of `source.type=kafka` as bytes, unless a converter of that source is named: then its
own converters read them, as in Connect.

With `sink.type=connect` a plugin is the source, and another one the sink, whose keys stand behind
`sink.`. Records go from one to the other as they are, or as rows if a transform of fairlead's is
between them.
"""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace
from typing import ClassVar, Final

from ....events.commits import Document, Lag
from ..spi.config import Validation, strip_prefix
from ..spi.connector import Pipeline, Promise
from ..spi.context import Context, ExternalAccess, ProbeResult
from ..spi.errors import LettersRefused, OffsetRefused
from ..spi.keys.common import CONNECTOR_CLASS, QUEUE_TOPIC, TRANSFORMS
from ..spi.keys.plugin_sink import (
    BESIDE_SOURCE,
    IS_RAW,
    KEY_COLUMNS,
    OF_SINK,
    OWN_KEYS,
    RECORD_OFFSET,
    RECORD_PARTITION,
    RECORD_TOPIC,
    SINK_OF_PLUGIN,
    TIME_PRECISION,
    has_two_plugins,
    is_of_whole,
    name_at_plugin,
)
from ..spi.keys.plugin_source import (
    CONNECT,
    HELD,
    METADATA,
    OF_CLUSTER,
    OF_PLUGIN,
    RECORDS,
    SUPPORT,
)
from ..spi.offsets import Offsets, Seek
from ..spi.rows import LetterPage, LetterQuery
from ..stores.kafka import keys as kafka
from ..transforms import catalogue as transforms
from . import pipeline_keys as keys
from .dead_letter_queue import QUEUE_HEADERS
from .letter_retry import retry_config
from .queue_reading import read_letters
from .spark_pipeline import SparkPipeline

_KAFKA: Final = "kafka"
_ROUTER: Final = "fairlead-sink-topic"
_UNUSED: Final = (
    "{named}: no effect, since records become rows with columns, and the sink's keys say how these"
    " are written"
)
_NOTHING_TO_CONVERT: Final = (
    "{named}: no effect, since rows with columns reach the plugin as structs with schemas"
)
_OVERRIDE: Final = "consumer.override."
_MOST_RECORDS: Final = f"{_OVERRIDE}max.poll.records"
_NO_CLIENT: Final = "{named}: no effect, since no consumer of Kafka's runs in the plugin's JVM"
_NO_CONSUMER: Final = f"{_NO_CLIENT}: a source of topics has source.consumer.override."
_NOT_CONVERTED: Final = (
    "{named}: no effect, since records go from one plugin to the other as they are: nothing"
    " converts them"
)
_CONVERTERS: Final = ("key.converter", "value.converter", "header.converter")
_BETWEEN: Final = ("key", "topic", "timestamp", "headers")
"""What rows between two plugins have beside their columns."""
_BEHIND: Final = (
    "a transform of Kafka Connect runs before those of fairlead: put it before {first}, or write"
    " what it does as `select` or `sql`"
)
_BEFORE: Final = (
    "a transform of fairlead runs before those of Kafka Connect: put it before {first}, or write"
    " what that does as `select` or `sql`"
)
_NO_BYTES: Final = (
    "a folder of dead letters has no keys, and values as texts, and the plugin reads records of"
    f" topics as bytes: set {QUEUE_TOPIC} and {QUEUE_HEADERS}=true to retry those that come from"
    " then on"
)
_NO_SCHEMAS: Final = (
    "a letter has no schemas, and its record was put by the source as it was: mend what the sink"
    " complains of, and have the source send it again"
)
_TOPICS: Final = "topics"
_TOPICS_REGEX: Final = "topics.regex"
_BYTES: Final = "bytes"
_COLUMNS: Final = ",".join(kafka.METADATA_COLUMNS)


def is_fed(config: Mapping[str, str]) -> bool:
    """Return whether a plugin is the sink."""
    return keys.SOURCE_TYPE in config and config[keys.SOURCE_TYPE] != CONNECT


def config_of_sink(config: Mapping[str, str]) -> dict[str, str]:
    """Return the config that a plugin gets which is the sink of another one."""
    whole = {key: value for key, value in config.items() if is_of_whole(key)}
    own = {
        name_at_plugin(key): value
        for key, value in config.items()
        if key.startswith(BESIDE_SOURCE) and key not in OWN_KEYS
    }
    every = {} if {_TOPICS, _TOPICS_REGEX} & own.keys() else {_TOPICS_REGEX: ".*"}
    return {**every, **own, **whole}


def config_of_plugin(config: Mapping[str, str]) -> dict[str, str]:
    """Return the config that the plugin gets: without the other end, and fairlead's transforms."""
    of_fairlead = _own_transforms(config)
    ends = ("source.", KEY_COLUMNS, TIME_PRECISION, OF_SINK) if is_fed(config) else ("sink.",)
    prefixes = (*ends, *(f"{TRANSFORMS}.{each}." for each in of_fairlead))
    kept = {key: value for key, value in config.items() if not key.startswith(prefixes)}
    chain = [each for each in transforms.aliases(config) if each not in of_fairlead]
    kept.pop(TRANSFORMS, None)
    topics = _topics_of_source(config) if is_fed(config) else {}
    return {**topics, **kept, **({TRANSFORMS: ",".join(chain)} if chain else {})}


def as_pipeline(config: Mapping[str, str]) -> dict[str, str]:
    """Return the config of the pipeline; one that is such already stays as it is."""
    if config.get(CONNECTOR_CLASS) == SparkPipeline.full_name:
        return dict(config)
    fed, own, sink = is_fed(config), _own_transforms(config), dict[str, str]()
    end, prefix = (keys.SINK_TYPE, SINK_OF_PLUGIN) if fed else (keys.SOURCE_TYPE, OF_PLUGIN)
    base = {**config, end: CONNECT, TRANSFORMS: ",".join(own)}
    if has_two_plugins(config):
        base = _between_plugins(base, has_transforms=bool(own))
        sink = {f"{SINK_OF_PLUGIN}{key}": value for key, value in config_of_sink(config).items()}
    if fed and config[keys.SOURCE_TYPE] == _KAFKA:
        base = {**_raw_records(config), **base}
    known = keys.keys_of(base)
    names = {each.name for each in known.definitions}
    families = (*known.prefixes, keys.SPARK_CONF, "source." if fed else "sink.")
    kept = {
        key: value
        for key, value in base.items()
        if value and (key in names or key.startswith(families))
    }
    plugin, named = config_of_plugin(config), {CONNECTOR_CLASS: SparkPipeline.full_name}
    if config.get(keys.SINK_TYPE) == _KAFKA and not own:
        plugin, named = (
            _routed(plugin, config.get(kafka.SINK_TOPIC, "")),
            {**named, RECORDS: "true"},
        )
    return {**kept, **{f"{prefix}{key}": value for key, value in plugin.items()}, **sink, **named}


def _between_plugins(config: Mapping[str, str], *, has_transforms: bool) -> dict[str, str]:
    """Return what a pipeline between two plugins has, without the keys of the second one."""
    kept = {
        key: value
        for key, value in config.items()
        if not key.startswith(BESIDE_SOURCE) or key in OWN_KEYS
    }
    if not has_transforms:
        return {**kept, HELD: "true"}
    named = (each.strip().removeprefix("_") for each in config.get(METADATA, "").split(","))
    beside = ",".join(dict.fromkeys([*filter(None, named), *_BETWEEN]))
    return {**kept, METADATA: beside}


def answer_in(
    task_config: Mapping[str, str], config: Mapping[str, str], hidden: Collection[str]
) -> str:
    """Return the answer of the plugin for a config; "" if it was asked about another one.

    The values of `hidden` keys are not compared.
    """
    if not (answer := task_config.get(SUPPORT, "")):
        return ""
    wanted = strip_prefix(OF_PLUGIN, as_pipeline(config))
    split = strip_prefix(OF_PLUGIN, task_config)
    is_same = all(wanted[key] == split.get(key) for key in wanted.keys() - {*hidden})
    return answer if is_same and wanted.keys() == split.keys() else ""


def _routed(config: Mapping[str, str], topic: str) -> dict[str, str]:
    """Return the config of a plugin whose records all go to one topic, unless that is ""."""
    if not topic:
        return dict(config)
    chain = [each for each in (config.get(TRANSFORMS, ""), _ROUTER) if each]
    router = {"type": "org.apache.kafka.connect.transforms.RegexRouter", "regex": ".*"}
    keys_of_router = {
        f"{TRANSFORMS}.{_ROUTER}.{key}": value
        for key, value in {**router, "replacement": topic}.items()
    }
    return {**config, TRANSFORMS: ",".join(chain), **keys_of_router}


def _raw_records(config: Mapping[str, str]) -> dict[str, str]:
    """Return the keys of a source of topics for a sink: which ones, and how they are read."""
    topics = {
        f"source.{key}": config[key]
        for key in (_TOPICS, _TOPICS_REGEX)
        if config.get(key) and not _topics_of_source(config)
    }
    if config.get(kafka.VALUE_CONVERTER) or config.get(kafka.KEY_CONVERTER):
        return topics
    bytes_ = {kafka.VALUE_CONVERTER: _BYTES, kafka.KEY_CONVERTER: _BYTES}
    return {**topics, **bytes_, kafka.METADATA: _COLUMNS, IS_RAW: "true"}


def _topics_of_source(config: Mapping[str, str]) -> dict[str, str]:
    """Return the topics that a source of topics names, as the keys of a sink have them."""
    if config[keys.SOURCE_TYPE] != _KAFKA:
        return {}
    named = {_TOPICS: config.get(kafka.TOPICS), _TOPICS_REGEX: config.get(kafka.TOPICS_REGEX)}
    return {key: value for key, value in named.items() if value}


def _fed_again(
    config: Mapping[str, str], pipeline: Mapping[str, str], retrying: Mapping[str, str]
) -> dict[str, str]:
    """Return the config of a connector with the same plugin, and letters as its source.

    `retrying` is that of a pipeline. `topics` are those of the records, not of their letters.
    """
    left_out = pipeline.keys() - retrying.keys()
    kept = {
        key: value
        for key, value in {**config, **_topics_of_source(config)}.items()
        if key not in left_out and not key.startswith("source.")
    }
    of_pipeline = (CONNECTOR_CLASS, TRANSFORMS, keys.SINK_TYPE)
    ends = {
        key: value
        for key, value in retrying.items()
        if key not in of_pipeline and not key.startswith(SINK_OF_PLUGIN)
    }
    return {**kept, **ends}


def _own_transforms(config: Mapping[str, str]) -> list[str]:
    """Return the names of the transforms that are fairlead's: their types have short names."""
    names = transforms.aliases(config)
    kinds = {each: config.get(f"{TRANSFORMS}.{each}.type", "") for each in names}
    return [each for each, kind in kinds.items() if kind and not set(".$") & {*kind}]


class PluginPipeline(SparkPipeline):
    """Reads by a connector of Kafka Connect, writes by one, or both."""

    version: ClassVar[str] = ""
    """Empty: the host finds the version of the plugin that a config asks for."""
    full_name: ClassVar[str] = ""

    @classmethod
    def validate(cls, config: Mapping[str, str]) -> Validation:
        """Check the keys that fairlead knows; the plugin checks its own."""
        pipeline = as_pipeline(config)
        checked = super().validate(pipeline).plus(_complaints(config))
        return replace(checked, warnings=(*checked.warnings, *_remarks(config, pipeline)))

    @classmethod
    def delivery_of(cls, config: Mapping[str, str]) -> Promise:
        """Return the weaker guarantee of plugin and sink."""
        return super().delivery_of(as_pipeline(config))

    @classmethod
    def has_external_state(cls, config: Mapping[str, str]) -> bool:
        """Return whether a source of fairlead's has; what a plugin has, it has in Connect, too."""
        return is_fed(config) and super().has_external_state(as_pipeline(config))

    @classmethod
    def probe(cls, config: Mapping[str, str], outside: ExternalAccess) -> ProbeResult:
        """Check the other end, and let Spark analyse the SQL of the transforms."""
        return super().probe(as_pipeline(config), outside)

    @classmethod
    def check_offset(
        cls, config: Mapping[str, str], partition: Document, offset: Document | None
    ) -> None:
        """Check an offset of a source of fairlead's, or of its records; a plugin knows its own."""
        if _has_plugin_as_sink(config) and RECORD_TOPIC in partition:
            _check_record(partition, offset)
        else:
            super().check_offset(as_pipeline(config), partition, offset)

    @classmethod
    def seek(
        cls, config: Mapping[str, str], outside: ExternalAccess, to: Seek, offsets: Offsets
    ) -> Offsets:
        """Return the offsets to change; of a plugin those to remove, so that it begins anew."""
        return super().seek(as_pipeline(config), outside, to, offsets)

    @classmethod
    def lag(
        cls, config: Mapping[str, str], outside: ExternalAccess, offsets: Offsets
    ) -> Lag | None:
        """Return what is left to read; None for a plugin, which alone knows it."""
        return super().lag(as_pipeline(config), outside, offsets) if is_fed(config) else None

    @classmethod
    def read_letters(
        cls, config: Mapping[str, str], outside: ExternalAccess, query: LetterQuery
    ) -> LetterPage:
        """Return a page of what its folder or topic of dead letters has."""
        return read_letters(as_pipeline(config), outside, query)

    @classmethod
    def retry_config(
        cls, config: Mapping[str, str], task_config: Mapping[str, str], name: str
    ) -> Mapping[str, str]:
        """Return a config that reads its folder of letters, and has its transforms and sink."""
        if has_two_plugins(config):
            raise LettersRefused(_NO_SCHEMAS)
        pipeline = as_pipeline(config)
        if is_fed(config) and IS_RAW in pipeline and not config.get(QUEUE_TOPIC):
            raise LettersRefused(_NO_BYTES)
        retrying = retry_config(pipeline, task_config, name)
        return _fed_again(config, pipeline, retrying) if is_fed(config) else retrying

    def start(self, context: Context, config: Mapping[str, str]) -> None:
        """Start with a config, and log its warnings."""
        super().start(context, as_pipeline(config))

    def pipeline(self, context: Context, task_config: Mapping[str, str]) -> Pipeline:
        """Make the pipeline of a task; for Kafka it has what creates topics reach the cluster."""
        if RECORDS in task_config:
            from ..stores.kafka.sink.sink_type import admin_settings  # noqa: PLC0415  # an extra

            settings = admin_settings(context, task_config)
            named = {f"{OF_CLUSTER}{key}": value for key, value in settings.items()}
            task_config = {**task_config, **named}
        return super().pipeline(context, task_config)


def _remarks(config: Mapping[str, str], pipeline: Mapping[str, str]) -> Iterator[str]:
    """Yield what is said of keys that have no effect."""
    if has_two_plugins(config):
        yield from _remarks_on_two(config, is_held=HELD in pipeline)
        return
    unused = [each for each in _CONVERTERS[:2] if config.get(each)]
    if unused and not {RECORDS, IS_RAW} & pipeline.keys():
        why = _NOTHING_TO_CONVERT if is_fed(config) else _UNUSED
        yield why.format(named=", ".join(unused))
    overrides = [each for each in config if each.startswith(_OVERRIDE) and each != _MOST_RECORDS]
    if overrides and is_fed(config):
        yield _NO_CONSUMER.format(named=", ".join(overrides))


def _remarks_on_two(config: Mapping[str, str], *, is_held: bool) -> Iterator[str]:
    converters = _CONVERTERS if is_held else _CONVERTERS[:2]
    named = (f"{end}{each}" for end in ("", BESIDE_SOURCE) for each in converters)
    if unused := [each for each in named if config.get(each)]:
        why = _NOT_CONVERTED if is_held else _NOTHING_TO_CONVERT
        yield why.format(named=", ".join(unused))
    override, most = f"{BESIDE_SOURCE}{_OVERRIDE}", f"{BESIDE_SOURCE}{_MOST_RECORDS}"
    if overrides := [each for each in config if each.startswith(override) and each != most]:
        yield _NO_CLIENT.format(named=", ".join(overrides))


def _has_plugin_as_sink(config: Mapping[str, str]) -> bool:
    return is_fed(config) or has_two_plugins(config)


def _check_record(partition: Document, offset: Document | None) -> None:
    """Raise `OffsetRefused` unless an offset of records is one; see `PlacedRows`."""
    for key in {RECORD_TOPIC, RECORD_PARTITION} ^ {*partition}:
        raise OffsetRefused(f"{key}: such a partition has {RECORD_TOPIC} and {RECORD_PARTITION}")
    at = None if offset is None else offset.get(RECORD_OFFSET)
    if offset is not None and not (isinstance(at, int) and at >= 0 and len(offset) == 1):
        raise OffsetRefused(f"{RECORD_OFFSET}: must be the number of the next record, from 0 on")


def _complaints(config: Mapping[str, str]) -> dict[str, str]:
    own, chain = _own_transforms(config), transforms.aliases(config)
    if not own:
        return {}
    if is_fed(config):
        theirs = [each for each in chain if each not in own]
        late = theirs and set(chain[chain.index(theirs[0]) :]) & {*own}
        return {TRANSFORMS: _BEFORE.format(first=theirs[0])} if late else {}
    late = [each for each in chain[chain.index(own[0]) :] if each not in own]
    return {TRANSFORMS: _BEHIND.format(first=own[0])} if late else {}
