"""The groups of Kafka's clients, many of which share the pair of logs of a shard (LOG.md §8).

Their current state is folded from the latest record of each key, and then from what is new: a look
costs what has changed since the last one, however many groups there are. `shard_history.py` reads
their history.
"""

from collections.abc import Iterable, Mapping
from typing import Final

from ..events.catalogue import TYPE_OF
from ..events.commits import ConsumerOffset
from ..events.entries.codec import decode, fold, restore
from ..events.entries.group_keys import GroupPart, by_group, groups_with_offsets, split_key
from ..events.group import Group
from ..events.log.errors import TrimmedError
from ..events.log.frame import Entry
from ..events.log.reader import LogReader, ReadableLog
from ..events.model import GroupState, GroupType

COMPLETING: Final = "CompletingRebalance"
"""What Kafka calls a classic group whose members wait for what their leader assigns."""

CHANGED_MAX: Final = 1_000
"""So many changed groups are told apart."""

_OFFSET = TYPE_OF[ConsumerOffset].number


class ChangedGroups:
    """The ids of groups that have changed since somebody took them, as long as they are few."""

    def __init__(self) -> None:
        self._group_ids: set[str] | None = set()

    def add(self, group_ids: Iterable[str]) -> None:
        """Add groups; more than `CHANGED_MAX` are not told apart any more."""
        if self._group_ids is not None:
            self._group_ids.update(group_ids)
            if len(self._group_ids) > CHANGED_MAX:
                self._group_ids = None

    def take(self) -> set[str] | None:
        """Return the groups, and begin anew; None: too many."""
        taken, self._group_ids = self._group_ids, set()
        return taken


class ShardFollower:
    """All groups of a shard that have, or had, members, caught up on demand."""

    def __init__(self, log: LogReader, changed: ChangedGroups) -> None:
        """Read the shard's control log; raises `LogError`, `CodecError`.

        `changed` gets the groups of later entries.
        """
        self._log, self._changed = log, changed
        self.groups: dict[str, Group] = {}
        """By group id."""
        self._next = 0
        """The offset of the first entry that was not folded yet."""
        self._load()

    def catch_up(self) -> None:
        """Fold new entries; raises `LogError`, `CodecError`."""
        try:
            touched = [self._apply(entries) for entries in self._log.tail(self._next)]
        except TrimmedError:
            self._load()
            self._changed.add(self.groups)
            return
        changed = {each for groups in touched for each in groups}
        self._changed.add(changed)
        for group_id in changed:
            if not _is_left(self.groups[group_id]):
                del self.groups[group_id]

    def _load(self) -> None:
        entries, self._next = self._log.load()
        told = ((name, found) for name, found in by_group(entries).items())
        groups = (restore(name, found, found[-1].offset + 1) for name, found in told)
        self.groups = {each.group_id: each for each in groups if _is_left(each)}

    def _apply(self, entries: Iterable[Entry]) -> Iterable[str]:
        found = by_group(entries)
        for group_id, own in found.items():
            fold(self.groups.setdefault(group_id, Group(group_id)), own)
            self._next = max(self._next, own[-1].offset + 1)
        return found.keys()


def _is_left(group: Group) -> bool:
    """Return whether anything is left of a group; of a deleted one only settings may be."""
    return _is_used(group) or bool(group.configs)


def _is_used(group: Group) -> bool:
    """Return whether a group has, or had, members."""
    return not _has_offsets_alone(group) or bool(group.members)


class CommittedGroups:
    """The ids of the groups of a shard that have committed offsets, with or without members."""

    def __init__(self, log: LogReader, changed: ChangedGroups) -> None:
        """Read the shard's offset log; `changed` as for `ShardFollower`.

        Raises `LogError`, `CodecError`.
        """
        self._log, self._changed = log, changed
        self.group_ids: set[str] = set()
        self._next = 0
        self._load()

    def catch_up(self) -> None:
        """Add the groups of new entries; raises `LogError`, `CodecError`."""
        doubtful: set[str] = set()
        try:
            for entries in self._log.tail(self._next):
                for each in entries:
                    name, _ = split_key(each)
                    self._changed.add([name])
                    (doubtful if each.value is None else self.group_ids).add(name)
                self._next = entries[-1].offset + 1
        except TrimmedError:
            self._load()
            return
        self.group_ids -= {each for each in doubtful if not committed_offsets(self._log, each)}

    def _load(self) -> None:
        self._next = self._log.end()  # what is written meanwhile is looked at again
        self.group_ids = {*groups_with_offsets(self._log)}


def committed_offsets(log: ReadableLog, group_id: str) -> list[ConsumerOffset]:
    """Return how far a group has read, by topic and partition; raises `LogError`, `CodecError`."""
    found = map(decode, GroupPart(log, group_id).scan(_OFFSET))
    told = (each for each in found if isinstance(each, ConsumerOffset))
    return sorted(told, key=lambda each: (each.topic, each.partition))


def all_groups(followed: Mapping[str, Group], committing: Iterable[str]) -> list[Group]:
    """Return the groups of a shard by id, including those that only ever had offsets.

    One that has settings alone is not there.
    """
    used = {group_id: each for group_id, each in followed.items() if _is_used(each)}
    others = (followed.get(each, Group(each)) for each in committing if each not in used)
    return sorted((*used.values(), *others), key=lambda each: each.group_id)


def type_of_clients(group: Group) -> GroupType:
    """Return the type of a group of Kafka's clients; one without members ever is classic."""
    return GroupType.CLASSIC if _has_offsets_alone(group) else group.type


def _has_offsets_alone(group: Group) -> bool:
    return group.classic is None and group.topics is None and group.bump is None


def state_of_clients(group: Group) -> str:
    """Return Kafka's name for the state of a group of its clients, by the log.

    A round that members are still joining is in no log: until it ends, the state is that before it.
    """
    is_assigning = group.classic is not None and group.state is GroupState.ASSIGNING
    return COMPLETING if is_assigning else group.state.value
