# pyright: basic
"""A group that Kafka is told of, so that tools that watch lag see how far a connector is.

Offsets count by the connector's own log alone: nothing is ever read from the group, and what it is
told may come late, or not at all.
"""

from collections.abc import Mapping

from confluent_kafka import Consumer, KafkaException, TopicPartition

from .bounded import let_go
from .cluster import TopicPlace, Trouble, made
from .connection import Settings


class ShadowGroup:
    """A group without a member; every method is called from one thread."""

    def __init__(self, settings: Settings, name: str) -> None:
        """Make its client, which connects when it is used; raises `ConfigInvalid`."""
        own = {"group.id": name, "enable.auto.commit": False}
        self._client: Consumer = made(Consumer, settings, Trouble(), **own)

    def tell(self, offsets: Mapping[TopicPlace, int]) -> None:
        """Hand on what comes next in partitions; whether it arrives, nobody waits for."""
        places = [TopicPartition(*place, at) for place, at in offsets.items()]
        try:
            self._client.commit(offsets=places, asynchronous=True)
            self._client.poll(0)  # which takes the answers to what was told before
        except KafkaException:
            return  # the next one says more

    def close(self) -> None:
        """Let go of the connections, once what was handed on is sent."""
        let_go(self._client.close)
