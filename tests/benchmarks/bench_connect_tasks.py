# pyright: basic
"""Connectors of Kafka Connect's own classes, here and in a real worker of Connect beside it.

`python tests/benchmarks/bench_connect_tasks.py` prints JSON lines. Both use the same jars, the same
broker, the same options of the JVM, and one worker. A file is copied to a topic by Connect's own
file source; a row counts when the broker has it. What Connect does not do by itself, such as to
replace a JVM that was killed, has no peer. Without Java or Kafka there is nothing to measure.
"""

import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Final

import httpx
import psutil
import pyarrow.parquet as pq
from confluent_kafka import Consumer, TopicPartition

from fairlead_tests.benchmarks.figures import median, tell
from fairlead_tests.java_peer import QUICK, NoPeer
from fairlead_tests.kafka.broker import Broker, broker_at
from fairlead_tests.kafka.topics import Topics
from fairlead_tests.plugins.connect_node import (
    ONE_BROKER,
    ONE_REPLICA,
    STRING,
    ConnectNode,
    connect_node,
    until,
)
from fairlead_tests.plugins.installed import CONNECT_FILE, WORKER, installation, plugin_path
from fairlead_tests.plugins.real_worker import real_worker, topics_of

ROWS: Final = 300_000
LINE: Final = 100
"""The bytes of a row."""
TIMES: Final = 3
DEATHS: Final = 2
"""One more, and each connector has a host of its own."""
PROVEN_S: Final = 61.0
"""A host that has lived so long is replaced at once."""
IDLE_TASKS: Final = 20
IDLE_S: Final = 20.0
LOOK_S: Final = 0.005
SOURCE: Final = "org.apache.kafka.connect.file.FileStreamSourceConnector"
SINK: Final = "org.apache.kafka.connect.file.FileStreamSinkConnector"


class Side:
    """One of the two: its REST interface, its JVM, and its name in topics."""

    def __init__(self, name: str, rest: httpx.Client, jvm: Callable[[], psutil.Process]) -> None:
        self.name, self.rest, self.jvm = name, rest, jvm

    def create(self, name: str, config: Mapping[str, str]) -> None:
        """Create a connector, and wait until its task runs."""
        answer = self.rest.put(f"/connectors/{name}/config", json=dict(config))
        assert answer.is_success, answer.text
        until(lambda: self._runs(name), f"{name} runs")

    def delete(self, *names: str) -> None:
        """Delete connectors."""
        for each in names:
            self.rest.delete(f"/connectors/{each}")

    def _runs(self, name: str) -> bool:
        answer = self.rest.get(f"/connectors/{name}/status")
        tasks = answer.json()["tasks"] if answer.is_success else []
        return bool(tasks) and all(each["state"] == "RUNNING" for each in tasks)


class Ends:
    """The ends of topics, asked again and again."""

    def __init__(self, bootstrap: str) -> None:
        self._consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "bench"})

    def wait(self, topic: str, rows: int) -> None:
        """Wait until a topic has so many rows."""
        place = TopicPartition(topic, 0)
        until(lambda: topic in self._consumer.list_topics(timeout=60).topics, f"{topic} is there")
        while self._consumer.get_watermark_offsets(place, 60)[1] < rows:
            time.sleep(LOOK_S)


def main() -> None:
    """Measure both, one after the other in turns."""
    with tempfile.TemporaryDirectory(prefix="fairlead-bench-") as folder, ExitStack() as stack:
        root = Path(folder)
        try:
            broker = stack.enter_context(broker_at(root / "broker"))
        except NoPeer as reason:
            print(f"there is nothing to measure: {reason}", file=sys.stderr)
            return
        path = plugin_path(root / "plugins", CONNECT_FILE)
        options = {"plugin.host.java.options": " ".join(QUICK), "workers": 1}
        node = stack.enter_context(connect_node(root / "node", broker.bootstrap, path, options))
        properties = {**WORKER, "key.converter": STRING, "value.converter": STRING}
        properties |= {**ONE_BROKER, **topics_of("bench"), "plugin.path": str(path)}
        properties["bootstrap.servers"] = broker.bootstrap
        theirs = stack.enter_context(real_worker(installation(), properties, root))
        ours = Side("ours", node.rest, lambda: _one(node.hosts()))
        peer = Side("theirs", theirs[0], lambda: psutil.Process(theirs[1]))
        measure_files(root, ours, measure_rates(root, broker, ours, peer))
        measure_sinks(root, broker, ours, peer)
        measure_idle(root, ours, peer)
        measure_deaths(root, broker, node)


