"""What is said of an error that ended an attempt: its reason in a line, whose it is, its trace."""

import traceback
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from pathlib import PurePath
from typing import NamedTuple

from ....events.model import ErrorClass
from ..spark.engine import Cancelled, EngineDown, TaskError
from ..spark.failures import session_is_gone
from ..spi.config import ConfigInvalid
from ..spi.errors import (
    Away,
    BadInput,
    CallTimedOut,
    ContractBroken,
    NotReady,
    PluginExited,
    PluginUnknown,
    SinkBroken,
)
from ..spi.lineage import Lineage, RunEnd
from .halving import BatchHalved
from .ledger import Fenced, LedgerUnavailable
from .plugins.calls import StillHanging

_LONGEST_REASON = 2_000
_LONGEST_TRACE = 20_000
"""In characters: a status stands in the log for ever."""
_SPEAK_FOR_THEMSELVES = (
    ConfigInvalid,
    PluginUnknown,
    StillHanging,
    BadInput,
    CallTimedOut,
    ContractBroken,
    PluginExited,
    NotReady,
    OSError,
    Away,
    SinkBroken,
    TaskError,
    LedgerUnavailable,
)
_CLASSES: Mapping[ErrorClass, tuple[type[Exception], ...]] = {
    ErrorClass.CONFIG: (ConfigInvalid, PluginUnknown),
    ErrorClass.INPUT: (BadInput, TaskError),
    ErrorClass.OUTSIDE: (Away, NotReady, SinkBroken, CallTimedOut, LedgerUnavailable, OSError),
}
"""Whose it is to mend an error; what is in none of these is a bug."""


_PASSING = (Away, BatchHalved, EngineDown, Cancelled, Fenced, LedgerUnavailable)
"""After these a task tries again, or another one goes on."""


class LastFailure(NamedTuple):
    """Why something failed, in one line, and its trace."""

    reason: str
    trace: str
    error: ErrorClass


def failure_of(error: Exception) -> LastFailure:
    """Return what is said of an error; one that speaks for itself needs no traceback."""
    is_told = isinstance(error, _SPEAK_FOR_THEMSELVES) and not isinstance(error, OSError)
    trace = _cut(_text_of(error) if is_told else _traceback(error), _LONGEST_TRACE)
    return LastFailure(reason_of(error), trace, class_of(error))


def reason_of(error: Exception) -> str:
    """Return what an error says, in one line; bugs are told by their type as well."""
    text = _cut(_first_sentence(_words_of(error)), _LONGEST_REASON)
    told = isinstance(error, _SPEAK_FOR_THEMSELVES) and text
    return text if told else f"{type(error).__name__}: {text}".rstrip(": ")


def class_of(error: Exception) -> ErrorClass:
    """Return whose it is to mend an error."""
    for told, kinds in _CLASSES.items():
        if isinstance(error, kinds):
            return told
    return ErrorClass.BUG


def _words_of(error: Exception) -> str:
    """Return the words of an error; those of the system begin with the file that they are about."""
    if isinstance(error, OSError) and error.strerror and error.filename is not None:
        names = [str(each) for each in (error.filename, error.filename2) if each is not None]
        return f"{' -> '.join(names)}: {error.strerror.lower()}"
    if isinstance(error, OSError) and error.strerror and error.__traceback__:
        last = traceback.extract_tb(error.__traceback__)[-1]
        return f"{error.strerror.lower()}, in {last.name} ({PurePath(last.filename).name})"
    return _text_of(error)


def _text_of(error: Exception) -> str:
    """Return the text of an error; one of a plugin may not even have one."""
    try:
        return str(error)
    except Exception as broken:  # noqa: BLE001  # user code may fail in any way
        return f"its text cannot be had: {type(broken).__name__}"


def _cut(text: str, longest: int) -> str:
    """Keep the two ends of a text that is too long for a status."""
    if len(text) <= longest:
        return text
    half = longest // 2
    return f"{text[:half]} … {len(text) - 2 * half} characters … {text[-half:]}"


def _first_sentence(text: str) -> str:
    """Return the first line, and of those that follow what it breaks off before."""
    told, *more = (line.strip() for line in text.strip().splitlines()) if text.strip() else ("",)
    for line in more:
        if not told.endswith((":", ",", "(", "[", "=")):
            break
        told = f"{told} {line}".rstrip()
    return told


def _traceback(error: Exception) -> str:
    try:
        return "".join(traceback.format_exception(error)).rstrip()
    except Exception:  # noqa: BLE001  # it asks the error for its text
        return "".join(traceback.format_tb(error.__traceback__)).rstrip()


@contextmanager
def told_to(lineage: Lineage) -> Generator[None]:
    """Have lineage learn how an attempt ends."""
    try:
        yield
    except Exception as error:
        if isinstance(error, _PASSING) or session_is_gone(error):
            lineage.end(RunEnd.ABORT)
        else:
            lineage.end(RunEnd.FAIL, reason_of(error))
        raise
    except BaseException:  # its thread was left behind
        lineage.end(RunEnd.ABORT)
        raise
    lineage.end(RunEnd.COMPLETE)
