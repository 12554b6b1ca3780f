"""A real worker of Connect and a node, to which the same is done on one broker."""
# pyright: basic

from collections.abc import Callable, Generator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import httpx
from confluent_kafka import KafkaException

from fairlead_tests.kafka.topics import Topics
from fairlead_tests.plugins.connect_node import ONE_BROKER, ConnectNode, until
from fairlead_tests.plugins.installed import installation
from fairlead_tests.plugins.real_worker import real_worker, topics_of

RUNNING, FAILED = "RUNNING", "FAILED"
OF_BOTH = {
    "exactly.once.source.support": "enabled",
    "producer.compression.type": "lz4",
    "consumer.isolation.level": "read_committed",
    "scheduled.rebalance.max.delay.ms": "0",
}
"""The properties that both have."""
Seen = TypeVar("Seen")


@dataclass(frozen=True)
class Side:
    """One of the two; what it makes has its name in front."""

    name: str
    rest: httpx.Client
    topics: Topics
    folder: Path
    logs: Callable[[], str]
    """Returns what Connect's classes have logged there."""

    def own(self, name: str) -> str:
        """Return the name of this side's own connector, topic or file."""
        return f"{self.name}-{name}"

    def plain(self, text: str) -> str:
        """Return a text without what tells the sides apart."""
        return text.replace(f"{self.name}-", "")

    def create(self, name: str, config: Mapping[str, str]) -> tuple[int, Any]:
        """Create a connector; return the status and the body of the answer."""
        body = {"name": self.own(name), "config": dict(config)}
        answer = self.rest.post("/connectors", json=body)
        return answer.status_code, answer.json()

    @contextmanager
    def having(
        self, name: str, config: Mapping[str, str], tasks: Sequence[str] = (RUNNING,)
    ) -> Generator[None]:
        """Have a connector whose tasks have come to their states; it is deleted afterwards."""
        status, body = self.create(name, config)
        assert status == httpx.codes.CREATED, body
        try:
            self.wait_for(name, RUNNING, tasks)
            yield
        finally:
            self.rest.delete(f"/connectors/{self.own(name)}")

    def wait_for(self, name: str, connector: str, tasks: Sequence[str]) -> None:
        """Wait until a connector and its tasks have states."""

        def are_so() -> bool:
            found = self.status(name)
            states = [each["state"] for each in found.get("tasks", ())]
            return (found.get("connector", {}).get("state"), states) == (connector, [*tasks])

        try:
            until(are_so, "the states")
        except AssertionError:
            raise AssertionError(self.name, self.status(name)) from None

    def status(self, name: str) -> dict[str, Any]:
        """Return the status of a connector."""
        found: dict[str, Any] = self.rest.get(f"/connectors/{self.own(name)}/status").json()
        return found

    def trace(self, name: str) -> str:
        """Return the stack trace of the first task, without what tells the sides apart."""
        return self.plain(self.status(name)["tasks"][0].get("trace", ""))

    def read(self, topic: str, count: int, isolation: str = "read_committed") -> list[Any]:
        """Return the records of a topic of this side, once there are so many."""
        found: list[Any] = []

        def are_there() -> bool:
            if self.own(topic) in self.topics.admin.list_topics(timeout=60).topics:
                with suppress(KafkaException):  # one that has just been made has no leader
                    found[:] = self.topics.read(self.own(topic), isolation=isolation)
            return len(found) >= count

        until(are_there, f"{count} records in {topic} of {self.name}")
        return found

    def values(self, topic: str, count: int, isolation: str = "read_committed") -> list[str]:
        """Return the values of a topic of this side, once there are so many."""
        return [each.value().decode() for each in self.read(topic, count, isolation)]

    def lines(self, file: str, count: int) -> list[str]:
        """Return the lines of a file of this side, once there are so many."""
        path = self.folder / self.own(file)
        until(
            lambda: path.exists() and len(path.read_text().splitlines()) >= count,
            f"{count} lines in {path.name}",
        )
        return path.read_text().splitlines()

    def file(self, name: str, *lines: str) -> str:
        """Return the path of a file of this side, with these lines if there are any."""
        path = self.folder / self.own(name)
        if lines:
            path.write_text("".join(f"{each}\n" for each in lines))
        return str(path)


@dataclass(frozen=True)
class Beside:
    """Both sides."""

    connect: Side
    fairlead: Side

    def both(self, act: Callable[[Side], Seen]) -> Seen:
        """Do the same at both sides, at the same time; return what both saw, which is equal."""
        with ThreadPoolExecutor(2) as threads:
            connects, ours = threads.map(act, (self.connect, self.fairlead))
        assert ours == connects, _difference(ours, connects)
        return ours


def _difference(ours: Any, connects: Any) -> str:
    """Return what differs, of two lists the first elements that do."""
    if isinstance(ours, list) and isinstance(connects, list):
        pairs = ((one, other) for one, other in zip(ours, connects, strict=False) if one != other)
        ours, connects = next(pairs, (ours, connects))
    return f"here {ours}\nin Connect {connects}"


@contextmanager
def worker_beside(
    node: ConnectNode, bootstrap: str, plugins: Path, folder: Path, properties: Mapping[str, str]
) -> Generator[Beside]:
    """Run a real worker with the properties and plugins of a node that runs."""
    given = {
        **ONE_BROKER,
        **topics_of(folder.name),
        **properties,
        "group.id": folder.name,
        "bootstrap.servers": bootstrap,
        "plugin.path": str(plugins),
        "plugin.discovery": "service_load",
    }
    topics = Topics(bootstrap)
    with real_worker(installation(), given, folder) as (rest, _):
        log = folder / "worker.log"
        connect = Side("theirs", rest, topics, folder, log.read_text)
        yield Beside(connect, Side("ours", node.rest, topics, folder, node.logs))
