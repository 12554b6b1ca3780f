# pyright: basic
"""Faults for connectors of Connect's own classes, and a pair of them that a writer keeps busy.

A source writes the lines of a file to a topic, exactly once; a sink writes the topic to a file. The
same faults are for connectors whose other end is one of fairlead's (`feeds.py`).
"""

import random
import time
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import Event, Thread
from typing import Final, Protocol

import psutil

from fairlead_tests.kafka.broker import Broker
from fairlead_tests.plugins.connect_node import ONE_REPLICA, ConnectNode, until

PAUSE_S: Final = 0.01
"""Between two lines of the writer."""
DIGITS: Final = 8
GENTLE: Final = frozenset({"drain", "restart", "scale"})
"""The faults after which a sink has nothing twice."""


class Watched(Protocol):
    """Connectors that faults happen to."""

    node: ConnectNode

    @property
    def names(self) -> Sequence[str]:
        """The names of the connectors."""
        ...

    @property
    def doubled(self) -> int:
        """How many values are in the target once more than once."""
        ...

    def settle(self, what: str) -> None:
        """Wait until all runs, and what has been written until now is in the target."""
        ...


class Server(Protocol):
    """A server that can be killed and started again."""

    def kill(self) -> None:
        """Kill it."""
        ...

    def start(self) -> None:
        """Start it, and wait until it answers."""
        ...


class Pair:
    """A source and a sink, and what they have carried."""

    def __init__(self, node: ConnectNode, folder: Path, name: str) -> None:
        self.node, self.topic = node, f"{name}-lines"
        self.source, self.target = folder / f"{name}.in", folder / f"{name}.out"
        self.reads, self.writes = f"{name}-source", f"{name}-sink"
        self.names = (self.reads, self.writes)
        self.sink_tasks = 1
        self.lines: list[str] = []
        self._stop = Event()

    @contextmanager
    def running(self) -> Generator[None]:
        """Create both, and have a writer write; both are deleted at the end."""
        self.source.touch()
        source = {"connector.class": "FileStreamSource", "file": str(self.source)}
        self.node.create(self.reads, {**source, "topic": self.topic, **ONE_REPLICA})
        self.scale(1)
        writer = Thread(target=self._write)
        writer.start()
        try:
            yield
        finally:
            self._stop.set()
            writer.join()
        self.node.delete(self.reads, self.writes)

    def scale(self, tasks: int) -> None:
        """Have the sink have so many tasks."""
        self.sink_tasks = tasks
        sink = "org.apache.kafka.connect.file.FileStreamSinkConnector"
        config = {"connector.class": sink, "file": str(self.target), "topics": self.topic}
        isolation = {"consumer.override.isolation.level": "read_committed"}
        self.node.create(self.writes, {**config, **isolation, "tasks.max": str(tasks)}, tasks)

    def written(self) -> list[str]:
        """Return the lines in the target; a writer that was killed may have torn one."""
        lines = self.target.read_text().split("\n") if self.target.exists() else []
        return [each[-DIGITS:] for each in lines if len(each) >= DIGITS]

    def settle(self, what: str) -> None:
        """Wait until all runs, and what has been written until now is in the target."""
        self.node.runs(self.reads)
        self.node.runs(self.writes, self.sink_tasks)
        last = self.lines[-1]
        until(lambda: last in self._tail(), f"lines flow after {what}")

    def stop(self) -> None:
        """Write no more, and wait until all is in the target."""
        self._stop.set()
        until(lambda: {*self.lines} <= {*self.written()}, "all lines are in the target")

    @property
    def doubled(self) -> int:
        """How many lines are in the target once more than once."""
        written = self.written()
        return len(written) - len({*written})

    def _tail(self) -> Sequence[str]:
        return self.written()[-5000:]

    def _write(self) -> None:
        with self.source.open("a", buffering=1) as file:
            while not self._stop.is_set():
                line = str(len(self.lines)).zfill(DIGITS)
                file.write(f"{line}\n")
                self.lines.append(line)
                self._stop.wait(PAUSE_S)


