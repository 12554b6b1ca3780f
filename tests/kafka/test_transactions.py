"""Offsets in transactions of Kafka's clients: the brokers' transactions, the groups' own logs."""
# pyright: basic

import time
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import (
    Consumer,
    ConsumerGroupTopicPartitions,
    KafkaException,
    Producer,
    TopicPartition,
)
from confluent_kafka.admin import AdminClient

from fairlead_tests.kafka.topics import Topics
from fairlead_tests.kafka_clients.streams import counting
from fairlead_tests.kafka_listener.node import ListenerNode

SECONDS = 60.0
NO_OFFSET = -1001
KEEPS_NODES = {"metadata.recovery.strategy": "none", "reconnect.backoff.max.ms": 200}
"""A producer of librdkafka that drops all nodes as it has lost them asks for a coordinator that it
has dropped, for ever. It waits up to 10 s before it connects again: longer than a session."""


class Copier:
    """Reads a topic, and writes its records to another one, in transactions (KIP-447)."""

    def __init__(self, node: ListenerNode, topic: str, protocol: str, copied: str) -> None:
        self.group, self.copied = f"{copied}.group", copied
        quiet = {"bootstrap.servers": node.bootstrap, "log_level": 0, **KEEPS_NODES}
        reads = {"group.id": self.group, "enable.auto.commit": False, "group.protocol": protocol}
        reads |= {"auto.offset.reset": "earliest", "isolation.level": "read_committed"}
        self.consumer = Consumer(quiet | reads)
        self.consumer.subscribe([topic])
        self.producer = Producer(quiet | {"transactional.id": copied})
        self.producer.init_transactions(SECONDS)

    def begin(self, count: int) -> None:
        """Copy so many records in a transaction, and leave it open with their offsets."""
        records = self.consumer.consume(count, SECONDS)
        assert [each.error() for each in records] == [None] * count
        self.producer.begin_transaction()
        for each in records:
            self.producer.produce(self.copied, each.value())
        positions = self.consumer.position(self.consumer.assignment())
        metadata = self.consumer.consumer_group_metadata()
        self.producer.send_offsets_to_transaction(positions, metadata, SECONDS)

    def commit(self) -> None:
        self.producer.commit_transaction(SECONDS)

    def abort(self) -> None:
        """Abort the transaction, and read again from where the last one ended."""
        self.producer.abort_transaction(SECONDS)
        for each in self.consumer.committed(self.consumer.assignment(), SECONDS):
            self.consumer.seek(each)


def committed(node: ListenerNode, group: str, topic: str, *, stable: bool = True) -> int | str:
    """Return the group's offset in the topic's first partition, or the error."""
    client: Any = AdminClient({"bootstrap.servers": node.bootstrap, "log_level": 0})
    asked = [ConsumerGroupTopicPartitions(group, [TopicPartition(topic, 0)])]
    found = client.list_consumer_group_offsets(asked, require_stable=stable)
    (told,) = found[group].result(SECONDS).topic_partitions
    return str(told.error.name()) if told.error else int(told.offset)


def until(holds: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + SECONDS
    while not holds():
        assert time.monotonic() < deadline, what
        time.sleep(0.02)


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_offsets_of_a_transaction_count_once_it_is_committed_over_crashes(
    node: ListenerNode, topics: Topics, topic: str, protocol: str
) -> None:
    topics.write(topic, [b"%d" % each for each in range(60)])
    copier = Copier(node, topic, protocol, topics.make(f"{topic}copy"))
    copier.begin(10)
    assert committed(node, copier.group, topic, stable=False) == NO_OFFSET
    assert committed(node, copier.group, topic) == "UNSTABLE_OFFSET_COMMIT"
    copier.commit()
    until(lambda: committed(node, copier.group, topic) == 10, "the first is committed")
    copier.begin(10)
    copier.abort()
    until(lambda: committed(node, copier.group, topic) == 10, "the second is aborted")
    for killed in ("fairlead: shard", "fairlead: kafka"):
        copier.begin(10)
        node.kill(killed)
        copier.commit()
    until(lambda: committed(node, copier.group, topic) == 30, "both are committed")
    zombie = copier.producer
    copier.begin(10)
    copier.producer = Producer(
        {"bootstrap.servers": node.bootstrap, "transactional.id": copier.copied, "log_level": 0}
    )
    copier.producer.init_transactions(SECONDS)
    until(lambda: committed(node, copier.group, topic) == 30, "that of the zombie is aborted")
    positions = copier.consumer.position(copier.consumer.assignment())
    with pytest.raises(KafkaException, match="FENCED"):
        zombie.send_offsets_to_transaction(
            positions, copier.consumer.consumer_group_metadata(), SECONDS
        )
    copier.consumer.close()
    again = Copier(node, topic, protocol, copier.copied)
    again.begin(30)
    again.commit()
    until(lambda: committed(node, again.group, topic) == 60, "the rest is committed")
    again.consumer.close()
    assert sorted(map(int, topics.values(copier.copied))) == [*range(60)]


@pytest.mark.soak  # each run has such transactions of another client, above
def test_kafka_streams_counts_exactly_once_over_crashes(
    node: ListenerNode, topics: Topics, tmp_path: Path, jars: None
) -> None:
    del jars
    source, target = topics.make("streams.in", 2), topics.make("streams.out", 2)
    keys = [f"key {each}" for each in range(7)]
    with counting(node.bootstrap, "streams.app", source, target, tmp_path) as application:
        crashes: list[Callable[[], None]] = [
            partial(node.kill, "fairlead: shard"),
            partial(node.kill, "fairlead: kafka"),
            application.crash,
        ]
        for turn, crash in enumerate(crashes, 1):
            for number, key in enumerate(keys):
                topics.write(source, ["x"] * 50, key=key.encode(), partition=number % 2)
                if number == len(keys) // 2:
                    crash()
            check = partial(counts_are, topics, target, dict.fromkeys(keys, 50 * turn))
            until(check, f"it counts over crash {turn}")


def counts_are(topics: Topics, target: str, expected: Mapping[str, int]) -> bool:
    """Return whether these are the last counts of keys; none may come again, or go back."""
    found: dict[str, int] = {}
    for each in topics.read(target):
        key, count = each.key().decode(), int(each.value())
        assert count > found.get(key, 0)
        found[key] = count
    return found == expected
