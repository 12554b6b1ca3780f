"""Deletes offsets that are of no use any more: expired ones, and those of deleted topics.

**Expiry** (KIP-211).

* In a group without members: one retention time after the group became empty, or after their commit
  if that is later.
* In a group that never had members, but commits: one retention time after their commit.
* In a group of consumers: likewise, but not those of topics that a member of either protocol
  subscribes to. These are in use however old they are.
* In a group of other members they do not expire, since it is unknown which are in use. Nor do any
  during a rebalance of classic consumers, or while offsets wait for the end of a transaction.

A group is checked at most once per `offsets.retention.check.interval.ms`, and only if an offset may
have expired since: each check finds the time at which the next offset expires. Later records of the
group may make that earlier, so it is checked again after them. Later commits need no check, since
they expire later anyway. An empty group is deleted with its last offset.

**Deleted topics**, as at a broker. A topic counts as deleted once the cluster has been without it
for a while, since a broker that has just started may not know all topics yet. Offsets outlive a
listener that was pointed to another cluster: they are deleted only if this process has seen their
topic, or if another topic of the group is there under its id. A group may have many offsets: after
the first look only those of topics that have changed are read.
"""

import logging
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Final
from zlib import crc32

from ....events.catalogue import key_of
from ....events.commits import ConsumerOffset
from ....events.group import Group
from ....events.log.space import DiskSpace
from ....events.records import Tombstone, Topic
from ...classic.coordinator import ClassicCoordinator
from ...classic.embedded import CONSUMER, topics_of_consumers
from ...classic.state import RoundPhase
from ...group.members.commit import OffsetLedger
from ...group.state.settings import GroupSettings
from ...timing import Now, earliest

LOGGER = logging.getLogger(__name__)

LONGEST_WAIT_MS: Final = 86_400_000
"""The maximum interval of checks, since the wall clock may be set meanwhile."""
GONE_MS: Final = 20_000
"""How long a topic must not be there before its offsets are deleted."""

Topics = Mapping[str, Topic]
_TopicKey = tuple[str, str]
"""The name and the id of a topic."""


class OffsetCleanUp:
    """The checks of one group."""

    def __init__(
        self,
        group: Group,
        classic: ClassicCoordinator,
        ledger: OffsetLedger,
        settings: GroupSettings,
        steady_ms: int,
    ) -> None:
        """Start with the first checks of many groups spread over time."""
        self._group, self._classic, self._ledger = group, classic, ledger
        group_id = group.group_id.encode(errors="surrogatepass")
        interval_ms = settings.offsets_check_interval_ms
        self._checked_ms = steady_ms + crc32(group_id) % interval_ms
        """The time of the last check, steady clock."""
        self._wait_ms = interval_ms
        """The time until the next check, if the group has no new records."""
        self._end = group.end
        """The end of the group's log at the last check."""

    def next_ms(self, settings: GroupSettings) -> int:
        """Return when to check next, steady clock."""
        is_unchanged = self._end == self._group.end
        wait_ms = self._wait_ms if is_unchanged else settings.offsets_check_interval_ms
        return self._checked_ms + wait_ms

    def run_timers(self, settings: GroupSettings, space: DiskSpace, now: Now) -> bool:
        """Check if it is time; return whether the group is over and has to be deleted."""
        if now.steady_ms < self.next_ms(settings):
            return False
        wait_ms, is_over = self._check(settings, space, now)
        self._wait_ms = max(settings.offsets_check_interval_ms, wait_ms)
        self._checked_ms, self._end = now.steady_ms, self._group.end
        return is_over

    def _check(self, settings: GroupSettings, space: DiskSpace, now: Now) -> tuple[int, bool]:
        """Delete expired offsets; return the time until the next ones expire, in milliseconds.

        Also returns whether that was the last of a group without members.
        """
        use = find_use(self._group, self._classic)
        if use is None or space.is_low or self._ledger.pending_offsets():
            return 0, False
        retention_ms = settings.offsets_retention_ms
        expired = find_expired(self._ledger.consumer_offsets(), use, retention_ms, now.wall_ms)
        is_over = use.is_over and not expired.is_any_left
        if not is_over:
            self._ledger.write(
                [Tombstone(ConsumerOffset, key_of(each)) for each in expired.offsets]
            )
        self._ledger.expired += len(expired.offsets)
        if expired.offsets or is_over:
            what = "is deleted" if is_over else "goes on"
            count, name = len(expired.offsets), self._group.group_id
            LOGGER.info("%d offsets have expired of group %s, which %s", count, name, what)
        left_ms = retention_ms if expired.next_ms is None else expired.next_ms - now.wall_ms
        return min(left_ms, retention_ms, LONGEST_WAIT_MS), is_over


