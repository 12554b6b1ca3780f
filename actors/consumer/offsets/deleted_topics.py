"""Deletes the offsets of topics that were deleted, as a broker does.

A topic counts as deleted once the cluster has been without it for a while, since a broker that has
just started may not know all topics yet. Offsets outlive a listener that was pointed to another
cluster: they are deleted only if this process has seen their topic, or if another topic of the
group is there under its id.

A group may have many offsets: after the first look only those of topics that have changed are read.
"""

import logging
from collections.abc import Iterable, Mapping
from typing import Final

from ....events.catalogue import key_of
from ....events.kafka.consumers import ConsumerOffset, Topic
from ....events.records import Tombstone
from ...group.commit import OffsetLedger
from ...group.sides import Sides
from ...timing import Now

LOGGER = logging.getLogger(__name__)

Topics = Mapping[str, Topic]
_TopicKey = tuple[str, str]
"""The name and the id of a topic."""

GONE_MS: Final = 20_000
"""How long a topic must not be there before its offsets are deleted."""


class DeletedTopics:
    """The topics of one group's offsets that are gone, and since when."""

    def __init__(self, sides: Sides, ledger: OffsetLedger) -> None:
        self._sides, self._ledger = sides, ledger
        self._gone: dict[_TopicKey, int] = {}
        """Since when topics are gone, steady clock, by name and id."""
        self._before: Topics = {}
        """The topics as they were seen last."""
        self._has_foreign = False
        """Whether there are offsets of topics that may be those of another cluster."""

    def see(self, topics: Topics, changed: frozenset[str] | None, now: Now) -> None:
        """Take the topics of the cluster; `changed` as in `TopicsSeen`."""
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

    def pass_time(self, now: Now) -> None:
        """Delete the offsets of topics that have been gone for long enough."""
        over = {each for each, since in self._gone.items() if since + GONE_MS <= now.steady_ms}
        if not over:
            return
        if self._sides.room.is_low:
            self._gone |= dict.fromkeys(over, now.steady_ms)  # later
            return
        for each in over:
            del self._gone[each]
        offsets = self._offsets_of(frozenset(name for name, _ in over))
        self._delete([each for each in offsets if _topic_of(each) in over])

    def _delete(self, offsets: Iterable[ConsumerOffset]) -> None:
        found = [Tombstone(ConsumerOffset, key_of(each)) for each in offsets]
        self._ledger.write(found)
        if found:
            what = "%d offsets of deleted topics have left group %s"
            LOGGER.info(what, len(found), self._sides.group.group_id)


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
    """Return whether a topic is there; an empty id stands for any."""
    topic = topics.get(name)
    return topic is not None and topic_id in {"", topic.topic_id}
