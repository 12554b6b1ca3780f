"""Nodes of one cluster on this machine: a folder and a listener each, and one store."""
# pyright: basic

import os
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import psutil

from fairlead.events.group import Group
from fairlead.events.log.reader import LogReader
from fairlead.projections.follow.group import Follower
from fairlead_tests.actor_system import title_of
from fairlead_tests.certificates import LOOPBACK_NAMES, Authority
from fairlead_tests.cluster.node import GROUP, eventually
from fairlead_tests.kafka_listener.served import free_place

END_SECONDS = 60.0


@dataclass
class ClusterNode:
    """A node, which may be killed and started again."""

    name: str
    folder: Path
    settings: Mapping[str, object]
    environ: Mapping[str, str]
    prefix: Sequence[str] = ()
    """The words before its command, by which it runs on a host of its own."""
    process: "subprocess.Popen[bytes] | None" = None

    def start(self) -> None:
        """Start it, in a session of its own; its REST interface answers later."""
        settings = {"data.dir": self.folder, "node.name": self.name, **self.settings}
        words = [word for each in settings.items() for word in ("--set", "{}={}".format(*each))]
        with self.folder.with_suffix(".out").open("ab") as out:
            self.process = subprocess.Popen(
                [*self.prefix, sys.executable, "-m", "fairlead.runtime", "up", *words],
                stdout=out,
                stderr=out,
                env={**os.environ, **self.environ},
                start_new_session=True,
            )

    def is_up(self) -> bool:
        """Whether its REST interface answers."""
        return self.listens() and self.rest("GET", "/").is_success

    def listens(self) -> bool:
        """Whether its REST interface takes connections."""
        with socket.socket(socket.AF_UNIX) as line, suppress(OSError):
            line.connect(str(self.folder / "run" / "rest.sock"))
            return True
        return False

    def wait(self) -> None:
        """Wait until it is up."""
        eventually(self.is_up, f"{self.name} is up: {self.said()}")

    def rest(self, method: str, path: str, **options: Any) -> httpx.Response:
        """Ask its REST interface."""
        transport = httpx.HTTPTransport(uds=str(self.folder / "run" / "rest.sock"))
        with httpx.Client(transport=transport, timeout=20) as client:
            return client.request(method, f"http://localhost{path}", **options)

    def said(self) -> str:
        """Return what it has said and logged."""
        files = [self.folder.with_suffix(".out"), *self.folder.glob("logs/actors.log*")]
        return "\n".join(each.read_text()[-4_000:] for each in files if each.exists())

    def processes(self) -> list[psutil.Process]:
        """Return its processes."""
        if self.process is None:
            return []
        with suppress(psutil.NoSuchProcess):
            launcher = psutil.Process(self.process.pid)
            return [launcher, *launcher.children(recursive=True)]
        return []

    def kill(self) -> None:
        """Kill all of it at once, as its host would end."""
        if self.process is not None:
            found = self.processes()
            for each in found:
                with suppress(psutil.NoSuchProcess):
                    each.suspend()
            for each in [*found, *self.processes()]:
                with suppress(psutil.NoSuchProcess):
                    each.kill()
            self.process.wait(END_SECONDS)
            psutil.wait_procs(found, END_SECONDS)
            self.process = None

    def end(self) -> None:
        """End it by SIGTERM."""
        if self.process is not None:
            self.process.terminate()
            self.process.wait(END_SECONDS)
            self.process = None

    def hit(self, title: str, number: signal.Signals) -> psutil.Process:
        """Send a signal to the process with a title, such as `group connect`, and return it."""
        (found,) = [each for each in self.processes() if title_of(each) == f"fairlead: {title}"]
        found.send_signal(number)
        return found

    def wipe(self) -> None:
        """Lose its data folder."""
        shutil.rmtree(self.folder, ignore_errors=True)

    def log(self, name: str = "control") -> LogReader:
        """Open its copy of one of the group's logs."""
        return LogReader.open(self.folder / "groups" / GROUP / name, GROUP)

    def group(self) -> Group:
        """Return the group as its copy has it."""
        with self.log() as log:
            return Follower(GROUP, log).catch_up()

    @property
    def owner(self) -> str:
        """The name of the node that its copy says to own the group."""
        ownership = self.group().ownership
        return "" if ownership is None else ownership.node


@dataclass
class Cluster:
    """What makes nodes of one cluster."""

    folder: Path
    store: Mapping[str, object]
    environ: Mapping[str, str] = field(default_factory=dict)
    addresses: Sequence[str] = ()
    """Of nodes on hosts of their own."""

    @contextmanager
    def nodes(self, *names: str, **settings: object) -> Generator[list[ClusterNode]]:
        """Run nodes; they are killed at the end."""
        with ExitStack() as stack:
            nodes = [self.node(name, settings) for name in names]
            for each in nodes:
                stack.callback(each.kill)
                each.start()
            for each in nodes:
                each.wait()
            yield nodes

    def node(self, name: str, settings: Mapping[str, object]) -> ClusterNode:
        """Prepare a node with a listener for the others."""
        own = self.folder / "node.pem"
        if not own.exists():
            authority = Authority()
            names = (*LOOPBACK_NAMES, *self.addresses)
            authority.issue("node", names).write(own)
            (self.folder / "ca.pem").write_bytes(authority.pem)
            key = self.folder / "key"
            key.touch(mode=0o600)
            key.write_bytes(secrets.token_bytes(32))
        told = {
            "engine": "noop",
            "workers": 1,
            "listeners": "",
            "cluster.key.file": self.folder / "key",
            "kafka.listeners": f"SSL://127.0.0.1:{free_place()}",
            "kafka.group.shards": 1,
            "kafka.ssl.keystore.location": own,
            "kafka.ssl.keystore.type": "PEM",
            "kafka.ssl.truststore.location": self.folder / "ca.pem",
            "kafka.ssl.truststore.type": "PEM",
            "members.principal": "User:CN=node",
            **self.store,
            **{key.replace("_", "."): value for key, value in settings.items()},
        }
        return ClusterNode(name, self.folder / name, told, self.environ)


def seconds_until(holds: Callable[[], bool], what: str) -> float:
    """Wait until a condition holds; return how long that took."""
    began = time.monotonic()
    eventually(holds, what)
    return time.monotonic() - began
