# pyright: basic
"""A consumer group with the connector's committed offsets, for tools that monitor lag.

The connector's own log has the offsets: the group is never read, and commits to it may be late or
lost.
"""

from collections.abc import Mapping

from confluent_kafka import Consumer, KafkaException, TopicPartition

from .call_timeout import end_in_background
from .cluster import LastError, TopicPlace, make_client
from .connection import Settings


class ShadowGroup:
    """A group without members; not thread-safe."""

    def __init__(self, settings: Settings, name: str) -> None:
        """Create its client, which connects at the first use; raises `ConfigInvalid`."""
        own = {"group.id": name, "enable.auto.commit": False}
        self._client: Consumer = make_client(Consumer, settings, LastError(), **own)

    def commit(self, offsets: Mapping[TopicPlace, int]) -> None:
        """Commit offsets asynchronously; errors are ignored."""
        places = [TopicPartition(*place, at) for place, at in offsets.items()]
        try:
            self._client.commit(offsets=places, asynchronous=True)
            self._client.poll(0)  # lets librdkafka handle the answers to earlier commits
        except KafkaException:
            return  # the next one says more

    def close(self) -> None:
        """Close the connections, once the commits are sent."""
        end_in_background(self._client.close)