class DeletedTopics:
    """The topics with offsets of one group that were deleted, and the times of the deletions."""

    def __init__(self, group: Group, ledger: OffsetLedger) -> None:
        self._group, self._ledger = group, ledger
        self._gone: dict[_TopicKey, int] = {}
        """Since when topics are gone, steady clock, by name and id."""
        self._before: Topics = {}
        """The topics as they were seen last."""
        self._has_foreign = False
        """Whether there are offsets of topics that may be those of another cluster."""

    def follow(self, topics: Topics, changed: frozenset[str] | None, now: Now) -> None:
        """Record which topics are gone from the cluster; `changed` as in `TopicsSeen`."""
        before, self._before = self._before, topics
        changed = None if self._has_foreign else changed
        offsets = self._offsets_of(changed)
        is_same_cluster = any(each.topic_id and _is_there(each, topics) for each in offsets)
        absent = {_topic_of(each) for each in offsets if not _is_there(each, topics)}
        gone = {
            each: self._gone.get(each, now.steady_ms)
            for each in absent
            if each in self._gone or is_same_cluster or _has(before, *each)
        }
        self._has_foreign = absent != gone.keys()
        unchanged = {} if changed is None else _without(self._gone, changed)
        self._gone = unchanged | gone

    def _offsets_of(self, topics: frozenset[str] | None) -> list[ConsumerOffset]:
        if topics is None:
            return self._ledger.consumer_offsets()
        return [each for name in sorted(topics) for each in self._ledger.consumer_offsets(name)]

    def next_ms(self) -> int | None:
        """Return when offsets are to be deleted next, steady clock; None: there are none."""
        return min(self._gone.values()) + GONE_MS if self._gone else None

    def run_timers(self, space: DiskSpace, now: Now) -> None:
        """Delete the offsets of topics that have been gone for long enough."""
        over = {each for each, since in self._gone.items() if since + GONE_MS <= now.steady_ms}
        if not over:
            return
        if space.is_low:
            self._gone |= dict.fromkeys(over, now.steady_ms)  # later
            return
        for each in over:
            del self._gone[each]
        offsets = self._offsets_of(frozenset(name for name, _ in over))
        self._delete([each for each in offsets if _topic_of(each) in over])

    def _delete(self, offsets: Iterable[ConsumerOffset]) -> None:
        tombstones = [Tombstone(ConsumerOffset, key_of(each)) for each in offsets]
        self._ledger.write(tombstones)
        if tombstones:
            what = "%d offsets of deleted topics have left group %s"
            LOGGER.info(what, len(tombstones), self._group.group_id)


def topics_changed(before: Topics | None, after: Topics) -> frozenset[str] | None:
    """Return the topics that came, went or were created anew; None: there is nothing before."""
    if before is None:
        return None
    return frozenset(
        name
        for name in before.keys() | after.keys()
        if name not in before or name not in after or before[name].topic_id != after[name].topic_id
    )


def _without(gone: Mapping[_TopicKey, int], names: frozenset[str]) -> dict[_TopicKey, int]:
    return {each: since for each, since in gone.items() if each[0] not in names}


def _topic_of(offset: ConsumerOffset) -> _TopicKey:
    return offset.topic, offset.topic_id


def _is_there(offset: ConsumerOffset, topics: Topics) -> bool:
    return _has(topics, *_topic_of(offset))


def _has(topics: Topics, name: str, topic_id: str) -> bool:
    """Return whether a topic exists with this id; an empty id matches any."""
    topic = topics.get(name)
    return topic is not None and topic_id in {"", topic.topic_id}


# -- what has expired


@dataclass(frozen=True, slots=True)
class OffsetUse:
    """The offsets of a group that are in use, and the time since which the others are unused."""

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
    """Whether any offset has not expired."""
    next_ms: int | None
    """When the next offset expires, wall clock; None: none does while the use is the same."""


def find_use(group: Group, classic: ClassicCoordinator) -> OffsetUse | None:
    """Return which offsets of a group are in use, None if that is unknown now."""
    if group.members:
        return OffsetUse(group.subscribers.keys())
    if classic.phase is RoundPhase.EMPTY and classic.is_unused:
        is_used = group.bump is not None or group.classic is not None or group.topics is not None
        is_over = is_used or not group.configs  # settings outlive the group
        return OffsetUse((), _empty_since_ms(group), is_over=is_over)
    if classic.phase is RoundPhase.STABLE and classic.protocol_type == CONSUMER:
        return OffsetUse(topics_of_consumers(classic.members()))
    return None


def _empty_since_ms(group: Group) -> int:
    """Return the time at which a group lost its last member, by its log; 0: it never had one."""
    last_ms = group.classic.time_ms if group.classic else 0
    return max(last_ms, group.bump.time_ms if group.bump else 0)


def find_expired(
    offsets: Iterable[ConsumerOffset], use: OffsetUse, retention_ms: int, now_ms: int
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
