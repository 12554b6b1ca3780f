"""The records of groups of consumers, of which a partition of a topic is a resource.

The rules for fields and times in `records.py` hold for these records as well.
"""

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Topic:
    """A topic of the cluster, as a group of consumers knows it."""

    topic_id: str
    """Its uuid as 32 hexadecimal digits; a topic that is created anew has another."""
    partitions: int
    is_released: bool = False
    """Whether the group has no use for it any more: members give up what they hold of it."""


@dataclass(frozen=True, slots=True)
class SubscribedTopics:
    """The topics that a group of consumers shares out (key type 31).

    Their partitions are what is configured in such a group. One that is released stands here for
    as long as members may hold any of it, since they know it by its id.
    """

    topics: Mapping[str, Topic]
    """By name."""


@dataclass(frozen=True, slots=True)
class ConsumerSubscription:
    """The subscription of a consumer (key type 32)."""

    member_id: str
    names: tuple[str, ...] = ()
    """The topics that it names, sorted."""
    pattern: str = ""
    """The regular expression (RE2) of further topics; empty: there is none."""
    matched: tuple[str, ...] = ()
    """The topics that the pattern stood for when they were looked at last, sorted."""

    @property
    def topics(self) -> frozenset[str]:
        """All topics that the member may be given."""
        return frozenset(self.names).union(self.matched)


@dataclass(frozen=True, slots=True)
class ConsumerOffset:
    """How far a group's members have read a partition of a topic (key type 33)."""

    topic: str
    partition: int
    offset: int
    """The offset of the next record to be read."""
    leader_epoch: int = -1
    """That of the last record that was read; -1: not known."""
    metadata: str = ""
    """Whatever the client wants to know again."""
    time_ms: int = 0
    topic_id: str = ""
    """That of the topic by which it was committed, as `Topic` has it; empty: it was not known."""


ConsumerRecord = SubscribedTopics | ConsumerSubscription
"""What the control log says of consumers, beside what it says of all members."""

Subscriptions = dict[str, ConsumerSubscription]
"""By member id."""
