"""An engine with a JVM of its own, which dies with its process.

A worker has one in itself. Where the workers of a node share a JVM, the process that owns it has.
"""

import os
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path

from pyspark.sql import SparkSession

from .attach import OwnGateway, attach, detach, drop_unused_defaults, end_group, is_heard, warm_up
from .cluster import NotShared, SparkCluster
from .engine import EngineDown, EngineState
from .failures import failure_text
from .java import JavaNotFound, JvmLaunch, find_java
from .jobs import JobEngine, Life
from .jvm import Jvm, JvmGateway, new_folder, sweep
from .settings import refuse_unsafe, settings

START_SECONDS = 180.0
"""How long a JVM may take until it is warm; a crowded machine needs 25."""


class Embedded(JobEngine[Jvm]):
    """Runs jobs on a JVM of this process; at most one engine per process and per folder."""

    def __init__(
        self,
        work_dir: Path,
        *,
        cores: int,
        heap: str = "512m",
        conf: Mapping[str, str] | None = None,
        hide: Callable[[str], str] = str,
        cluster: SparkCluster | None = None,
    ) -> None:
        """Take settings and start nothing; `conf` goes over ours. Raises `SettingRefused`.

        With a cluster its executors run the jobs, and `conf` has its secret; else `cores` threads
        of the JVM do. `hide` takes secrets out of what the JVM says, before it is written or told.
        Its files lie in `work_dir` and go with it; `work_dir/logs/spark.log` stays. Spark wants a
        heap of 466m or more; `spark.driver.memory` goes over `heap`.
        """
        refuse_unsafe(conf or {}, cluster.master if cluster else "")
        if cluster:
            cluster.require_secret(conf or {})
        super().__init__(hide)
        self._work_dir = work_dir.absolute()
        self._cores = cores
        self._cluster = cluster
        self._conf = dict(conf or {})
        self._heap = self._conf.get("spark.driver.memory", heap)
        self._gateway: JvmGateway | None = None
        """Where the JVM of now takes calls, once that is known."""

    @property
    def pid(self) -> int | None:
        """The process id of its JVM, if there is one."""
        life = self._life
        return None if life is None or life.jvm.ended.is_set() else life.jvm.pid

    @property
    def gateway(self) -> JvmGateway | None:
        """Where its JVM takes calls of this process; None unless it is warm."""
        with self._changed:
            return self._gateway if self._state is EngineState.WARM else None

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

    def is_heard(self) -> bool:
        """Ask the JVM for an answer, which may take for ever; False: there is none to ask."""
        life = self._life
        return life is not None and life.session is not None and is_heard(life.session)

    def new_gateway(self) -> OwnGateway:
        """Have the JVM take calls of one more process; raises `EngineDown`, or what py4j raises."""
        life = self._life
        if life is None or life.session is None:
            raise EngineDown(self._detail)
        return OwnGateway(life.session)

    def end_group(self, group: str) -> None:
        """End the jobs of another process that runs its jobs here, by their group; none follows."""
        life = self._life
        if life is not None and life.session is not None:
            end_group(life.session, group)

    def kill(self, why: str = "the JVM was killed by its worker") -> None:
        """End the JVM and its Python workers now, without any goodbye."""
        with self._changed:
            life = self._life
            if life is None or self._state not in {EngineState.WARMING, EngineState.WARM}:
                return
            life.jvm.kill(why)
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

    def _launch(self) -> Life[Jvm]:
        folder = new_folder(self._work_dir)
        master = self._cluster.master if self._cluster else ""
        all_settings = settings(folder, self._cores, self._conf, master)
        launch = JvmLaunch(find_java(), self._heap, all_settings)
        return Life(
            Jvm(launch, folder, self._work_dir / "logs" / "spark.log", self._ended, self._hide)
        )

    def _warm(self, life: Life[Jvm]) -> None:
        """Make a JVM ready for jobs; on a thread of its own."""
        late = threading.Timer(START_SECONDS, life.jvm.kill, [self._late()])
        late.daemon = True
        late.start()
        try:
            with self._pyspark:
                detach()
                sweep(self._work_dir, keep=life.jvm.folder)
                gateway = life.jvm.gateway()
                life.session = attach(gateway)
            self._run_first_jobs(life.session, life.jvm.folder)
            yield_to_others(life.jvm.pid)
        except Exception as error:  # noqa: BLE001  # whatever it is, the engine is down
            if not life.jvm.ended.wait(1):
                told = isinstance(error, NotShared) and str(error)
                why = told or failure_text(error) or repr(error)
                life.jvm.kill(f"Spark did not start: {why}")
        else:
            with self._changed:
                if self._life is life and self._state is EngineState.WARMING:
                    self._gateway = gateway
                    self._become(EngineState.WARM, f"{life.jvm}")
        finally:
            late.cancel()

    def _run_first_jobs(self, session: SparkSession, folder: Path) -> None:
        if self._cluster is None:
            warm_up(session, folder)
            drop_unused_defaults(session)  # now: the first jobs have loaded all there are
        else:
            self._cluster.check_folders(session)

    def _late(self) -> str:
        told = f"the JVM was not warm after {START_SECONDS:.0f} s"
        if self._cluster is None:
            return told
        return f"{told}; has {self._cluster.master} executors with free cores and memory?"


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