def measure_rates(root: Path, broker: Broker, ours: Side, peer: Side) -> float:
    """Copy a file to a topic, in turns, and return the peer's rows/s.

    The first of each warms the JVMs up.
    """
    source, topics, ends = root / "rows.txt", Topics(broker.bootstrap), Ends(broker.bootstrap)
    source.write_text("".join(f"{each:0{LINE - 1}d}\n" for each in range(ROWS)))
    rates: dict[str, list[float]] = {ours.name: [], peer.name: []}
    rss = dict[str, float]()
    for turn in range(TIMES + 1):
        for side in (ours, peer):
            name = f"rows-{side.name}-{turn}"
            topics.make(name)
            config = {"connector.class": SOURCE, "file": str(source), "topic": name}
            begun = time.perf_counter()
            side.rest.put(f"/connectors/{name}/config", json=config).raise_for_status()
            ends.wait(name, 1)
            first = time.perf_counter()
            ends.wait(name, ROWS)
            rates[side.name].append(ROWS / (time.perf_counter() - first))
            print(f"{name}: first row after {first - begun:.2f} s", file=sys.stderr)
            rss[side.name] = side.jvm().memory_info().rss / 2**20
            side.delete(name)
    found = {name: median(sorted(each[1:])) for name, each in rates.items()}
    how = f"{ROWS} rows of 100 bytes, from the first one on, median of {TIMES}"
    told = {"peer": "Connect worker", "conditions": how}
    both = found[ours.name], found[peer.name]
    tell("Connect tasks: file to topic", both[0], "rows/s", peer_value=both[1], **told)
    what, theirs = "Connect tasks: RSS of the JVM", rss[peer.name]
    tell(what, rss[ours.name], "MiB", peer="Connect worker", peer_value=theirs)
    return both[1]


def measure_files(root: Path, ours: Side, peer_rate: float) -> None:
    """Copy the same file to parquet by fairlead's sink; the peer's rate is that to its broker."""
    rates = list[float]()
    for turn in range(TIMES + 1):
        name, target = f"files-{turn}", root / f"files-{turn}"
        config = {"connector.class": SOURCE, "file": str(root / "rows.txt"), "topic": name}
        sink = {"sink.type": "files", "sink.path": str(target), "sink.format": "parquet"}
        ours.rest.put(f"/connectors/{name}/config", json={**config, **sink}).raise_for_status()
        while not (first_rows := _rows_in(target)):
            time.sleep(LOOK_S)
        first = time.perf_counter()
        while (rows := _rows_in(target)) < ROWS:
            time.sleep(LOOK_S)
        rates.append((rows - first_rows) / (time.perf_counter() - first))
        ours.delete(name)
    how = f"{ROWS} rows of 100 bytes, after the first batch; the peer's to its topic"
    told = {"peer": "Connect worker", "conditions": how}
    rate = _middle(rates[1:])
    tell("Connect source: file to parquet", rate, "rows/s", peer_value=peer_rate, **told)


def measure_sinks(root: Path, broker: Broker, ours: Side, peer: Side) -> None:
    """Copy a topic to a file by Connect's own sink: here fed by fairlead, there as in Connect."""
    fed = {"source.type": "kafka", "source.bootstrap.servers": broker.bootstrap}
    plain = {"key.converter": STRING, "value.converter": STRING}
    rates: dict[str, list[float]] = {ours.name: [], peer.name: []}
    for turn in range(TIMES + 1):
        for side, more in ((ours, fed), (peer, {})):
            name, target = f"drains-{side.name}-{turn}", root / f"drained-{side.name}-{turn}"
            config = {"connector.class": SINK, "file": str(target), "topics": f"rows-{ours.name}-1"}
            given = {**config, **plain, **more}
            side.rest.put(f"/connectors/{name}/config", json=given).raise_for_status()
            while not _size(target):
                time.sleep(LOOK_S)
            first, before = time.perf_counter(), _size(target)
            while _size(target) < ROWS * LINE:
                time.sleep(LOOK_S)
            rows = (ROWS * LINE - before) / LINE
            rates[side.name].append(rows / (time.perf_counter() - first))
            side.delete(name)
    both = [_middle(each[1:]) for each in rates.values()]
    how = f"{ROWS} rows of {LINE} bytes, median of {TIMES}; ours is fed by source.type=kafka"
    told = {"peer": "Connect worker", "conditions": how}
    tell("Connect sink: topic to file", both[0], "rows/s", peer_value=both[1], **told)


