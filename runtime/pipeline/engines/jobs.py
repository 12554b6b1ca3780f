"""The base class of engines: their state, and running and cancelling jobs on the current JVM.

Each kind of engine starts JVMs, or connects to them, in its own way.
"""

import itertools
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Generic, Protocol, TypeVar

from pyspark.sql import SparkSession

from ....actors.timing import Attempts, Backoff
from .engine import (
    DEFAULT_POOL,
    STEPS,
    Cancelled,
    EngineDown,
    EngineState,
    JvmHeap,
    TaskError,
)
from .failures import failure_text, may_be_lost_jvm
from .sessions import cancel_tagged, count_running, tagged

T = TypeVar("T")

_LOST_SECONDS = 3.0
"""How long to wait for the end of a JVM after a connection to it broke."""

_CANCEL_BACKOFF = Backoff(0.02, 1.0)
"""The pauses, in seconds, before a job that still runs is cancelled again."""

_CORE_CHECKS = 20
"""How many checks find cores held by a cancelled job before the JVM is ended.

They take 15 s if the JVM answers at once. Checks are counted instead of seconds, because a JVM that
gets little CPU time answers late and must not be ended for the slowness of the machine.
"""


class JobHost(Protocol):
    """The JVM or server that a job runs in."""

    ended: threading.Event
    """Set once it is gone, or permanently unreachable."""

    @property
    def why(self) -> str:
        """Why it ended."""
        ...

    def kill(self, why: str) -> None:
        """End it now; the first reason is kept."""
        ...


J = TypeVar("J", bound=JobHost)


@dataclass(eq=False, slots=True)
class Driver(Generic[J]):
    """One JVM or server from its start to its end, with the session in it."""

    jvm: J
    session: SparkSession | None = None
    group: str = ""
    """The Spark job group of all its jobs; empty: none."""


@dataclass(eq=False, frozen=True, slots=True)
class _Run:
    """A running job; its unique Spark tag keeps a cancellation from hitting other runs."""

    tag: str
    spark_tag: str
    jvm: JobHost
    session: SparkSession
    cancelled: threading.Event = field(default_factory=threading.Event)
    finished: threading.Event = field(default_factory=threading.Event)


