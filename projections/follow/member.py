"""Following a member's part of a group's log, read by key."""

from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Final, Protocol

from ...events.catalogue import BY_NUMBER, entry_key
from ...events.entries.codec import decode
from ...events.evolve import evolve
from ...events.group import NOT_STARTED, Group, Member
from ...events.log.reader import Newer
from ...events.log.tables import unpack_view_key, view_key
from ...events.model import NOTHING, Grants, Key, Resource, Resources
from ...events.records import (
    ClassicGroup,
    ConfiguredPart,
    ConnectorConfig,
    ConnectorsTasksMetadata,
    CurrentAssignment,
    CurrentPart,
    MemberMetadata,
    TargetAssignment,
    TargetState,
    TaskConfigs,
    TaskStatus,
    Tombstone,
)

_SEATLESS: Final = Member(MemberMetadata(""), NOT_STARTED)
"""What a member is before the log shows a seat of it."""


class KeyedLog(Protocol):
    """A log that is read by key, as `ReadableLog` is."""

    def newer(self, offsets: Mapping[bytes, int], fresh: Collection[bytes], since: int) -> Newer:
        """Return the latest entries of keys whose offsets differ from the known ones."""
        ...

    def close(self) -> None:
        """Close the log."""
        ...


class MemberFollower:
    """Follows a member's part of its group, read by key from the latest values of the log.

    A group is as large as it is; what one member has to know of it is not. To follow the whole log
    costs each member every step of all others, so that a change costs members x records. Here a
    member looks for the keys that concern it, and for nothing else:

    * its own seat and step, with the parts of that, or the generation of a classic group;
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
        """Follow a member's own records, and all configured resources if it may have to assign."""
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
        """The resources with changes that `take_changed` has not returned yet."""

    def rename(self, member_id: str) -> None:
        """Follow the member under its new id."""
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
        """Follow the statuses of these as well, whether the member has them or not.

        It costs what changes: while a thousand tasks start, hardly two calls name the same.
        """
        if reported == self._reported:
            return
        come, gone = reported - self._reported, self._reported - reported
        self._reported = reported
        held = self._connectors()
        self._forget(_spell(TaskStatus, tuple(each)) for each in gone)
        former = {each.connector for each in gone} - held
        self._forget(key for each in former for key in _keys_of(each))
        self._add(_spell(TaskStatus, tuple(each)) for each in come)
        self._add(key for each in {each.connector for each in come} for key in _keys_of(each))

    def catch_up(self) -> Group:
        """Return the member's part of the group at the present end of the log."""
        before = self._member()
        connectors = self._look()
        after = self._member()
        if before is not after or connectors:
            self._note_changes(before, after, connectors)
        return self.group

    def take_changed(self) -> Resources:
        """Return the member's resources with any change since the last call."""
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
        """Close the log."""
        self._log.close()

    def _look(self) -> set[str]:
        """Read until nothing is new; return the connectors with changed configs or states."""
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
        """Follow exactly the keys that matter now; return whether any are new."""
        wanted = {*self._own, *self._keys()}
        self._forget([*(self._known.keys() - wanted)])
        fresh = wanted - self._known.keys()
        if any(BY_NUMBER[unpack_view_key(key)[0]].record is CurrentPart for key in fresh):
            fresh.add(_spell(CurrentAssignment, (self.member_id,)))  # it joins its parts
        if any(BY_NUMBER[unpack_view_key(key)[0]].record is ConfiguredPart for key in fresh):
            fresh.add(_spell(ConnectorsTasksMetadata, ()))
        self._known.update(dict.fromkeys(fresh, -1))
        self._fresh |= fresh
        return bool(fresh)

    def _add(self, keys: Iterable[bytes]) -> None:
        """Follow further keys."""
        for key in keys:
            if key not in self._known:
                self._known[key] = -1
                self._fresh.add(key)

    def _forget(self, keys: Iterable[bytes]) -> None:
        """Stop following some keys."""
        for key in keys:
            if key in self._known:
                self._bury(key)
                del self._known[key]
                self._fresh.discard(key)

    def _connectors(self) -> set[str]:
        """Return the connectors that the member has, or has reported on."""
        return {each.connector for each in (*_grants(self._member()), *self._reported)}

    def _keys(self) -> Iterator[bytes]:
        member = self._member()
        for number in range(member.current.parts):
            yield _spell(CurrentPart, (self.member_id, number))
        configured = self.group.record_parts.wholes.get((ConnectorsTasksMetadata, ()))
        for number in range(configured.parts if configured else 0):
            yield _spell(ConfiguredPart, (number,))
        for connector in self._connectors():
            yield from _keys_of(connector)
        for resource in self._reported:
            yield _spell(TaskStatus, tuple(resource))

    def _member(self) -> Member:
        return self.group.member(self.member_id) or _SEATLESS

    def _bury(self, key: bytes) -> None:
        """Remove the fact of a key, which the log does not have or the member does not need."""
        if self._known[key] >= 0:
            number, packed = unpack_view_key(key)
            row = BY_NUMBER[number]
            tombstone = Tombstone(row.record, row.key.parse(packed))
            evolve(self.group, tombstone, self.group.end - 1)
            self._known[key] = -1


def _keys_of(connector: str) -> Iterator[bytes]:
    """Yield the keys of the records about a connector."""
    yield _spell(ConnectorConfig, (connector,))
    yield _spell(TaskConfigs, (connector,))
    yield _spell(TargetState, (connector,))


def _spell(kind: type, key: Key) -> bytes:
    return view_key(*entry_key(kind, key))


def _grants(member: Member) -> Grants:
    return {**member.current.pending, **member.current.assigned}