def _size(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0


def _rows_in(folder: Path) -> int:
    return sum(pq.ParquetFile(each).metadata.num_rows for each in folder.glob("*.parquet"))


def measure_idle(root: Path, ours: Side, peer: Side) -> None:
    """Have tasks whose file has no more lines."""
    source = root / "idle.txt"
    source.write_text("a line\n")
    shares = list[float]()
    for side in (ours, peer):
        names = [f"idle-{side.name}-{each}" for each in range(IDLE_TASKS)]
        for name in names:
            config = {"connector.class": SOURCE, "file": str(source), "topic": "idle"}
            side.create(name, {**config, **ONE_REPLICA})
        time.sleep(2)
        processes = _all_of(side)
        before = [each.cpu_times() for each in processes]
        time.sleep(IDLE_S)
        after = [each.cpu_times() for each in processes]
        used = sum(
            b.user + b.system - a.user - a.system for a, b in zip(before, after, strict=True)
        )
        shares.append(100 * used / IDLE_S)
        side.delete(*names)
    how = f"over {IDLE_S:g} s; of ours the host and its worker process"
    what, unit = f"Connect tasks: {IDLE_TASKS} idle ones", "% of a core"
    tell(what, shares[0], unit, peer="Connect worker", peer_value=shares[1], conditions=how)


class Line:
    """A file whose lines go to a topic, and from there to another file."""

    def __init__(self, root: Path, broker: Broker, node: ConnectNode) -> None:
        self._source, self._target = root / "in.txt", root / "out.txt"
        self._ends, self._count = Ends(broker.bootstrap), 0
        self._source.touch()
        read = {"connector.class": SOURCE, "file": str(self._source), "topic": "deaths"}
        write = {"connector.class": SINK, "file": str(self._target), "topics": "deaths"}
        node.create("reads", {**read, **ONE_REPLICA})
        node.create("writes", write)
        self.pass_one()

    def pass_one(self) -> tuple[float, float]:
        """Write a line; return how long it takes to be in the topic, and in the other file."""
        begun = time.perf_counter()
        self._count += 1
        with self._source.open("a") as file:
            file.write(f"line {self._count}\n")
        self._ends.wait("deaths", self._count)
        in_topic = time.perf_counter() - begun
        until(self._is_written, "it passes on")
        return in_topic, time.perf_counter() - begun

    def _is_written(self) -> bool:
        wanted = f"line {self._count}\n"
        return self._target.exists() and wanted in self._target.read_text()


def measure_deaths(root: Path, broker: Broker, node: ConnectNode) -> None:
    """Kill the host, and restart a connector, with a source and a sink at work."""
    line = Line(root, broker, node)
    taken = list[tuple[float, float]]()
    for _ in range(DEATHS):
        time.sleep(PROVEN_S)
        _one(node.hosts()).kill()
        taken.append(line.pass_one())
    to_topic, to_file = (_middle(each) for each in zip(*taken, strict=True))
    how = f"median of {DEATHS}; the source looks each second"
    tell("Connect tasks: death of a host to the next row", to_topic, "s", conditions=how)
    tell("Connect tasks: the same, to the next row of a sink", to_file, "s", conditions=how)
    handovers = list[float]()
    for _ in range(TIMES):
        node.rest.post("/connectors/reads/restart?includeTasks=true").raise_for_status()
        handovers.append(line.pass_one()[0])
    how = f"median of {TIMES}; the source looks each second"
    tell("Connect tasks: restart to the next row", _middle(handovers), "s", conditions=how)


def _middle(values: Sequence[float]) -> float:
    return median(sorted(values))


def _one(found: Sequence[psutil.Process]) -> psutil.Process:
    (process,) = found
    return process


def _all_of(side: Side) -> Sequence[psutil.Process]:
    jvm = side.jvm()
    parent = jvm.parent()
    return [jvm, parent] if side.name == "ours" and parent is not None else [jvm]


if __name__ == "__main__":
    main()
