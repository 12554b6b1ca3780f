"""Liveness probes: how long a process has not answered.

The probing process counts only time in which it ran itself: while an answer is due it checks
several times a second, and a check adds one second at most. So a suspended machine, or a stopped
probing process, makes no other process look unresponsive. `Silence` counts that time. A
`ProcessProbe` asks a process that is started from outside of the actor system, a `GroupProbe` an
actor. Each tells for how long it need not be looked at: while all answer, the probing process
sleeps from question to question, unless a signal comes (`SignalWait`).
"""

import signal
import time
from collections.abc import Callable, Iterable
from typing import Final, Protocol

import psutil

MOST_STEP_SECONDS: Final = 1.0
SLOW_SECONDS: Final = 3.0
PING_SECONDS: Final = 2.0
STARTS_FOR: Final = 4
"""How long a start may take, as a multiple of the limit of an answer."""


class Silence:
    """Counts how long a process has not answered, against a time limit."""

    def __init__(self, limit_seconds: float, now: float, seconds: float = 0.0) -> None:
        self.limit_seconds = limit_seconds
        self.seconds = seconds
        """How long it has not answered; 0 while no answer is due."""
        self._looked_at = now
        """The time of the last check, in monotonic seconds."""

    def look(self, now: float, *, is_silent: bool) -> None:
        """Count the time since the last check if `is_silent`, else reset; monotonic seconds."""
        step = min(now - self._looked_at, MOST_STEP_SECONDS)
        self._looked_at = now
        self.seconds = self.seconds + step if is_silent else 0.0

    def __str__(self) -> str:
        """Return `no answer for 30 s`: the reason why a process is killed."""
        return f"no answer for {self.limit_seconds:g} s"

    @property
    def is_slow(self) -> bool:
        """Whether it has not answered for so long that `status` and `/health` report it."""
        return self.seconds >= min(SLOW_SECONDS, self.limit_seconds / 2)

    @property
    def is_over(self) -> bool:
        """Whether the time limit has passed."""
        return self.seconds >= self.limit_seconds


class GroupProbe:
    """The supervisor's liveness probe of a group's process.

    A process that replays a long log at its start cannot answer. Until it is ready, CPU or disk
    activity counts as an answer.
    """

    def __init__(self, limit_seconds: float, now: float) -> None:
        self.silence = Silence(limit_seconds, now)
        self._is_asked = False
        """Whether a ping is in flight."""
        self._is_owed = False
        """Whether there was no answer since the last ping."""
        self._ask_at = now
        """When to ask next, in monotonic seconds."""
        self._counters = ""
        """The CPU and disk counters of the process at the last check."""

    def take_answer(self) -> None:
        """Record its answer."""
        self._is_asked = self._is_owed = False

    def take_loss(self) -> None:
        """Record that the ping was not delivered: another one may be sent."""
        self._is_asked = False

    def look(self, now: float, pid: int, *, is_starting: bool) -> bool:
        """Count the time since the last check; return whether to send a ping now."""
        is_busy = is_starting and self._is_owed and self._has_progressed(pid)
        self.silence.look(now, is_silent=self._is_owed and not is_busy)
        if self._is_asked or now < self._ask_at:
            return False
        self._is_asked = self._is_owed = True
        self._ask_at = now + PING_SECONDS
        return True

    def idle_seconds(self, now: float) -> float:
        """Return the time until the next check: 0 while an answer is due."""
        return 0.0 if self._is_owed else max(0.0, self._ask_at - now)

    def _has_progressed(self, pid: int) -> bool:
        before, self._counters = self._counters, _read_counters(pid)
        return self._counters != before


def _read_counters(pid: int) -> str:
    """Return the CPU and disk counters of a process; "" if it has ended."""
    try:
        process = psutil.Process(pid)
        with process.oneshot():
            return f"{process.cpu_times()[:2]} {process.io_counters()[:4]}"
    except psutil.Error:
        return ""


LOOK_SECONDS: Final = 0.2
"""How long one check waits for an answer: it must not delay the caller's other work."""


class Inquiry(Protocol):
    """A question in flight: an actor's `Question`, or a request of HTTP."""

    @property
    def is_lost(self) -> bool:
        """Whether it could not be delivered."""
        ...

    def answer(self, seconds: float) -> object | None:
        """Wait for the answer, for some seconds at most."""
        ...

    def close(self) -> None:
        """Discard the answer, if it has not come yet."""
        ...


class ProcessProbe:
    """The launcher's liveness probe of one process: it sends a question every `PING_SECONDS`."""

    def __init__(self, limit_seconds: float) -> None:
        self._limit_seconds = limit_seconds
        self._question: Inquiry | None = None
        """The question in flight, None if there is none."""
        self.forget()

    def forget(self) -> None:
        """Reset the probe for a new process."""
        self._close_question()
        self.silence = Silence(self._limit_seconds, time.monotonic())
        self.was_lost = False
        """Whether the last question could not be delivered."""
        self._ask_at = 0.0
        """When to ask next, in monotonic seconds."""

    @property
    def idle_seconds(self) -> float:
        """The time until the next check: 0 while an answer is due."""
        if self._question is not None or self.silence.seconds > 0:
            return 0.0
        return max(0.0, self._ask_at - time.monotonic())

    def ask_now(self) -> None:
        """Make the next check send a question at once."""
        self._ask_at = 0.0

    def look(self, ask: Callable[[], Inquiry]) -> object | None:
        """Return its answer, None if there is none yet; `ask` sends a question when one is due."""
        now = time.monotonic()
        if self._question is None:
            if now < self._ask_at:
                self.silence.look(now, is_silent=self.silence.seconds > 0)
                return None
            self.silence.look(now, is_silent=self.silence.seconds > 0)  # no answer was due
            self._question, self._ask_at = ask(), now + PING_SECONDS
        answer = self._question.answer(LOOK_SECONDS)
        self.was_lost = self._question.is_lost
        if answer is not None or self.was_lost:
            self._close_question()
        self.silence.look(time.monotonic(), is_silent=answer is None)
        return answer

    def _close_question(self) -> None:
        if self._question is not None:
            self._question.close()
            self._question = None


def rest_of(probes: Iterable[ProcessProbe]) -> float:
    """Return the time until the next check of these probes, so that all are due together."""
    rests = [each.idle_seconds for each in probes]
    return max(rests) if all(rests) else 0.0


ENDING: Final = frozenset({signal.SIGINT, signal.SIGTERM, signal.SIGHUP})


class SignalWait:
    """The pauses of a process between its checks, which signals cut short; main thread only.

    These are orders to end, and SIGCHLD: the end of a child process. One that comes between two
    pauses cuts the next one short.
    """

    def __init__(self) -> None:
        """Handle these signals from now on."""
        self.ending = 0
        """The signal that asks for an end; 0: none came."""
        self._has_news = False
        """Whether a signal has come since the last pause."""
        for number in (*ENDING, signal.SIGCHLD):
            signal.signal(number, self._note)

    def pause(self, seconds: float) -> None:
        """Wait until a signal comes, but not longer than so many seconds."""
        signals = {*ENDING, signal.SIGCHLD}
        signal.pthread_sigmask(signal.SIG_BLOCK, signals)  # else one could come before the wait
        try:
            if not self._has_news and (found := signal.sigtimedwait(signals, seconds)) is not None:
                self._note(found.si_signo, None)
        finally:
            signal.pthread_sigmask(signal.SIG_UNBLOCK, signals)
        self._has_news = False

    def _note(self, number: int, _: object) -> None:
        self._has_news = True
        if number in ENDING:
            self.ending = number
