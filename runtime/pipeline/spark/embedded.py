"""The engine inside a worker: one warm JVM of its own, which dies with it."""

import itertools
import os
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

from pyspark.sql import SparkSession

from ....actors.backoff import Attempts, Backoff
from .attach import attach, cancel_tagged, count_running, detach, tagged, warm_up
from .engine import DEFAULT_POOL, STEPS, Cancelled, EngineDown, EngineState, TaskError
from .failures import failure_text, lost_touch
from .java import JavaNotFound, JvmLaunch, find_java
from .jvm import Jvm, new_folder, sweep
from .settings import refuse_unsafe, settings

T = TypeVar("T")

START_SECONDS = 180.0
"""How long a JVM may take until it is warm; a crowded machine needs 25."""

_LOST_SECONDS = 3.0
"""How long a JVM that breaks off may take to be gone."""

_CANCEL_BACKOFF = Backoff(0.02, 1.0)
"""For cancelling again what has not ended, in seconds."""

_LET_GO_SECONDS = 15.0
"""How long a cancelled job may keep cores from all others."""


@dataclass(eq=False, slots=True)
class _Life:
    """One JVM from its start to its end, and the session in it."""

    jvm: Jvm
    session: SparkSession | None = None


@dataclass(eq=False, frozen=True, slots=True)
class _Run:
    """A job that runs now; its Spark tag is its own, so that no other run is hit by mistake."""

    tag: str
    spark_tag: str
    jvm: Jvm
    session: SparkSession
    cancelled: threading.Event = field(default_factory=threading.Event)
    finished: threading.Event = field(default_factory=threading.Event)


