"""The report of an error that ended an attempt: a one-line reason, its class, and its trace."""

import traceback
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from pathlib import PurePath
from typing import NamedTuple

from ....events.model import ErrorClass
from ..engines.engine import Cancelled, EngineDown, TaskError
from ..engines.failures import session_is_gone
from ..spi.config import ConfigInvalid
from ..spi.errors import (
    Away,
    BadInput,
    CallTimedOut,
    ContractBroken,
    FailedElsewhere,
    NotReady,
    PluginExited,
    PluginUnknown,
    SinkBroken,
)
from ..spi.lineage import Lineage, RunEnd
from .ledger import Fenced, LedgerUnavailable
from .plugins.calls import StillHanging
from .range_bisection import BatchSplit

_LONGEST_REASON = 2_000
_LONGEST_TRACE = 20_000
"""In characters, since the control log keeps each status."""
_SELF_EXPLANATORY = (
    ConfigInvalid,
    PluginUnknown,
    StillHanging,
    BadInput,
    CallTimedOut,
    ContractBroken,
    FailedElsewhere,
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
"""The error types of each class, which says who can fix an error; all other types are bugs."""


_TRANSIENT = (Away, BatchSplit, EngineDown, Cancelled, Fenced, LedgerUnavailable)
"""After these errors the task, or its next owner, tries again; a run ends with ABORT."""


class LastFailure(NamedTuple):
    """Why a resource failed: the reason in one line, the trace, and the class of the error."""

    reason: str
    trace: str
    error: ErrorClass


def failure_of(error: Exception) -> LastFailure:
    """Return the report of an error; a self-explanatory one has its text instead of a traceback."""
    is_plain = isinstance(error, _SELF_EXPLANATORY) and not isinstance(error, OSError)
    trace = _cut(_text_of(error) if is_plain else _traceback(error), _LONGEST_TRACE)
    return LastFailure(reason_of(error), trace, class_of(error))


def reason_of(error: Exception) -> str:
    """Return the message of an error in one line; bugs have the name of their type before it."""
    text = _cut(_first_sentence(_message_of(error)), _LONGEST_REASON)
    is_plain = isinstance(error, _SELF_EXPLANATORY) and text
    return text if is_plain else f"{type(error).__name__}: {text}".rstrip(": ")


def class_of(error: Exception) -> ErrorClass:
    """Return the class of an error: who can fix it."""
    for error_class, kinds in _CLASSES.items():
        if isinstance(error, kinds):
            return error_class
    return ErrorClass.BUG


def _message_of(error: Exception) -> str:
    """Return the message of an error; for an OSError with the file or the failing function."""
    if isinstance(error, OSError) and error.strerror and error.filename is not None:
        names = [str(each) for each in (error.filename, error.filename2) if each is not None]
        return f"{' -> '.join(names)}: {error.strerror.lower()}"
    if isinstance(error, OSError) and error.strerror and error.__traceback__:
        last = traceback.extract_tb(error.__traceback__)[-1]
        return f"{error.strerror.lower()}, in {last.name} ({PurePath(last.filename).name})"
    return _text_of(error)


def _text_of(error: Exception) -> str:
    """Return the text of an error; `__str__` of a plugin's error may itself raise."""
    try:
        return str(error)
    except Exception as broken:  # noqa: BLE001  # user code may fail in any way
        return f"its text is not available: {type(broken).__name__}"


def _cut(text: str, longest: int) -> str:
    """Keep the beginning and the end of a text that is too long for a status."""
    if len(text) <= longest:
        return text
    half = longest // 2
    return f"{text[:half]} … {len(text) - 2 * half} characters … {text[-half:]}"


def _first_sentence(text: str) -> str:
    """Return the first line, with the next lines as long as it ends with a colon or the like."""
    first, *more = (line.strip() for line in text.strip().splitlines()) if text.strip() else ("",)
    for line in more:
        if not first.endswith((":", ",", "(", "[", "=")):
            break
        first = f"{first} {line}".rstrip()
    return first


def _traceback(error: Exception) -> str:
    try:
        return "".join(traceback.format_exception(error)).rstrip()
    except Exception:  # noqa: BLE001  # the error's __str__ may raise
        return "".join(traceback.format_tb(error.__traceback__)).rstrip()


@contextmanager
def reporting_end(lineage: Lineage) -> Generator[None]:
    """Report to `lineage` how an attempt ends."""
    try:
        yield
    except Exception as error:
        if isinstance(error, _TRANSIENT) or session_is_gone(error):
            lineage.end(RunEnd.ABORT)
        else:
            lineage.end(RunEnd.FAIL, reason_of(error))
        raise
    except BaseException:  # the thread was left behind
        lineage.end(RunEnd.ABORT)
        raise
    lineage.end(RunEnd.COMPLETE)
