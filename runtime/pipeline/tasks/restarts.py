"""Requests to end a thread, and restarts after failures with back-off and a budget."""

import math
import time
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from random import Random
from threading import Event

from ....actors.timing import Backoff
from ....events.model import NEVER_RESTARTED, AutoRestart, ErrorClass, RunState
from ..engines.engine import EngineExhaustedError
from ..spi.config import ConfigInvalid
from ..spi.errors import (
    Away,
    BadInput,
    FailedElsewhere,
    PluginUnknown,
    SinkBroken,
    SinkFull,
    SourceAway,
)
from ..spi.keys import common as keys
from .failures import LastFailure, failure_of
from .ledger import Fenced
from .plugins.calls import StillHanging


class Halt:
    """The requests to one thread to end; once set, they stay set."""

    def __init__(self) -> None:
        self._drain = Event()
        """Set by `drain` and by `cancel`."""
        self._cancel = Event()
        self._awaited = self._drain
        """The event that the thread waits for; `drain` and `cancel` set it as well."""

    @property
    def is_draining(self) -> bool:
        """Whether to end once the current batch is done."""
        return self._drain.is_set()

    @property
    def is_cancelled(self) -> bool:
        """Whether to end now, without another commit."""
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
        """Sleep; `drain` and `cancel` end the sleep."""
        self._drain.wait(seconds)

    def wait_for(self, event: Event, seconds: float | None = None) -> None:
        """Sleep until an event is set; `drain` and `cancel` set it, and `seconds` is a limit."""
        self._awaited = event
        if not self.is_draining:
            event.wait(seconds)

    def wait_cancelled(self, seconds: float) -> None:
        """Sleep; only `cancel` ends the sleep."""
        self._cancel.wait(seconds)


ReportState = Callable[[RunState, str, str, ErrorClass | None], None]
"""Called with a state, a one-line reason, a trace, and the class of the error."""

_JITTER = 0.5
_BROKEN_PAUSE_S = 5.0
"""The pause before a broken sink is checked again."""

_AWAY_S = 1.0
"""The first pause before an unreachable source or sink is tried again."""
_FULL_BACKOFF = Backoff(2.0, 15.0)
"""For a sink that has no space left."""
_HOPELESS = (ConfigInvalid, PluginUnknown, StillHanging, EngineExhaustedError)
"""Errors that a restart would only repeat."""


@dataclass(frozen=True, slots=True)
class RestartPolicy:
    """The pauses before restarts, and the restart budget within a window (-1: unlimited)."""

    initial_s: float
    longest_s: float
    budget: int
    window_s: float
    away_s: float
    """How long an unreachable source or sink is retried before that is a failure."""
    longest_away_s: float
    """The longest pause between two such attempts."""

    @staticmethod
    def of(config: Mapping[str, str]) -> "RestartPolicy":
        """Return a connector's policy."""
        settings = keys.running_settings(config)
        away_ms = settings.number(keys.RETRY_TIMEOUT_MS)
        return RestartPolicy(
            settings.number(keys.RESTART_INITIAL_MS) / 1000,
            settings.number(keys.RESTART_MAX_MS) / 1000,
            settings.number(keys.RESTART_BUDGET),
            settings.number(keys.RESTART_WINDOW_MS) / 1000,
            math.inf if away_ms < 0 else away_ms / 1000,
            max(1, settings.number(keys.RETRY_MAX_MS)) / 1000,
        )


class Outage:
    """The time during which a source or a sink is unreachable, and the retries in it."""

    def __init__(self, policy: RestartPolicy, halt: Halt, report: ReportState) -> None:
        self._policy = policy
        self._halt, self._report = halt, report
        self._backoff = Backoff(_AWAY_S, policy.longest_away_s)
        self._attempts = 0
        """The number of consecutive attempts that did not reach it."""
        self._since = 0.0
        """The monotonic time of the first of them."""

    @property
    def is_on(self) -> bool:
        """Whether the last attempt did not reach it, and `end` was not called since."""
        return self._attempts > 0

    def wait(self, away: Away) -> None:
        """Report the outage, and wait before the next attempt; after too long raise `away`."""
        pause_s, is_source = self._pause_s(away), isinstance(away, SourceAway)
        reason = f"waiting for the {'source' if is_source else 'sink'}: {away}"
        self._report(RunState.RUNNING, reason, "", ErrorClass.OUTSIDE)
        self._halt.wait(pause_s)

    def _pause_s(self, away: Away) -> float:
        now = time.monotonic()
        self._since = self._since if self._attempts else now
        if now - self._since > self._policy.away_s:
            self._attempts = 0
            raise away
        self._attempts += 1
        backoff = _FULL_BACKOFF if isinstance(away, SinkFull) else self._backoff
        return backoff.pause(self._attempts)

    def end(self) -> None:
        """End the outage: a batch was staged, or there is no input."""
        self._attempts = 0


