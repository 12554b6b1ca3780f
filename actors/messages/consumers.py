"""ConsumerGroupHeartbeat and its answer, and what a group learns of topics (KIP-848).

Fields are those of Kafka's ConsumerGroupHeartbeat, and the client's rights. What is None, or -1, is
as it was. Partitions are told by the id of their topic, as 32 hexadecimal digits. `number` tells
apart what one sender has asked.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields
from functools import lru_cache
from typing import Any

from ...events.records import Topic
from .errors import Error
from .pickling import pickled_by_values

Partitions = Mapping[str, tuple[int, ...]]
"""The numbers of partitions, by the id of their topic."""


@dataclass(frozen=True, slots=True)
class TopicRights:
    """The topics that a client may describe: by names, and by prefixes of names.

    They come with each heartbeat, and many members have the same: equal ones that a process gets
    are one object.
    """

    names: frozenset[str] = frozenset()
    prefixes: frozenset[str] = frozenset()
    denied_names: frozenset[str] = frozenset()
    """A denial outweighs a permission."""
    denied_prefixes: frozenset[str] = frozenset()
    ruled_names: frozenset[str] | None = None
    """Topics with any rule: all others may be described; None: no others."""
    ruled_prefixes: frozenset[str] = frozenset()

    def filter(self, topics: Iterable[str]) -> tuple[str, ...]:
        """Return those of some topics that may be described, in the same order."""
        allowed, denied = tuple(self.prefixes), tuple(self.denied_prefixes)
        ruled = tuple(self.ruled_prefixes)

        def may_describe(name: str) -> bool:
            if name in self.denied_names or name.startswith(denied):
                return False
            if name in self.names or name.startswith(allowed):
                return True
            is_open = self.ruled_names is not None and name not in self.ruled_names
            return is_open and not name.startswith(ruled)

        return tuple(filter(may_describe, topics))

    def __reduce__(self) -> tuple[object, ...]:
        """Pickle it as a call that returns the object of equal rights."""
        return _share_rights, tuple(getattr(self, each.name) for each in fields(self))


@lru_cache(maxsize=1_000)
def _share_rights(*values: Any) -> TopicRights:  # noqa: ANN401  # those of its fields
    return TopicRights(*values)


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
    client_id: str = ""
    client_host: str = ""
    asks_for_id: bool = False
    """Whether the group is to name it if it has no member id yet (version 0)."""
    topic_rights: TopicRights | None = None
    """The topics that its regular expression may stand for; None: all."""
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
    """The topics that the pattern of each member stands for; as before if it has no entry."""
    changed: frozenset[str] | None = None
    """The topics that came, went or were created anew since the last call; None: any may have."""
