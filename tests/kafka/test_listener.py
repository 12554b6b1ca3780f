"""Kafka's own clients are members of our groups, with a real broker behind."""
# pyright: basic

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import ConsumerGroupTopicPartitions, KafkaException, Producer
from confluent_kafka.admin import AdminClient

from fairlead_tests.kafka.broker import Broker
from fairlead_tests.kafka.topics import Topics
from fairlead_tests.kafka_listener.node import ListenerNode, listener_node
from fairlead_tests.kafka_listener.readers import SECONDS, Readers

PARTITIONS = 6
CLASSIC = {"session.timeout.ms": 6_000, "heartbeat.interval.ms": 300}
MODERN = {"group.protocol": "consumer"}
PROTOCOLS: dict[str, dict[str, Any]] = {
    "classic": CLASSIC,
    "cooperative": {**CLASSIC, "partition.assignment.strategy": "cooperative-sticky"},
    "consumer": MODERN,
}


@contextmanager
def served(folder: Path, broker: Broker) -> Iterator[ListenerNode]:
    with listener_node(
        folder / "data",
        broker.bootstrap,
        kafka_group_shards=1,
        group_consumer_session_timeout_ms=6_000,
        group_consumer_heartbeat_interval_ms=500,
    ) as node:
        yield node


@contextmanager
def reading(node: ListenerNode, topic: str, **config: Any) -> Iterator[Readers]:
    readers = Readers(node.bootstrap, topic, PARTITIONS, **config)
    try:
        yield readers
    finally:
        readers.end()


class Writer:
    """Writes through the listener, to all partitions in turn."""

    def __init__(self, node: ListenerNode, topic: str) -> None:
        self._producer: Any = Producer({"bootstrap.servers": node.bootstrap, "log_level": 0})
        self._topic = topic
        self.written = set[tuple[int, int]]()

    def writes(self, count: int = 60) -> None:
        for number in range(count):
            self._producer.produce(
                self._topic, b"x", partition=number % PARTITIONS, on_delivery=self._is_there
            )
        assert self._producer.flush(SECONDS) == 0

    def _is_there(self, error: Any, message: Any) -> None:
        assert error is None
        self.written.add((message.partition(), message.offset()))


def committed(admin: Any, group_id: str = "readers") -> dict[int, int]:
    """Return how far a group has read."""
    asked = [ConsumerGroupTopicPartitions(group_id)]
    told = admin.list_consumer_group_offsets(asked)[group_id].result(SECONDS)
    return {each.partition: each.offset for each in told.topic_partitions}


def described(admin: Any) -> tuple[str, int]:
    """Return the state of the group, and how many members it has."""
    try:
        told = admin.describe_consumer_groups(["readers"])["readers"].result(SECONDS)
    except KafkaException:  # its process is about to come back
        return "", 0
    return told.state.name, len(told.members)


def check_generations(node: ListenerNode, protocol: str) -> None:
    """Check that no generation went back: a group of consumers has none."""
    generations = node.generations("readers")
    assert generations == sorted(generations)
    assert bool(generations) is (protocol != "consumer")


@pytest.mark.parametrize(
    "protocol",
    [
        "classic",
        *(pytest.param(each, marks=pytest.mark.soak) for each in ("cooperative", "consumer")),
    ],
)
def test_consumers_come_and_go_over_every_crash(
    broker: Broker, topics: Topics, tmp_path: Path, protocol: str
) -> None:
    topic = topics.make(f"listener.{protocol}", PARTITIONS)
    with (
        served(tmp_path, broker) as node,
        reading(node, topic, **PROTOCOLS[protocol]) as readers,
    ):
        writer, admin = Writer(node, topic), AdminClient({"bootstrap.servers": node.bootstrap})
        for count in (1, 2, 3):
            readers.add()
            writer.writes()
            readers.until(readers.share(*readers.all), f"{count} share the partitions")
        for killed in ("fairlead: kafka", "fairlead: shard"):
            node.kill(killed)
            writer.writes()
            readers.until(lambda: readers.read() >= writer.written, f"all is read over {killed}")
            readers.until(readers.share(*readers.all), f"{killed} is back")
        readers.until(lambda: described(admin) == ("STABLE", 3), "the group is described")
        first, second, third = readers.all
        first.leave()
        readers.until(readers.share(second, third), "two share what the third had")
        second.kill()
        fourth = readers.add()
        node.kill("fairlead: shard")  # in the middle of a join
        writer.writes()
        readers.until(readers.share(third, fourth), "what the killed one had is read by others")
        readers.until(lambda: readers.read() >= writer.written, "all is read")
        total = len(writer.written)
        readers.until(lambda: sum(committed(admin).values()) == total, "all is committed")
        assert readers.acknowledged().items() <= committed(admin).items()
        assert readers.twice_owned() == []
        check_generations(node, protocol)
        for each in (third, fourth):
            each.leave()
        admin.delete_consumer_groups(["readers"])["readers"].result(SECONDS)
        assert admin.list_consumer_groups().result(SECONDS).valid == []


def test_a_group_is_rolled_from_one_protocol_to_the_other_and_back(
    broker: Broker, topics: Topics, tmp_path: Path
) -> None:
    topic = topics.make("listener.rolled", PARTITIONS)
    with served(tmp_path, broker) as node, reading(node, topic) as readers:
        writer, admin = Writer(node, topic), AdminClient({"bootstrap.servers": node.bootstrap})
        there = [readers.add(**PROTOCOLS["cooperative"]) for _ in range(2)]
        readers.until(readers.share(*there), "two share the partitions")
        for protocol in ("consumer", "cooperative"):
            for _ in range(len(there)):
                there.append(readers.add(**PROTOCOLS[protocol]))
                writer.writes()
                readers.until(readers.share(*there), f"one of {protocol} more has some")
                there.pop(0).leave()
                writer.writes()
                readers.until(readers.share(*there), f"one that was there before {protocol} left")
        readers.until(lambda: readers.read() >= writer.written, "all is read")
        total = len(writer.written)
        readers.until(lambda: sum(committed(admin).values()) == total, "all is committed")
        assert readers.twice_owned() == []
        for each in there:
            each.leave()
