"""Stock workers of Kafka Connect form their group with us, and their rows go on over crashes."""
# pyright: basic

from functools import partial
from pathlib import Path

import pytest

from fairlead_tests.kafka.broker import Broker
from fairlead_tests.kafka.topics import Topics
from fairlead_tests.kafka_clients.connect import (
    Workers,
    connect_workers,
    until,
)
from fairlead_tests.kafka_listener.live import Admin, served
from fairlead_tests.kafka_listener.node import ListenerNode

pytestmark = pytest.mark.usefixtures("jars")

FILES = ("FileStreamSource", "FileStreamSink")


class Pipe:
    """A file whose lines come by a topic into another file."""

    def __init__(self, topic: str, folder: Path) -> None:
        self._from, self._to = folder / "from.txt", folder / "to.txt"
        self._from.touch()
        self._topic = topic
        self.written: list[str] = []

    def made_at(self, workers: Workers) -> None:
        """Make both of its connectors."""
        for kind, file, key in zip(FILES, (self._from, self._to), ("topic", "topics"), strict=True):
            config = {"connector.class": kind, "file": str(file), key: self._topic}
            make = partial(workers.all[-1].ask, f"/connectors/{kind}/config", "PUT", config)
            until(make, f"{kind} is made")

    def goes_on(self, why: str, count: int = 20) -> None:
        """Write lines, and see that all that there are by now have come."""
        new = [f"line {len(self.written) + number}" for number in range(count)]
        with self._from.open("a") as file:
            file.writelines(f"{each}\n" for each in new)
        self.written += new
        until(lambda: set(self._come()) >= set(self.written), f"lines go on: {why}")

    def _come(self) -> list[str]:
        return self._to.read_text().splitlines() if self._to.exists() else []


def test_rows_of_a_stock_worker_go_on_over_a_crash_of_its_coordinator(
    node: ListenerNode, topics: Topics, tmp_path: Path
) -> None:
    topic = topics.make("listener.connect.one")
    with connect_workers(node.bootstrap, tmp_path, topic) as workers:
        workers.add()
        pipe = Pipe(topic, tmp_path)
        pipe.made_at(workers)
        pipe.goes_on("it has begun")
        node.kill("fairlead: shard")
        pipe.goes_on("the coordinator was killed")
        generations = node.generations(topic)
        assert generations == sorted(generations) != []


@pytest.mark.soak
def test_rows_of_stock_workers_go_on_over_every_crash(
    broker: Broker, topics: Topics, tmp_path: Path
) -> None:
    topic = topics.make("listener.connect.two")
    with (
        served(tmp_path, broker) as node,
        connect_workers(node.bootstrap, tmp_path, topic) as workers,
    ):
        first, second = workers.add(), workers.add()
        pipe = Pipe(topic, tmp_path)
        pipe.made_at(workers)
        until(lambda: len({*second.runs(*FILES).values()}) == 2, "each of two has a task")
        pipe.goes_on("both run")
        for killed in ("fairlead: shard", "fairlead: kafka"):
            node.kill(killed)
            pipe.goes_on(f"{killed} was killed")
            until(lambda: len({*second.runs(*FILES).values()}) == 2, f"{killed} is back")
        first.kill()
        pipe.goes_on("a worker was killed")
        third = workers.add()
        node.kill("fairlead: shard")
        until(lambda: len({*third.runs(*FILES).values()}) == 2, "the new one has a task")
        pipe.goes_on("the coordinator was killed while one joined")
        assert Admin(node).listed() == {"connect-FileStreamSink"}
        generations = node.generations(topic)
        assert generations == sorted(generations) != []
