"""The config keys of the files source and the files sink, and what they cannot say together.

A config has keys of its own for what every format has (folder, pattern, schema, ages, sizes), those
of a csv dialect (`formats.csv.style`), and options that are handed to Spark as they are
(`formats.options`). Files are scanned before Spark reads them. So an option that makes Spark read
them in another way than the scan is refused, and so is one that makes Spark skip files, which would
count as read. An error names the key to change, which need not be the key of the option: a path
that an option would change is reported under `source.path`.
"""

from collections.abc import Mapping
from os.path import normpath
from typing import Final

from .....actors.settings import SettingType, Value, between, not_blank
from ...formats.csv.style import (
    CSV_KEYS,
    SOURCE_ESCAPE,
    SOURCE_HEADER,
    SOURCE_QUOTE,
    SOURCE_SEPARATOR,
)
from ...formats.evolution.policy import ADD_COLUMNS, EVOLUTION, EVOLUTION_KEY, WIDEN
from ...formats.spark.options import (
    COMMENT,
    LINE_END,
    READING,
    SEPARATOR,
    SINK_OPTION,
    SOURCE_OPTION,
    WRITING,
    flaws_in_options,
    options_of,
)
from ...spi.config import ConfigInvalid, Importance, Width, has_reference, strip_prefix
from ...spi.keys.kinds import choice_key, flag_key, list_key, number_key, task_key, text_key
from ..topics import depends_on_topic

READABLE = ("csv", "json", "parquet")
WRITABLE = ("parquet", "csv", "json")

SOURCE_FORMAT = "source.format"
SOURCE_PATH = "source.path"
SOURCE_GLOB = "source.glob"
SOURCE_SCHEMA = "source.schema"
SOURCE_SAMPLE_BYTES = "source.schema.sample.bytes"
SOURCE_MIN_AGE_MS = "source.min.age.ms"
SOURCE_MAX_FILES = "source.max.files.per.batch"
SOURCE_MAX_BYTES = "source.max.bytes.per.batch"
SINK_FORMAT = "sink.format"
SINK_PATH = "sink.path"
SINK_PARTITION_BY = "sink.partition.by"
SINK_MODE = "sink.mode"
SINK_FILE_BYTES = "sink.file.max.bytes"
SINK_ROTATE_MS = "sink.rotate.interval.ms"
SINK_AUTO_EVOLVE = "sink.auto.evolve"
SINK_ADOPT = "sink.adopt"
TASK_SCHEMA = "task.schema"
TASK_FOLDERS = "task.folder.columns"
TASK_BUCKETS = "task.buckets"
TASK_CLAIM = "task.sink.claim"
TASK_ROOTLESS = "task.rootless.offsets"

_SEEN_BY_ALL = "The path must lead to the same folder on every worker and every executor."


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
    """Return an error if a path is given, and is not one absolute path for all topics."""
    if isinstance(value, str) and depends_on_topic(value):
        return "must be one folder for all topics"
    return _local(value) if value else None


