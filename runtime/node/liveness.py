"""How long a process owes an answer, by the clock of the process that waits for it.

Only time in which the waiting process itself ran counts: it looks several times a second, and no
look adds more than a second. After the machine was suspended, or the waiting process was stopped,
no process that had no time to answer is taken for silent. The node's first process asks by
`ProcessProbe`, the supervisor asks its group by `GroupProbe`.
"""

import time
from collections.abc import Callable
from typing import Final

import psutil

from ...actors.door.system import Question

MOST_STEP_SECONDS: Final = 1.0
SLOW_SECONDS: Final = 3.0
PING_SECONDS: Final = 2.0


class Silence:
    """How long one process has been silent, and what that means."""

    def __init__(self, limit_seconds: float, now: float, seconds: float = 0.0) -> None:
        self.limit_seconds = limit_seconds
        self.seconds = seconds
        """How long it has owed an answer; 0 if it does not."""
        self._looked_at = now
        """When time was counted last, in monotonic seconds."""

    def look(self, now: float, *, is_silent: bool) -> None:
        """Let time pass; `is_silent` while an answer is owed. Times are monotonic seconds."""
        step = min(now - self._looked_at, MOST_STEP_SECONDS)
        self._looked_at = now
        self.seconds = self.seconds + step if is_silent else 0.0

    def __str__(self) -> str:
        """Return `no answer for 30 s`, what a process is ended for that is silent for too long."""
        return f"no answer for {self.limit_seconds:g} s"

    @property
    def is_slow(self) -> bool:
        """Whether it has been silent for so long that its users should know."""
        return self.seconds >= min(SLOW_SECONDS, self.limit_seconds / 2)

    @property
    def is_over(self) -> bool:
        """Whether it has been silent for too long to be waited for."""
        return self.seconds >= self.limit_seconds


class GroupProbe:
    """When the supervisor asks its group's process whether it is there, and when it gives it up.

    A process that reads a long log at its start cannot answer: what counts for an answer then is
    that it uses the processor or the disk.
    """

    def __init__(self, limit_seconds: float, now: float) -> None:
        self.silence = Silence(limit_seconds, now)
        self._is_asked = False
        """Whether a question is under way to it."""
        self._is_owed = False
        """Whether it has been asked and has not answered since."""
        self._ask_at = now
        """When to ask next, in monotonic seconds."""
        self._signs = ""
        """What the process had used of processor and disk at the last look."""

    def heard(self) -> None:
        """Take note of its answer."""
        self._is_asked = self._is_owed = False

    def lost(self) -> None:
        """Take note that the question was given up: it is to be asked again."""
        self._is_asked = False

    def look(self, now: float, pid: int, *, is_starting: bool) -> bool:
        """Let time pass; return whether it is to be asked now."""
        is_at_work = is_starting and self._is_owed and self._has_moved(pid)
        self.silence.look(now, is_silent=self._is_owed and not is_at_work)
        if self._is_asked or now < self._ask_at:
            return False
        self._is_asked = self._is_owed = True
        self._ask_at = now + PING_SECONDS
        return True

    def _has_moved(self, pid: int) -> bool:
        before, self._signs = self._signs, _signs_of(pid)
        return self._signs != before


def _signs_of(pid: int) -> str:
    """Return what changes as long as a process does anything; "" if it has ended."""
    try:
        process = psutil.Process(pid)
        with process.oneshot():
            return f"{process.cpu_times()[:2]} {process.io_counters()[:4]}"
    except psutil.Error:
        return ""


LOOK_SECONDS: Final = 0.2
"""How long one look waits for an answer: what else is to be done must not wait longer."""


class ProcessProbe:
    """One process that is asked again and again whether it is there, and how long it is silent."""

    def __init__(self, limit_seconds: float) -> None:
        self._limit_seconds = limit_seconds
        self._question: Question | None = None
        """The question that is under way, if one is."""
        self.forget()

    def forget(self) -> None:
        """Begin anew: it is another process from now on."""
        self._hang_up()
        self.silence = Silence(self._limit_seconds, time.monotonic())
        self.was_lost = False
        """Whether the last question did not arrive."""
        self._ask_at = 0.0
        """When to ask next, in monotonic seconds."""

    def ask_now(self) -> None:
        """Have the next look ask, and not only once it is time again."""
        self._ask_at = 0.0

    def look(self, ask: Callable[[], Question]) -> object | None:
        """Return its answer, if there is one by now; it is asked when nothing is under way."""
        now = time.monotonic()
        if self._question is None:
            if now < self._ask_at:
                self.silence.look(now, is_silent=self.silence.seconds > 0)
                return None
            self._question, self._ask_at = ask(), now + PING_SECONDS
        answer = self._question.answer(LOOK_SECONDS)
        self.was_lost = self._question.is_lost
        if answer is not None or self.was_lost:
            self._hang_up()
        self.silence.look(time.monotonic(), is_silent=answer is None)
        return answer

    def _hang_up(self) -> None:
        if self._question is not None:
            self._question.close()
            self._question = None
