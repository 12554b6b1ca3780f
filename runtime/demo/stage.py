"""The processes of the demos: a node, one more worker, the feeder; all end with the demo."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

import httpx

from ...actors.tether import tied
from ...actors.transport.system import System, UnreachableError, connect
from ..cluster.messages import DescribeNode, NodeView
from ..cluster.node_files import NodeFile
from ..cluster.run_folder import NoNodeError, RunFolder
from ..processes.guard import descendants
from .feeder import start_feeder

CONNECTOR = "flights"
GROUP = "demo"
TASKS = 4
FEED_SECONDS = 20.0
JOIN_AFTER_SECONDS = 1.0
"""The time between the first file and the start of a third worker."""
KILL_AFTER_SECONDS = 2.0
"""The time between the third worker's first task and the kill."""
LONGEST_SECONDS = 360.0
"""How long the demo may take; a machine with other work needs 200."""
VICTIM = "w1"

SCHEMA = (
    "year INT, month INT, day INT, dep_time INT, sched_dep_time INT, dep_delay INT, "
    "arr_time INT, sched_arr_time INT, arr_delay INT, carrier STRING, flight INT, "
    "tailnum STRING, origin STRING, dest STRING, air_time INT, distance INT, hour INT, "
    "minute INT, time_hour TIMESTAMP"
)
QUERY = (
    "SELECT time_hour, carrier, flight, tailnum, origin, dest, dep_delay, arr_delay, air_time, "
    "distance, distance / (air_time / 60) AS miles_per_hour, arr_delay > 15 AS late FROM input"
)

SETTINGS: Mapping[str, str] = {
    "group.id": GROUP,
    "listeners": "http://127.0.0.1:0",
    "heartbeat.interval.ms": "1000",
    "fence.margin.ms": "1000",
    "session.timeout.ms": "6000",
    "scheduled.rebalance.max.delay.ms": "0",
    "spark.heap": "640m",
}
"""Kafka Connect's defaults, but with a shorter session, so that a kill is detected sooner."""

NOTHING: Mapping[str, str] = {}
UP_SECONDS = 60.0
STOP_SECONDS = 40.0
ASK_SECONDS = 10.0
CREATE_SECONDS = 30.0
"""Longer than REST waits for the group, so that the response has the error."""


class DemoFailedError(Exception):
    """The demo could not run to its end."""


def connector_config(source: Path, sink: Path) -> dict[str, str]:
    """Return the config of the demo's connector."""
    return {
        "connector.class": "SparkPipeline",
        "tasks.max": str(TASKS),
        "source.format": "csv",
        "source.path": str(source),
        "source.min.age.ms": "0",  # the feeder moves files in
        "source.schema": SCHEMA,
        "source.null.values": "NA",
        "transforms": "late",
        "transforms.late.type": "sql",
        "transforms.late.query": QUERY,
        "sink.format": "parquet",
        "sink.path": str(sink),
        "sink.partition.by": "carrier",
    }


