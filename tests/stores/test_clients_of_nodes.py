"""Consumers of stock clients live through the loss of the node that owns their groups."""
# pyright: basic

import threading
from collections.abc import Callable, Generator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition

from fairlead.events.entries.codec import decode
from fairlead.events.entries.group_keys import by_group
from fairlead.events.log.reader import LogReader
from fairlead.events.records import ClassicGroup, GroupMetadata
from fairlead.runtime.kafka.broker.responses import COORDINATOR_ID
from fairlead_tests.cluster.node import eventually
from fairlead_tests.kafka.broker import Broker
from fairlead_tests.kafka.topics import Topics
from fairlead_tests.stores.nodes import Cluster, ClusterNode

TOPIC, PARTITIONS = "rows", 4
GROUPS = {"old": "classic", "new": "consumer"}


@dataclass
class Reader:
    """A consumer that commits what it has read, and keeps what was acknowledged."""

    group: str
    servers: str
    files: Path
    protocol: str
    acknowledged: dict[int, int] = field(default_factory=dict[int, int])
    reads: int = 0
    _is_over: threading.Event = field(default_factory=threading.Event)

    @contextmanager
    def running(self) -> Generator[None]:
        thread = threading.Thread(target=self._read)
        thread.start()
        try:
            yield
        finally:
            self._is_over.set()
            thread.join()

    def _read(self) -> None:
        own = str(self.files / "node.pem")
        consumer = Consumer(
            {
                "bootstrap.servers": self.servers,
                "group.id": self.group,
                "group.protocol": self.protocol,
                "auto.offset.reset": "earliest",
                "enable.auto.commit": False,
                "security.protocol": "SSL",
                "ssl.ca.location": str(self.files / "ca.pem"),
                "ssl.certificate.location": own,
                "ssl.key.location": own,
                "log_level": 0,
            }
        )
        consumer.subscribe([TOPIC])
        while not self._is_over.is_set():
            message = consumer.poll(0.2)
            if message is None or message.error() is not None:
                continue
            self.reads += 1
            self._commit(consumer, message)
        consumer.close()

    def _commit(self, consumer: Any, message: Any) -> None:
        place = TopicPartition(TOPIC, message.partition(), message.offset() + 1)
        try:
            consumer.commit(offsets=[place], asynchronous=False)
        except KafkaException:
            return  # it was not acknowledged
        self.acknowledged[place.partition] = place.offset


@contextmanager
def writing(broker: Broker) -> Generator[None]:
    """Write to all partitions all the time."""
    over, producer = threading.Event(), Producer({"bootstrap.servers": broker.bootstrap})

    def write() -> None:
        while not over.wait(0.1):
            for number in range(PARTITIONS):
                producer.produce(TOPIC, b"x", partition=number)
            producer.flush(10)

    thread = threading.Thread(target=write)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


def epochs_at(node: ClusterNode, group: str) -> list[int]:
    """Return the epochs that a group began, in the order in which they were written."""
    found: list[int] = []
    for folder in sorted((node.folder / "shards").glob("*/control")):
        with LogReader.open(folder) as log:
            entries = [each for batch in log.tail(log.low()) for each in batch]
        for entry in by_group(entries).get(group, ()):
            record = decode(entry)
            if isinstance(record, ClassicGroup):
                found.append(record.generation)
            elif isinstance(record, GroupMetadata):
                found.append(record.group_epoch)
    return found


@contextmanager
def client_at(files: Path, servers: str, group: str) -> Generator[Any]:
    own = str(files / "node.pem")
    client = Consumer(
        {
            "bootstrap.servers": servers,
            "group.id": group,
            "security.protocol": "SSL",
            "ssl.ca.location": str(files / "ca.pem"),
            "ssl.certificate.location": own,
            "ssl.key.location": own,
        }
    )
    try:
        yield client
    finally:
        client.close()


def committed_at(reader: Reader, servers: str) -> dict[int, int]:
    """Ask a listener for the committed offsets of a group."""
    places = [TopicPartition(TOPIC, number) for number in range(PARTITIONS)]
    with client_at(reader.files, servers, reader.group) as client:
        return {each.partition: each.offset for each in client.committed(places, timeout=30)}


def named_at(files: Path, servers: str) -> int:
    """Return how many nodes a listener names, the owner among them."""
    with client_at(files, servers, "looks") as client:
        return sum(each >= COORDINATOR_ID for each in client.list_topics(timeout=30).brokers)


def goes_on(reader: Reader) -> Callable[[], bool]:
    """Return whether a reader reads, and has its commits acknowledged, from now on."""
    reads, before = reader.reads, dict(reader.acknowledged)
    return lambda: reader.reads > reads + 5 and reader.acknowledged != before


@pytest.mark.soak
@pytest.mark.timeout(400)
def test_consumers_outlive_the_node_that_owns_their_groups(
    cluster: Cluster, broker: Broker, tmp_path: Path
) -> None:
    Topics(broker.bootstrap).make(TOPIC, PARTITIONS)
    behind = {"kafka_bootstrap_servers": broker.bootstrap}
    with cluster.nodes("n1", "n2", workers=0, **behind) as nodes, ExitStack() as stack:
        owner, other = nodes if nodes[0].owner == "n1" else nodes[::-1]
        servers = ",".join(str(each.settings["kafka.listeners"])[6:] for each in nodes)
        readers = [
            Reader(group, servers, tmp_path, GROUPS[group]) for group in ("old", "new", "new")
        ]
        # Clients know those nodes that their first Metadata names, and look again after minutes.
        eventually(
            lambda: named_at(tmp_path, servers.split(",")[0]) == len(nodes), "both are named"
        )
        stack.enter_context(writing(broker))
        for each in readers:
            stack.enter_context(each.running())
        for each in readers:
            eventually(goes_on(each), f"a reader of {each.group} reads")
        before = {group: epochs_at(owner, group) for group in GROUPS}
        owner.kill()
        for each in readers:
            eventually(goes_on(each), f"a reader of {each.group} goes on")
        place = str(other.settings["kafka.listeners"])[6:]
        acknowledged = [(each, dict(each.acknowledged)) for each in readers]
        for each, offsets in acknowledged:
            found = committed_at(each, place)
            assert all(found[partition] >= offset for partition, offset in offsets.items())
        for group, known in before.items():
            epochs = epochs_at(other, group)
            assert epochs == sorted(epochs)  # no generation goes back
            assert epochs[: len(known)] == known
