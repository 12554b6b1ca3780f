"""The config keys of the files source and the files sink."""

from os.path import normpath

from .....actors.settings import SettingType, Value, between, not_blank
from ...formats.evolution.policy import EVOLUTION, EVOLUTION_KEY
from ...spi.config import Importance, Width
from ...spi.keys.kinds import choice_key, flag_key, list_key, number_key, task_key, text_key

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
TASK_FOLDERS = "task.folder.columns"
TASK_BUCKETS = "task.buckets"
TASK_CLAIM = "task.sink.claim"
TASK_ROOTLESS = "task.rootless.offsets"

_SEEN_BY_ALL = "The path must lead to the same folder on every worker and every executor."


def _one_letter(value: Value) -> str | None:
    fits = isinstance(value, str) and (len(value) == 1 or value == "\\t")
    return None if fits else "must be one character, or \\t"


def _one_letter_or_none(value: Value) -> str | None:
    return None if value in ("", None) else _one_letter(value)


def _encoding(value: Value) -> str | None:
    try:
        "".encode(str(value))
    except (LookupError, ValueError):
        return "is an unknown encoding; known ones are UTF-8, UTF-16, ISO-8859-1, windows-1252"
    return None


def _local(value: Value) -> str | None:
    if not isinstance(value, str) or not value.startswith("/"):
        return "must be an absolute path; other file systems are reached by mounting them"
    return "must not hold a NUL: no path has one" if "\0" in value else None


def _readable(value: Value) -> str | None:
    flaw = _local(value)
    if not flaw and normpath(str(value)).startswith("//"):  # three are one
        return "must begin with one slash: Spark takes what comes after two for a host"
    return flaw


def local_or_none(value: Value) -> str | None:
    """Return an error if a path is given and is not absolute."""
    return _local(value) if value else None


SOURCE = (
    choice_key(
        SOURCE_FORMAT,
        "The format of the files: csv, json (one object per line) or parquet.",
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
        "The folder to read, with all folders in it. Names that begin with a dot or an "
        f"underscore are ignored, and symbolic links are not followed. {_SEEN_BY_ALL} Each file "
        "is read once, as a whole; a later change is reported in the status, and not read.",
        importance=Importance.HIGH,
        required=True,
        validator=_readable,
        width=Width.LONG,
    ),
    text_key(
        SOURCE_GLOB,
        "The files to read. A pattern without a slash is matched with the file's name, one "
        "with a slash with its path below the folder, where `*` also matches slashes.",
        "*",
        validator=not_blank,
    ),
    text_key(
        SOURCE_SCHEMA,
        "The columns and their types, as in `CREATE TABLE`: `day DATE, delay INT`. Without it the "
        "connector infers them, once, from a sample of all existing files.",
        width=Width.LONG,
        dependents=(SOURCE_SAMPLE_BYTES, EVOLUTION),
    ),
    EVOLUTION_KEY,
    number_key(
        SOURCE_SAMPLE_BYTES,
        "How many bytes are read to infer a schema, divided among all files; at least "
        "64 KiB of each.",
        64 << 20,
        least=1,
        kind=SettingType.INT,
        importance=Importance.LOW,
    ),
    flag_key(
        SOURCE_HEADER,
        "Whether each csv file begins with a line of column names, which must match the schema.",
        default=True,
    ),
    text_key(
        SOURCE_SEPARATOR,
        "The separator of columns in csv files: one character, or \\t.",
        ",",
        importance=Importance.LOW,
        validator=_one_letter,
        width=Width.SHORT,
    ),
    text_key(
        SOURCE_QUOTE,
        "The character that encloses csv values with separators or line breaks.",
        '"',
        importance=Importance.LOW,
        validator=_one_letter,
        width=Width.SHORT,
    ),
    text_key(
        SOURCE_ESCAPE,
        "The character before a quote within a quoted csv value, such as `\\`. "
        "Without it such a quote is doubled, as in RFC 4180.",
        "",
        importance=Importance.LOW,
        validator=_one_letter_or_none,
        width=Width.SHORT,
    ),
    flag_key(
        SOURCE_TRIM,
        "Whether to trim blanks around unquoted values and names in csv files.",
        default=False,
        importance=Importance.LOW,
    ),
    text_key(
        SOURCE_ENCODING,
        "The encoding of csv and json files. The task fails at bytes that are invalid in it, with "
        "an error that names the file and the position.",
        "UTF-8",
        validator=_encoding,
        recommended=("UTF-8", "UTF-16", "ISO-8859-1", "windows-1252"),
        width=Width.SHORT,
    ),
    list_key(
        SOURCE_NULLS,
        "The texts for null in csv files, beside an empty field: `NA`. "
        'More than one text is slower. `""` is an empty text, not null.',
        recommended=("NA", "NULL", "\\N"),
    ),
    number_key(
        SOURCE_MIN_AGE_MS,
        "How long a file's size and modification time must not change before it is read. A file "
        "that was moved into the folder is read at once; one that a process has open for writing "
        "is not read. With 0 there is no check: files must be complete when they appear.",
        1_000,
        importance=Importance.LOW,
    ),
    number_key(
        SOURCE_MAX_FILES,
        "The most files in a batch; usually `batch.target.ms` determines the size.",
        4096,
        least=1,
        kind=SettingType.INT,
        importance=Importance.LOW,
    ),
    number_key(
        SOURCE_MAX_BYTES,
        "The most bytes of files in a batch, if less than `batch.max.bytes`; a "
        "larger file is a batch of its own.",
        1 << 40,
        least=1,
        importance=Importance.LOW,
    ),
)

