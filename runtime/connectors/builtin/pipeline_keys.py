"""The keys of `SparkPipeline`: each says what it means."""

from dataclasses import replace

from ..common_keys import COMMON
from ..config import ConfigType, Definition, Importance, Value, Width
from ..validators import at_least, between, not_blank, one_of

READABLE = ("csv", "json", "parquet")
WRITABLE = ("parquet", "csv", "json")

SOURCE_FORMAT = "source.format"
SOURCE_PATH = "source.path"
SOURCE_GLOB = "source.glob"
SOURCE_SCHEMA = "source.schema"
SOURCE_SAMPLE_BYTES = "source.schema.sample.bytes"
SOURCE_HEADER = "source.header"
SOURCE_SEPARATOR = "source.separator"
SOURCE_QUOTE = "source.quote"
SOURCE_ESCAPE = "source.escape"
SOURCE_TRIM = "source.trim"
SOURCE_ENCODING = "source.encoding"
SOURCE_NULLS = "source.null.values"
SOURCE_MIN_AGE_MS = "source.min.age.ms"
SOURCE_MAX_FILES = "source.max.files.per.batch"
SOURCE_MAX_BYTES = "source.max.bytes.per.batch"
SOURCE_OPTION = "source.option."
TOLERANCE = "errors.tolerance"
POLL_MS = "poll.interval.ms"
SINK_FORMAT = "sink.format"
SINK_PATH = "sink.path"
SINK_PARTITION_BY = "sink.partition.by"
SINK_MODE = "sink.mode"
SINK_ADOPT = "sink.adopt"
SINK_OPTION = "sink.option."
TASK_SCHEMA = "task.schema"
TASK_BUCKETS = "task.buckets"
TASK_CLAIM = "task.sink.claim"
TASK_ROOTLESS = "task.rootless.offsets"

_SEEN_BY_ALL = "It must be a folder that this path leads to on every worker and every executor."


def _one_letter(value: Value) -> str | None:
    fits = isinstance(value, str) and (len(value) == 1 or value == "\\t")
    return None if fits else "must be one letter, or \\t"


def _one_letter_or_none(value: Value) -> str | None:
    return None if value in ("", None) else _one_letter(value)


def _encoding(value: Value) -> str | None:
    try:
        "".encode(str(value))
    except (LookupError, ValueError):
        return "is no encoding that is known here; some are UTF-8, UTF-16, ISO-8859-1, windows-1252"
    return None


def _local(value: Value) -> str | None:
    if not isinstance(value, str) or not value.startswith("/"):
        return "must be an absolute path; other file systems are reached by mounting them"
    return None


