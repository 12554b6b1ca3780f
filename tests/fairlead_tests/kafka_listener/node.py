"""A node without workers that serves Kafka clients, with real processes."""

import contextlib
import socket
import subprocess
import sys
import time
from collections.abc import Generator
from dataclasses import dataclass
from pathlib import Path

import psutil

from fairlead.events.entries.codec import decode
from fairlead.events.entries.group_keys import by_group
from fairlead.events.evolve import evolve
from fairlead.events.group import Group
from fairlead.events.log.reader import LogReader
from fairlead.events.records import ClassicGroup, GroupMetadata, Record
from fairlead_tests.kafka_listener.served import free_place

START_SECONDS = 90.0


@dataclass
class ListenerNode:
    """A running node."""

    folder: Path
    port: int
    process: "subprocess.Popen[bytes]"

    @property
    def bootstrap(self) -> str:
        """The bootstrap address."""
        return f"127.0.0.1:{self.port}"

    def kill(self, title: str) -> None:
        """Kill one of its processes, by its title."""
        found = [each for each in self._children() if _title(each).startswith(title)]
        assert found, [*map(_title, self._children())]
        for each in found:
            each.kill()
        psutil.wait_procs(found, START_SECONDS)

    def wait(self) -> None:
        """Wait until the port is open, which is before the groups are."""
        deadline = time.monotonic() + START_SECONDS
        while True:
            with contextlib.suppress(OSError):
                socket.create_connection(("127.0.0.1", self.port), 1).close()
                return
            assert self.process.poll() is None
            assert time.monotonic() < deadline
            time.sleep(0.02)

    def generations(self, group_id: str) -> list[int]:
        """Return the generations of a group in the order in which they were written."""
        records = self._records(group_id)
        return [each.generation for each in records if isinstance(each, ClassicGroup)]

    def epochs(self, group_id: str) -> list[int]:
        """Return the epochs that a group began, its generations included, as they were written."""
        return [
            each.generation if isinstance(each, ClassicGroup) else each.group_epoch
            for each in self._records(group_id)
            if isinstance(each, ClassicGroup | GroupMetadata)
        ]

    def group(self, group_id: str) -> Group:
        """Return a group as its log has it."""
        group = Group(group_id)
        for offset, record in enumerate(self._records(group_id)):
            evolve(group, record, offset)
        return group

    def _records(self, group_id: str) -> list[Record]:
        found: list[Record] = []
        for folder in sorted((self.folder / "shards").glob("*/control")):
            reader = LogReader.open(folder)
            entries = [each for batch in reader.tail(0) for each in batch]
            records = map(decode, by_group(entries).get(group_id, ()))
            found += [each for each in records if each is not None]
            reader.close()
        return found

    def _children(self) -> list[psutil.Process]:
        return psutil.Process(self.process.pid).children(recursive=True)


def _title(process: psutil.Process) -> str:
    with contextlib.suppress(psutil.Error):
        return " ".join(process.cmdline()).strip()
    return ""


@contextlib.contextmanager
def listener_node(folder: Path, broker: str, **settings: object) -> Generator[ListenerNode]:
    """Run a node with this broker behind it, and end it."""
    port, protocol = free_place(), settings.pop("protocol", "PLAINTEXT")
    told = {
        "engine": "noop",
        "workers": 0,
        "data.dir": folder,
        "listeners": "http://127.0.0.1:0",
        "kafka.listeners": f"{protocol}://127.0.0.1:{port}",
        "kafka.bootstrap.servers": broker,
        "group.initial.rebalance.delay.ms": 0,
        **{name.replace("_", "."): value for name, value in settings.items()},
    }
    words = [word for each in told.items() for word in ("--set", "{}={}".format(*each))]
    folder.mkdir(mode=0o700, exist_ok=True)
    process = subprocess.Popen(
        [sys.executable, "-m", "fairlead.runtime", "up", *words], stderr=subprocess.DEVNULL
    )
    node = ListenerNode(folder, port, process)
    try:
        node.wait()
        yield node
    finally:
        process.terminate()
        process.wait(START_SECONDS)
