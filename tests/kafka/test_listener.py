"""Kafka's own clients are members of our groups, with a real broker behind."""
# pyright: basic

import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from confluent_kafka import Consumer, Producer
from confluent_kafka.admin import AdminClient

from fairlead_tests.kafka.broker import Broker
from fairlead_tests.kafka.topics import Topics
from fairlead_tests.kafka_listener.node import ListenerNode, listener_node

SECONDS = 30.0
PARTITIONS = 6


class Reader:
    """A consumer of the classic protocol, and what it has been given."""

    def __init__(self, node: ListenerNode, topic: str) -> None:
        self.partitions: set[int] = set()
        self.got: list[bytes] = []
        self._consumer: Any = Consumer(
            {
                "bootstrap.servers": node.bootstrap,
                "group.id": "readers",
                "enable.auto.commit": False,
                "session.timeout.ms": 6_000,
                "heartbeat.interval.ms": 300,
                "reconnect.backoff.max.ms": 200,
                "log_level": 0,
            }
        )
        self._consumer.subscribe([topic], on_assign=self._given, on_revoke=self._taken)

    def _given(self, consumer: Any, partitions: list[Any]) -> None:
        for each in partitions:
            each.offset = 0
        consumer.assign(partitions)
        self.partitions = {each.partition for each in partitions}

    def _taken(self, *_: object) -> None:
        self.partitions = set()

    def poll(self) -> None:
        message = self._consumer.poll(0.02)
        if message is not None and not message.error():
            self.got.append(message.value())

    def close(self) -> None:
        """Leave."""
        self._consumer.close()


@contextmanager
def served(folder: Path, broker: Broker) -> Iterator[ListenerNode]:
    with listener_node(folder / "data", broker.bootstrap, kafka_group_shards=1) as node:
        yield node


def until(readers: list[Reader], holds: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + SECONDS
    while not holds():
        assert time.monotonic() < deadline, what
        for each in readers:
            each.poll()


def shared(readers: list[Reader]) -> bool:
    """Whether each partition has one reader, and each reader has some."""
    given = [part for each in readers for part in each.partitions]
    return sorted(given) == [*range(PARTITIONS)] and all(each.partitions for each in readers)


def test_consumers_come_and_go_over_every_crash_and_no_generation_goes_back(
    broker: Broker, topics: Topics, tmp_path: Path
) -> None:
    topic = topics.make("listener.readers", PARTITIONS)
    with served(tmp_path, broker) as node, ExitStack() as leaving:
        producer = Producer({"bootstrap.servers": node.bootstrap, "log_level": 0})
        for number in range(60):
            producer.produce(topic, str(number).encode(), partition=number % PARTITIONS)
        assert producer.flush(SECONDS) == 0
        readers: list[Reader] = []
        for count in (1, 2, 3):
            readers.append(Reader(node, topic))
            leaving.callback(readers[-1].close)
            until(readers, lambda: shared(readers), f"{count} share the partitions")
        for killed in ("fairlead: kafka", "fairlead: shard"):
            node.kill(killed)
            until(readers, lambda: shared(readers), f"{killed} is back")
        admin = AdminClient({"bootstrap.servers": node.bootstrap, "log_level": 0})
        told = admin.describe_consumer_groups(["readers"])["readers"].result(SECONDS)
        assert (told.state.name, len(told.members)) == ("STABLE", 3)
        listed = admin.list_consumer_groups().result(SECONDS)
        assert ([each.group_id for each in listed.valid], listed.errors) == (["readers"], [])
        gone, rest = readers[0], readers[1:]
        gone.close()
        until(rest, lambda: shared(rest), "two share what the third had")
        until(rest, lambda: len({*gone.got, *rest[0].got, *rest[1].got}) == 60, "all is read")
        generations = node.generations("readers")
        assert generations == sorted(generations)
