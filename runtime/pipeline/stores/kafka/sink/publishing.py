# pyright: basic
"""Publication of a batch in one Kafka transaction: its records, and its mark.

The mark is the metadata of an offset in the task's own consumer group, which Kafka commits
atomically with the records. `init_transactions` with the task's transactional id aborts the open
transaction of a former owner and fences it. So from that call on, only this producer can change the
mark.
"""

import time
from collections.abc import Iterator
from typing import Final

import pyarrow as pa
from confluent_kafka import TopicPartition

from ..cluster import KafkaCluster
from ..connection import REQUEST_S, Settings
from .marks import BatchMark, MarkGroup
from .sending import BATCH_BYTES, RecordSender

_TRANSACTION: Final[Settings] = {"transaction.timeout.ms": 60_000}
"""The default, which users may override."""


_COUNTED_S: Final = 10.0


class Publisher(RecordSender):
    """Sends the batches of one task in transactions; not thread-safe."""

    def __init__(self, settings: Settings, cluster: KafkaCluster, group: str) -> None:
        """Start with the task's group, which is also its transactional id."""
        super().__init__({**_TRANSACTION, **settings}, {"transactional.id": group})
        self.group = group
        self._cluster = cluster
        self._counts: dict[str, tuple[int, float]] = {}
        """How many partitions topics have, and until when that is taken as known."""
        self._marks = MarkGroup(settings, cluster, group)
        """The group that has the mark of the last batch."""
        self.own_mark: BatchMark | None = None
        """The last mark of this producer; valid until the producer is fenced."""
        self._has_failed = False
        """Whether the last batch was not published: its records are all to be heard of."""

    def begin(self, batch_bytes: int = BATCH_BYTES, *, notes_places: bool = False) -> bool:
        """Create a producer and fence former owners, unless that is done; raises `SinkAway`.

        A mark that is read after this stays the last one until this producer is fenced.
        """
        is_new = super().begin(batch_bytes, notes_places=notes_places and not self._has_failed)
        if is_new:
            self.call(self.producer.init_transactions, REQUEST_S)
        return is_new

    def mark(self) -> BatchMark | None:
        """Read the last mark; None: there is none, or it has expired."""
        return self._marks.last()

    def mark_so_far(self) -> BatchMark | None:
        """Read the present mark, which an open transaction of a former owner may still change."""
        return self._marks.so_far()

    def publish(self, batches: Iterator[pa.RecordBatch], mark: BatchMark, sequence: int) -> None:
        """Send a batch with its mark; raises `SinkAway`, or `SinkBroken` for refused records."""
        self._has_failed = True
        self.call(self.producer.begin_transaction)
        topic = self.send(batches)
        place = TopicPartition(topic, 0, sequence, metadata=mark.text)
        known = self._marks.metadata()
        self.call(self.producer.send_offsets_to_transaction, [place], known, REQUEST_S)
        self.call(self.producer.commit_transaction, REQUEST_S)
        self.own_mark, self._has_failed = mark, False

    def partitions_of(self, topic: str) -> int:
        """Return how many partitions a topic had some seconds ago, at most; raises `SinkAway`."""
        count, until = self._counts.get(topic, (0, 0.0))
        if time.monotonic() < until:
            return count
        facts = self._cluster.facts([topic])
        count = facts[topic].partitions if topic in facts else 0
        self._counts[topic] = count, time.monotonic() + _COUNTED_S
        return count

    def close(self) -> None:
        """Close the connections; the next owner aborts an open transaction."""
        self._marks.close()
        super().close()

    def _drop(self) -> None:
        self.own_mark = None
        super()._drop()
