"""An engine with a JVM of its own, which dies with the engine's process.

That process is a worker or, if the workers of a node share a JVM, the owner of that JVM.
"""

import os
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path

from pyspark.sql import SparkSession

from ....processes.java import JavaNotFound, find_java
from ..engine import EngineDown, EngineState, JvmHeap
from ..executors.arrow_job import run_job
from ..executors.cluster import NotShared, SparkCluster
from ..failures import failure_text
from ..java import JvmLaunch
from ..jobs import Driver, JobEngine
from ..settings import refuse_unsafe, settings
from .attach import (
    ExtraGateway,
    attach,
    detach,
    drop_unused_defaults,
    end_group,
    follow_heap,
    is_responsive,
    warm_up,
)
from .jvm import Jvm, JvmGateway, new_folder, sweep

START_SECONDS = 180.0
"""How long a JVM may take until it is warm; on a busy machine it takes 25 s."""


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
        """Configure the engine; `conf` overrides the defaults. Raises `SettingRefused`.

        Jobs run on the executors of the cluster, whose secret is in `conf`, or without a cluster on
        `cores` threads of the JVM. `hide` masks secrets in the JVM's output. The JVM's files in
        `work_dir` are removed with it, except `work_dir/logs/spark.log`. Spark needs a heap of at
        least 466m; `spark.driver.memory` overrides `heap`.
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
        """The gateway of the current JVM, once it is known."""

    @property
    def pid(self) -> int | None:
        """The process id of its running JVM; None: there is none."""
        driver = self._driver
        return None if driver is None or driver.jvm.ended.is_set() else driver.jvm.pid

    @property
    def gateway(self) -> JvmGateway | None:
        """The gateway of its JVM for this process; None unless it is warm."""
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
                self._driver = driver = self._launch()
            except (JavaNotFound, OSError) as error:
                self._set_state(EngineState.DOWN, f"no JVM could be started: {error}")
                return
            self._set_state(EngineState.WARMING, f"waiting for the JVM, pid {driver.jvm.pid}")
        threading.Thread(target=self._warm, args=(driver,), name="spark-warm", daemon=True).start()

    def is_responsive(self) -> bool:
        """Wait without a limit for any answer of the JVM; False: there is no JVM."""
        driver = self._driver
        return driver is not None and driver.session is not None and is_responsive(driver.session)

    def new_gateway(self) -> ExtraGateway:
        """Open a gateway of the JVM for another process; raises `EngineDown` and py4j's errors."""
        driver = self._driver
        if driver is None or driver.session is None:
            raise EngineDown(self._detail)
        return ExtraGateway(driver.session)

    def end_group(self, group: str) -> None:
        """Cancel the present and future jobs of another process, by their job group."""
        driver = self._driver
        if driver is not None and driver.session is not None:
            end_group(driver.session, group)

    def kill(self, why: str = "the JVM was killed by its worker") -> None:
        """Kill the JVM and its Python workers now."""
        with self._changed:
            driver = self._driver
            if driver is None or self._state not in {EngineState.WARMING, EngineState.WARM}:
                return
            driver.jvm.kill(why)
            self._set_state(EngineState.DOWN, driver.jvm.why)

    def close(self, seconds: float) -> None:
        """End the JVM within the given time, and remove its files except logs."""
        with self._changed:
            driver, self._driver = self._driver, None
            self._set_state(EngineState.COLD, "closed")
        if driver is not None:
            driver.jvm.stop(seconds, "the engine was closed")
            with self._pyspark:
                detach()
            sweep(self._work_dir)

    def _launch(self) -> Driver[Jvm]:
        folder = new_folder(self._work_dir)
        master = self._cluster.master if self._cluster else ""
        all_settings = settings(folder, self._cores, self._conf, master)
        launch = JvmLaunch(find_java(), self._heap, all_settings)
        return Driver(
            Jvm(launch, folder, self._work_dir / "logs" / "spark.log", self._note_end, self._hide)
        )

    def _warm(self, driver: Driver[Jvm]) -> None:
        """Make a JVM ready for jobs; runs on a separate thread."""
        late = threading.Timer(START_SECONDS, driver.jvm.kill, [self._late()])
        late.daemon = True
        late.start()
        try:
            with self._pyspark:
                detach()
                sweep(self._work_dir, keep=driver.jvm.folder)
                gateway = driver.jvm.gateway()
                driver.session = attach(gateway)
            self._run_first_jobs(driver.session, driver.jvm.folder)
            yield_to_others(driver.jvm.pid)
        except Exception as error:  # noqa: BLE001  # whatever it is, the engine is down
            if not driver.jvm.ended.wait(1):
                text = isinstance(error, NotShared) and str(error)
                why = text or failure_text(error) or repr(error)
                driver.jvm.kill(f"Spark did not start: {why}")
        else:
            with self._changed:
                if self._driver is driver and self._state is EngineState.WARMING:
                    self._gateway = gateway
                    self._set_state(EngineState.WARM, f"{driver.jvm}")
        finally:
            late.cancel()
        if self._cluster is None and driver.session is not None and self.gateway is not None:
            self._start_python(driver.session)
        if driver.session is not None:
            follow_heap(driver.session, driver.jvm.ended, self._set_heap)

    def _run_first_jobs(self, session: SparkSession, folder: Path) -> None:
        if self._cluster is None:
            warm_up(session, folder)
            drop_unused_defaults(session)  # after the first jobs, which load all defaults
        else:
            self._cluster.check_folders(session)
            self._cluster.check_python(session)

    def _start_python(self, session: SparkSession) -> None:
        """Start the Python workers of Spark, which takes two seconds of the first large batch."""
        with suppress(Exception):  # that batch would start them
            run_job(session, [tuple] * self._cores)

    def _set_heap(self, heap: JvmHeap | None) -> None:
        self.heap = heap

    def _late(self) -> str:
        text = f"the JVM was not warm after {START_SECONDS:.0f} s"
        if self._cluster is None:
            return text
        return f"{text}; has {self._cluster.master} executors with free cores and memory?"


NICENESS = 5
"""With this niceness a process gets about a third of the CPU time of a normal one."""


def yield_to_others(pid: int) -> None:
    """Lower the CPU priority of a process permanently; processes that it starts inherit it.

    Engines with work yield to urgent work: heartbeats, commits, and starting engines. Otherwise a
    worker that joins a busy machine would wait for its engine as long as the other workers have
    work, since the start of a JVM takes only CPU time.

    On Linux niceness belongs to threads, so it is set for each; ended threads are skipped.
    """
    for thread in Path(f"/proc/{pid}/task").glob("*"):
        with suppress(OSError):
            os.setpriority(os.PRIO_PROCESS, int(thread.name), NICENESS)
