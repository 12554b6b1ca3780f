# pyright: basic, reportPrivateImportUsage=false
"""Stores in a Kafka cluster of the tests."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from fairlead.events.stores.kafka import KafkaStore
from fairlead.events.stores.kafka_clients import TopicNames
from fairlead.events.stores.kafka_records import StoreRecord, decode_record
from fairlead_tests.kafka.topics import Topics

PREFIX = "test-"


@dataclass
class KafkaEngine:
    """A cluster with the topics of the stores."""

    topics: Topics

    def store(self, log: str) -> KafkaStore:
        return KafkaStore(log, {"bootstrap.servers": self.topics.bootstrap}, PREFIX)

    def empty(self, log: str) -> None:
        for each in TopicNames.of(PREFIX, log):
            self.topics.delete(each)
            self._wait_until_gone(each)

    def save(self, log: str) -> Callable[[], None]:
        values = self.values(log)

        def restore() -> None:
            self.empty(log)
            for each in TopicNames.of(PREFIX, log):
                self.topics.make(each)
            self.write(log, values)

        return restore

    def values(self, log: str) -> Sequence[bytes]:
        """Return all records of a log, as they are."""
        return [each.value() for each in self.topics.read(TopicNames.of(PREFIX, log).log)]

    def records(self, log: str) -> Sequence[StoreRecord | None]:
        return [decode_record(each) for each in self.values(log)]

    def write(self, log: str, values: Iterable[bytes | None]) -> None:
        """Write records as they are to the topic of a log."""
        self.topics.write(TopicNames.of(PREFIX, log).log, values)

    def _wait_until_gone(self, topic: str) -> None:
        while self.topics.admin.list_topics(timeout=10).topics.get(topic) is not None:
            pass
