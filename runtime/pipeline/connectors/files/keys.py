"""The keys of folders of files, as a source and as a sink: each says what it means."""

from .....actors.settings import SettingType, Value, between, not_blank
from ...spi.config import Importance, Width
from ...spi.key_kinds import choice_key, flag_key, list_key, number_key, task_key, text_key
from ..evolution.policy import EVOLUTION, EVOLUTION_KEY

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
SINK_FORMAT = "sink.format"
SINK_PATH = "sink.path"
SINK_PARTITION_BY = "sink.partition.by"
SINK_MODE = "sink.mode"
SINK_FILE_BYTES = "sink.file.max.bytes"
SINK_ROTATE_MS = "sink.rotate.interval.ms"
SINK_AUTO_EVOLVE = "sink.auto.evolve"
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


def local_or_none(value: Value) -> str | None:
    """Refuse what is given and is no absolute path."""
    return _local(value) if value else None


SOURCE = (
    choice_key(
        SOURCE_FORMAT,
        "What the files are: csv, json (one object per line) or parquet.",
        *READABLE,
        importance=Importance.HIGH,
        required=True,
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
    text_key(
        SOURCE_PATH,
        "The folder that is read, with all folders in it; names that begin with a dot or an "
        f"underscore are left out, and symbolic links are not followed. {_SEEN_BY_ALL} Each file "
        "is read once, as a whole; one that changes later is told in status, and not read again.",
        importance=Importance.HIGH,
        required=True,
        validator=_local,
        width=Width.LONG,
    ),
    text_key(
        SOURCE_GLOB,
        "Which files are read. A pattern without a slash is held against the file's name, one "
        "with a slash against its path below the folder, where `*` spans slashes.",
        "*",
        validator=not_blank,
    ),
    text_key(
        SOURCE_SCHEMA,
        "The columns and their types, as in `CREATE TABLE`: `day DATE, delay INT`. Without it the "
        "connector infers them, once, from a sample of all files that are there.",
        width=Width.LONG,
        dependents=(SOURCE_SAMPLE_BYTES, EVOLUTION),
    ),
    EVOLUTION_KEY,
    number_key(
        SOURCE_SAMPLE_BYTES,
        "How much is read to infer a schema, in bytes, shared out over all files; at least "
        "64 KiB of each.",
        64 << 20,
        least=1,
        kind=SettingType.INT,
        importance=Importance.LOW,
    ),
    flag_key(
        SOURCE_HEADER,
        "Whether each csv file begins with a line of column names; they must fit the schema.",
        default=True,
    ),
    text_key(
        SOURCE_SEPARATOR,
        "What separates the columns of csv files: one letter, or \\t.",
        ",",
        importance=Importance.LOW,
        validator=_one_letter,
        width=Width.SHORT,
    ),
    text_key(
        SOURCE_QUOTE,
        "What encloses values of csv files that hold separators or line breaks: one letter.",
        '"',
        importance=Importance.LOW,
        validator=_one_letter,
        width=Width.SHORT,
    ),
    text_key(
        SOURCE_ESCAPE,
        "The letter before a quote that is part of a quoted value of csv files, such as `\\`. "
        "Without it such a quote is doubled, as RFC 4180 has it.",
        "",
        importance=Importance.LOW,
        validator=_one_letter_or_none,
        width=Width.SHORT,
    ),
    flag_key(
        SOURCE_TRIM,
        "Whether blanks around the values and names of csv files that are not quoted are dropped.",
        default=False,
        importance=Importance.LOW,
    ),
    text_key(
        SOURCE_ENCODING,
        "The encoding of csv and json files. Bytes that are not of it end the task with an error "
        "that names the file and the position.",
        "UTF-8",
        validator=_encoding,
        recommended=("UTF-8", "UTF-16", "ISO-8859-1", "windows-1252"),
        width=Width.SHORT,
    ),
    list_key(
        SOURCE_NULLS,
        "What stands for no value in csv files, beside nothing at all: `NA`. "
        "More than one costs some speed. An empty text in quotes is an empty text.",
        recommended=("NA", "NULL", "\\N"),
    ),
    number_key(
        SOURCE_MIN_AGE_MS,
        "How long a file's size and time of change must have been seen to stay as they are before "
        "it is read. One that is known to have been moved in is read at once, one that a process "
        "has open for writing is not read. With 0 nobody looks: files must be moved in, whole.",
        1_000,
        importance=Importance.LOW,
    ),
    number_key(
        SOURCE_MAX_FILES,
        "How many files a batch may hold at most; `batch.target.ms` is what sizes batches.",
        4096,
        least=1,
        kind=SettingType.INT,
        importance=Importance.LOW,
    ),
    number_key(
        SOURCE_MAX_BYTES,
        "How many bytes of files a batch may hold at most, where `batch.max.bytes` allows more; a "
        "larger file is a batch of its own.",
        1 << 40,
        least=1,
        importance=Importance.LOW,
    ),
)

SINK = (
    choice_key(
        SINK_FORMAT,
        "What is written: parquet, csv or json (one object per line).",
        *WRITABLE,
        importance=Importance.HIGH,
        required=True,
    ),
    text_key(
        SINK_PATH,
        "The folder that is written to. The first start of a connector makes it if need be; once "
        "it has, a task waits for a folder that is gone. Files appear whole, by renames; "
        "`_fairlead` in it is where they are staged, and where it says whose the folder is: "
        f"connectors of one cluster may share it. {_SEEN_BY_ALL}",
        importance=Importance.HIGH,
        required=True,
        validator=_local,
        width=Width.LONG,
    ),
    list_key(
        SINK_PARTITION_BY,
        "Columns that become folders, `month=1/`, instead of being written into the files.",
    ),
    choice_key(
        SINK_MODE,
        "How batches are added: `append` is all there is.",
        "append",
        importance=Importance.LOW,
    ),
    number_key(
        SINK_FILE_BYTES,
        "How many bytes of what was read go into one file at most; written in another format they "
        "may be more or less. A batch is written as several files on all cores, whatever this is.",
        64 << 20,
        least=1,
        importance=Importance.LOW,
    ),
    number_key(
        SINK_ROTATE_MS,
        "How long after a batch that had read all there was the next one begins at the earliest, "
        "so that it fills, and files are fewer and larger. What fills whole batches by then is "
        "read without a pause.",
        0,
        kind=SettingType.INT,
        validator=between(0, 86_400_000),
    ),
    flag_key(
        SINK_AUTO_EVOLVE,
        "Whether columns that the files lack, which the connector has written so far, are added, "
        "and those that are too narrow widened (INT to BIGINT, FLOAT to DOUBLE, decimals to more "
        "digits). Otherwise rows that have such columns are refused.",
        default=False,
    ),
    flag_key(
        SINK_ADOPT,
        "Whether to take the folder as it is now, although it is gone, has lost its `_fairlead`, "
        "belongs to another cluster, or was written to by a newer log than this one. It counts "
        "once, when it comes into the config: set it to false and to true again to repeat it.",
        default=False,
        importance=Importance.LOW,
    ),
)

SOURCE_TASK = (
    task_key(TASK_SCHEMA, "the schema that the task reads with"),
    task_key(TASK_BUCKETS, "the task's share of the files"),
    task_key(TASK_ROOTLESS, "the folder that offsets written without a folder belong to"),
)
"""What a task is told of its share."""

SINK_TASK = (task_key(TASK_CLAIM, "by what right the task writes to the sink"),)
"""What a task is told of the folder that it writes to."""

SOURCE_OPTIONS = text_key(
    f"{SOURCE_OPTION}*",
    "An option of Spark's reader, handed on under the name after the prefix: "
    f"`{SOURCE_OPTION}encoding`.",
    importance=Importance.LOW,
)

SINK_OPTIONS = text_key(
    f"{SINK_OPTION}*",
    "An option of Spark's writer, handed on under the name after the prefix: "
    f"`{SINK_OPTION}compression`.",
    importance=Importance.LOW,
)