_SOURCE = (
    Definition(
        SOURCE_FORMAT,
        ConfigType.STRING,
        Importance.HIGH,
        "What the files are: csv, json (one object per line) or parquet.",
        required=True,
        validator=one_of(*READABLE),
        recommended=READABLE,
        dependents=(
            SOURCE_HEADER,
            SOURCE_SEPARATOR,
            SOURCE_QUOTE,
            SOURCE_ESCAPE,
            SOURCE_TRIM,
            SOURCE_ENCODING,
            SOURCE_NULLS,
        ),
    ),
    Definition(
        SOURCE_PATH,
        ConfigType.STRING,
        Importance.HIGH,
        "The folder that is read, with all folders in it; names that begin with a dot or an "
        f"underscore are left out, and symbolic links are not followed. {_SEEN_BY_ALL} Each file "
        "is read once, as a whole; one that changes later is told in status, and not read again.",
        required=True,
        validator=_local,
        width=Width.LONG,
    ),
    Definition(
        SOURCE_GLOB,
        ConfigType.STRING,
        Importance.MEDIUM,
        "Which files are read. A pattern without a slash is held against the file's name, one "
        "with a slash against its path below the folder, where `*` spans slashes.",
        default="*",
        validator=not_blank,
    ),
    Definition(
        SOURCE_SCHEMA,
        ConfigType.STRING,
        Importance.MEDIUM,
        "The columns and their types, as in `CREATE TABLE`: `day DATE, delay INT`. Without it the "
        "connector infers them, once, from a sample of all files that are there.",
        width=Width.LONG,
        dependents=(SOURCE_SAMPLE_BYTES,),
    ),
    Definition(
        SOURCE_SAMPLE_BYTES,
        ConfigType.INT,
        Importance.LOW,
        "How much is read to infer a schema, in bytes, shared out over all files; at least "
        "64 KiB of each.",
        default=64 << 20,
        validator=at_least(1),
    ),
    Definition(
        SOURCE_HEADER,
        ConfigType.BOOLEAN,
        Importance.MEDIUM,
        "Whether each csv file begins with a line of column names; they must fit the schema.",
        default=True,
    ),
    Definition(
        SOURCE_SEPARATOR,
        ConfigType.STRING,
        Importance.LOW,
        "What separates the columns of csv files: one letter, or \\t.",
        default=",",
        validator=_one_letter,
        width=Width.SHORT,
    ),
    Definition(
        SOURCE_QUOTE,
        ConfigType.STRING,
        Importance.LOW,
        "What encloses values of csv files that hold separators or line breaks: one letter.",
        default='"',
        validator=_one_letter,
        width=Width.SHORT,
    ),
    Definition(
        SOURCE_ESCAPE,
        ConfigType.STRING,
        Importance.LOW,
        "The letter before a quote that is part of a quoted value of csv files, such as `\\`. "
        "Without it such a quote is doubled, as RFC 4180 has it.",
        default="",
        validator=_one_letter_or_none,
        width=Width.SHORT,
    ),
    Definition(
        SOURCE_TRIM,
        ConfigType.BOOLEAN,
        Importance.LOW,
        "Whether blanks around the values and names of csv files that are not quoted are dropped.",
        default=False,
    ),
    Definition(
        SOURCE_ENCODING,
        ConfigType.STRING,
        Importance.MEDIUM,
        "The encoding of csv and json files. Bytes that are not of it end the task with an error "
        "that names the file and the position.",
        default="UTF-8",
        validator=_encoding,
        recommended=("UTF-8", "UTF-16", "ISO-8859-1", "windows-1252"),
        width=Width.SHORT,
    ),
    Definition(
        SOURCE_NULLS,
        ConfigType.LIST,
        Importance.MEDIUM,
        "What stands for no value in csv files, beside nothing at all: `NA`. "
        "More than one costs some speed. An empty text in quotes is an empty text.",
        default=(),
        recommended=("NA", "NULL", "\\N"),
    ),
    Definition(
        SOURCE_MIN_AGE_MS,
        ConfigType.LONG,
        Importance.LOW,
        "How long a file's size and time of change must have been seen to stay as they are before "
        "it is read. With 0 files must be moved in, whole: one that is written to may be read in "
        "part.",
        default=1_000,
        validator=at_least(0),
    ),
    Definition(
        SOURCE_MAX_FILES,
        ConfigType.INT,
        Importance.LOW,
        "How many files a batch may hold at most. Batches begin small and grow while there is "
        "more to read and they take less than a second.",
        default=256,
        validator=at_least(1),
    ),
    Definition(
        SOURCE_MAX_BYTES,
        ConfigType.LONG,
        Importance.LOW,
        "How many bytes a batch may hold at most; a larger file is a batch of its own.",
        default=64 << 20,
        validator=at_least(1),
    ),
    Definition(
        TOLERANCE,
        ConfigType.STRING,
        Importance.MEDIUM,
        "What happens to rows that do not fit the schema: `none` ends the task with an error that "
        "names the file, `all` drops them.",
        default="none",
        validator=one_of("none", "all"),
        recommended=("none", "all"),
    ),
    Definition(
        POLL_MS,
        ConfigType.INT,
        Importance.LOW,
        "How long a task that has read all there was waits at most before it looks again.",
        default=500,
        validator=between(10, 1000),
    ),
)

