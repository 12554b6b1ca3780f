"""A group's two logs, and the fold of what is durable, checked at every write.

Workers read this fold, as they read the log in a real cluster: they never see what was decided but
not written.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from operator import attrgetter
from pathlib import Path
from typing import Final

from ....actors.messages.computing import Install
from ....events.catalogue import entry_key
from ....events.entries.codec import decode, restore
from ....events.evolve import evolve
from ....events.group import Group
from ....events.log.frame import Entry, NewEntry
from ....events.log.reader import Newer
from ....events.log.tables import view_key
from ....events.log.writer import GroupLog
from ....events.model import Grants, Resource
from ....events.records import (
    ClassicGroup,
    ConnectorConfig,
    ConnectorsTasksMetadata,
    CurrentAssignment,
    GroupMetadata,
    Loss,
    MemberMetadata,
    OffsetsAltered,
    Record,
    ScheduledRebalance,
    TargetAssignment,
    TargetState,
    TaskConfigs,
    TaskStatus,
    Tombstone,
)
from ...node.door.delivery import LogEnds
from ..environment.clock import SimulatedClock, Story, Violation, random_stream
from ..invariants.classic import ConversionInvariants
from ..invariants.group import CommitInvariants, GroupInvariants, same, see_covered
from ..invariants.running import LifecycleInvariants, see_tasks

GROUP_ID: Final = "connect"


class MemoryLog:
    """Entries in the order of their offsets; durable as soon as they are appended."""

    def __init__(self) -> None:
        self.entries: list[Entry] = []
        self._keys: list[bytes] = []
        """The key of each entry in the view."""
        self._view: dict[bytes, Entry] = {}
        """The latest entry of each key, tombstones included."""

    @property
    def end(self) -> int:
        """The offset that the next entry gets."""
        return len(self.entries)

    def append(self, new: Iterable[NewEntry], wall_ms: int) -> Sequence[Entry]:
        """Append entries, and return them with their offsets."""
        start = self.end
        for each in new:
            self.copy(Entry(self.end, each.type, each.version, each.key, wall_ms, each.value))
        return self.entries[start:]

    def copy(self, entry: Entry) -> None:
        """Append an entry as it is; its offset is the log's end."""
        key = view_key(entry.type, entry.key)
        self.entries.append(entry)
        self._keys.append(key)
        self._view[key] = entry

    def compact(self, cut: int) -> list[Entry]:
        """Return the entries that remain once all before an offset are trimmed.

        That is the latest entry of each key, but for the tombstones before the cut.
        """
        return sorted(
            entry for entry in self._view.values() if entry.value is not None or entry.offset >= cut
        )

    def get(self, kind: int, key: bytes) -> Entry | None:
        """Return the latest entry of a type and key; None if there is none, or it was deleted."""
        entry = self._view.get(view_key(kind, key))
        return None if entry is None or entry.value is None else entry

    def scan(self, kind: int, key_prefix: bytes = b"") -> list[Entry]:
        """Return the latest entries of a type with this key prefix, in key order, none deleted."""
        prefix = view_key(kind, key_prefix)
        found = [each for key, each in self._view.items() if key.startswith(prefix)]
        return sorted((each for each in found if each.value is not None), key=attrgetter("key"))

    def newer(self, offsets: Mapping[bytes, int], fresh: Collection[bytes], since: int) -> Newer:
        """Return new entries of keys that have moved to other offsets; see `ReadableLog.newer`."""
        changed = offsets.keys() & self._keys[since:]
        found = {self._view[key] for key in (*changed, *fresh) if key in self._view}
        return Newer(sorted(found), [], self.end)

    def close(self) -> None:
        """Do nothing: it is open as long as somebody has it."""


COMPACT_EVERY: Final = 64
"""After so many writes the group is restored from a log that was trimmed somewhere."""


