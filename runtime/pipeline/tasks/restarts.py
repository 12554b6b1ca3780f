"""When a thread ends that was asked to, and when it starts again after a failure."""

import math
import time
from collections import deque
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from random import Random
from threading import Event

from ....actors.backoff import Backoff
from ....events.model import NEVER_RESTARTED, AutoRestart, ErrorClass, RunState
from ..connectors import common_keys as keys
from ..spark.engine import EngineDown, TaskError
from ..spark.failures import session_is_gone
from ..spi.config import ConfigInvalid
from ..spi.errors import Away, BadInput, PluginUnknown, SinkBroken, SinkFull, SourceAway
from .failures import LastFailure, failure_of
from .ledger import Fenced
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

    def wait_for(self, event: Event, seconds: float | None = None) -> None:
        """Sleep until an event is set, or for so long; whoever asks for an end sets it, too."""
        self._awaited = event
        if not self.is_draining:
            event.wait(seconds)

    def wait_cancelled(self, seconds: float) -> None:
        """Sleep, but no longer than until somebody asks for an end now."""
        self._cancel.wait(seconds)


Tell = Callable[[RunState, str, str, ErrorClass | None], None]
"""Called with a state, a reason in one line, a trace, and the class of the error."""

_JITTER = 0.5
_LOOK_AGAIN_S = 5.0
"""How long a sink that cannot be used as it is rests before it is looked at again."""

_AWAY_S = 1.0
"""After how long what is out of reach is tried again at first."""
_FULL_BACKOFF = Backoff(2.0, 15.0)
"""For a sink that has no room."""
_MOST_ENGINE_LOSSES = 3
"""How often in a row the engine may end over a batch of a task before the task has failed."""
_HOPELESS = (ConfigInvalid, PluginUnknown, StillHanging)


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


class Outage:
    """How long a source or a sink is out of reach, and when it is tried again."""

    def __init__(self, policy: RestartPolicy, halt: Halt, tell: Tell) -> None:
        self._policy = policy
        self._halt, self._tell = halt, tell
        self._slow = Backoff(_AWAY_S, policy.longest_away_s)
        self._attempts = 0
        """How many in a row found it out of reach."""
        self._since = 0.0
        """When the first of them did, on the monotonic clock."""

    @property
    def is_on(self) -> bool:
        """Whether the last attempt found it out of reach, and it has not ended since."""
        return self._attempts > 0

    def wait(self, away: Away) -> None:
        """Tell what is out of reach, and wait before it is tried again; raise it after too long."""
        pause_s, is_source = self._pause_s(away), isinstance(away, SourceAway)
        reason = f"waiting for the {'source' if is_source else 'sink'}: {away}"
        self._tell(RunState.RUNNING, reason, "", ErrorClass.OUTSIDE)
        self._halt.wait(pause_s)

    def _pause_s(self, away: Away) -> float:
        now = time.monotonic()
        self._since = self._since if self._attempts else now
        if now - self._since > self._policy.away_s:
            self._attempts = 0
            raise away
        self._attempts += 1
        backoff = _FULL_BACKOFF if isinstance(away, SinkFull) else self._slow
        return backoff.pause(self._attempts)

    def end(self) -> None:
        """Learn that the source and the sink answer, as far as there is something to do."""
        self._attempts = 0


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
        self._engine_losses = 0
        """How often in a row the engine ended while a batch was staged."""

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

    @contextmanager
    def count_engine_losses(self) -> Generator[Callable[[], None]]:
        """Fail the task if the engine ends over its batches again and again.

        Else a query that takes all memory of a shared JVM would end it for ever, and with it the
        batches of all other tasks. Raises `TaskError` from the third time in a row on. Yields what
        is to be called when the job of a batch begins: before, it has no part in the end.
        """
        begun = Event()
        try:
            yield begun.set
        except Exception as error:
            is_lost = isinstance(error, EngineDown) or session_is_gone(error)
            if is_lost and begun.is_set():
                self._engine_losses += 1
                if self._engine_losses >= _MOST_ENGINE_LOSSES:
                    raise TaskError(
                        f"the engine ended {self._engine_losses} times in a row over a batch of"
                        " this task, which may take more memory than there is: raise spark.heap,"
                        " lower batch.max.bytes, or change its query. Nothing of the batch counts:"
                        f" {error}"
                    ) from error
            raise
        self._engine_losses = 0

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


def _failed(error: Exception, halt: Halt, restarts: Restarts, tell: Tell) -> LastFailure:
    """Tell of a failure, and wait until it is time to try again, or somebody asks for an end."""
    failure = failure_of(error)
    reason, trace, whose = failure
    if isinstance(error, SinkBroken):  # somebody has to mend it, and it costs little to look
        tell(RunState.FAILED, *failure)
        halt.wait(_LOOK_AGAIN_S)
        return failure
    # What somebody has to mend is tried again, but it fails the same way until then.
    restarts.is_unproven = isinstance(error, BadInput)
    delay = None if isinstance(error, _HOPELESS) else restarts.failed(reason)
    if delay is not None:
        budget = restarts.policy.budget
        of = f" of {budget}" if budget >= 0 else ""
        again = f"restarts in {delay:.1f} s ({restarts.count}{of})"
        tell(RunState.FAILED, f"{reason}; {again}", trace, whose)
        halt.wait(delay)
        if not halt.is_draining:
            restarts.begin()
        if not (halt.is_draining or restarts.is_unproven):
            tell(RunState.RESTARTING, f"after: {reason}", "", whose)
        return failure
    if restarts.count > 1:
        past = f"failures before it stayed FAILED:\n{restarts.history}"
        failure = failure._replace(trace=f"{trace}\n\n{past}")
    tell(RunState.FAILED, *failure)
    if isinstance(error, BadInput) and error.is_put_off:  # what comes beside it is read
        halt.wait(restarts.policy.longest_s)
        return failure
    while not halt.is_draining:
        halt.wait(3600)
    return failure