class Faults:
    """The faults of one node, its processes, its broker, and a server that it reads or writes."""

    def __init__(
        self, pair: Watched, broker: Broker, seed: object, server: Server | None = None
    ) -> None:
        self._pair, self._broker, self._server = pair, broker, server
        self._dice = random.Random(str(seed))
        self.handovers = 0
        """How often all tasks ran again after a fault that ended them or took them away."""

    def inject(self, event: str) -> None:
        """Have a fault happen, and wait until lines flow again."""
        begun, doubled = time.monotonic(), self._pair.doubled
        does: dict[str, Callable[[], None]] = {
            "kill host": self._kill_host,
            "kill worker": self._kill_worker,
            "kill node": self._kill_node,
            "freeze": self._freeze,
            "drain": self._drain,
            "scale": self._scale,
            "restart": self._restart,
            "kill broker": self._kill_broker,
            "kill server": self._kill_server,
        }
        does[event]()
        self._pair.settle(event)
        self.handovers += 1
        again = self._pair.doubled - doubled
        took = time.monotonic() - begun
        print(f"{event}: {took:.1f} s, {again} values twice in the target", flush=True)
        assert event not in GENTLE or again == 0, f"{again} values twice after {event}"

    @property
    def _node(self) -> ConnectNode:
        return self._pair.node

    def _workers(self) -> Sequence[str]:
        """Return the workers that have a task, such as `w1`."""
        return sorted({each.rpartition("/")[2] for each in self._seats().values()})

    def _seats(self) -> dict[str, str]:
        """Return the worker of each task, by its connector and number."""
        return {
            f"{name}-{each['id']}": each["worker_id"]
            for name in self._pair.names
            for each in self._node.status(name)["tasks"]
        }

    def _chosen(self) -> psutil.Process:
        return self._node.worker(self._dice.choice(self._workers()))

    def _hosts_of(self, worker: psutil.Process) -> Sequence[psutil.Process]:
        return [each for each in self._node.hosts() if each.ppid() == worker.pid]

    def _kill_host(self) -> None:
        worker = self._chosen()
        until(lambda: self._hosts_of(worker), "it has a host")
        for each in self._hosts_of(worker):
            each.kill()

    def _kill_worker(self) -> None:
        self._chosen().kill()

    def _kill_node(self) -> None:
        self._node.crash()
        self._node.up()

    def _freeze(self) -> None:
        """Stop a worker and its host until another one has its tasks, and have both go on."""
        worker = self._chosen()
        held = {each for each, seat in self._seats().items() if self._is_of(seat, worker)}
        frozen = [worker, *self._hosts_of(worker)]
        for each in frozen:
            each.suspend()
        try:
            until(lambda: not held & {*self._held(worker)}, "another worker has its tasks")
            self._pair.settle("freeze")
        finally:
            for each in frozen:
                with suppress(psutil.NoSuchProcess):
                    each.resume()

    def _held(self, worker: psutil.Process) -> Sequence[str]:
        tasks = [each for name in self._pair.names for each in self._node.status(name)["tasks"]]
        seats = self._seats()
        if not all(each["state"] == "RUNNING" for each in tasks):
            return [*seats]
        return [key for key, seat in seats.items() if self._is_of(seat, worker)]

    @staticmethod
    def _is_of(seat: str, worker: psutil.Process) -> bool:
        return f"worker {seat.rpartition('/')[2]}" in " ".join(worker.cmdline())

    def _drain(self) -> None:
        name = self._dice.choice(self._workers())
        until(lambda: self._node.rest.put(f"/workers/{name}/drain").is_success, f"{name} drains")
        until(lambda: name not in self._workers(), f"{name} has nothing")
        until(lambda: self._node.rest.put(f"/workers/{name}/uncordon").is_success, "it is free")

    def _scale(self) -> None:
        assert isinstance(self._pair, Pair)
        self._pair.scale(3 - self._pair.sink_tasks)

    def _restart(self) -> None:
        for name in self._pair.names:
            path = f"/connectors/{name}/restart?includeTasks=true"
            assert self._node.rest.post(path).is_success

    def _kill_broker(self) -> None:
        self._broker.kill()
        time.sleep(self._dice.uniform(0.2, 3))
        self._broker.up()

    def _kill_server(self) -> None:
        assert self._server is not None
        self._server.kill()
        time.sleep(self._dice.uniform(0.2, 3))
        self._server.start()
