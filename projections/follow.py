"""Following a group's log: what was written since the last look, folded, read by key or counted."""

from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from typing import Final, Protocol

from ..events.catalogue import BY_NUMBER, TYPE_OF, entry_key
from ..events.connectors import ConnectorConfig, TargetState, TaskConfigs, TaskStatus
from ..events.entries.codec import decode, fold, restore
from ..events.evolve import evolve
from ..events.group import NOT_STARTED, Group, Member
from ..events.log.errors import TrimmedError
from ..events.log.frame import Entry
from ..events.log.reader import LogReader, Newer
from ..events.log.tables import unpack_view_key, view_key
from ..events.model import NOTHING, Grants, Key, Resource, Resources, Why
from ..events.records import (
    ClassicGroup,
    ConfiguredShard,
    ConnectorsTasksMetadata,
    CurrentAssignment,
    CurrentShard,
    GroupMetadata,
    MemberMetadata,
    TargetAssignment,
    Tombstone,
)

_RAISING: Final = {TYPE_OF[kind].number for kind in (GroupMetadata, ClassicGroup)}
"""The numbers of the records that raise a group's epoch."""


_LOSSES: Final = {Why.PROCESS_ENDED, Why.SESSION_EXPIRED}


class Follower:
    """A group that catches up with its log whenever it is asked for.

    It begins with the latest value of each key, and folds what is new from there.
    """

    def __init__(self, group_id: str, log: LogReader) -> None:
        self._log = log
        self.group = restore(group_id, *log.load())

    def catch_up(self) -> Group:
        """Return the group as far as its log goes now."""
        try:
            for entries in self._log.tail(self.group.end):
                fold(self.group, entries)
        except TrimmedError:
            self.group = restore(self.group.group_id, *self._log.load())
        return self.group

    def close(self) -> None:
        """Let go of the log."""
        self._log.close()


class Rebalances:
    """Counts how often epochs rose, by cause, from the beginning of a log on.

    A control log keeps its history for ever by default; of one that was trimmed, what is left
    is counted. A generation of classic members is an epoch, told again once it is assigned.
    """

    def __init__(self) -> None:
        self.generations: Counter[Why] = Counter()
        """Those of classic members, by cause."""
        self.epochs: Counter[Why] = Counter()
        """All others, by cause."""
        self.losses: Counter[tuple[str, Why]] = Counter()
        """How often each worker was lost, by its url and how, in a log of one group."""
        self._last: dict[str, int] = {}
        """The last generation that was counted, by group: a log may be that of many."""
        self._next = 0
        """The offset of the first entry that was not counted yet."""

    @property
    def by_cause(self) -> Counter[Why]:
        """All of them, by cause."""
        return self.generations + self.epochs

    def copy(self) -> "Rebalances":
        """Return the counts as they are now, into which nothing is counted any more."""
        found = Rebalances()
        found.generations, found.epochs = self.generations.copy(), self.epochs.copy()
        return found

    def catch_up(self, log: LogReader) -> None:
        """Count what was written since the last look; raises `LogError`."""
        try:
            self._count_all(log)
        except TrimmedError as trimmed:
            self._next = trimmed.low
            self._count_all(log)

    def _count_all(self, log: LogReader) -> None:
        for entries in log.tail(self._next):
            for entry in entries:
                self.count(entry)
            self._next = entries[-1].offset + 1

    def count(self, entry: Entry, group_id: str = "") -> None:
        """Take the next entry of a group."""
        record = decode(entry) if entry.type in _RAISING else None
        if isinstance(record, Tombstone) and record.kind is ClassicGroup:
            self._last.pop(group_id, None)  # a group that is deleted may count from 1 again
        elif isinstance(record, GroupMetadata):
            self.epochs[record.cause.why] += 1
            if not group_id and record.cause.why in _LOSSES:
                self.losses[record.cause.subject, record.cause.why] += 1
        elif isinstance(record, ClassicGroup) and record.generation > self._last.get(group_id, 0):
            self._last[group_id] = record.generation
            self.generations[record.cause.why] += 1


_SEATLESS: Final = Member(MemberMetadata(""), NOT_STARTED)
"""What a member is before the log shows a seat of it."""


class KeyedLog(Protocol):
    """A log that is read by key, as `ReadableLog` is."""

    def newer(self, known: Mapping[bytes, int], fresh: Collection[bytes], since: int) -> Newer:
        """Return the latest entries of keys that are not at the offset known of each."""
        ...

    def close(self) -> None:
        """Let go of it."""
        ...


