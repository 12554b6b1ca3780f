"""What goes wrong in the code of others, in words."""

import logging
import traceback
from pathlib import Path

USERS_ERRORS = BaseException
"""All that a call into it may raise: it may call `sys.exit`, or have errors of its own kind.

Nothing that is meant for the actor comes as an exception.
"""

LONGEST_TEXT = 500
LONGEST_STORY = 8_000
"""Characters of an error that are logged, of its beginning and its end in halves."""


def describe(error: BaseException) -> str:
    """Return an error as a line: its type, what it says, and where it was raised."""
    try:
        return _line_of(error)
    except USERS_ERRORS:
        return "an error that cannot be told"


def one_line(text: str) -> str:
    """Return a text of theirs as one line, not too long, that anybody can write down."""
    return " ".join(text[:LONGEST_TEXT].encode(errors="backslashreplace").decode().split())


def log_story(logger: logging.Logger, what: str, error: BaseException) -> None:
    """Log an error with all that led to it; what Python cannot format is told as a line.

    A logger that is handed the error itself would call code of theirs outside of any care.
    """
    try:
        story = "".join(traceback.format_exception(error))
    except USERS_ERRORS:
        story = describe(error)
    half = LONGEST_STORY // 2
    if len(story) > LONGEST_STORY:
        story = f"{story[:half]}\n...\n{story[-half:]}"
    logger.warning("%s\n%s", what, story.rstrip())


def _line_of(error: BaseException) -> str:
    try:
        said = str.__str__(str(error))  # it may be a text of a class of theirs
    except USERS_ERRORS:
        said = "(it does not say)"
    if not said and issubclass(type(error), MemoryError):
        said = "it used up what assignor.memory.max allows"
    text = f"{type(error).__name__}: {said}" if said else type(error).__name__
    text = one_line(text)
    frames = traceback.extract_tb(error.__traceback__)
    if not frames:
        return text
    return f"{text} ({Path(frames[-1].filename).name}, line {frames[-1].lineno})"
