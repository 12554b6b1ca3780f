"""Consumers of one group in processes of their own, and what must be true of all they tell."""
# pyright: basic

import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

SECONDS = 40.0
TESTS = Path(__file__).parents[2]


@dataclass
class Reader:
    """One of them."""

    process: "subprocess.Popen[str]"
    events: list[dict[str, Any]] = field(default_factory=list)
    ended_at: float = 0.0
    """When it was killed; 0: it was not."""

    @property
    def partitions(self) -> set[int]:
        """What it has by now."""
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
        """Have it leave, and wait for its end."""
        assert self.process.stdin
        self.process.stdin.close()
        self.process.wait(SECONDS)

    def kill(self) -> None:
        """End it as a crash does."""
        self.process.kill()
        self.process.wait(SECONDS)
        self.ended_at = time.monotonic()


class Readers:
    """All that ever were in the group."""

    def __init__(self, bootstrap: str, topic: str, partitions: int, **config: Any) -> None:
        self._config = {
            "bootstrap.servers": bootstrap,
            "group.id": "readers",
            "auto.offset.reset": "earliest",
            "auto.commit.interval.ms": 200,
            "reconnect.backoff.max.ms": 200,
            "log_level": 0,
            **config,
        }
        self._topic, self._count = topic, partitions
        self.all: list[Reader] = []

    def add(self, **config: Any) -> Reader:
        """Have one more."""
        told = json.dumps({**self._config, **config})
        module = "fairlead_tests.kafka_listener.reader"
        process = subprocess.Popen(
            [sys.executable, "-m", module, told, self._topic],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "PYTHONPATH": str(TESTS)},
        )
        reader = Reader(process)
        threading.Thread(target=_listen, args=(reader,), daemon=True).start()
        self.all.append(reader)
        return reader

    def end(self) -> None:
        """End all that are still there."""
        for each in self.all:
            each.process.kill()
            each.process.wait(SECONDS)
            for pipe in (each.process.stdin, each.process.stdout):
                assert pipe
                pipe.close()

    def until(self, holds: Callable[[], bool], what: str) -> None:
        """Wait until something holds."""
        deadline = time.monotonic() + SECONDS
        while not holds():
            assert time.monotonic() < deadline, (what, [each.partitions for each in self.all])
            time.sleep(0.02)

    def share(self, *those: Reader) -> Callable[[], bool]:
        """Return what tells whether each partition has one of those, and each of them some."""

        def holds() -> bool:
            given = [part for each in those for part in each.partitions]
            return sorted(given) == [*range(self._count)] and all(each.partitions for each in those)

        return holds

    def read(self) -> set[tuple[int, int]]:
        """Return the partitions and offsets that were read by anybody."""
        return {
            (each["partition"], each["offset"])
            for reader in self.all
            for each in [*reader.events]
            if each["what"] == "read"
        }

    def acknowledged(self) -> dict[int, int]:
        """Return the greatest offset of each partition that anybody was told is committed."""
        found: dict[int, int] = {}
        for reader in self.all:
            for each in [*reader.events]:
                for partition, offset in each.get("offsets", {}).items():
                    found[int(partition)] = max(offset, found.get(int(partition), -1))
        return found

    def twice_owned(self) -> list[tuple[int, float]]:
        """Return each partition that two had at one time, and for how long."""
        spans = [
            (partition, begin, end or time.monotonic(), number)
            for number, reader in enumerate(self.all)
            for partition, begin, end in reader.spans()
        ]
        return [
            (partition, min(end, other_end) - max(begin, other))
            for at, (partition, begin, end, number) in enumerate(spans)
            for another, other, other_end, its_number in spans[at + 1 :]
            if another == partition
            and number != its_number
            and max(begin, other) < min(end, other_end)
        ]


def _listen(reader: Reader) -> None:
    assert reader.process.stdout
    for line in reader.process.stdout:
        reader.events.append(json.loads(line))
