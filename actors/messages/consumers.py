"""ConsumerGroupHeartbeat and its answer, and what a group learns of topics (KIP-848).

Fields are those of Kafka's ConsumerGroupHeartbeat, with the client-side assignors that KIP-848
proposes and Kafka does not serve. What is None, or -1, is as it was. Partitions are told by the
id of their topic, as 32 hexadecimal digits. `number` tells apart what one sender has asked.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from ...events.model import ClientAssignor
from ...events.records import Topic
from .errors import Error
from .pickling import pickled_by_values

Partitions = Mapping[str, tuple[int, ...]]
"""The numbers of partitions, by the id of their topic."""


@pickled_by_values
@dataclass(frozen=True, slots=True)
class ConsumerGroupHeartbeat:
    """A consumer's heartbeat; it joins with epoch 0 and leaves with -1 or -2."""

    group_id: str
    member_id: str
    member_epoch: int
    instance_id: str | None = None
    rack_id: str | None = None
    """The consumer's rack; None: unchanged."""
    rebalance_timeout_ms: int = -1
    subscribed_topic_names: tuple[str, ...] | None = None
    subscribed_topic_regex: str | None = None
    """A regular expression of RE2; empty: none any more."""
    server_assignor: str | None = None
    topic_partitions: Partitions | None = None
    """What it owns."""
    client_assignors: tuple[ClientAssignor, ...] | None = None
    client_id: str = ""
    client_host: str = ""
    asks_for_id: bool = False
    """Whether the group is to name it if it has no member id yet (version 0)."""
    number: int = 0


@pickled_by_values
@dataclass(frozen=True, slots=True)
class ConsumerGroupHeartbeatReply:
    """The group answers; `assignment` is None if it is unchanged."""

    error: Error
    member_id: str | None = None
    member_epoch: int = 0
    heartbeat_interval_ms: int = 0
    throttle_time_ms: int = 0
    """For how long the client must send nothing."""
    assignment: Partitions | None = None
    message: str | None = None
    number: int = 0


@dataclass(frozen=True, slots=True)
class Subscribed:
    """The subscription in a heartbeat; None: unchanged."""

    names: tuple[str, ...] | None = None
    pattern: str | None = None
    matched: tuple[str, ...] = ()
    """The topics that the pattern stands for."""


@dataclass(frozen=True, slots=True)
class TopicsSeen:
    """The listener sends a group all topics of the cluster."""

    topics: Mapping[str, Topic]
    """By name."""
    matched: Mapping[str, tuple[str, ...]] = field(default_factory=dict[str, tuple[str, ...]])
    """The topics that each pattern of the group's members stands for."""
    changed: frozenset[str] | None = None
    """The topics that came, went or were created anew since the last call; None: any may have."""
