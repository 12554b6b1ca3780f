"""The jobs of one engine, on whichever JVM it has at the time.

Each kind of engine brings JVMs, and sessions in them, in its own way. What is the same for all is
here: how far an engine is, which jobs run on it, what ended one, and how one is cancelled.
"""

import itertools
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Generic, Protocol, TypeVar

from pyspark.sql import SparkSession

from ....actors.backoff import Attempts, Backoff
from .engine import DEFAULT_POOL, STEPS, Cancelled, EngineDown, EngineState, TaskError
from .failures import failure_text, lost_touch
from .sessions import cancel_tagged, count_running, tagged

T = TypeVar("T")

_LOST_SECONDS = 3.0
"""How long a JVM that breaks off may take to be gone."""

_CANCEL_BACKOFF = Backoff(0.02, 1.0)
"""For cancelling again what has not ended, in seconds."""

_LOOKS = 20
"""How often a cancelled job is seen to keep cores from others, in 15 s if the JVM answers at once.

Looks are counted, not seconds: a JVM that gets no processor itself answers late, and is not ended
for the machine's slowness.
"""


class JobHost(Protocol):
    """The JVM that a job runs in, as far as the job's fate depends on it."""

    ended: threading.Event
    """Set once it is gone, or out of reach for good."""

    @property
    def why(self) -> str:
        """Why it ended."""
        ...

    def kill(self, why: str) -> None:
        """Have it end now; the first reason given is the one told."""
        ...


J = TypeVar("J", bound=JobHost)


@dataclass(eq=False, slots=True)
class Life(Generic[J]):
    """One JVM from its start to its end, and the session in it."""

    jvm: J
    session: SparkSession | None = None
    group: str = ""
    """The group that all its jobs are put into, if they are."""


@dataclass(eq=False, frozen=True, slots=True)
class _Run:
    """A job that runs now; its Spark tag is its own, so that no other run is hit by mistake."""

    tag: str
    spark_tag: str
    jvm: JobHost
    session: SparkSession
    cancelled: threading.Event = field(default_factory=threading.Event)
    finished: threading.Event = field(default_factory=threading.Event)


class JobEngine(Generic[J]):
    """How far an engine is, and the jobs that run on it: what all kinds have in common."""

    def __init__(self, hide: Callable[[str], str]) -> None:
        """Take what takes secrets out of what a failed job says."""
        self._hide = hide
        self._changed = threading.Condition()
        """Guards state, life and runs, and is notified whenever one of them changes."""
        self._pyspark = threading.Lock()
        """Held while PySpark is tied to a JVM or let go of it: it knows one at a time."""
        self._state = EngineState.COLD
        self._detail = "not opened"
        self._life: Life[J] | None = None
        """The JVM of now, None before the first and after the last."""
        self._runs: set[_Run] = set()
        """The jobs that run now."""
        self._serial = itertools.count(1)
        """Numbers runs, so that no two have a Spark tag in common."""

    @property
    def state(self) -> EngineState:
        """How far it is from running jobs; never blocks."""
        return self._state

    @property
    def detail(self) -> str:
        """Say what it is doing, or why it is down; holds no secret."""
        return self._detail

    def wait_warm(self, seconds: float) -> bool:
        """Wait until jobs run, or it is plain that they will not; tell whether they do."""
        with self._changed:
            self._changed.wait_for(lambda: self._state is not EngineState.WARMING, seconds)
            return self._state is EngineState.WARM

    def run(self, tag: str, job: Callable[[SparkSession], T], pool: str = DEFAULT_POOL) -> T:
        """Run a job on the calling thread. See `Engine.run`."""
        run, group = self._begin(tag)
        try:
            with tagged(run.session, run.spark_tag, pool, group):
                result = job(self._session_of(run.session, pool))
        except Exception as error:
            verdict = _verdict(run, error, self._hide)
            if verdict is None:
                raise
            raise verdict from error
        finally:
            run.finished.set()
            with self._changed:
                self._runs.discard(run)
        if ending := _ending(run):
            raise ending
        return result

    def cancel(self, tag: str) -> None:
        """End what runs now under a tag; returns at once. See `Engine.cancel`."""
        with self._changed:
            hit = [run for run in self._runs if run.tag == tag]
        for run in hit:
            run.cancelled.set()
        if hit:
            threading.Thread(target=_cancel, args=(hit,), name=f"cancel-{tag}", daemon=True).start()

    def _session_of(self, session: SparkSession, pool: str) -> SparkSession:  # noqa: ARG002
        """Return the session that a job gets, where pools are a matter of sessions."""
        return session

    def _ended(self, jvm: J) -> None:
        """Take note that a JVM is gone; on any thread."""
        with self._changed:
            if self._life is not None and self._life.jvm is jvm:
                self._become(EngineState.DOWN, jvm.why)

    def _become(self, state: EngineState, detail: str) -> None:
        """Change the state; `_changed` is held."""
        if state is not self._state and state not in STEPS[self._state]:
            raise RuntimeError(f"{self._state} ({self._detail}) cannot become {state} ({detail})")
        self._state, self._detail = state, detail
        self._changed.notify_all()

    def _begin(self, tag: str) -> tuple[_Run, str]:
        if not tag or "," in tag:
            raise ValueError(f"{tag!r} is no tag: it must not be empty or hold a comma")
        with self._changed:
            life = self._life
            if self._state is not EngineState.WARM or life is None or life.session is None:
                raise EngineDown(f"the engine is {self._state.value}: {self._detail}")
            run = _Run(tag, f"{tag}/{next(self._serial)}", life.jvm, life.session)
            self._runs.add(run)
            return run, life.group


def _ending(run: _Run, patience: float = 0) -> Cancelled | EngineDown | None:
    """Tell what ended a run from outside, if anything did."""
    if run.cancelled.is_set():
        return Cancelled(f"{run.tag} was cancelled")
    return EngineDown(run.jvm.why) if run.jvm.ended.wait(patience) else None


def _verdict(run: _Run, error: Exception, hide: Callable[[str], str]) -> Exception | None:
    """Turn what a job raised into what its caller should know; None leaves it as it is."""
    text = failure_text(error, hide)
    ending = _ending(run, _LOST_SECONDS if lost_touch(error, text) else 0)
    if ending is None and text is not None:
        return TaskError(text)
    return ending


def _cancel(runs: list[_Run]) -> None:
    """Cancel runs until they end: one between two Spark jobs is not hit the first time."""
    attempts = Attempts(_CANCEL_BACKOFF)
    while left := [run for run in runs if not (run.finished.is_set() or run.jvm.ended.is_set())]:
        for run in left:
            cancel_tagged(run.session, run.spark_tag)
        left[0].finished.wait(attempts.next_pause())
    _free_cores(runs)


def _free_cores(runs: list[_Run]) -> None:
    """End the JVM of cancelled runs whose tasks go on: Spark asks them to end, and no more.

    A task looks whether it was killed between two rows that it takes; one row of a nested loop
    join may take minutes, and no other job gets the core meanwhile.
    """
    attempts = Attempts(_CANCEL_BACKOFF)
    while left := [run for run in runs if _holds_cores(run)]:
        if attempts.count == _LOOKS:
            tags = ", ".join(sorted({run.tag for run in left}))
            left[0].jvm.kill(f"what was cancelled of {tags} goes on, on cores that others wait for")
            return
        left[0].jvm.ended.wait(attempts.next_pause())


def _holds_cores(run: _Run) -> bool:
    return not run.jvm.ended.is_set() and count_running(run.session, run.spark_tag) > 0
