"""When a thread ends that was asked to, and when it starts again after a failure."""

import math
import time
import traceback
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import PurePath
from random import Random
from threading import Event
from typing import NamedTuple

from ....actors.backoff import Backoff
from ....events.model import NEVER_RESTARTED, AutoRestart, RunState
from ..connectors import common_keys as keys
from ..spark.engine import TaskError
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
from .ledger import Fenced, LedgerUnavailable
from .plugins.calls import StillHanging


class Halt:
    """Flags that one thread looks at and others raise; they are never lowered."""

    def __init__(self) -> None:
        self._drain = Event()
        """Set by both ways to ask."""
        self._cancel = Event()
        self._awaited = self._drain
        """What the thread waits for beside them, set by both ways as well."""

    @property
    def is_draining(self) -> bool:
        """Whether to end once the current batch is done."""
        return self._drain.is_set()

    @property
    def is_cancelled(self) -> bool:
        """Whether to end now, and to commit nothing more."""
        return self._cancel.is_set()

    def drain(self) -> None:
        """Ask for an end after the current batch."""
        self._drain.set()
        self._awaited.set()

    def cancel(self) -> None:
        """Ask for an end now."""
        self._cancel.set()
        self.drain()

    def wait(self, seconds: float) -> None:
        """Sleep, but no longer than until somebody asks for an end."""
        self._drain.wait(seconds)

    def wait_for(self, event: Event) -> None:
        """Sleep until an event is set; whoever asks for an end sets it, too."""
        self._awaited = event
        if not self.is_draining:
            event.wait()

    def wait_cancelled(self, seconds: float) -> None:
        """Sleep, but no longer than until somebody asks for an end now."""
        self._cancel.wait(seconds)


Tell = Callable[[RunState, str, str], None]
"""Called with a state, a reason in one line, and a trace."""

_JITTER = 0.5
_LONGEST_REASON = 2_000
_LONGEST_TRACE = 20_000
"""In characters: a status stands in the log for ever."""
_LOOK_AGAIN_S = 5.0
"""How long a sink that cannot be used as it is rests before it is looked at again."""

