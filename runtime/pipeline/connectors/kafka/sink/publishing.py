# pyright: basic
"""One transaction for each batch: its records, and the mark that says that they are there.

The mark is the metadata of an offset that the task's own group has: Kafka commits it with the
records or not at all. Whoever may write for the task is who last began with its transactional id
(`init_transactions`), which ends what a former owner holds open and lets nothing of it in again.
So between that and the end of a transaction nobody else can move the mark.
"""

from collections.abc import Iterator
from typing import Final

import pyarrow as pa
from confluent_kafka import TopicPartition

from ..cluster import KafkaCluster
from ..connection import REQUEST_S, Settings
from .marks import BatchMark, MarkGroup
from .sending import BATCH_BYTES, RecordSender

_TRANSACTION: Final[Settings] = {"transaction.timeout.ms": 60_000}
"""Unless a user says otherwise."""


class Publisher(RecordSender):
    """Sends the batches of one task; every method is called from one thread."""

    def __init__(self, settings: Settings, cluster: KafkaCluster, group: str) -> None:
        """Take the name that the task goes by: its group, and its transactional id."""
        super().__init__({**_TRANSACTION, **settings}, {"transactional.id": group})
        self.group = group
        self._marks = MarkGroup(settings, cluster, group)
        self.own_mark: BatchMark | None = None
        """The mark that this producer set last; while it may send, nobody else sets one."""

    def begin(self, batch_bytes: int = BATCH_BYTES) -> bool:
        """End what another holds, and shut it out, unless that is done; raises `SinkAway`.

        A mark that is read after this is the last one, for as long as batches can be sent.
        """
        is_new = super().begin(batch_bytes)
        if is_new:
            self.waiting(self.producer.init_transactions, REQUEST_S)
        return is_new

    def mark(self) -> BatchMark | None:
        """Ask for the last mark; None: there is none, or none any more."""
        return self._marks.last()

    def mark_so_far(self) -> BatchMark | None:
        """Ask for the mark that stands now, whatever a former owner has under way."""
        return self._marks.so_far()

    def publish(self, batches: Iterator[pa.RecordBatch], mark: BatchMark, sequence: int) -> None:
        """Send a batch with its mark; raises `SinkAway`, or `SinkBroken` for what is not taken."""
        self.waiting(self.producer.begin_transaction)
        topic = self.send(batches)
        place = TopicPartition(topic, 0, sequence, metadata=mark.text)
        known = self._marks.metadata()
        self.waiting(self.producer.send_offsets_to_transaction, [place], known, REQUEST_S)
        self.waiting(self.producer.commit_transaction, REQUEST_S)
        self.own_mark = mark

    def close(self) -> None:
        """Let go of the connections; a transaction that is open is ended by whoever is next."""
        self._marks.close()
        super().close()

    def _drop(self) -> None:
        self.own_mark = None
        super()._drop()
