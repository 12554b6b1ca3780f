"""Consumer processes of one group, and checks of their events."""
# pyright: basic

import os
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from fairlead_tests.kafka_clients.clients import Client

SECONDS = 90.0
LOOK_SECONDS = 0.05
TESTS = Path(__file__).parents[2]


@dataclass
class Reader:
    """One of these processes."""

    process: "subprocess.Popen[str]"
    client: Client
    events: list[dict[str, Any]] = field(default_factory=list)
    ended_at: float = 0.0
    """When it was killed; 0: it was not."""

    @property
    def has_started(self) -> bool:
        """Whether it is about to join."""
        return any(each["what"] == "started" for each in [*self.events])

    @property
    def partitions(self) -> set[int]:
        """Its current partitions."""
        return (
            set() if self.ended_at else {each for each, (_, end) in self._last().items() if not end}
        )

    def spans(self) -> list[tuple[int, float, float]]:
        """Return which partition it had from when to when; 0 stands for until now."""
        found, begun = [], dict[int, float]()
        for each in [*self.events]:
            for partition in each.get("partitions", ()):
                if each["what"] == "given":
                    begun.setdefault(partition, each["at"])
                elif partition in begun:
                    found.append((partition, begun.pop(partition), each["at"]))
        return [*found, *((each, at, self.ended_at) for each, at in begun.items())]

    def _last(self) -> dict[int, tuple[float, float]]:
        return {partition: (begin, end) for partition, begin, end in self.spans()}

    def leave(self) -> None:
        """Let it leave, and wait for its end."""
        assert self.process.stdin
        if self.client.leaves_by_signal:
            self.process.terminate()
        self.process.stdin.close()
        self.process.wait(SECONDS)

    @contextmanager
    def hanging(self) -> Generator[None]:
        """Suspend it in the context: a rebalance that waits for it cannot end."""
        self.process.send_signal(signal.SIGSTOP)
        try:
            yield
        finally:
            self.process.send_signal(signal.SIGCONT)

    def kill(self) -> None:
        """Kill it."""
        self.process.kill()
        self.process.wait(SECONDS)
        self.ended_at = time.monotonic()


class Readers:
    """All consumers that were ever in the group."""

    def __init__(self, bootstrap: str, topic: str, partitions: int, folder: Path) -> None:
        """Their group reads a topic; clients that need files have them in the folder."""
        self._bootstrap, self._topic, self._count = bootstrap, topic, partitions
        self._folder = folder
        self.all: list[Reader] = []

    def add(self, client: Client) -> Reader:
        """Have one more."""
        folder = self._folder / f"reader-{len(self.all)}"
        folder.mkdir()
        command = client.command(self._bootstrap, self._topic, client.config, folder)
        with (folder / "errors").open("w") as errors:
            process = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
                env={**os.environ, "PYTHONPATH": str(TESTS)},
            )
        reader = Reader(process, client)
        listens = threading.Thread(target=_listen, args=(reader, folder / "told"), daemon=True)
        listens.start()
        self.all.append(reader)
        return reader

    def end(self) -> None:
        """Stop all that still run."""
        for each in self.all:
            each.process.kill()
            each.process.wait(SECONDS)
            for pipe in (each.process.stdin, each.process.stdout):
                assert pipe
                pipe.close()

    def until(self, holds: Callable[[], bool], what: str) -> None:
        """Wait until a condition holds."""
        deadline = time.monotonic() + SECONDS
        while not holds():
            assert time.monotonic() < deadline, (what, [each.partitions for each in self.all])
            time.sleep(LOOK_SECONDS)

    @contextmanager
    def joining(self, client: Client, member: Reader) -> Generator[Reader]:
        """Add a consumer, in a rebalance that waits for a suspended member."""
        joining = self.add(client)
        self.until(lambda: joining.has_started, "it starts")
        with joining.hanging(), member.hanging():
            joining.process.send_signal(signal.SIGCONT)
            yield joining

    def share(self, *those: Reader) -> Callable[[], bool]:
        """Return a condition: each partition has an owner among these, and each of them has any."""

        def holds() -> bool:
            given = [part for each in those for part in each.partitions]
            return sorted(given) == [*range(self._count)] and all(each.partitions for each in those)

        return holds

    def read(self) -> set[tuple[int, int]]:
        """Return all partitions and offsets that were read."""
        return {
            (each["partition"], each["offset"])
            for reader in self.all
            for each in [*reader.events]
            if each["what"] == "read"
        }

    def acknowledged(self) -> dict[int, int]:
        """Return the greatest acknowledged committed offset of each partition."""
        found: dict[int, int] = {}
        for reader in self.all:
            for each in [*reader.events]:
                for partition, offset in each.get("offsets", {}).items():
                    found[int(partition)] = max(offset, found.get(int(partition), -1))
        return found

    def twice_owned(self) -> list[tuple[int, float, int, int]]:
        """Return overlapping ownerships: the partition, the duration, and both consumers."""
        spans = [
            (partition, begin, end or time.monotonic(), number)
            for number, reader in enumerate(self.all)
            for partition, begin, end in reader.spans()
        ]
        return [
            (partition, min(end, other_end) - max(begin, other), number, its_number)
            for at, (partition, begin, end, number) in enumerate(spans)
            for another, other, other_end, its_number in spans[at + 1 :]
            if another == partition
            and number != its_number
            and max(begin, other) < min(end, other_end)
        ]


def _listen(reader: Reader, path: Path) -> None:
    """Read the events of a consumer, and keep them in a file to debug failures."""
    assert reader.process.stdout
    with path.open("w") as file:
        for line in reader.process.stdout:
            file.write(line)
            reader.events += reader.client.events(line)