SOURCE = (
    choice_key(
        SOURCE_FORMAT,
        "The format of the files: csv, json (one object per line) or parquet.",
        *READABLE,
        importance=Importance.HIGH,
        required=True,
        dependents=tuple(each.name for each in CSV_KEYS),
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
    *CSV_KEYS,
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
        "With `${topic}` in it, which is the row's topic, or `${table}`, the last part of that, "
        "each topic has a folder and columns of its own; then the format is parquet, and "
        f"`_fairlead` lies beside these folders. {_SEEN_BY_ALL}",
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

_PLACES: Final = frozenset({"path", "paths", "__paths__", "basepath"})
"""Options that would change the path."""
_CHOOSING: Final = frozenset({"pathglobfilter", "modifiedbefore", "modifiedafter"})
_FORGIVING: Final = frozenset({"ignorecorruptfiles", "ignoremissingfiles"})
_LETTERS: Final[Mapping[str, str]] = {
    "quote": SOURCE_QUOTE,
    "escape": SOURCE_ESCAPE,
    "chartoescapequoteescaping": SOURCE_ESCAPE,
    COMMENT: SOURCE_FORMAT,
}
"""Options of one character, with the keys to report an error under."""


def _flaws_in_places(config: Mapping[str, str], options: str, path: str) -> Mapping[str, str]:
    """Return an error, by the key of the path, for an option that would change the path."""
    given = [each for each in strip_prefix(options, config) if each.lower() in _PLACES]
    return {path: f"only this key sets the path: leave out {options}{given[0]}"} if given else {}


def flaws_in_reading(config: Mapping[str, str]) -> Mapping[str, str]:
    """Return the errors of a source's options, by the key to change."""
    flaws = dict(_flaws_in_places(config, SOURCE_OPTION, SOURCE_PATH))
    for name in strip_prefix(SOURCE_OPTION, config):
        text = config[SOURCE_OPTION + name].lower()
        if name.lower() in _CHOOSING or (name.lower() in _FORGIVING and text != "false"):
            flaws[SOURCE_GLOB] = (
                f"only this key selects files: leave out {SOURCE_OPTION}{name}, with which "
                "Spark would skip files that count as read"
            )
    if config.get(SOURCE_FORMAT) == "csv":
        flaws |= _flaws_in_csv(config)
    fmt, given = config.get(SOURCE_FORMAT, ""), strip_prefix(SOURCE_OPTION, config)
    named = {each: given[each] for each in given if each.lower() not in _PLACES | _CHOOSING}
    for name, why in flaws_in_options(READING, fmt, named):
        flaws.setdefault(SOURCE_FORMAT, f"{SOURCE_OPTION}{name} {why}")
    return flaws


def refuse_flaws_in_reading(config: Mapping[str, str]) -> None:
    """Raise `ConfigInvalid` for an option that is not supported, as a config of an old log has."""
    for key, flaw in flaws_in_reading(config).items():
        raise ConfigInvalid(f"{key}: {flaw}")


def flaws_in_writing(config: Mapping[str, str]) -> Mapping[str, str]:
    """Return the errors of a sink's options, by the key to change."""
    flaws = dict(_flaws_in_places(config, SINK_OPTION, SINK_PATH))
    fmt, given = config.get(SINK_FORMAT, ""), strip_prefix(SINK_OPTION, config)
    named = {each: given[each] for each in given if each.lower() not in _PLACES}
    for name, why in flaws_in_options(WRITING, fmt, named):
        flaws.setdefault(SINK_FORMAT, f"{SINK_OPTION}{name} {why}")
    return flaws


def _flaws_in_csv(config: Mapping[str, str]) -> Mapping[str, str]:
    options = options_of(SOURCE_OPTION, config)
    flaws = {
        key: f"{SOURCE_OPTION}{name} must be one character, and is {options[name]!r}"
        for name, key in _LETTERS.items()
        if len(options.get(name, "")) > 1 and not has_reference(options[name])
    }
    if options.get(LINE_END, "\n") not in {"\n", "\r", "\r\n"}:
        flaws[SOURCE_FORMAT] = (
            f"leave out {SOURCE_OPTION}lineSep: the line end of each csv file (line feed, "
            "carriage return or both) is detected"
        )
    name = next((each for each in SEPARATOR if each in options), "")
    if name and options[name] != "\\t" and not has_reference(options[name]):
        is_long = len(options[name]) > 1 and _asks_names(config, options)
        if is_long or not options[name]:
            flaws[SOURCE_SEPARATOR] = (
                f"{SOURCE_OPTION}{name} must be one character, or \\t, and is "
                f"{options[name]!r}: with several characters, headers cannot be read and schemas "
                f"cannot be inferred. Set {SOURCE_HEADER}=false and {SOURCE_SCHEMA} to "
                "use it"
            )
    return flaws


def _asks_names(config: Mapping[str, str], options: Mapping[str, str]) -> bool:
    """Return whether the columns of csv files come from the files themselves."""
    header = options.get("header", config.get(SOURCE_HEADER, "true")).strip().lower()
    adds = config.get(EVOLUTION) in {ADD_COLUMNS, WIDEN}
    return header == "true" or adds or not config.get(SOURCE_SCHEMA)