class JobEngine(Generic[J]):
    """The state and the running jobs of an engine; the base of all engines."""

    heap: JvmHeap | None = None
    """That of its own driver, some seconds old; None: it is not known."""

    def __init__(self, hide: Callable[[str], str]) -> None:
        """Use `hide` to mask secrets in the errors of jobs."""
        self._hide = hide
        self._changed = threading.Condition()
        """Guards state, driver and runs; notified when one of them changes."""
        self._pyspark = threading.Lock()
        """Held during `attach` and `detach`: PySpark supports one JVM at a time."""
        self._state = EngineState.COLD
        self._detail = "it starts when a connector needs Spark"
        self.is_wanted = False
        """Whether it was waited for, or asked to run a job, in any state."""
        self._driver: Driver[J] | None = None
        """The current driver; None before the first and after the last."""
        self._runs: set[_Run] = set()
        """The running jobs."""
        self._serial = itertools.count(1)
        """The numbers of runs, which make their Spark tags unique."""

    @property
    def state(self) -> EngineState:
        """The state of the driver; never blocks."""
        return self._state

    @property
    def detail(self) -> str:
        """The engine's activity, or why it is down, for users; has no secrets."""
        return self._detail

    def wait_warm(self, seconds: float) -> bool:
        """Wait until the engine is warm or its start has failed; return whether it is warm."""
        with self._changed:
            self.is_wanted = True
            self._changed.wait_for(lambda: self._state is not EngineState.WARMING, seconds)
            return self._state is EngineState.WARM

    def run(self, tag: str, job: Callable[[SparkSession], T], pool: str = DEFAULT_POOL) -> T:
        """Run a job on the calling thread. See `Engine.run`."""
        run, group = self._start_run(tag)
        try:
            with tagged(run.session, run.spark_tag, pool, group):
                result = job(self._session_of(run.session, pool))
        except Exception as error:
            verdict = _error_for_caller(run, error, self._hide)
            if verdict is None:
                raise
            raise verdict from error
        finally:
            run.finished.set()
            with self._changed:
                self._runs.discard(run)
        if ending := _interruption(run):
            raise ending
        return result

    def cancel(self, tag: str) -> None:
        """Cancel the running jobs of a tag; returns at once. See `Engine.cancel`."""
        with self._changed:
            hit = [run for run in self._runs if run.tag == tag]
        for run in hit:
            run.cancelled.set()
        if hit:
            threading.Thread(target=_cancel, args=(hit,), name=f"cancel-{tag}", daemon=True).start()

    def _session_of(self, session: SparkSession, pool: str) -> SparkSession:  # noqa: ARG002
        """Return the session for a job, for engines whose pools are settings of sessions."""
        return session

    def _note_end(self, jvm: J) -> None:
        """Note that a JVM has ended; called from any thread."""
        with self._changed:
            if self._driver is not None and self._driver.jvm is jvm:
                self._set_state(EngineState.DOWN, jvm.why)

    def _set_state(self, state: EngineState, detail: str) -> None:
        """Change the state; the caller holds `_changed`."""
        if state is not self._state and state not in STEPS[self._state]:
            raise RuntimeError(f"{self._state} ({self._detail}) cannot become {state} ({detail})")
        self._state, self._detail = state, detail
        self._changed.notify_all()

    def _start_run(self, tag: str) -> tuple[_Run, str]:
        if not tag or "," in tag:
            raise ValueError(f"{tag!r} is no tag: it must not be empty or hold a comma")
        with self._changed:
            self.is_wanted = True
            driver = self._driver
            if self._state is not EngineState.WARM or driver is None or driver.session is None:
                raise EngineDown(f"the engine is {self._state.value}: {self._detail}")
            run = _Run(tag, f"{tag}/{next(self._serial)}", driver.jvm, driver.session)
            self._runs.add(run)
            return run, driver.group


def _interruption(run: _Run, patience: float = 0) -> Cancelled | EngineDown | None:
    """Return the error of a run that was cancelled or lost its JVM; None: neither happened."""
    if run.cancelled.is_set():
        return Cancelled(f"{run.tag} was cancelled")
    return EngineDown(run.jvm.why) if run.jvm.ended.wait(patience) else None


def _error_for_caller(run: _Run, error: Exception, hide: Callable[[str], str]) -> Exception | None:
    """Return the error that replaces an error of a job; None: the job's own error is raised."""
    text = failure_text(error, hide)
    ending = _interruption(run, _LOST_SECONDS if may_be_lost_jvm(error, text) else 0)
    if ending is None and text is not None:
        return TaskError(text)
    return ending


def _cancel(runs: list[_Run]) -> None:
    """Cancel runs repeatedly until they end: a run between two Spark jobs has nothing to cancel."""
    attempts = Attempts(_CANCEL_BACKOFF)
    while left := [run for run in runs if not (run.finished.is_set() or run.jvm.ended.is_set())]:
        for run in left:
            cancel_tagged(run.session, run.spark_tag)
        left[0].finished.wait(attempts.next_pause())
    _free_cores(runs)


def _free_cores(runs: list[_Run]) -> None:
    """End the JVM of cancelled runs whose Spark tasks do not end: Spark cannot force them.

    A Spark task checks for its cancellation between two input rows. One row of a nested loop join
    may take minutes, and no other job gets that core meanwhile.
    """
    attempts = Attempts(_CANCEL_BACKOFF)
    while left := [run for run in runs if _holds_cores(run)]:
        if attempts.count == _CORE_CHECKS:
            tags = ", ".join(sorted({run.tag for run in left}))
            left[0].jvm.kill(
                f"cancelled Spark tasks of {tags} do not end, and other jobs need their cores"
            )
            return
        left[0].jvm.ended.wait(attempts.next_pause())


def _holds_cores(run: _Run) -> bool:
    return not run.jvm.ended.is_set() and count_running(run.session, run.spark_tag) > 0
