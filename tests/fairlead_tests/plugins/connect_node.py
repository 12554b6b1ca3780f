"""A node that runs plugins of Kafka Connect, with real processes, beside a real broker."""

import signal
import subprocess
import sys
import time
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import psutil

from fairlead.events.entries.codec import encode
from fairlead.events.log.writer import GroupLog
from fairlead.events.model import RunState
from fairlead.events.records import ConnectorConfig, Record, TargetState
from fairlead.runtime.cluster.run_folder import RunFolder
from fairlead_tests.kafka.broker import free_ports
from fairlead_tests.plugins.host_processes import command_of
from fairlead_tests.plugins.installed import QUICK

START_SECONDS = 400.0
PATIENCE_SECONDS = 180.0
"""The first question of a node starts a JVM, beside those of its workers and of Spark."""
IDLE = "idle"
"""The connector of a group that begins `without_spark`."""
STRING = "org.apache.kafka.connect.storage.StringConverter"
ONE_BROKER = {
    "key.converter": STRING,
    "value.converter": STRING,
    "offset.storage.replication.factor": "1",
    "offset.storage.partitions": "1",
    "offset.flush.interval.ms": "500",
}
"""The properties of a worker whose Kafka has one broker."""
ONE_REPLICA = {
    "topic.creation.default.replication.factor": "1",
    "topic.creation.default.partitions": "1",
}
"""The keys of a source whose topics do not exist yet."""


def until(holds: Callable[[], object], what: str, seconds: float = START_SECONDS) -> None:
    """Wait until a condition holds; fail the test after a time limit.

    Those who are waited for have most of the processor: a look that takes long is seldom.
    """
    begun = time.monotonic()
    deadline = begun + seconds
    while not holds():
        ended = time.monotonic()
        assert ended < deadline, f"not in {seconds:g} s: {what}"
        time.sleep(min(max(0.05, 3 * (ended - begun)), 0.5))
        begun = time.monotonic()


@dataclass
class ConnectNode:
    """A node, and a client of its REST interface."""

    command: Sequence[str]
    data_dir: Path
    rest: httpx.Client
    _process: "subprocess.Popen[bytes] | None" = None

    @property
    def process(self) -> "subprocess.Popen[bytes]":
        """The process that was started last."""
        assert self._process is not None
        return self._process

    def up(self) -> None:
        """Start it, and wait until it serves."""
        path = self.data_dir.parent / "up.log"
        with path.open("ab") as log:
            self._process = process = subprocess.Popen(self.command, stdout=log, stderr=log)
        until(lambda: process.poll() is not None or _serves(self.rest), "the node serves")
        assert process.poll() is None, path.read_text()[-2000:]

    def down(self) -> None:
        """End it."""
        self.process.send_signal(signal.SIGTERM)
        self.process.wait(START_SECONDS)

    def crash(self) -> None:
        """Kill all its processes at once."""
        processes = psutil.Process(self.process.pid).children(recursive=True)
        self.process.kill()
        for each in processes:
            with suppress(psutil.NoSuchProcess):
                each.kill()
        self.process.wait()
        psutil.wait_procs(processes, START_SECONDS)

    def create(self, name: str, config: Mapping[str, str], tasks: int = 1) -> None:
        """Create a connector, or change it, and wait until its tasks run."""
        answer = self.rest.put(f"/connectors/{name}/config", json=dict(config))
        assert answer.is_success, answer.text
        self.runs(name, tasks)

    def turn(self, name: str, what: str) -> None:
        """Stop, pause or resume a connector."""
        answer = self.rest.put(f"/connectors/{name}/{what}")
        assert answer.is_success, answer.text

    def runs(self, name: str, tasks: int = 1) -> None:
        """Wait until a connector and all its tasks are RUNNING, without a remark."""

        def is_running() -> bool:
            status = self.status(name)
            states = [status["connector"], *status["tasks"]]
            plain = all(each["state"] == "RUNNING" and not each.get("reason") for each in states)
            return plain and len(status["tasks"]) == tasks

        try:
            until(is_running, f"{name} runs")
        except AssertionError:
            raise AssertionError(self.status(name)) from None

    def status(self, name: str) -> dict[str, Any]:
        """Return the status of a connector, with reasons."""
        found: dict[str, Any] = self.rest.get(f"/connectors/{name}/status?extended=true").json()
        return found

    def logs(self) -> str:
        """Return what the node and its workers have logged."""
        files = sorted((self.data_dir / "logs").glob("*.log"))
        return "".join(each.read_text(errors="replace") for each in files)

    def delete(self, *names: str) -> None:
        """Delete connectors, and wait until they are gone."""
        for name in names:
            self.rest.delete(f"/connectors/{name}")
        until(lambda: not {*names} & {*self.rest.get("/connectors").json()}, "they are gone")

    def processes(self, part: str) -> Sequence[psutil.Process]:
        """Return the processes of the node whose title or command line has a text in it."""
        found = psutil.Process(self.process.pid).children(recursive=True)
        return [each for each in found if part in command_of(each)]

    def worker(self, name: str) -> psutil.Process:
        """Return the process of a worker."""
        (found,) = self.processes(f"fairlead: worker {name}")
        return found

    def hosts(self) -> Sequence[psutil.Process]:
        """Return the plugin hosts of all workers, not that of REST."""
        workers = {each.pid for each in self.processes("fairlead: worker ")}
        return [each for each in self.processes("fairlead.plugins.Boot") if each.ppid() in workers]