class Restarts:
    """The failures of one resource within the window; older ones no longer count."""

    def __init__(self, policy: RestartPolicy, rng: Random | None = None) -> None:
        self.policy = policy
        self._rng = rng or Random()  # noqa: S311  # jitter keeps no secret
        self._failures: deque[tuple[float, str]] = deque()
        """The failures within the window, oldest first: monotonic time, and text for users."""
        self.made = NEVER_RESTARTED
        """The restarts so far, for reports."""
        self.is_unproven = False
        """Whether it stays FAILED until it succeeds at the operation that failed."""

    def add_failure(self, reason: str) -> float | None:
        """Count a failure; return the pause before a restart in seconds; None: no restart."""
        now = time.monotonic()
        self._failures.append((now, f"{time.strftime('%H:%M:%S')} {reason}"))
        while now - self._failures[0][0] > self.policy.window_s:
            self._failures.popleft()
        count = len(self._failures)
        if 0 <= self.policy.budget < count:
            return None
        backoff = Backoff(self.policy.initial_s, self.policy.longest_s, jitter=_JITTER)
        return backoff.pause_with_jitter(count, self._rng)

    def add_restart(self) -> None:
        """Count a restart."""
        self.made = AutoRestart(self.count, time.time_ns() // 1_000_000)

    @property
    def count(self) -> int:
        """The number of failures in the window."""
        return len(self._failures)

    @property
    def are_used_up(self) -> bool:
        """Whether another failure would not be followed by a restart."""
        return 0 <= self.policy.budget <= self.count

    @property
    def history(self) -> str:
        """The failures in the window, one per line."""
        return "\n".join(line for _, line in self._failures)


def run_with_restarts(
    attempt: Callable[[], None],
    halt: Halt,
    restarts: Restarts,
    report: ReportState,
    error: Exception | None = None,
) -> LastFailure | None:
    """Run an attempt, and again after each failure, until the thread is asked to end.

    Returns the last failure unless a later attempt succeeded; raises only `Fenced`. The resource
    stays FAILED once the budget is used up, or if another attempt would fail in the same way. A
    broken sink costs no budget: the resource is FAILED as long as the sink is broken. `error` is
    the error of an attempt whose thread was left behind.
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
            failure = _handle_failure(error, halt, restarts, report)
        error = None
    return failure


def _handle_failure(
    error: Exception, halt: Halt, restarts: Restarts, report: ReportState
) -> LastFailure:
    """Report a failure, and wait until the next attempt or until the thread is asked to end."""
    failure = failure_of(error)
    reason, trace, whose = failure
    if isinstance(error, SinkBroken):  # a user must repair it, and a check is cheap
        report(RunState.FAILED, *failure)
        halt.wait(_BROKEN_PAUSE_S)
        return failure
    # It is tried again, but stays FAILED: until a user has repaired its input, or until a plugin of
    # Connect's, which says nothing of its work, has run for a while.
    restarts.is_unproven = isinstance(error, BadInput | FailedElsewhere)
    delay = None if isinstance(error, _HOPELESS) else restarts.add_failure(reason)
    if delay is not None:
        budget = restarts.policy.budget
        of = f" of {budget}" if budget >= 0 else ""
        again = f"restarts in {delay:.1f} s ({restarts.count}{of})"
        report(RunState.FAILED, f"{reason}; {again}", trace, whose)
        halt.wait(delay)
        if not halt.is_draining:
            restarts.add_restart()
        if not (halt.is_draining or restarts.is_unproven):
            report(RunState.RESTARTING, f"after: {reason}", "", whose)
        return failure
    if restarts.count > 1:
        past = f"failures before it stayed FAILED:\n{restarts.history}"
        failure = failure._replace(trace=f"{trace}\n\n{past}")
    report(RunState.FAILED, *failure)
    if isinstance(error, BadInput) and error.is_deferred:  # the rest of the input is read
        halt.wait(restarts.policy.longest_s)
        return failure
    while not halt.is_draining:
        halt.wait(3600)
    return failure
