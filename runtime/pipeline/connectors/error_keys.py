"""The `errors.*` keys, named as in Connect: the handling of bad rows in all stages."""

from collections.abc import Mapping
from typing import Final

from ....actors.settings import SettingType, Value, trimmed
from ..spi.config import Importance, ParsedConfig, Width
from ..spi.connector import Tolerance
from ..spi.context import Context
from ..spi.keys.common import QUEUE_TOPIC, TOLERANCE
from ..spi.keys.kinds import choice_key, flag_key, number_key, text_key
from .dead_letter_queue import QUEUE_HEADERS, QUEUE_KEYS, QUEUE_PATH, name_of_queue

LOG: Final = "errors.log.enable"
MAX_RATIO: Final = "errors.max.ratio"
BISECT_MAX: Final = "errors.bisect.max"


def _ratio(value: Value) -> str | None:
    try:
        fits = 0 <= float(str(value)) <= 1
    except ValueError:
        fits = False
    return None if fits else "must be a part of all, from 0 to 1"


ERRORS: Final = (
    choice_key(
        TOLERANCE,
        "How rows that do not fit the schema, and unreadable files, are handled: "
        "with `none` the task fails with an error that names the file, with `all` they are "
        f"skipped and counted, and kept if {QUEUE_PATH} or {QUEUE_TOPIC} is set.",
        "none",
        "all",
        convert=trimmed,
        width=Width.SHORT,
        display_name="Error Tolerance",
    ),
    *QUEUE_KEYS,
    flag_key(
        LOG,
        "Whether bad rows are logged by the worker, with their reason; at most 100 of a batch.",
        default=False,
        width=Width.SHORT,
        display_name="Log Errors",
    ),
    text_key(
        MAX_RATIO,
        "The largest ratio of bad rows in a batch, from 0 to 1: with more the task fails, and "
        "nothing of the batch is committed. An unreadable file counts as one row.",
        "1",
        validator=_ratio,
        width=Width.SHORT,
    ),
    number_key(
        BISECT_MAX,
        f"With {TOLERANCE}=all: how many bad rows to find in a batch that makes a transform or "
        "the sink fail. They are found by bisection of the batch. "
        "With more the task fails, and nothing of the batch is committed. 0: no bisection.",
        100,
        kind=SettingType.INT,
        importance=Importance.LOW,
    ),
)


def tolerance_of(context: Context, config: Mapping[str, str], settings: ParsedConfig) -> Tolerance:
    """Return the handling of bad rows that a config asks for."""
    return Tolerance(
        name_of_queue(config),
        float(settings.text(MAX_RATIO)),
        settings.flag(QUEUE_HEADERS),
        context.warn if settings.flag(LOG) else None,
        settings.number(BISECT_MAX) if settings.text(TOLERANCE) == "all" else 0,
        context.hide,
    )
