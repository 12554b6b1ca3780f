# pyright: basic
"""The mark of a task: the metadata of a committed offset of the task's own consumer group.

It is read by a consumer of that group without subscriptions. An admin client could list all offsets
of a group at once, but librdkafka (2.16) crashes if the coordinator moves or is unreachable
meanwhile: by a null pointer at NOT_COORDINATOR (an admin client has no group), and by a failed
assertion if the coordinator is reached after the request has timed out.
"""

import json
import time
from collections.abc import Sequence
from typing import Any, Final, NamedTuple

from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition

from ......events.model import Token
from ...marks import PublishedBatch
from ..call_timeout import end_in_background
from ..cluster import NO_TOPIC, KafkaCluster, make_client
from ..connection import REQUEST_S, Settings

_SOON: Final = (
    KafkaError.COORDINATOR_LOAD_IN_PROGRESS,
    KafkaError.COORDINATOR_NOT_AVAILABLE,
    KafkaError.NOT_COORDINATOR,
    KafkaError.UNSTABLE_OFFSET_COMMIT,
)
"""Transient errors: the same request succeeds soon."""
_RETRY_S: Final = 0.1


class BatchMark(NamedTuple):
    """The last published batch of a task, and the cluster that published it."""

    cluster: str
    """The id of the fairlead cluster that wrote it."""
    batch: PublishedBatch

    @classmethod
    def parse(cls, text: str) -> "BatchMark":
        """Parse the metadata of an offset."""
        cluster, epoch, generation, batch = json.loads(text)
        return cls(cluster, PublishedBatch(Token(epoch, generation), batch))

    @property
    def text(self) -> str:
        """The metadata of an offset."""
        return json.dumps([self.cluster, *self.batch.token, self.batch.batch])


class MarkGroup:
    """The consumer group with a task's marks; not thread-safe."""

    def __init__(self, settings: Settings, cluster: KafkaCluster, name: str) -> None:
        """Start with the group's name, without a connection yet."""
        self._settings = settings
        self._cluster = cluster
        self._name = name
        self._member: Consumer | None = None
        """A consumer that does not join the group; created at the first use."""

    def so_far(self) -> BatchMark | None:
        """Return the present mark, which an open transaction may still change."""
        member = self._made("read_uncommitted")
        try:
            return self._asked(member)
        finally:
            end_in_background(member.close)

    def last(self) -> BatchMark | None:
        """Wait for open transactions; return the last mark, None: there is none, or it expired."""
        return self._asked(self._joined())

    def _asked(self, member: Consumer) -> BatchMark | None:
        deadline = time.monotonic() + REQUEST_S
        while True:
            try:
                found = [BatchMark.parse(each) for each in self._notes(member)]
                return max(found, key=lambda mark: mark.batch, default=None)
            except KafkaException as error:
                is_late = time.monotonic() > deadline
                if error.args[0].code() not in _SOON or is_late:
                    with self._cluster.translate_errors(f"group {self._name}: "):
                        raise
            time.sleep(_RETRY_S)

    def metadata(self) -> Any:  # noqa: ANN401  # Kafka's own
        """Return the group's metadata for a transaction."""
        return self._joined().consumer_group_metadata()

    def close(self) -> None:
        """Close the connections."""
        member, self._member = self._member, None
        if member is not None:
            end_in_background(member.close)

    def _joined(self) -> Consumer:
        if self._member is None:
            # With this isolation level, librdkafka waits for open transactions with offsets.
            self._member = self._made("read_committed")
        return self._member

    def _made(self, isolation: str) -> Consumer:
        own = {"group.id": self._name, "isolation.level": isolation}
        return make_client(Consumer, self._settings, self._cluster.trouble, **own)

    def _notes(self, member: Consumer) -> Sequence[str]:
        """Return the metadata of all offsets of the group; earlier configs had other topics."""
        topics = member.list_topics(timeout=REQUEST_S).topics
        if not topics:
            return []
        asked = [TopicPartition(topic, 0) for topic in topics]
        found = member.committed(asked, timeout=REQUEST_S)
        for each in found:
            if each.error is not None and each.error.code() not in NO_TOPIC:
                raise KafkaException(each.error)
        return [each.metadata for each in found if each.metadata]
