"""The keys of `SparkPipeline`: those of its source, its transforms and its sink."""

from dataclasses import replace

from .....actors.settings import SettingType, between, one_of
from ..common_keys import COMMON
from ..config import Definition, Importance, Width
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


def transform_keys(alias: str) -> tuple[Definition, ...]:
    """Return the keys of one transform of the chain."""
    group = f"Transform {alias}"
    return (
        Definition(
            transform_key(alias, "type"),
            SettingType.STRING,
            "What the transform is: `sql`, a query, or `select`, a select list.",
            importance=Importance.HIGH,
            required=True,
            validator=one_of("sql", "select"),
            recommended=("sql", "select"),
            group=group,
            order=1,
            dependents=(transform_key(alias, "query"), transform_key(alias, "columns")),
        ),
        Definition(
            transform_key(alias, "query"),
            SettingType.STRING,
            "For `sql`: a query over the table `input`, which is one batch and never more.",
            importance=Importance.HIGH,
            group=group,
            order=2,
            width=Width.LONG,
        ),
        Definition(
            transform_key(alias, "columns"),
            SettingType.STRING,
            "For `select`: columns and expressions, `carrier, dep_delay / 60 AS hours`.",
            importance=Importance.HIGH,
            group=group,
            order=3,
            width=Width.LONG,
        ),
    )


def transform_key(alias: str, name: str) -> str:
    """Return the full key of one transform's setting."""
    return f"transforms.{alias}.{name}"


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
    families=(*_OPTIONS, *transform_keys("<name>")),
)
"""What a user may set."""

TASK_KEYS = KEYS.plus(_grouped("Task", files.TASK))
"""What a task config holds."""
