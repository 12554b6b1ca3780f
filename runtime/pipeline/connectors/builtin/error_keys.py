"""The keys `errors.*`, by Connect's names: what becomes of rows that are bad, in whatever stage."""

from collections.abc import Mapping
from typing import Final

from .....actors.settings import SettingType, Value
from ...spi.config import Importance, ParsedConfig, Width
from ...spi.connector import Tolerance
from ...spi.context import Context
from ...spi.key_kinds import choice_key, flag_key, number_key, text_key
from ..common_keys import QUEUE_TOPIC, TOLERANCE
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
        "What happens to rows that do not fit the schema, and to files that cannot be read: "
        "`none` ends the task with an error that names the file, `all` goes on without them. "
        f"They are counted, and kept where {QUEUE_PATH} or {QUEUE_TOPIC} is given.",
        "none",
        "all",
        width=Width.SHORT,
        display_name="Error Tolerance",
    ),
    *QUEUE_KEYS,
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


def tolerance_of(context: Context, config: Mapping[str, str], settings: ParsedConfig) -> Tolerance:
    """Return what becomes of bad rows."""
    return Tolerance(
        name_of_queue(config),
        float(settings.text(MAX_RATIO)),
        settings.flag(QUEUE_HEADERS),
        context.warn if settings.flag(LOG) else None,
        settings.number(BISECT_MAX) if settings.text(TOLERANCE) == "all" else 0,
        context.hide,
    )
