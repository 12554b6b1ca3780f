"""Errors of third-party code, in words: nothing that it raises may end fairlead's own process."""

import logging
import traceback
from pathlib import Path

USERS_ERRORS = BaseException
"""All that a call of third-party code may raise: it may call `sys.exit`, or have errors of any
kind.

Nothing that is meant for the actor comes as an exception.
"""

LONGEST_TEXT = 500
"""Characters of the longest line."""
LONGEST_TRACE = 8_000
"""Characters of an error that are logged: half from its beginning, half from its end."""


def describe(error: BaseException) -> str:
    """Return an error as a line: its type, its message, and where it was raised."""
    try:
        return _describe(error)
    except USERS_ERRORS:
        return "an error that cannot be told"


def one_line(text: str) -> str:
    """Return a text as one short line that can be encoded, whatever it holds."""
    return " ".join(text[:LONGEST_TEXT].encode(errors="backslashreplace").decode().split())


def log_trace(logger: logging.Logger, what: str, error: BaseException) -> None:
    """Log an error with its traceback; one that Python cannot format is described in a line.

    A logger that is handed the error itself would call third-party code unprotected.
    """
    try:
        trace = "".join(traceback.format_exception(error))
    except USERS_ERRORS:
        trace = describe(error)
    half = LONGEST_TRACE // 2
    if len(trace) > LONGEST_TRACE:
        trace = f"{trace[:half]}\n...\n{trace[-half:]}"
    logger.warning("%s\n%s", what, trace.rstrip())


def _describe(error: BaseException) -> str:
    try:
        message = str.__str__(str(error))  # it may be of a subclass of str
    except USERS_ERRORS:
        message = "(it does not say)"
    if not message and issubclass(type(error), MemoryError):
        message = "it used up what assignor.memory.max allows"
    text = f"{type(error).__name__}: {message}" if message else type(error).__name__
    text = one_line(text)
    frames = traceback.extract_tb(error.__traceback__)
    if not frames:
        return text
    return f"{text} ({Path(frames[-1].filename).name}, line {frames[-1].lineno})"