SINK = (
    choice_key(
        SINK_FORMAT,
        "The format to write: parquet, csv or json (one object per line).",
        *WRITABLE,
        importance=Importance.HIGH,
        required=True,
    ),
    text_key(
        SINK_PATH,
        "The folder to write to. The first start of the connector creates it; if it is missing "
        "later, tasks wait for it. Files appear complete, by renames. `_fairlead` in it has the "
        "staged files and the marks of the owner: connectors of one cluster may share the folder. "
        f"{_SEEN_BY_ALL}",
        importance=Importance.HIGH,
        required=True,
        validator=_local,
        width=Width.LONG,
    ),
    list_key(
        SINK_PARTITION_BY,
        "Partition columns: they become folders, `month=1/`, and are not in the files.",
    ),
    choice_key(
        SINK_MODE,
        "How batches are written; only `append` is supported.",
        "append",
        importance=Importance.LOW,
    ),
    number_key(
        SINK_FILE_BYTES,
        "The most bytes of input for one file; in the written format they may be more or less. "
        "A large batch is written as several files by all cores in any case.",
        64 << 20,
        least=1,
        importance=Importance.LOW,
    ),
    number_key(
        SINK_ROTATE_MS,
        "The shortest time from a batch that had read all input to the next one, so that files are "
        "fewer and larger. Input that fills a whole batch earlier is read at once.",
        0,
        kind=SettingType.INT,
        validator=between(0, 86_400_000),
    ),
    flag_key(
        SINK_AUTO_EVOLVE,
        "Whether new columns are added to the schema of the written files, and too narrow columns "
        "are widened (INT to BIGINT, FLOAT to DOUBLE, decimals to more digits). Otherwise the task "
        "fails for such rows.",
        default=False,
    ),
    flag_key(
        SINK_ADOPT,
        "Whether to take over the folder in its present state, although it is gone, has lost its "
        "`_fairlead`, belongs to another cluster, or was written from a newer log. It takes effect "
        "once, when it is added to the config: set it to false and to true again to repeat it.",
        default=False,
        importance=Importance.LOW,
    ),
)

SOURCE_TASK = (
    task_key(TASK_SCHEMA, "the schema that the task reads with"),
    task_key(TASK_FOLDERS, "the columns that folders named when the work was split"),
    task_key(TASK_BUCKETS, "the task's share of the files"),
    task_key(TASK_ROOTLESS, "the folder of offsets that older releases wrote without a folder"),
)
"""The keys that the source adds to task configs."""

SINK_TASK = (task_key(TASK_CLAIM, "the task's claim on the sink"),)
"""The key that the sink adds to task configs."""

SOURCE_OPTIONS = text_key(
    f"{SOURCE_OPTION}*",
    f"An option of Spark's reader, with the name after the prefix: `{SOURCE_OPTION}encoding`.",
    importance=Importance.LOW,
)

SINK_OPTIONS = text_key(
    f"{SINK_OPTION}*",
    f"An option of Spark's writer, with the name after the prefix: `{SINK_OPTION}compression`.",
    importance=Importance.LOW,
)
