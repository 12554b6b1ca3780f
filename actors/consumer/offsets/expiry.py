"""When committed offsets expire (KIP-211).

* In a group without members: one retention time after the group became empty, or after their commit
  if that is later.
* In a group that never had members, but commits: one retention time after their commit.
* In a group of consumers: likewise, but not those of topics that a member of either protocol
  subscribes to. These are in use however old they are.
* In a group of other members they do not expire, since it is unknown which are in use. Nor do any
  during a rebalance of classic consumers.
"""

from collections.abc import Collection, Iterable
from dataclasses import dataclass

from ....events.group import Group
from ....events.kafka.consumers import ConsumerOffset
from ...classic.coordinator import ClassicCoordinator
from ...classic.embedded import CONSUMER, topics_of_consumers
from ...classic.state import RoundPhase
from ...timing import earliest


@dataclass(frozen=True, slots=True)
class Use:
    """The offsets of a group that are in use, and when the use of the others ended."""

    topics: Collection[str]
    """The topics in use, whose offsets do not expire."""
    until_ms: int = 0
    """The end of the use of all others, wall clock; at the earliest the commit of each."""
    is_over: bool = False
    """Whether the group has no members: then it is deleted with its last offset."""


@dataclass(frozen=True, slots=True)
class Expired:
    """The expired offsets, and whether others remain."""

    offsets: list[ConsumerOffset]
    is_any_left: bool
    next_ms: int | None
    """When the next offset expires, wall clock; None: none does while the use is the same."""


def find_use(group: Group, classic: ClassicCoordinator) -> Use | None:
    """Return which offsets of a group are in use, None if that is unknown now."""
    if group.members:
        return Use(group.subscribers.keys())
    if classic.phase is RoundPhase.EMPTY and classic.is_unused:
        return Use((), _empty_since_ms(group), is_over=True)
    if classic.phase is RoundPhase.STABLE and classic.protocol_type == CONSUMER:
        return Use(topics_of_consumers(classic.members()))
    return None


def _empty_since_ms(group: Group) -> int:
    """Return since when a group has no members, according to its log; 0: it never had any."""
    last_ms = group.classic.time_ms if group.classic else 0
    return max(last_ms, group.bump.time_ms if group.bump else 0)


def find_expired(
    offsets: Iterable[ConsumerOffset], use: Use, retention_ms: int, now_ms: int
) -> Expired:
    """Find the offsets that have expired at this time (wall clock, ms)."""
    expired: list[ConsumerOffset] = []
    is_any_left, next_ms = False, None
    for each in offsets:
        at_ms = max(each.time_ms, use.until_ms) + retention_ms
        if each.topic in use.topics:
            is_any_left = True
        elif at_ms <= now_ms:
            expired.append(each)
        else:
            is_any_left, next_ms = True, earliest(next_ms, at_ms)
    return Expired(expired, is_any_left, next_ms)
