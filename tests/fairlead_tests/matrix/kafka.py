# pyright: basic
"""Kafka as source and sink: a topic written in transactions, and a topic for each pair."""

import json
from collections import Counter
from collections.abc import Mapping
from contextlib import suppress
from typing import ClassVar

from confluent_kafka import KafkaException, Producer

from fairlead_tests.kafka.broker import Broker
from fairlead_tests.kafka.topics import Topics
from fairlead_tests.matrix.ends import SCHEMA, Room, SinkEnd, SourceEnd, Tally

PARTITIONS = 2
WAIT_S = 10.0


class KafkaSource(SourceEnd):
    """A topic; some transactions are aborted."""

    kind: ClassVar[str] = "kafka"
    away = (KafkaException,)

    def __init__(self, broker: Broker, seed: int, pause_s: float) -> None:
        super().__init__(seed, pause_s)
        self._topics = Topics(broker.bootstrap)
        self._topic = self._topics.make("orders", PARTITIONS)
        self._producer: Producer | None = None
        self._next = 0

    def config(self, pair: str) -> Mapping[str, str]:
        del pair
        return {
            "source.type": "kafka",
            "source.bootstrap.servers": self._topics.bootstrap,
            "source.topics": self._topic,
            "source.value.converter": "json",
            "source.value.converter.schemas.enable": "false",
            "source.schema": SCHEMA,
        }

    def write(self) -> None:
        try:
            self._write_transaction()
        except KafkaException:  # the outcome of the commit is unknown: the topic has it
            self._lose()
            raise

    def settle(self) -> None:
        self._lose()

    def rows(self) -> Mapping[int, int]:
        found = [json.loads(each) for each in self._topics.values(self._topic)]
        rows = {each["id"]: each["amount"] for each in found}
        assert len(rows) == len(found), "the writer itself has doubled rows"
        return rows

    def _write_transaction(self) -> None:
        if self._producer is None:
            self._producer = Producer(
                {
                    "bootstrap.servers": self._topics.bootstrap,
                    "transactional.id": "matrix-writer",
                    "transaction.timeout.ms": 10_000,
                    "reconnect.backoff.max.ms": 200,
                    "log_level": 0,
                }
            )
            self._producer.init_transactions(WAIT_S)
        producer = self._producer
        producer.begin_transaction()
        for amount in self.amounts():
            value = json.dumps({"id": self._next, "amount": amount})
            producer.produce(self._topic, value, partition=self._next % PARTITIONS)
            self._next += 1
        if self._dice.random() < 0.15:
            producer.abort_transaction(WAIT_S)
        else:
            producer.commit_transaction(WAIT_S)

    def _lose(self) -> None:
        if self._producer is not None:
            with suppress(KafkaException):
                self._producer.purge()
        self._producer = None


class KafkaSink(SinkEnd):
    """A topic for each pair, with staging on the small disk."""

    kind: ClassVar[str] = "kafka"

    def __init__(self, broker: Broker, room: Room) -> None:
        self._topics = Topics(broker.bootstrap)
        self._staging = room.sinks / "kafka-staging"

    def config(self, pair: str) -> Mapping[str, str]:
        return {
            "sink.type": "kafka",
            "sink.bootstrap.servers": self._topics.bootstrap,
            "sink.topic": self._topics.make(pair),
            "sink.value.converter": "json",
            "sink.value.converter.schemas.enable": "false",
            "sink.staging.path": str(self._staging),
        }

    def tally(self, pair: str) -> Tally:
        found = [json.loads(each) for each in self._topics.values(pair)]
        ids = [each["id"] for each in found]
        return Tally(len(ids), len({*ids}), sum(ids), sum(each["amount"] for each in found))

    def ids(self, pair: str) -> Counter[int]:
        return Counter(json.loads(each)["id"] for each in self._topics.values(pair))
