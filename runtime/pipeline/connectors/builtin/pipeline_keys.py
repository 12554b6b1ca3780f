"""The keys of `SparkPipeline`: those of its source, its sink and of all transforms."""

from dataclasses import replace

from .....actors.settings import SettingType, between, one_of
from ...transforms.catalogue import FAMILIES as TRANSFORM_FAMILIES
from ..common_keys import COMMON
from ..config import Definition, Importance
from ..files import keys as files

TOLERANCE = "errors.tolerance"
POLL_MS = "poll.interval.ms"

_ANY_SOURCE = (
    Definition(
        TOLERANCE,
        SettingType.STRING,
        "What happens to rows that do not fit the schema: `none` ends the task with an error that "
        "names the file, `all` drops them.",
        importance=Importance.MEDIUM,
        default="none",
        validator=one_of("none", "all"),
        recommended=("none", "all"),
    ),
    Definition(
        POLL_MS,
        SettingType.INT,
        "How long a task that has read all there was waits at most before it looks again.",
        importance=Importance.LOW,
        default=500,
        validator=between(10, 1000),
    ),
)


def _grouped(group: str, definitions: tuple[Definition, ...]) -> list[Definition]:
    return [
        replace(each, group=group, order=order) for order, each in enumerate(definitions, start=1)
    ]


_OPTIONS = (
    Definition(
        f"{files.SOURCE_OPTION}*",
        SettingType.STRING,
        "An option of Spark's reader, handed on under the name after the prefix: "
        f"`{files.SOURCE_OPTION}encoding`.",
        importance=Importance.LOW,
        group="Source",
    ),
    Definition(
        f"{files.SINK_OPTION}*",
        SettingType.STRING,
        "An option of Spark's writer, handed on under the name after the prefix: "
        f"`{files.SINK_OPTION}compression`.",
        importance=Importance.LOW,
        group="Sink",
    ),
)

KEYS = replace(
    COMMON.plus(
        [*_grouped("Source", (*files.SOURCE, *_ANY_SOURCE)), *_grouped("Sink", files.SINK)]
    ),
    prefixes=(files.SOURCE_OPTION, files.SINK_OPTION),
    families=(*_OPTIONS, *TRANSFORM_FAMILIES),
)
"""What a user may set."""

TASK_KEYS = KEYS.plus(_grouped("Task", files.TASK))
"""What a task config holds."""
