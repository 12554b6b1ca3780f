"""The keys of `SparkPipeline`: its own, those of its transforms, and those of its two types.

The set of keys depends on the config: `source.type`, `sink.type` and each name in `transforms` add
theirs.
"""

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import lru_cache
from importlib.metadata import EntryPoint
from typing import TypeVar

from ....actors.settings import SettingType, between
from ..engines.queries.allowed_settings import flaw_in_setting
from ..installed import InstalledClasses
from ..lineage.keys import LINEAGE
from ..spi.config import ConfigDef, Definition, Importance, has_reference, strip_prefix
from ..spi.errors import PluginUnknown
from ..spi.keys.common import COMMON
from ..spi.keys.delivery import GUARANTEE_KEY
from ..spi.keys.kinds import choice_key, number_key, text_key, with_group
from ..spi.keys.letters import LETTER_TOPIC, LETTERS
from ..spi.keys.plugin_source import CONNECT
from ..spi.types import SinkType, SourceType
from ..stores.files.letters.source_type import LettersSourceType
from ..stores.files.sink.sink_type import FilesSinkType
from ..stores.files.source.source_type import FilesSourceType
from ..stores.jdbc.sink import JdbcSinkType
from ..stores.jdbc.source import JdbcSourceType
from ..transforms import catalogue as transforms
from .dead_letter_queue import QUEUE_TASK_KEYS
from .error_keys import ERRORS

SOURCE_TYPE = "source.type"
SINK_TYPE = "sink.type"
POLL_MS = "poll.interval.ms"
LINGER_MS = "linger.ms"
BATCH_TARGET_MS = "batch.target.ms"
BATCH_MAX_BYTES = "batch.max.bytes"
BATCH_MAX_ROWS = "batch.max.rows"
RATE_ROWS = "rate.limit.rows.per.second"
RATE_BYTES = "rate.limit.bytes.per.second"
SPARK_CONF = "spark.conf."
LANE = "engine.lane"
TASK_COUNT = "task.count"

FILES = "files"
JDBC = "jdbc"
SPARK = "spark"

T = TypeVar("T")


_LETTER_TOPIC = EntryPoint(
    LETTER_TOPIC,
    "fairlead.runtime.pipeline.stores.kafka.source.letters.source_type:LetterTopicType [kafka]",
    "fairlead.sources",
)
_CONNECT_SINK = EntryPoint(
    CONNECT,
    "fairlead.runtime.pipeline.plugins.feeds.sink_type:PluginSinkType",
    "fairlead.sinks",
)
_CONNECT = EntryPoint(
    CONNECT,
    "fairlead.runtime.pipeline.plugins.batches.source_type:PluginSourceType",
    "fairlead.sources",
)
SOURCE_TYPES = InstalledClasses[SourceType](
    "source type",
    "fairlead.sources",
    SourceType,  # type: ignore[type-abstract]
    {FILES: FilesSourceType, JDBC: JdbcSourceType, LETTERS: LettersSourceType},
    extras=(_LETTER_TOPIC, _CONNECT),
)
"""The classes for `source.type`."""

SINK_TYPES = InstalledClasses[SinkType](
    "sink type",
    "fairlead.sinks",
    SinkType,  # type: ignore[type-abstract]
    {FILES: FilesSinkType, JDBC: JdbcSinkType},
    extras=(_CONNECT_SINK,),
)
"""The classes for `sink.type`."""


@dataclass(frozen=True, slots=True)
class PipelineTypes:
    """The types of a pipeline's source and sink."""

    source: type[SourceType]
    sink: type[SinkType]

    @classmethod
    def of(cls, config: Mapping[str, str]) -> "PipelineTypes":
        """Return the types that a config names; raises `PluginUnknown`."""
        return cls(
            SOURCE_TYPES.find(config.get(SOURCE_TYPE, FILES)),
            SINK_TYPES.find(config.get(SINK_TYPE, FILES)),
        )


def keys_of(config: Mapping[str, str]) -> ConfigDef:
    """Return the definitions of all keys that users may set in such a config.

    A type that is not installed adds none.
    """
    source = _find(SOURCE_TYPES, config.get(SOURCE_TYPE, FILES))
    sink = _find(SINK_TYPES, config.get(SINK_TYPE, FILES))
    settings = (replace(_SPARK_SETTING, name=key) for key in config if key.startswith(SPARK_CONF))
    return _keys_between(source, sink).plus([*transforms.definitions(config), *settings])


def keys_of_types() -> dict[str, list[Definition]]:
    """Return the keys of each type but `files`, by what selects it: `source.type=kafka`.

    A type that cannot be loaded is left out.
    """
    definitions: dict[str, list[Definition]] = {}
    for key, types in ((SOURCE_TYPE, SOURCE_TYPES), (SINK_TYPE, SINK_TYPES)):
        for name in (*types.built_in, *types.further):
            with suppress(PluginUnknown):
                kind = types.find(name)
                definitions[f"{key}={name}"] = [*kind.keys(), *kind.families()]
        del definitions[f"{key}={FILES}"]
    return definitions


def flaws_in_settings(config: Mapping[str, str]) -> Mapping[str, str]:
    """Return the errors of Spark settings that a connector must not have, by key."""
    found = {
        f"{SPARK_CONF}{name}": flaw_in_setting(name, None if has_reference(value) else value)
        for name, value in strip_prefix(SPARK_CONF, config).items()
    }
    return {key: flaw for key, flaw in found.items() if flaw}


