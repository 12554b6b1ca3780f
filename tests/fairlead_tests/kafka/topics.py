# pyright: basic, reportPrivateImportUsage=false
"""Creates, fills, trims and reads topics, with clients that are not part of the product."""

import time
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from confluent_kafka import (
    Consumer,
    IsolationLevel,
    KafkaError,
    KafkaException,
    Producer,
    TopicPartition,
)
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    OffsetSpec,
)
from confluent_kafka.cimpl import NewPartitions, NewTopic

WAIT_S = 60.0
SEEN_S = 2.0


class Topics:
    """The topics of a broker, for tests."""

    def __init__(self, bootstrap: str) -> None:
        self.bootstrap = bootstrap
        self.admin = AdminClient(
            {"bootstrap.servers": bootstrap, "reconnect.backoff.max.ms": 200, "log_level": 0}
        )

    def make(self, topic: str, partitions: int = 1, **config: str) -> str:
        """Make a topic; its config with `_` for dots."""
        settings = {key.replace("_", "."): value for key, value in config.items()}
        made = self.admin.create_topics([NewTopic(topic, partitions, 1, config=settings)])
        made[topic].result(WAIT_S)
        self._wait_for_leaders(topic, partitions)
        return topic

    def _wait_for_leaders(self, topic: str, partitions: int) -> None:
        """Wait until the topic is in the broker's metadata, and writable."""
        # By a client of its own: one that was told a leader's epoch keeps it for a while, and is
        # refused by the broker that comes after that one.
        asking = AdminClient({"bootstrap.servers": self.bootstrap, "log_level": 0})
        deadline = time.monotonic() + WAIT_S
        while True:
            found = asking.list_topics(timeout=WAIT_S).topics.get(topic)
            led = [each for each in found.partitions.values() if each.leader >= 0] if found else []
            if len(led) == partitions:
                return
            assert time.monotonic() < deadline, f"{topic} has no leaders: {found}"
            time.sleep(0.02)

    def configure(self, topic: str, **config: str) -> None:
        """Change the config of a topic; with `_` for dots."""
        changes = [
            ConfigEntry(
                key.replace("_", "."),
                value,
                incremental_operation=AlterConfigOpType.SET,
            )
            for key, value in config.items()
        ]
        resource = ConfigResource(ConfigResource.Type.TOPIC, topic, incremental_configs=changes)
        self.admin.incremental_alter_configs([resource])[resource].result(WAIT_S)

    def delete(self, topic: str) -> None:
        self.admin.delete_topics([topic])[topic].result(WAIT_S)

    def widen(self, topic: str, partitions: int) -> None:
        """Give a topic more partitions."""
        self.admin.create_partitions([NewPartitions(topic, partitions)])[topic].result(WAIT_S)

    def cut(self, topic: str, before: int) -> None:
        """Delete the records before an offset of the first partition, as retention does."""
        place = TopicPartition(topic, 0, before)
        for answer in self.admin.delete_records([place]).values():
            answer.result(WAIT_S)

    def write(self, topic: str, values: Iterable[Any], **given: Any) -> None:
        """Write values, texts or bytes or null, to the first partition or one that is given.

        Once each, also to a broker that is slow to answer: a plain producer would send them again.
        """
        producer = Producer(
            {"bootstrap.servers": self.bootstrap, "enable.idempotence": True, "log_level": 2}
        )
        self._produce(producer, topic, values, given)
        assert producer.flush(WAIT_S) == 0

    def write_transaction(self, topic: str, values: Iterable[Any], *, commits: bool = True) -> None:
        """Write values in one transaction, which is committed or aborted."""
        producer = Producer(
            {
                "bootstrap.servers": self.bootstrap,
                "transactional.id": f"test-{topic}",
                "log_level": 2,
            }
        )
        producer.init_transactions(WAIT_S)
        producer.begin_transaction()
        self._produce(producer, topic, values, {})
        producer.flush(WAIT_S)
        end = producer.commit_transaction if commits else producer.abort_transaction
        end(WAIT_S)

    def read(self, *topics: str, isolation: str = "read_committed") -> list[Any]:
        """Return all records as Kafka messages."""
        consumer = Consumer(
            {
                "bootstrap.servers": self.bootstrap,
                "group.id": "test",
                "enable.auto.commit": False,
                "enable.partition.eof": True,
                "isolation.level": isolation,
                "log_level": 2,
            }
        )
        known = consumer.list_topics(timeout=WAIT_S).topics
        places = [
            TopicPartition(each, number, 0) for each in topics for number in known[each].partitions
        ]
        self._wait_for_transactions(places)
        consumer.assign(places)
        found: list[Any] = []
        ends = 0
        while ends < len(places):
            record = consumer.poll(WAIT_S)
            assert record is not None, f"read {len(found)} records of {topics}"
            error = record.error()
            if error is None:
                found.append(record)
            else:
                assert error.code() == KafkaError._PARTITION_EOF, error
                ends += 1
        consumer.close()
        return found

    def values(self, *topics: str, isolation: str = "read_committed") -> Sequence[str]:
        """Return all values as texts, in the order of their partitions."""
        return [each.value().decode() for each in self.read(*topics, isolation=isolation)]

    def _wait_for_transactions(self, places: Sequence[TopicPartition]) -> None:
        """Wait until ended transactions are visible: Kafka answers a commit before that."""
        deadline = time.monotonic() + SEEN_S
        seen, there = IsolationLevel.READ_COMMITTED, IsolationLevel.READ_UNCOMMITTED
        while self._ends(places, seen) != self._ends(places, there):
            if time.monotonic() > deadline:
                return  # one is open
            time.sleep(0.02)

    def _ends(self, places: Sequence[TopicPartition], level: IsolationLevel) -> list[int]:
        """Ask again while a partition is new: its broker may not lead it yet."""
        latest: Any = dict.fromkeys(places, OffsetSpec.latest())
        deadline = time.monotonic() + WAIT_S
        while True:
            asked = self.admin.list_offsets(latest, isolation_level=level)
            try:
                return [each.result(WAIT_S).offset for each in asked.values()]
            except KafkaException as error:
                if not _asks_again(error) or time.monotonic() > deadline:
                    raise
                time.sleep(0.02)

    def wait_for_offset(self, group: str, topic: str, at: int) -> None:
        """Wait until a group has this offset in the first partition of a topic."""
        consumer = Consumer({"bootstrap.servers": self.bootstrap, "group.id": group})
        deadline = time.monotonic() + WAIT_S
        while consumer.committed([TopicPartition(topic, 0)], WAIT_S)[0].offset != at:
            assert time.monotonic() < deadline, f"{group} has no offset {at} of {topic}"
            time.sleep(0.02)
        consumer.close()

    def groups(self) -> set[str]:
        """Return the names of all groups that the broker knows."""
        found = self.admin.list_consumer_groups(request_timeout=WAIT_S).result(WAIT_S)
        return {each.group_id for each in found.valid}

    def _produce(
        self, producer: Producer, topic: str, values: Iterable[Any], given: Mapping[str, Any]
    ) -> None:
        settings: dict[str, Any] = {"partition": 0, **given}
        for value in values:
            producer.produce(topic, value, **settings)
        producer.list_topics(topic, WAIT_S)


def _asks_again(error: KafkaException) -> bool:
    """Whether Kafka means this error of a partition to pass by itself."""
    cause: KafkaError = error.args[0]
    return cause.code() in {
        KafkaError.LEADER_NOT_AVAILABLE,
        KafkaError.NOT_LEADER_FOR_PARTITION,
        KafkaError.UNKNOWN_TOPIC_OR_PART,
    }
