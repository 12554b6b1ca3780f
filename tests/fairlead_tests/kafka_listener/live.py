"""A node with a real broker behind it, and clients that write, read and describe the group."""
# pyright: basic

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from confluent_kafka import ConsumerGroupTopicPartitions, KafkaException, Producer
from confluent_kafka.admin import AdminClient

from fairlead_tests.kafka.broker import Broker
from fairlead_tests.kafka_clients.clients import GROUP
from fairlead_tests.kafka_listener.node import ListenerNode, listener_node
from fairlead_tests.kafka_listener.readers import SECONDS, Readers

PARTITIONS = 6


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
def reading(node: ListenerNode, topic: str, folder: Path) -> Iterator[Readers]:
    readers = Readers(node.bootstrap, topic, PARTITIONS, folder)
    try:
        yield readers
    finally:
        readers.end()


class Writer:
    """Writes through the listener, to all partitions in turn."""

    def __init__(self, node: ListenerNode, topic: str) -> None:
        # A record that is sent again must not stand there twice: tests count offsets.
        config = {"bootstrap.servers": node.bootstrap, "enable.idempotence": True, "log_level": 0}
        self._producer: Any = Producer(config)
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


class Admin:
    """The description of the group, each time from a new client.

    One of librdkafka keeps a coordinator over the loss of all its nodes, begins at its bootstrap
    servers again then, and asks for ever the node that it has given up.
    """

    def __init__(self, node: ListenerNode) -> None:
        self._bootstrap = node.bootstrap

    def committed(self) -> dict[int, int]:
        """Return its committed offsets."""
        asked, client = [ConsumerGroupTopicPartitions(GROUP)], self._client()
        told = client.list_consumer_group_offsets(asked)[GROUP].result(SECONDS)
        return {each.partition: each.offset for each in told.topic_partitions}

    def described(self) -> tuple[str, int]:
        """Return its state, and how many members it has."""
        client = self._client()
        try:
            told = client.describe_consumer_groups([GROUP])[GROUP].result(SECONDS)
        except KafkaException:  # its process is restarting
            return "", 0
        return told.state.name, len(told.members)

    def listed(self) -> set[str]:
        """Return the ids of all groups of consumers."""
        client = self._client()
        return {each.group_id for each in client.list_consumer_groups().result(SECONDS).valid}

    def deletes(self) -> None:
        """Delete the group."""
        client = self._client()
        client.delete_consumer_groups([GROUP])[GROUP].result(SECONDS)
        assert self.listed() == set()

    def _client(self) -> Any:
        return AdminClient({"bootstrap.servers": self._bootstrap, "log_level": 0})
