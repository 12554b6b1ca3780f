# pyright: basic
"""Stock Kafka Connect workers, and requests to them."""

import json
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fairlead.actors.tether import tied
from fairlead_tests.kafka.broker import free_ports
from fairlead_tests.kafka_clients.jars import java_command

SECONDS = 90.0
_PROPERTIES = """
bootstrap.servers={bootstrap}
group.id={group}
listeners=http://127.0.0.1:{port}
rest.advertised.host.name=127.0.0.1
plugin.discovery=service_load
key.converter=org.apache.kafka.connect.storage.StringConverter
value.converter=org.apache.kafka.connect.storage.StringConverter
config.storage.topic={group}-configs
config.storage.replication.factor=1
offset.storage.topic={group}-offsets
offset.storage.replication.factor=1
offset.storage.partitions=1
status.storage.topic={group}-status
status.storage.replication.factor=1
status.storage.partitions=1
offset.flush.interval.ms=300
session.timeout.ms=6000
heartbeat.interval.ms={heartbeat_ms}
scheduled.rebalance.max.delay.ms=1000
consumer.session.timeout.ms=6000
consumer.heartbeat.interval.ms=500
reconnect.backoff.max.ms=200
connector.client.config.override.policy=All
"""


@dataclass
class Worker:
    """One of these processes."""

    process: "subprocess.Popen[bytes]"
    url: str

    def ask(self, path: str, method: str = "GET", body: Any = None) -> Any:
        """Return the response; None without a response, or for a temporary error."""
        asked = urllib.request.Request(
            f"{self.url}{path}",
            method=method,
            data=None if body is None else json.dumps(body).encode(),
            headers={"Content-Type": "application/json"},
        )
        try:
            with urllib.request.urlopen(asked, timeout=5) as answer:
                return json.load(answer)
        except (urllib.error.URLError, TimeoutError, ConnectionError):
            return None

    def runs(self, *connectors: str) -> dict[str, str]:
        """Return the worker of each running task, according to this worker."""
        told = self.ask("/connectors?expand=status") or {}
        return {
            f"{name}-{task['id']}": task["worker_id"]
            for name in connectors
            for task in told.get(name, {}).get("status", {}).get("tasks", ())
            if task["state"] == "RUNNING"
        }

    def kill(self) -> None:
        """Kill it."""
        self.process.kill()
        self.process.wait(SECONDS)


class Workers:
    """All workers of one group, whose topics have its id in their names."""

    def __init__(self, bootstrap: str, folder: Path, group: str, heartbeat_ms: int) -> None:
        self._bootstrap, self._folder, self._group = bootstrap, folder, group
        self._heartbeat_ms = heartbeat_ms
        self.all: list[Worker] = []

    def add(self) -> Worker:
        """Start one more, without waiting for its join."""
        (port,) = free_ports(1)
        name = f"worker-{len(self.all)}"
        told = self._folder / f"{name}.properties"
        told.write_text(
            _PROPERTIES.format(
                bootstrap=self._bootstrap,
                group=self._group,
                port=port,
                heartbeat_ms=self._heartbeat_ms,
            )
        )
        command = java_command("org.apache.kafka.connect.cli.ConnectDistributed", str(told))
        with (self._folder / f"{name}.log").open("wb") as log:
            process = subprocess.Popen(tied(command), stdout=log, stderr=log)
        worker = Worker(process, f"http://127.0.0.1:{port}")
        self.all.append(worker)
        return worker

    def end(self) -> None:
        """Stop all that still run."""
        for each in self.all:
            each.kill()


@contextmanager
def connect_workers(
    bootstrap: str, folder: Path, group: str, *, heartbeat_ms: int = 500
) -> Generator[Workers]:
    """Yield workers with this bootstrap address, and their files in the folder."""
    workers = Workers(bootstrap, folder, group, heartbeat_ms)
    try:
        yield workers
    finally:
        workers.end()


def until(holds: Callable[[], object], what: str, pause_s: float = 0.1) -> None:
    """Wait until a condition holds."""
    deadline = time.monotonic() + SECONDS
    while not holds():
        assert time.monotonic() < deadline, what
        time.sleep(pause_s)