_SINK = (
    Definition(
        SINK_FORMAT,
        ConfigType.STRING,
        Importance.HIGH,
        "What is written: parquet, csv or json (one object per line).",
        required=True,
        validator=one_of(*WRITABLE),
        recommended=WRITABLE,
    ),
    Definition(
        SINK_PATH,
        ConfigType.STRING,
        Importance.HIGH,
        "The folder that is written to. The first start of a connector makes it if need be; once "
        "it has, a task waits for a folder that is gone. Files appear whole, by renames; "
        "`_fairlead` in it is where they are staged, and where it says whose the folder is: "
        f"connectors of one cluster may share it. {_SEEN_BY_ALL}",
        required=True,
        validator=_local,
        width=Width.LONG,
    ),
    Definition(
        SINK_PARTITION_BY,
        ConfigType.LIST,
        Importance.MEDIUM,
        "Columns that become folders, `month=1/`, instead of being written into the files.",
        default=(),
    ),
    Definition(
        SINK_MODE,
        ConfigType.STRING,
        Importance.LOW,
        "How batches are added: `append` is all there is.",
        default="append",
        validator=one_of("append"),
        recommended=("append",),
    ),
    Definition(
        SINK_ADOPT,
        ConfigType.BOOLEAN,
        Importance.LOW,
        "Whether to take the folder as it is now, although it is gone, has lost its `_fairlead`, "
        "belongs to another cluster, or was written to by a newer log than this one. It counts "
        "once, when it comes into the config: set it to false and to true again to repeat it.",
        default=False,
    ),
)

_TASK = (
    Definition(
        TASK_SCHEMA,
        ConfigType.STRING,
        Importance.LOW,
        "Set by the connector: the schema that the task reads with.",
    ),
    Definition(
        TASK_BUCKETS,
        ConfigType.STRING,
        Importance.LOW,
        "Set by the connector: the task's share of the files.",
    ),
    Definition(
        TASK_CLAIM,
        ConfigType.STRING,
        Importance.LOW,
        "Set by the connector: by what right the task writes to the sink.",
    ),
    Definition(
        TASK_ROOTLESS,
        ConfigType.STRING,
        Importance.LOW,
        "Set by the connector: the folder that offsets written without a folder belong to.",
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
            ConfigType.STRING,
            Importance.HIGH,
            "What the transform is: `sql`, a query, or `select`, a select list.",
            required=True,
            validator=one_of("sql", "select"),
            recommended=("sql", "select"),
            group=group,
            order=1,
            dependents=(transform_key(alias, "query"), transform_key(alias, "columns")),
        ),
        Definition(
            transform_key(alias, "query"),
            ConfigType.STRING,
            Importance.HIGH,
            "For `sql`: a query over the table `input`, which is one batch and never more.",
            group=group,
            order=2,
            width=Width.LONG,
        ),
        Definition(
            transform_key(alias, "columns"),
            ConfigType.STRING,
            Importance.HIGH,
            "For `select`: columns and expressions, `carrier, dep_delay / 60 AS hours`.",
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
        f"{SOURCE_OPTION}*",
        ConfigType.STRING,
        Importance.LOW,
        "An option of Spark's reader, handed on under the name after the prefix: "
        f"`{SOURCE_OPTION}encoding`.",
        group="Source",
    ),
    Definition(
        f"{SINK_OPTION}*",
        ConfigType.STRING,
        Importance.LOW,
        "An option of Spark's writer, handed on under the name after the prefix: "
        f"`{SINK_OPTION}compression`.",
        group="Sink",
    ),
)

KEYS = replace(
    COMMON.plus([*_grouped("Source", _SOURCE), *_grouped("Sink", _SINK)]),
    prefixes=(SOURCE_OPTION, SINK_OPTION),
    families=(*_OPTIONS, *transform_keys("<name>")),
)
"""What a user may set."""

TASK_KEYS = KEYS.plus(_grouped("Task", _TASK))
"""What a task config holds."""