class Stage:
    """The processes of a demo in a folder: a node, and others such as the feeder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.source = folder / "landing"
        self.sink = folder / "flights"
        self.data_dir = folder / "data"
        self._processes: list[subprocess.Popen[str]] = []
        """All started processes, in order."""
        self._node: NodeFile | None = None
        self._system: System | None = None

    @property
    def is_up(self) -> bool:
        """Whether its node was started, and was not killed."""
        return self._node is not None

    def start_node(self, workers: int, more: Mapping[str, str] = NOTHING) -> NodeFile:
        """Start `fairlead up` with more settings, and wait until its REST interface answers."""
        self.source.mkdir(parents=True)
        settings = [f"workers={workers}", *(f"{key}={value}" for key, value in more.items())]
        process = self._start("up", settings)
        folder, deadline = RunFolder(self.data_dir), time.monotonic() + UP_SECONDS
        while time.monotonic() < deadline:
            if process.poll() is not None:
                raise DemoFailedError(f"the node did not start: {self._log('up').read_text()}")
            try:
                self._node = folder.node()
                httpx.get(
                    f"{self._node.rest}/health", timeout=2, trust_env=False
                ).raise_for_status()
            except (NoNodeError, httpx.HTTPError):
                time.sleep(0.1)
            else:
                self._system = connect(folder.system_address())
                return self._node
        raise DemoFailedError(f"the node was not up in {UP_SECONDS:.0f} s")

    def start_feeder(self, seconds: float) -> None:
        """Start the feeder, which writes the flights day by day."""
        self._processes.append(start_feeder(self.source, seconds=seconds))

    def start_worker(self) -> None:
        """Start `fairlead worker`: one more worker for as long as that command lives."""
        self._start("worker", [])

    def create_connector(self) -> None:
        """Create the demo's connector."""
        self.create(CONNECTOR, connector_config(self.source, self.sink))

    def create_from(self, source: Path, sink: Path) -> None:
        """Create the demo's connector for other folders than those of this stage."""
        self.create(CONNECTOR, connector_config(source, sink))

    def kill_node(self) -> None:
        """Kill all processes of the node at once, as its host would end."""
        (up, *_) = self._processes
        pids = [up.pid, *descendants(up.pid)]
        for number in (signal.SIGSTOP, signal.SIGKILL):
            for pid in pids:
                with suppress(ProcessLookupError):
                    os.kill(pid, number)
        self._node = None

    def create(self, name: str, config: Mapping[str, str]) -> None:
        """Create a connector through the REST interface."""
        body = {"name": name, "config": dict(config)}
        try:
            reply = httpx.post(
                f"{self._rest}/connectors", json=body, timeout=CREATE_SECONDS, trust_env=False
            )
        except httpx.HTTPError as error:
            raise DemoFailedError(
                f"the node's REST interface did not answer: {type(error).__name__}: {error}"
            ) from None
        if reply.is_error:
            raise DemoFailedError(f"the connector was refused: {reply.text}")

    def kill(self, worker: str) -> int:
        """Kill a worker's process with -9; return its process id."""
        pid = next(each.pid for each in self.processes().workers if each.name == worker)
        if pid is None:
            raise DemoFailedError(f"worker {worker} has no process to kill")
        os.kill(pid, signal.SIGKILL)
        return pid

    def check(self) -> None:
        """Raise `DemoFailedError` if the node has ended."""
        if self._node is not None and not self._node.is_alive():
            raise DemoFailedError(f"the node ended: {self._log('up').read_text()}")

    def processes(self) -> NodeView:
        """Return the node's processes, from its supervisor."""
        if self._system is None:
            raise DemoFailedError("the node is not up")
        try:
            supervisor = self._system.named("supervisor")
            view = self._system.ask(supervisor, DescribeNode(), ASK_SECONDS) if supervisor else None
        except UnreachableError as error:
            raise DemoFailedError(f"the node cannot be reached: {error}") from error
        if not isinstance(view, NodeView):
            raise DemoFailedError("the node's supervisor does not answer")
        return view

    def stop(self) -> None:
        """Stop all processes gracefully, in reverse order of their start."""
        if self._system is not None:
            self._system.close()
            self._system = None
        for process in reversed(self._processes):
            if process.poll() is None:
                process.terminate()
        deadline = time.monotonic() + STOP_SECONDS
        for process in reversed(self._processes):
            try:
                process.wait(max(0.1, deadline - time.monotonic()))
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
            if process.stderr is not None:
                process.stderr.close()
        self._processes.clear()

    @property
    def _rest(self) -> str:
        if self._node is None:
            raise DemoFailedError("the node is not up")
        return self._node.rest

    def _start(self, verb: str, settings: Sequence[str]) -> subprocess.Popen[str]:
        """Start a command of `fairlead` as a process that ends with this one."""
        given = [f"{key}={value}" for key, value in SETTINGS.items()]
        given += [f"data.dir={self.data_dir}", *settings]
        options = [part for each in given for part in ("--set", each)]
        program = [sys.executable, "-m", "fairlead.runtime", verb, *options]
        with self._log(verb).open("w") as log:
            process = subprocess.Popen(  # noqa: S603 - our own module, no shell
                tied(program),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                text=True,
            )
        self._processes.append(process)
        return process

    def _log(self, verb: str) -> Path:
        return self.folder / f"{verb}.log"


@contextmanager
def staged(folder: Path) -> Generator[Stage]:
    """Yield a stage, and stop all its processes at the end."""
    stage = Stage(folder)
    try:
        yield stage
    finally:
        # A second Ctrl-C must not interrupt the cleanup.
        before = signal.signal(signal.SIGINT, signal.SIG_IGN)
        try:
            stage.stop()
        finally:
            signal.signal(signal.SIGINT, before)