class DurableState:
    """All that is durable of one group."""

    def __init__(
        self,
        clock: SimulatedClock,
        story: Story,
        seed: int,
        folder: Path | None,
        lifecycle: LifecycleInvariants,
    ) -> None:
        """Keep the logs in memory; with a folder, the first one there as well."""
        self.control = MemoryLog()
        self.offsets = MemoryLog()
        self.group = Group(GROUP_ID)
        self.checks = GroupInvariants()
        self.classic_invariants = ConversionInvariants()
        self.progress = CommitInvariants(lifecycle.see_altered)
        self.writes = 0
        self._lifecycle = lifecycle
        self._clock = clock
        self._story = story
        self._rng = random_stream(seed, "cuts")
        self._folder = folder
        self._disk = self._open() if folder else None

    @property
    def ends(self) -> LogEnds:
        """The ends of both logs."""
        return LogEnds(self.control.end, self.offsets.end)

    def write(self, entries: Sequence[NewEntry], live: Group) -> Sequence[Entry]:
        """Append to the control log, and check the group against it; raises `Violation`."""
        if not entries:
            return ()
        wall_ms = self._clock.wall_ms
        if self._disk is not None:
            self._disk.append(self._disk.end, entries, wall_ms)
        is_told = self._story.is_told
        written: list[Record] = []
        appended = self.control.append(entries, wall_ms)
        for entry in appended:
            record = decode(entry)
            if record is None:
                raise Violation(f"5: the log does not know its own entry {entry}")
            evolve(self.group, record, entry.offset)
            self.checks.see(record, self.group)
            self.classic_invariants.see(record, self.group)
            self._lifecycle.see(record)
            written.append(record)
            if is_told:
                self._story.tell("log {}: {}", entry.offset, spell_out(record))
        self._lifecycle.see_whole(written)
        self.checks.check(live, self.group)
        see_covered(live)
        self.classic_invariants.check(self.group)
        see_tasks(self.group)
        self.writes += 1
        if self.writes % COMPACT_EVERY == 0:
            self._restore()
        return appended

    def write_offsets(self, entries: Sequence[NewEntry]) -> Sequence[Entry]:
        """Append to the offset log, and check that progress only grows; raises `Violation`."""
        appended = self.offsets.append(entries, self._clock.wall_ms)
        self.progress.see([*map(decode, appended)])
        return appended

    def see_alterations(self) -> None:
        """Check that the control log has all changes of offsets; raises `Violation`."""
        for name in self.group.connectors:
            entry = self.offsets.get(*entry_key(OffsetsAltered, (name,)))
            told, known = entry and decode(entry), self.group.offset_changes.get(name)
            if told != known:
                raise Violation(
                    f"8: the last change of the offsets of {name} is {told}, not {known}"
                )

    def restore_group(self) -> Group:
        """Return the group as a new process reads it; raises `Violation` if it is another."""
        if self._disk is not None:
            self._disk.close()
            self._disk = self._open()
            group = restore(GROUP_ID, *self._disk.load())
            same(group, self.group)
        else:
            group = self._restore()
        self._lifecycle.check_orders(group)
        return group

    def close(self) -> None:
        """Close the files."""
        if self._disk is not None:
            self._disk.close()

    def _restore(self) -> Group:
        """Restore the group from a log that compaction has trimmed somewhere."""
        cut = self._rng.randint(0, self.control.end)
        group = restore(GROUP_ID, self.control.compact(cut), self.control.end)
        same(group, self.group)
        return group

    def _open(self) -> GroupLog:
        assert self._folder is not None  # noqa: S101
        return GroupLog.open_writer(self._folder, GROUP_ID)

    def take_install(self, install: Install) -> None:
        """Record an installed target: it may leave out only members that are gone."""
        if install.assignment is not None:
            self.checks.installs[install.group_epoch] = install.assignment


def list_resources(resources: Iterable[Resource]) -> str:
    """Return resources in order and in their short form."""
    return " ".join(map(str, sorted(resources))) or "nothing"


def spell_out(record: Record) -> str:
    """Return a record's content in a few words."""
    match record:
        case GroupMetadata(epoch, cause):
            return f"group epoch {epoch}: {cause}"
        case MemberMetadata(member_id, joined_epoch=epoch):
            return f"{member_id} has a seat since {epoch}"
        case TargetAssignment():
            return _target(record)
        case CurrentAssignment():
            return _step(record)
        case Tombstone(kind, key):
            return f"no more {kind.__name__} {' '.join(map(str, key))}".rstrip()
        case _:
            return _other(record)


def _target(record: TargetAssignment) -> str:
    shares = [f"{each}: {list_resources(record.members[each])}" for each in sorted(record.members)]
    failed = f" ({record.error})" if record.error else ""
    return f"target {record.assignment_epoch}{failed}: {', '.join(shares) or 'nobody'}"


def _step(record: CurrentAssignment) -> str:
    pending = f", to revoke {_list_grants(record.pending)}" if record.pending else ""
    where = f"{record.state.name} at {record.member_epoch}"
    return f"{record.member_id} is {where}: {_list_grants(record.assigned)}{pending}"


def _list_grants(grants: Grants) -> str:
    return " ".join(f"{each}@{grants[each]}" for each in sorted(grants)) or "nothing"


def _other(record: Record) -> str:
    match record:
        case ConnectorsTasksMetadata(configured):
            return f"configured: {list_resources(configured)}"
        case ScheduledRebalance(parked, fired, again_at_ms):
            again = f", more moves at {again_at_ms}" if again_at_ms else ""
            return f"parked: {list_resources(parked)}, fired: {list_resources(fired)}{again}"
        case ClassicGroup():
            return _generation(record)
        case Loss(member_id, resources=resources):
            return f"{member_id} lost {list_resources(resources)}"
        case _:
            return _of_connector(record)


def _generation(record: ClassicGroup) -> str:
    how = "" if record.is_synced else ", not assigned yet"
    runs = [
        f"{each.member_id}: {_list_grants(each.assigned)}"
        + (f", to revoke {_list_grants(each.pending)}" if each.pending else "")
        for each in record.members
    ]
    head = f"generation {record.generation} of {record.protocol}, led by {record.leader}{how}"
    return f"{head} ({record.cause}): {'; '.join(runs) or 'nobody'}"


def _of_connector(record: Record) -> str:
    match record:
        case ConnectorConfig(name, _, version, deleting=deleting):
            return f"connector {name} version {version}{' is being deleted' if deleting else ''}"
        case TaskConfigs(name, generation, tasks):
            return f"{name} is split into {len(tasks)} (generation {generation})"
        case TargetState(name, state, is_complete=is_complete):
            return f"{name} is to be {state.value}{', and is so' if is_complete else ''}"
        case TaskStatus(resource, state, token=token):
            return f"{resource} is {state.value} under {token}"
        case _:
            return type(record).__name__