class MemberFollower:
    """Follows a member's part of its group, read by key from the latest values of the log.

    A group is as large as it is; what one member has to know of it is not. To follow the whole log
    costs each member every step of all others, so that a change costs members x records. Here a
    member looks for the keys that concern it, and for nothing else:

    * its own seat and step, with the shards of that, or the generation of a classic group;
    * what the connectors of its resources are to do, and how they split their work;
    * the status of resources that it has reported on;
    * the head of the target: who computed it, and what that one had to say to all;
    * what is configured, if it may have to assign.

    Their records are folded into a `Group` that holds nothing else, so that every rule which asks
    only for the member's own part gives the same answer as with all of the group.

    In `group` are the member, the connectors of its resources and of those it has reported on,
    their statuses, and the target without its shares.
    """

    def __init__(
        self, group_id: str, member_id: str, log: KeyedLog, *, sees_configured: bool = False
    ) -> None:
        """Follow what concerns a member, and all that is configured if it may have to assign."""
        self._log = log
        self.member_id = member_id
        self.group = Group(group_id)
        self._sees_configured = sees_configured
        self._own = self._keys_of_its_own()
        self._known: dict[bytes, int] = dict.fromkeys(self._own, -1)
        """The offset of the entry that was folded of each key of the view; -1: there was none."""
        self._fresh = set(self._own)
        """The keys among them that are yet to be looked up."""
        self._reported: Resources = NOTHING
        self._end = 0
        """The log's end as of the last look."""
        self._changed: set[Resource] = set()

    def rename(self, member_id: str) -> None:
        """Follow the member under the name that the group has given it."""
        if member_id == self.member_id:
            return
        self.member_id = member_id
        self._own = self._keys_of_its_own()
        self._follow()

    def _keys_of_its_own(self) -> set[bytes]:
        heads: list[type] = [TargetAssignment, ClassicGroup]
        if self._sees_configured:
            heads.append(ConnectorsTasksMetadata)
        seat = (self.member_id,)
        return {
            _spell(MemberMetadata, seat),
            _spell(CurrentAssignment, seat),
            *(_spell(each, ()) for each in heads),
        }

    def watch(self, reported: Resources) -> None:
        """Follow the statuses of these as well, whether the member has them or not."""
        if reported != self._reported:
            self._reported = reported
            self._follow()

    def catch_up(self) -> Group:
        """Return the member's part of the group as far as the log goes now."""
        before = self._member()
        connectors = self._look()
        after = self._member()
        if before is not after or connectors:
            self._note_changes(before, after, connectors)
        return self.group

    def take_changed(self) -> Resources:
        """Return the member's resources of which anything changed since this was asked last."""
        changed, self._changed = frozenset(self._changed), set()
        return changed

    def _note_changes(self, before: Member, after: Member, connectors: set[str]) -> None:
        held = _grants(after)
        if before.metadata != after.metadata:
            self._changed.update(held)
        else:
            self._changed.update(each for each, _ in _grants(before).items() ^ held.items())
            self._changed.update(each for each in held if each.connector in connectors)

    def close(self) -> None:
        """Let go of the log."""
        self._log.close()

    def _look(self) -> set[str]:
        """Read until nothing is new; return the connectors that are to do something else."""
        changed: set[str] = set()
        while True:
            news = self._log.newer(self._known, self._fresh, self._end)
            if not (news.entries or news.gone):
                self.group.end = self._end = news.end
                self._fresh.clear()
                return changed
            touched = {view_key(each.type, each.key) for each in news.entries}.union(news.gone)
            for key in news.gone:
                self._bury(key)
            for entry in news.entries:
                record = decode(entry)
                if record is not None:
                    evolve(self.group, record, entry.offset)
                self._known[view_key(entry.type, entry.key)] = entry.offset
                row = BY_NUMBER[entry.type]
                if row.record in {ConnectorConfig, TaskConfigs, TargetState}:
                    changed.add(str(row.key.parse(entry.key)[0]))
            self.group.end = self._end = news.end
            self._fresh.clear()
            if self._own.isdisjoint(touched) or not self._follow():
                return changed

    def _follow(self) -> bool:
        """Look for the keys that matter now, and for no others; tell if any are new."""
        wanted = {*self._own, *self._keys()}
        for key in self._known.keys() - wanted:
            self._bury(key)
            del self._known[key]
        fresh = wanted - self._known.keys()
        if any(BY_NUMBER[unpack_view_key(key)[0]].record is CurrentShard for key in fresh):
            fresh.add(_spell(CurrentAssignment, (self.member_id,)))  # it joins its shards
        if any(BY_NUMBER[unpack_view_key(key)[0]].record is ConfiguredShard for key in fresh):
            fresh.add(_spell(ConnectorsTasksMetadata, ()))
        self._known.update(dict.fromkeys(fresh, -1))
        self._fresh = (self._fresh | fresh) & wanted
        return bool(fresh)

    def _keys(self) -> Iterator[bytes]:
        member = self._member()
        for number in range(member.current.shards):
            yield _spell(CurrentShard, (self.member_id, number))
        configured = self.group.log_shards.wholes.get((ConnectorsTasksMetadata, ()))
        for number in range(configured.shards if configured else 0):
            yield _spell(ConfiguredShard, (number,))
        connectors = {each.connector for each in (*_grants(member), *self._reported)}
        for connector in connectors:
            yield _spell(ConnectorConfig, (connector,))
            yield _spell(TaskConfigs, (connector,))
            yield _spell(TargetState, (connector,))
        for resource in self._reported:
            yield _spell(TaskStatus, tuple(resource))

    def _member(self) -> Member:
        return self.group.member(self.member_id) or _SEATLESS

    def _bury(self, key: bytes) -> None:
        """Forget what a key said: the log shows it no more, or it is no concern any more."""
        if self._known[key] >= 0:
            number, packed = unpack_view_key(key)
            row = BY_NUMBER[number]
            tombstone = Tombstone(row.record, row.key.parse(packed))
            evolve(self.group, tombstone, self.group.end - 1)
            self._known[key] = -1


def _spell(kind: type, key: Key) -> bytes:
    return view_key(*entry_key(kind, key))


def _grants(member: Member) -> Grants:
    return {**member.current.pending, **member.current.assigned}