def without_spark(data_dir: Path) -> None:
    """Write the log of a group as one with a stopped connector of Connect's own class.

    Workers that begin with such ones alone start Spark once a connector needs it; those of a new
    group start it at once.
    """
    config = {"connector.class": "FileStreamSink", "file": "", "topics": IDLE}
    records: list[Record] = [
        ConnectorConfig(IDLE, config),
        TargetState(IDLE, RunState.STOPPED, 0),
    ]
    data_dir.mkdir(mode=0o700)
    run, folder = RunFolder(data_dir), data_dir / "groups" / "connect"
    run.path.mkdir(mode=0o700)
    run.key()  # a node does not start with a log whose key is gone
    folder.parent.mkdir(mode=0o700)
    folder.mkdir(mode=0o700)
    GroupLog.open_writer(folder / "offsets", "connect").close()
    with GroupLog.open_writer(folder / "control", "connect") as log:
        log.append(log.end, [*map(encode, records)], 0)


@contextmanager
def connect_node(
    folder: Path,
    bootstrap: str,
    plugins: Path,
    settings: Mapping[str, object] | None = None,
    *,
    has_spark: bool = True,
) -> Generator[ConnectNode]:
    """Run a node with two workers and the plugins of a folder, and end it.

    It may start without a Spark, until a connector needs one.
    """
    (port,) = free_ports(1)
    words = {
        "data.dir": folder / "data",
        "listeners": f"http://127.0.0.1:{port}",
        "workers": 2,
        "group.id": "connect",
        "group.initial.rebalance.delay.ms": 0,
        "plugin.path": plugins,
        "plugin.host.java.options": QUICK.java_options,
        "bootstrap.servers": bootstrap,
        "offset.storage.topic": "connect-offsets",
        **ONE_BROKER,
        **(settings or {}),
    }
    folder.mkdir(mode=0o700, exist_ok=True, parents=True)
    if not has_spark:
        without_spark(folder / "data")
    command = [sys.executable, "-m", "fairlead.runtime", "up"]
    command += [word for each in words.items() for word in ("--set", "{}={}".format(*each))]
    with httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=PATIENCE_SECONDS) as rest:
        node = ConnectNode(command, folder / "data", rest)
        try:
            node.up()
            if not has_spark:
                node.delete(IDLE)
            yield node
        finally:
            node.down()


def _serves(client: httpx.Client) -> bool:
    try:
        return client.get("/health/ready").is_success
    except httpx.TransportError:
        return False
