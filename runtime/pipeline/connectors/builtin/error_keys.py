"""The keys `errors.*`, by Connect's names: what becomes of rows that are bad, in whatever stage."""

from collections.abc import Mapping
from os.path import normpath
from pathlib import PurePath
from typing import Final

from .....actors.settings import SettingType, Value
from ...spi.config import Importance, ParsedConfig, Width, is_deferred
from ...spi.connector import Tolerance
from ...spi.context import Context, Outside
from ...spi.key_kinds import choice_key, flag_key, number_key, task_key, text_key
from ...transforms.catalogue import aliases
from ...transforms.expect import DEAD_LETTER
from ..common_keys import TOLERANCE, TRANSFORMS
from ..evolution.policy import DEAD_LETTER as LETTERS
from ..evolution.policy import EVOLUTION
from ..files import keys as files
from ..files.sink.root import FolderKeys
from ..files.sink.sink import FileSink, WriteFormat
from ..files.sink.sink_type import flaw_in_folder

QUEUE_PATH: Final = "errors.deadletterqueue.path"
QUEUE_TOPIC: Final = "errors.deadletterqueue.topic.name"
QUEUE_HEADERS: Final = "errors.deadletterqueue.context.headers.enable"
LOG: Final = "errors.log.enable"
MAX_RATIO: Final = "errors.max.ratio"
BISECT_MAX: Final = "errors.bisect.max"
TASK_QUEUE_CLAIM: Final = "task.deadletterqueue.claim"
_FOLDER: Final = FolderKeys(QUEUE_PATH, TASK_QUEUE_CLAIM)


def _ratio(value: Value) -> str | None:
    try:
        fits = 0 <= float(str(value)) <= 1
    except ValueError:
        fits = False
    return None if fits else "must be a part of all, from 0 to 1"


def _no_topic(value: Value) -> str | None:
    if value:
        return f"dead letters go to a folder, and not to a topic yet: give {QUEUE_PATH}"
    return None


ERRORS: Final = (
    choice_key(
        TOLERANCE,
        "What happens to rows that do not fit the schema, and to files that cannot be read: "
        "`none` ends the task with an error that names the file, `all` goes on without them. "
        f"They are counted, and kept where {QUEUE_PATH} is given.",
        "none",
        "all",
        width=Width.SHORT,
        display_name="Error Tolerance",
    ),
    text_key(
        QUEUE_PATH,
        "The folder of dead letters: each row that is left out is a line of JSON there, with its "
        "connector, task, stage, position, reason, text and time. It is written to as the folder "
        "of a sink is, exactly once.",
        validator=files.local_or_none,
        width=Width.LONG,
    ),
    text_key(
        QUEUE_TOPIC,
        f"Connect's topic of dead letters; not available: they go to {QUEUE_PATH}.",
        importance=Importance.LOW,
        validator=_no_topic,
    ),
    flag_key(
        QUEUE_HEADERS,
        "Whether each dead letter also has the `headers` that Connect gives it, by their names "
        "there: `__connect.errors.stage`.",
        default=False,
        importance=Importance.LOW,
    ),
    flag_key(
        LOG,
        "Whether bad rows are told in the worker's log, with their reason: 100 of a batch at most.",
        default=False,
        importance=Importance.LOW,
    ),
    text_key(
        MAX_RATIO,
        "Which part of a batch's rows may be bad, from 0 to 1: with more the task fails, and "
        "nothing of the batch counts. A file that cannot be read counts as one row.",
        "1",
        validator=_ratio,
        width=Width.SHORT,
    ),
    number_key(
        BISECT_MAX,
        "How many rows of a batch may be looked for that a transform or the sink fails for, with "
        f"{TOLERANCE}=all: neither tells which rows they are, so parts of the batch are tried. "
        "With more the task fails, and nothing of the batch counts. 0: none.",
        100,
        kind=SettingType.INT,
        importance=Importance.LOW,
    ),
)

ERRORS_TASK: Final = (task_key(TASK_QUEUE_CLAIM, "by what right the task writes dead letters"),)
"""What a task is told of the dead letter queue."""


def flaws_in_queue(config: Mapping[str, str]) -> Mapping[str, str]:
    """Refuse a folder of dead letters that is read by others, and dead letters without one."""
    path = config.get(QUEUE_PATH, "")
    if not path:
        wants = [
            key
            for alias in aliases(config)
            if config.get(key := f"{TRANSFORMS}.{alias}.on.violation") == DEAD_LETTER
        ]
        if config.get(EVOLUTION) == LETTERS:
            wants.append(EVOLUTION)
        return dict.fromkeys(wants, f"dead letters need a folder: give {QUEUE_PATH}")
    for key in (files.SOURCE_PATH, files.SINK_PATH):
        other = config.get(key, "")
        if other and PurePath(normpath(path)).is_relative_to(normpath(other)):
            return {QUEUE_PATH: f"lies in {key}: dead letters need a folder of their own"}
    return {}


def look_at_queue(config: Mapping[str, str], outside: Outside) -> Mapping[str, str]:
    """Return what keeps the folder from being made or written to, by its key."""
    path = config.get(QUEUE_PATH, "")
    flaw = "" if not path or is_deferred(path) else flaw_in_folder(path, config, outside)
    return {QUEUE_PATH: flaw} if flaw else {}


def claim_queue(
    context: Context, config: Mapping[str, str], settings: ParsedConfig
) -> Mapping[str, str]:
    """Return by what right tasks write dead letters; raises `NotReady`, `ConfigInvalid`."""
    if not settings.text(QUEUE_PATH):
        return {}
    context.check_path(QUEUE_PATH, config[QUEUE_PATH])
    return _FOLDER.told_to_tasks(context, settings)


def queue_sink(context: Context, config: Mapping[str, str], settings: ParsedConfig) -> FileSink:
    """Make what writes dead letters; without a folder it can finish what others began."""
    if path := config.get(QUEUE_PATH, ""):
        context.check_path(QUEUE_PATH, path)
    return FileSink(_FOLDER.place(context, settings), WriteFormat("json"), context.warn)


def tolerance_of(context: Context, settings: ParsedConfig) -> Tolerance:
    """Return what becomes of bad rows."""
    return Tolerance(
        settings.text(QUEUE_PATH),
        float(settings.text(MAX_RATIO)),
        settings.flag(QUEUE_HEADERS),
        context.warn if settings.flag(LOG) else None,
        settings.number(BISECT_MAX) if settings.text(TOLERANCE) == "all" else 0,
    )
