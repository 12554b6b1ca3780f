"""Tied processes that are to run for as long as this one: their handles restart and replace them.

`look_after` is called often. It starts a process that has ended again once its back-off is over,
and kills one that has not answered for too long: its end is then seen like any other. A process
that ran for a minute has no failures behind it. A subclass says how to start its process (`_spawn`)
and how to ask it (`_ask`, `probes`); one without a probe is replaced only when it ends.
"""

import json
import logging
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from typing import ClassVar, Final

from ...actors.tether import tied
from ...actors.timing import Attempts, Backoff
from ...events.log.process import ProcessId, process_of
from .liveness import ProcessProbe, Silence

LOGGER = logging.getLogger(__name__)
STOP_SECONDS: Final = 5.0
HEALTHY_SECONDS: Final = 60.0


class TiedProcess:
    """A process that is restarted under back-off when it ends, and killed when this one ends."""

    title: ClassVar[str]
    """Its name for users."""

    def __init__(
        self,
        command: Sequence[str],
        record: Callable[[ProcessId], None],
        backoff_ms: Backoff[int],
    ) -> None:
        """Prepare the process; `command` are arguments of Python.

        `record` is called with each process that is started.
        """
        self._command = tied([sys.executable, *command])
        self._attempts = Attempts(backoff_ms)
        self._record = record
        self._process: subprocess.Popen[bytes] | None = None
        self._started_at = 0.0
        """On the monotonic clock."""
        self._start_at: float | None = None
        """When to restart it, on the monotonic clock; None while it runs."""

    def start(self) -> None:
        """Start it; raises `OSError`."""
        self._started_at, self._start_at = time.monotonic(), None
        self._process = self._spawn(self._command)
        self._record(process_of(self._process.pid))

    @property
    def pid(self) -> int | None:
        """The pid of its process; None before the first start."""
        return None if self._process is None else self._process.pid

    @property
    def probes(self) -> Sequence[ProcessProbe]:
        """The probes of its answers; none if it is not asked."""
        return ()

    @property
    def silent_seconds(self) -> float:
        """How long it has not answered."""
        return sum(each.silence.seconds for each in self.probes)

    @property
    def is_settled(self) -> bool:
        """Whether it runs, as far as is known: nothing is to do before it ends."""
        return self._process is not None and self._start_at is None

    def look_after(self) -> None:
        """Restart it if it has ended and its back-off is over; kill it if it is silent too long."""
        now = time.monotonic()
        if self._start_at is not None:
            if now >= self._start_at:
                self._start_again()
        elif self._process is not None and (code := self._process.poll()) is not None:
            if now - self._started_at > HEALTHY_SECONDS:
                self._attempts.reset()
            self._back_off(f"ended ({code})")
        if self._process is None or not self.is_settled:
            self._forget_answers()
        elif (silence := self._ask()) is not None and silence.is_over:
            pid = self._process.pid
            LOGGER.error("the %s process (pid %s) is replaced: %s", self.title, pid, silence)
            self._process.kill()
            self._forget_answers()

    def stop(self) -> None:
        """Shut it down gracefully, or kill it after `STOP_SECONDS`."""
        self._forget_answers()
        if self._process is None:
            return
        self._process.terminate()
        try:
            self._process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def _ask(self) -> Silence | None:
        """Ask whether it answers; return its silence so far; None: it is not asked."""
        return None

    def _forget_answers(self) -> None:
        """Forget what was asked: the process is gone, or about to go."""
        for each in self.probes:
            each.forget()

    def _start_again(self) -> None:
        try:
            self.start()
        except OSError as error:  # out of processes or memory: the node continues, and retries
            self._back_off(f"could not be started ({error.strerror or error})")

    def _back_off(self, why: str) -> None:
        seconds = self._attempts.next_pause() / 1000
        self._start_at = time.monotonic() + seconds
        LOGGER.error("the %s process %s: it starts again in %g s", self.title, why, seconds)

    def _spawn(self, command: Sequence[str]) -> "subprocess.Popen[bytes]":
        raise NotImplementedError


class BriefedProcess(TiedProcess):
    """A process that gets its configuration through stdin, as it may have secrets."""

    def __init__(
        self,
        module: str,
        brief: Mapping[str, object],
        record: Callable[[ProcessId], None],
        backoff_ms: Backoff[int],
    ) -> None:
        """Prepare `python -m MODULE`, with `brief` as JSON in its stdin."""
        super().__init__(("-m", module), record, backoff_ms)
        self._brief = json.dumps(brief).encode()

    def _spawn(
        self, command: Sequence[str], pass_fds: Sequence[int] = ()
    ) -> "subprocess.Popen[bytes]":
        process = subprocess.Popen(  # noqa: S603 - no shell
            command, stdin=subprocess.PIPE, pass_fds=pass_fds
        )
        if process.stdin is None:
            raise AssertionError("Popen was asked for a pipe")
        try:
            with process.stdin as pipe:
                pipe.write(self._brief)
        except BrokenPipeError:
            pass  # it has ended already: `look_after` restarts it
        return process