_HOPELESS = (ConfigInvalid, PluginUnknown, StillHanging)
_SPEAK_FOR_THEMSELVES = (
    *_HOPELESS,
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


@dataclass(frozen=True, slots=True)
class RestartPolicy:
    """How long to wait before a restart, and how many there may be within a window (-1: any)."""

    initial_s: float
    longest_s: float
    budget: int
    window_s: float
    away_s: float
    """For how long what is out of reach is tried again before that is a failure."""
    longest_away_s: float
    """The longest wait between two such attempts."""

    @staticmethod
    def of(config: Mapping[str, str]) -> "RestartPolicy":
        """Return a connector's policy."""
        settings = keys.common_settings(config)
        away_ms = settings.number(keys.RETRY_TIMEOUT_MS)
        return RestartPolicy(
            settings.number(keys.RESTART_INITIAL_MS) / 1000,
            settings.number(keys.RESTART_MAX_MS) / 1000,
            settings.number(keys.RESTART_BUDGET),
            settings.number(keys.RESTART_WINDOW_MS) / 1000,
            math.inf if away_ms < 0 else away_ms / 1000,
            max(1, settings.number(keys.RETRY_MAX_MS)) / 1000,
        )


class Restarts:
    """The failures of one resource within the window; what is older is forgiven."""

    def __init__(self, policy: RestartPolicy, rng: Random | None = None) -> None:
        self.policy = policy
        self._rng = rng or Random()  # noqa: S311  # jitter keeps no secret
        self._failures: deque[tuple[float, str]] = deque()
        """When (monotonic seconds) and why it failed within the window, oldest first."""
        self.made = NEVER_RESTARTED
        """The restarts after these."""
        self.is_unproven = False
        """Whether it stays FAILED until it has done what it failed at."""

    def failed(self, reason: str) -> float | None:
        """Count a failure; return how long to wait, in seconds, or None: no more restarts."""
        now = time.monotonic()
        self._failures.append((now, f"{time.strftime('%H:%M:%S')} {reason}"))
        while now - self._failures[0][0] > self.policy.window_s:
            self._failures.popleft()
        count = len(self._failures)
        if 0 <= self.policy.budget < count:
            return None
        backoff = Backoff(self.policy.initial_s, self.policy.longest_s, jitter=_JITTER)
        return backoff.pause_with_jitter(count, self._rng)

    def begin(self) -> None:
        """Take note that a restart begins."""
        self.made = AutoRestart(self.count, time.time_ns() // 1_000_000)

    @property
    def count(self) -> int:
        """How many failures there are in the window."""
        return len(self._failures)

    @property
    def history(self) -> str:
        """The failures in the window, one per line."""
        return "\n".join(line for _, line in self._failures)


class LastFailure(NamedTuple):
    """Why something failed, in one line, and its trace."""

    reason: str
    trace: str


def persist(
    attempt: Callable[[], None],
    halt: Halt,
    restarts: Restarts,
    tell: Tell,
    error: Exception | None = None,
) -> LastFailure | None:
    """Run an attempt, again if it fails, until somebody asks for an end.

    Return the failure that was not made good by then, None if there is none.
    Once the budget is used up, or if another attempt could only fail the same way, it is left
    FAILED until then. A broken sink costs no budget: it is FAILED for as long as that lasts.
    Only `Fenced` gets through. An `error` is that of an attempt on a thread that is left behind.
    """
    failure: LastFailure | None = None
    while not halt.is_draining:
        try:
            if error is None:
                attempt()
        except Fenced:
            raise
        except Exception as raised:  # noqa: BLE001  # user code may fail in any way
            error = raised
        if error is None:
            failure = failure if restarts.is_unproven else None
        elif not halt.is_cancelled:
            failure = _failed(error, halt, restarts, tell)
        error = None
    return failure


def reason_of(error: Exception) -> str:
    """Return what an error says, in one line; bugs are told by their type as well."""
    text = _cut(_first_sentence(_words_of(error)), _LONGEST_REASON)
    told = isinstance(error, _SPEAK_FOR_THEMSELVES) and text
    return text if told else f"{type(error).__name__}: {text}".rstrip(": ")


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


def _failed(error: Exception, halt: Halt, restarts: Restarts, tell: Tell) -> LastFailure:
    """Tell of a failure, and wait until it is time to try again, or somebody asks for an end."""
    reason = reason_of(error)
    is_told = isinstance(error, _SPEAK_FOR_THEMSELVES) and not isinstance(error, OSError)
    trace = _cut(_text_of(error) if is_told else _traceback(error), _LONGEST_TRACE)
    if isinstance(error, SinkBroken):  # somebody has to mend it, and it costs little to look
        tell(RunState.FAILED, reason, "" if trace == reason else trace)
        halt.wait(_LOOK_AGAIN_S)
        return LastFailure(reason, trace)
    # What somebody has to mend is tried again, but it fails the same way until then.
    restarts.is_unproven = isinstance(error, BadInput)
    delay = None if isinstance(error, _HOPELESS) else restarts.failed(reason)
    if delay is not None:
        budget = restarts.policy.budget
        of = f" of {budget}" if budget >= 0 else ""
        again = f"restarts in {delay:.1f} s ({restarts.count}{of})"
        tell(RunState.FAILED, f"{reason}; {again}", trace)
        halt.wait(delay)
        if not halt.is_draining:
            restarts.begin()
        if not (halt.is_draining or restarts.is_unproven):
            tell(RunState.RESTARTING, f"after: {reason}", "")
        return LastFailure(reason, trace)
    if restarts.count > 1:
        trace = f"{trace}\n\nfailures before it stayed FAILED:\n{restarts.history}"
    tell(RunState.FAILED, reason, trace)
    while not halt.is_draining:
        halt.wait(3600)
    return LastFailure(reason, trace)


def _traceback(error: Exception) -> str:
    try:
        return "".join(traceback.format_exception(error)).rstrip()
    except Exception:  # noqa: BLE001  # it asks the error for its text
        return "".join(traceback.format_tb(error.__traceback__)).rstrip()
