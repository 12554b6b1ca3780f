"""The keys of `SparkPipeline`: its own, those of its transforms, and those of the types it names.

Which keys there are hangs on the config: `source.type` and `sink.type` bring theirs along, and so
does each name in `transforms`.
"""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace

from .....actors.settings import SettingType, at_least, between
from ...spi.config import ConfigDef, Definition, Importance
from ...spi.errors import PluginUnknown
from ...spi.types import SinkType, SourceType
from ...transforms import catalogue as transforms
from ..common_keys import COMMON
from ..files.sink.sink_type import FilesSinkType
from ..files.source.source_type import FilesSourceType
from ..installed import Installed
from .error_keys import ERRORS, ERRORS_TASK

SOURCE_TYPE = "source.type"
SINK_TYPE = "sink.type"
POLL_MS = "poll.interval.ms"
LINGER_MS = "linger.ms"
BATCH_TARGET_MS = "batch.target.ms"
BATCH_MAX_BYTES = "batch.max.bytes"
BATCH_MAX_ROWS = "batch.max.rows"
RATE_ROWS = "rate.limit.rows.per.second"
RATE_BYTES = "rate.limit.bytes.per.second"
TASK_COUNT = "task.count"

FILES = "files"


SOURCE_TYPES = Installed[SourceType](
    "source type",
    "fairlead.sources",
    SourceType,  # type: ignore[type-abstract]
    {FILES: FilesSourceType},
)
"""What `source.type` may name."""

SINK_TYPES = Installed[SinkType](
    "sink type",
    "fairlead.sinks",
    SinkType,  # type: ignore[type-abstract]
    {FILES: FilesSinkType},
)
"""What `sink.type` may name."""


@dataclass(frozen=True, slots=True)
class Ends:
    """The types of a pipeline's source and sink."""

    source: type[SourceType]
    sink: type[SinkType]

    @classmethod
    def of(cls, config: Mapping[str, str]) -> "Ends":
        """Return the types that a config names; raises `PluginUnknown`."""
        return cls(
            SOURCE_TYPES.find(config.get(SOURCE_TYPE, FILES)),
            SINK_TYPES.find(config.get(SINK_TYPE, FILES)),
        )


def keys_of(config: Mapping[str, str]) -> ConfigDef:
    """Return the definitions of all that a user may set in such a config.

    A type that is not installed has none.
    """
    found = COMMON.plus([*_TYPES, *ERRORS, *_BATCHES])
    for group, types, key in (
        ("Source", SOURCE_TYPES, SOURCE_TYPE),
        ("Sink", SINK_TYPES, SINK_TYPE),
    ):
        with suppress(PluginUnknown):  # which the validation tells
            found = _with(found, group, types.find(config.get(key, FILES)))
    found = replace(found, families=(*found.families, *transforms.FAMILIES))
    return found.plus(transforms.definitions(config))


def task_keys_of(config: Mapping[str, str]) -> ConfigDef:
    """Return the definitions of what a task config holds; raises `PluginUnknown`."""
    ends = Ends.of(config)
    told = (*ends.source.task_keys(), *ends.sink.task_keys())
    return keys_of(config).plus(_grouped("Task", (*told, *ERRORS_TASK, _TASK_COUNT)))


def unknown_types(config: Mapping[str, str]) -> Mapping[str, str]:
    """Return what is wrong with the types that a config names."""
    complaints: dict[str, str] = {}
    for types, key in ((SOURCE_TYPES, SOURCE_TYPE), (SINK_TYPES, SINK_TYPE)):
        try:
            types.find(config.get(key, FILES))
        except PluginUnknown as error:
            complaints[key] = str(error)
    return complaints


def _with(base: ConfigDef, group: str, kind: type[SourceType] | type[SinkType]) -> ConfigDef:
    return replace(
        base.plus(_grouped(group, kind.keys())),
        prefixes=(*base.prefixes, *kind.prefixes),
        families=(*base.families, *(replace(each, group=group) for each in kind.families())),
    )


def _grouped(group: str, definitions: Sequence[Definition]) -> list[Definition]:
    return [
        replace(each, group=group, order=order) for order, each in enumerate(definitions, start=2)
    ]


_TYPES = (
    Definition(
        SOURCE_TYPE,
        SettingType.STRING,
        "What is read: `files`, or another type that is installed. Its keys begin with `source.`.",
        importance=Importance.HIGH,
        default=FILES,
        group="Source",
        order=1,
    ),
    Definition(
        SINK_TYPE,
        SettingType.STRING,
        "What is written: `files`, or another type that is installed. Its keys begin with `sink.`.",
        importance=Importance.HIGH,
        default=FILES,
        group="Sink",
        order=1,
    ),
)

_BATCHES = tuple(
    replace(each, group="Batches", order=order)
    for order, each in enumerate(
        (
            Definition(
                POLL_MS,
                SettingType.INT,
                "How long a task that has read all there was waits at most before it looks again.",
                importance=Importance.LOW,
                default=500,
                validator=between(10, 1000),
            ),
            Definition(
                LINGER_MS,
                SettingType.INT,
                "How long after a batch began the next one may begin at the latest. What comes in "
                "a trickle is let pile up for as long as the last batch took, and no longer than "
                "this, since a batch costs much, however small.",
                importance=Importance.LOW,
                default=500,
                validator=between(0, 60_000),
            ),
            Definition(
                BATCH_TARGET_MS,
                SettingType.INT,
                "How long a batch should take while there is more to read: it is sized by how "
                "fast the last ones went. A task that moves finishes its batch first.",
                importance=Importance.MEDIUM,
                default=1_000,
                validator=between(50, 60_000),
            ),
            Definition(
                BATCH_MAX_BYTES,
                SettingType.LONG,
                "How many bytes of the source a batch may hold at most; what cannot be read in "
                "parts, such as a file, may be larger, and is a batch of its own then.",
                importance=Importance.MEDIUM,
                default=64 << 20,
                validator=at_least(1),
            ),
            Definition(
                BATCH_MAX_ROWS,
                SettingType.INT,
                "How many rows of the source a batch may hold at most, where the source knows.",
                importance=Importance.MEDIUM,
                default=1_000_000,
                validator=at_least(1),
            ),
            Definition(
                RATE_ROWS,
                SettingType.LONG,
                "How many rows of the source the connector may take in a second; each of its tasks "
                "has an equal part. Absent: no limit.",
                importance=Importance.LOW,
                validator=at_least(1),
            ),
            Definition(
                RATE_BYTES,
                SettingType.LONG,
                "How many bytes of the source the connector may take in a second, where the source "
                "knows; each of its tasks has an equal part. Absent: no limit.",
                importance=Importance.LOW,
                validator=at_least(1),
            ),
        ),
        start=1,
    )
)

_TASK_COUNT = Definition(
    TASK_COUNT,
    SettingType.INT,
    "Set by the connector: how many tasks share its rate limits.",
    importance=Importance.LOW,
    default=1,
    validator=at_least(1),
)
