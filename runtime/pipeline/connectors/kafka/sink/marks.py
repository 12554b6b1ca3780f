# pyright: basic
"""The mark of a task: the metadata of an offset that the task's own group has.

It is asked for by a consumer of that group, which subscribes to nothing. An admin client would
list all offsets of a group at once, but librdkafka (2.16) ends the process when the coordinator
is moving or away meanwhile: by a null pointer when it answers that it is not the coordinator (an
admin client has no group of its own), and by a failed assertion when it is reached after the
question has timed out.
"""

import json
import time
from collections.abc import Sequence
from typing import Any, Final, NamedTuple

from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition

from ......events.model import Token
from ...marks import PublishedBatch
from ..bounded import let_go
from ..cluster import NO_TOPIC, KafkaCluster, made
from ..connection import REQUEST_S, Settings

_SOON: Final = (
    KafkaError.COORDINATOR_LOAD_IN_PROGRESS,
    KafkaError.COORDINATOR_NOT_AVAILABLE,
    KafkaError.NOT_COORDINATOR,
    KafkaError.UNSTABLE_OFFSET_COMMIT,
)
"""What says that the same question has an answer soon."""
_RETRY_S: Final = 0.1


class BatchMark(NamedTuple):
    """The last batch of a task that was published, and the cluster whose it was."""

    cluster: str
    batch: PublishedBatch

    @classmethod
    def parse(cls, text: str) -> "BatchMark":
        """Return what the metadata of an offset says."""
        cluster, epoch, generation, batch = json.loads(text)
        return cls(cluster, PublishedBatch(Token(epoch, generation), batch))

    @property
    def text(self) -> str:
        """The metadata of an offset."""
        return json.dumps([self.cluster, *self.batch.token, self.batch.batch])


class MarkGroup:
    """The group that a task's marks are kept for; every method is called from one thread."""

    def __init__(self, settings: Settings, cluster: KafkaCluster, name: str) -> None:
        """Take the group's name; nothing is asked of the brokers yet."""
        self._settings = settings
        self._cluster = cluster
        self._name = name
        self._member: Consumer | None = None
        """Stands for the group, which has no member; made when it is needed."""

    def so_far(self) -> BatchMark | None:
        """Return the mark that stands now, though an open transaction may change it yet."""
        member = self._made("read_uncommitted")
        try:
            return self._asked(member)
        finally:
            let_go(member.close)

    def last(self) -> BatchMark | None:
        """Return the last mark, once no transaction changes it; None: there is none any more."""
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
                    with self._cluster.asking(f"group {self._name}: "):
                        raise
            time.sleep(_RETRY_S)

    def metadata(self) -> Any:  # noqa: ANN401  # Kafka's own
        """Return what the group is called in a transaction."""
        return self._joined().consumer_group_metadata()

    def close(self) -> None:
        """Let go of the connections."""
        member, self._member = self._member, None
        if member is not None:
            let_go(member.close)

    def _joined(self) -> Consumer:
        if self._member is None:
            # By its isolation librdkafka waits for transactions that are about to change offsets.
            self._member = self._made("read_committed")
        return self._member

    def _made(self, isolation: str) -> Consumer:
        own = {"group.id": self._name, "isolation.level": isolation}
        return made(Consumer, self._settings, self._cluster.trouble, **own)

    def _notes(self, member: Consumer) -> Sequence[str]:
        """Return the metadata of all offsets of the group: earlier configs had other topics."""
        topics = member.list_topics(timeout=REQUEST_S).topics
        if not topics:
            return []
        asked = [TopicPartition(topic, 0) for topic in topics]
        found = member.committed(asked, timeout=REQUEST_S)
        for each in found:
            if each.error is not None and each.error.code() not in NO_TOPIC:
                raise KafkaException(each.error)
        return [each.metadata for each in found if each.metadata]