class Embedded:
    """Runs jobs on a JVM of this process; at most one engine per process and per folder."""

    def __init__(
        self,
        work_dir: Path,
        *,
        cores: int,
        heap: str = "512m",
        conf: Mapping[str, str] | None = None,
        hide: Callable[[str], str] = str,
    ) -> None:
        """Take settings and start nothing; `conf` goes over ours. Raises `SettingRefused`.

        `hide` takes secrets out of what the JVM says, before it is written or told. Its files lie
        in `work_dir` and go with it; `work_dir/logs/spark.log` stays. Spark wants a heap of 466m
        or more; `spark.driver.memory` goes over `heap`.
        """
        refuse_unsafe(conf or {})
        self._work_dir = work_dir.absolute()
        self._hide = hide
        self._cores = cores
        self._conf = dict(conf or {})
        self._heap = self._conf.get("spark.driver.memory", heap)
        self._changed = threading.Condition()
        """Guards state, life and runs, and is notified whenever one of them changes."""
        self._pyspark = threading.Lock()
        """Held while PySpark is tied to a JVM or let go of it: it knows one at a time."""
        self._state = EngineState.COLD
        self._detail = "not opened"
        self._life: _Life | None = None
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

    @property
    def pid(self) -> int | None:
        """The process id of its JVM, if there is one."""
        life = self._life
        return None if life is None or life.jvm.ended.is_set() else life.jvm.pid

    def open(self) -> None:
        """Start a JVM unless there is one; returns at once. See `Engine.open`."""
        if threading.current_thread() is not threading.main_thread():
            raise RuntimeError("open the engine on the main thread: its JVM dies with its thread")
        with self._changed:
            if self._state in {EngineState.WARMING, EngineState.WARM}:
                return
            try:
                self._life = life = self._launch()
            except (JavaNotFound, OSError) as error:
                self._become(EngineState.DOWN, f"no JVM could be started: {error}")
                return
            self._become(EngineState.WARMING, f"waiting for the JVM, pid {life.jvm.pid}")
        threading.Thread(target=self._warm, args=(life,), name="spark-warm", daemon=True).start()

    def wait_warm(self, seconds: float) -> bool:
        """Wait until jobs run, or it is plain that they will not; tell whether they do."""
        with self._changed:
            self._changed.wait_for(lambda: self._state is not EngineState.WARMING, seconds)
            return self._state is EngineState.WARM

    def run(self, tag: str, job: Callable[[SparkSession], T], pool: str = DEFAULT_POOL) -> T:
        """Run a job on the calling thread. See `Engine.run`."""
        run = self._begin(tag)
        try:
            with tagged(run.session, run.spark_tag, pool):
                result = job(run.session)
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

    def kill(self) -> None:
        """End the JVM and its Python workers now."""
        with self._changed:
            life = self._life
            if life is None or self._state not in {EngineState.WARMING, EngineState.WARM}:
                return
            life.jvm.kill("the JVM was killed by its worker")
            self._become(EngineState.DOWN, life.jvm.why)

    def close(self, seconds: float) -> None:
        """End the JVM, at the latest after so many seconds, and remove its files but logs."""
        with self._changed:
            life, self._life = self._life, None
            self._become(EngineState.COLD, "closed")
        if life is not None:
            life.jvm.stop(seconds, "the engine was closed")
            with self._pyspark:
                detach()
            sweep(self._work_dir)

    def _launch(self) -> _Life:
        folder = new_folder(self._work_dir)
        launch = JvmLaunch(find_java(), self._heap, settings(folder, self._cores, self._conf))
        return _Life(
            Jvm(launch, folder, self._work_dir / "logs" / "spark.log", self._ended, self._hide)
        )

    def _warm(self, life: _Life) -> None:
        """Make a JVM ready for jobs; on a thread of its own."""
        late = threading.Timer(
            START_SECONDS, life.jvm.kill, [f"the JVM was not warm after {START_SECONDS:.0f} s"]
        )
        late.daemon = True
        late.start()
        try:
            with self._pyspark:
                detach()
                sweep(self._work_dir, keep=life.jvm.folder)
                life.session = attach(life.jvm.gateway())
            warm_up(life.session, life.jvm.folder)
            yield_to_others(life.jvm.pid)
        except Exception as error:  # noqa: BLE001  # whatever it is, the engine is down
            if not life.jvm.ended.wait(1):
                life.jvm.kill(f"Spark did not start: {failure_text(error) or repr(error)}")
        else:
            with self._changed:
                if self._life is life and self._state is EngineState.WARMING:
                    self._become(EngineState.WARM, f"{life.jvm}")
        finally:
            late.cancel()

    def _ended(self, jvm: Jvm) -> None:
        """Take note that a JVM is gone; on its watcher's thread."""
        with self._changed:
            if self._life is not None and self._life.jvm is jvm:
                self._become(EngineState.DOWN, jvm.why)

    def _become(self, state: EngineState, detail: str) -> None:
        """Change the state; `_changed` is held."""
        if state is not self._state and state not in STEPS[self._state]:
            raise RuntimeError(f"{self._state} ({self._detail}) cannot become {state} ({detail})")
        self._state, self._detail = state, detail
        self._changed.notify_all()

    def _begin(self, tag: str) -> _Run:
        if not tag or "," in tag:
            raise ValueError(f"{tag!r} is no tag: it must not be empty or hold a comma")
        with self._changed:
            life = self._life
            if self._state is not EngineState.WARM or life is None or life.session is None:
                raise EngineDown(f"the engine is {self._state.value}: {self._detail}")
            run = _Run(tag, f"{tag}/{next(self._serial)}", life.jvm, life.session)
            self._runs.add(run)
            return run


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
    deadline = time.monotonic() + _LET_GO_SECONDS
    attempts = Attempts(_CANCEL_BACKOFF)
    while left := [run for run in runs if _holds_cores(run)]:
        if (wait_s := deadline - time.monotonic()) <= 0:
            tags = ", ".join(sorted({run.tag for run in left}))
            left[0].jvm.kill(
                f"what was cancelled of {tags} went on for {_LET_GO_SECONDS:g} s, on cores that"
                " others wait for"
            )
            return
        left[0].jvm.ended.wait(min(wait_s, attempts.next_pause()))


def _holds_cores(run: _Run) -> bool:
    return not run.jvm.ended.is_set() and count_running(run.session, run.spark_tag) > 0


NICENESS = 5
"""About a third of the processor's time against a process of normal niceness."""


def yield_to_others(pid: int) -> None:
    """Lower the priority of a process for good; what it starts later inherits it.

    Working engines yield to what must be prompt: heartbeats, commits, and engines that start. A
    worker that joins a busy machine would else wait for its engine as long as the others have
    work, since starting a JVM is nothing but work for the processor.

    On Linux niceness belongs to threads, so each is asked; one that ended meanwhile is none.
    """
    for thread in Path(f"/proc/{pid}/task").glob("*"):
        with suppress(OSError):
            os.setpriority(os.PRIO_PROCESS, int(thread.name), NICENESS)