def task_keys_of(config: Mapping[str, str]) -> ConfigDef:
    """Return the definitions of all keys of a task config; raises `PluginUnknown`."""
    types = PipelineTypes.of(config)
    own = (*types.source.task_keys(), *types.sink.task_keys(), *QUEUE_TASK_KEYS, _TASK_COUNT)
    return keys_of(config).plus(with_group("Task", own, first=2))


def unknown_types(config: Mapping[str, str]) -> Mapping[str, str]:
    """Return the errors of types that are not installed, by key."""
    complaints: dict[str, str] = {}
    for types, key in ((SOURCE_TYPES, SOURCE_TYPE), (SINK_TYPES, SINK_TYPE)):
        try:
            types.find(config.get(key, FILES))
        except PluginUnknown as error:
            complaints[key] = str(error)
    return complaints


def _find(types: InstalledClasses[T], name: str) -> type[T] | None:
    """Return a type; None if it is not installed, which is an error of the validation."""
    with suppress(PluginUnknown):
        return types.find(name)
    return None


@lru_cache
def _keys_between(source: type[SourceType] | None, sink: type[SinkType] | None) -> ConfigDef:
    """Return the keys of all pipelines between two types: a hundred definitions, made once."""
    errors = with_group("Error Handling", ERRORS, first=3)  # after those of retries
    found = COMMON.plus([*_TYPES, *errors, *with_group("Batches", _BATCHES), _LANE, *LINEAGE])
    for group, kind in (("Source", source), ("Sink", sink)):
        if kind is not None:
            found = _with(found, group, kind)
    return replace(found, families=(*found.families, *transforms.FAMILIES, _SPARK_SETTING))


def _with(base: ConfigDef, group: str, kind: type[SourceType] | type[SinkType]) -> ConfigDef:
    return replace(
        base.plus(with_group(group, kind.keys(), first=2)),
        prefixes=(*base.prefixes, *kind.prefixes),
        families=(*base.families, *(replace(each, group=group) for each in kind.families())),
    )


_TYPES = (
    text_key(
        SOURCE_TYPE,
        "What is read: `files`, or another type that is installed. Its keys begin with `source.`.",
        FILES,
        importance=Importance.HIGH,
        group="Source",
        order=1,
    ),
    text_key(
        SINK_TYPE,
        "What is written: `files`, or another type that is installed. Its keys begin with `sink.`.",
        FILES,
        importance=Importance.HIGH,
        group="Sink",
        order=1,
    ),
    GUARANTEE_KEY,
)

_BATCHES = (
    number_key(
        POLL_MS,
        "The longest time between two polls of the source without new input.",
        500,
        kind=SettingType.INT,
        importance=Importance.LOW,
        validator=between(10, 3_600_000),
    ),
    number_key(
        LINGER_MS,
        "The longest time from the start of one batch to the start of the next. Input that "
        "trickles in is collected for as long as the last batch took, but not longer than this: "
        "even a small batch is expensive.",
        500,
        kind=SettingType.INT,
        importance=Importance.LOW,
        validator=between(0, 60_000),
    ),
    number_key(
        BATCH_TARGET_MS,
        "The duration that a batch should have while there is a backlog: its size follows from the "
        "speed of the last batches. A task that moves finishes its batch first.",
        1_000,
        kind=SettingType.INT,
        validator=between(50, 60_000),
    ),
    number_key(
        BATCH_MAX_BYTES,
        "The most bytes of the source in a batch; a larger input that cannot be split, such as "
        "a file, is a batch of its own.",
        64 << 20,
        least=1,
    ),
    number_key(
        BATCH_MAX_ROWS,
        "The most rows of the source in a batch, if the source knows its rows.",
        1_000_000,
        least=1,
        kind=SettingType.INT,
    ),
    number_key(
        RATE_ROWS,
        "The rate limit of the connector in rows of the source; its tasks share it equally. "
        "Absent: no limit.",
        None,
        least=1,
        importance=Importance.LOW,
    ),
    number_key(
        RATE_BYTES,
        "The rate limit of the connector in bytes of the source, if the source knows its bytes; "
        "its tasks share it equally. Absent: no limit.",
        None,
        least=1,
        importance=Importance.LOW,
    ),
)

_LANE, _SPARK_SETTING = with_group(
    "Spark",
    [
        choice_key(
            LANE,
            "What reads and writes rows that nothing transforms: Arrow, in tasks of Spark, where "
            "that is proved to be the same (`auto`), or always Spark (`spark`). The node's setting "
            f"of this name may be `{SPARK}` for all connectors.",
            "auto",
            SPARK,
            importance=Importance.LOW,
        ),
        text_key(
            f"{SPARK_CONF}spark.sql.*",
            "A setting of Spark SQL for this connector alone, such as "
            f"`{SPARK_CONF}spark.sql.session.timeZone`: its tasks run in a session of their own.",
            importance=Importance.LOW,
        ),
    ],
)

_TASK_COUNT = number_key(
    TASK_COUNT,
    "Set by the connector: how many tasks share its rate limits.",
    1,
    least=1,
    kind=SettingType.INT,
    importance=Importance.LOW,
)
