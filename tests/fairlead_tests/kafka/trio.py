# pyright: basic, reportPrivateImportUsage=false
"""Three Kafka brokers at one address, each a controller as well: topics survive one of them."""

import os
import shutil
import subprocess
import time
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient

from fairlead.actors.tether import tied
from fairlead_tests.java_peer import QUICK, tool
from fairlead_tests.kafka.broker import START_SECONDS, Kept, free_ports, keep

COUNT: Final = 3
LOOPBACK: Final = "127.0.0.1"
_PROPERTIES: Final = """
process.roles=broker,controller
node.id={node}
listeners=PLAINTEXT://{host}:{port},CONTROLLER://127.0.0.1:{controller}
advertised.listeners=PLAINTEXT://{host}:{port}
controller.listener.names=CONTROLLER
listener.security.protocol.map=PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT
controller.quorum.voters={voters}
log.dirs={data}
num.network.threads=2
num.io.threads=2
broker.session.timeout.ms=3000
broker.heartbeat.interval.ms=500
auto.create.topics.enable=false
"""


class Trio:
    """Three brokers; each can be killed, and started again with its data."""

    def __init__(self, folder: Path, kept: Kept, host: str = LOOPBACK) -> None:
        self._folder, self._kept = folder, kept
        ports = free_ports(2 * COUNT)
        voters = [f"{node}@127.0.0.1:{ports[COUNT + node - 1]}" for node in range(1, COUNT + 1)]
        self.bootstrap = ",".join(f"{host}:{port}" for port in ports[:COUNT])
        self._processes: dict[int, subprocess.Popen[bytes]] = {}
        for node in range(1, COUNT + 1):
            data = folder / str(node)
            shutil.copytree(kept.formatted, data)
            (data / "meta.properties").write_text(
                f"version=1\nnode.id={node}\ncluster.id=fairlead-tests-cluster\n"
            )
            values = {"port": ports[node - 1], "controller": ports[COUNT + node - 1], "data": data}
            values["host"] = host
            told = _PROPERTIES.format(node=node, voters=",".join(voters), **values)
            (folder / f"{node}.properties").write_text(told)

    def up(self) -> None:
        """Start those that do not run, and wait until all serve."""
        for node in range(1, COUNT + 1):
            if node not in self._processes:
                self._start(node)
        admin = AdminClient({"bootstrap.servers": self.bootstrap, "log_level": 0})
        deadline = time.monotonic() + START_SECONDS
        while _brokers(admin) < COUNT:
            assert time.monotonic() < deadline, "the brokers do not start"

    def kill_leader(self, topic: str) -> None:
        """Kill the broker that leads the first partition of a topic."""
        admin = AdminClient({"bootstrap.servers": self.bootstrap, "log_level": 0})
        leader = admin.list_topics(topic, timeout=START_SECONDS).topics[topic].partitions[0].leader
        self.kill_broker(leader)

    def kill(self) -> None:
        """Kill all."""
        for node in [*self._processes]:
            self.kill_broker(node)

    def kill_broker(self, node: int) -> None:
        """Kill one."""
        process = self._processes.pop(node)
        process.kill()
        process.wait()

    def _start(self, node: int) -> None:
        command = [tool("java"), "-Xmx256m", *QUICK, *self._kept.options]
        command += ["-cp", self._kept.classpath, "kafka.Kafka"]
        command += [str(self._folder / f"{node}.properties")]
        environ = {**os.environ, "JAVA_TOOL_OPTIONS": ""}
        with (self._folder / f"{node}.log").open("wb") as out:
            self._processes[node] = subprocess.Popen(
                tied(command), stdout=out, stderr=out, env=environ
            )


def _brokers(admin: AdminClient) -> int:
    try:
        return len(admin.list_topics(timeout=0.5).brokers)
    except KafkaException:
        return 0


@contextmanager
def trio_at(folder: Path, host: str = LOOPBACK) -> Generator[Trio]:
    """Yield three brokers with their files in a folder; raises `NoPeer`."""
    trio = Trio(folder, keep(), host)
    try:
        trio.up()
        yield trio
    finally:
        trio.kill()
