"""Checks the simulator's invariants after every batch that a test writes.

A `Witness` follows a group from its first record on, and folds the bytes of its log.
"""

from collections.abc import Iterable, Sequence

from fairlead.actors.messages.computing import Assignment
from fairlead.events.entries.codec import decode, encode, restore
from fairlead.events.evolve import evolve
from fairlead.events.group import Group
from fairlead.events.log.frame import Entry
from fairlead.events.record_parts import lay_out
from fairlead.events.records import Record, TargetAssignment
from fairlead.runtime.simulation.invariants.group import GroupInvariants, same


class Witness:
    """Checks every batch of a group's log; raises `Violation`."""

    def __init__(self, group_id: str) -> None:
        self.entries: list[Entry] = []
        self._folded = Group(group_id)
        self._invariants = GroupInvariants()

    def see(self, group: Group, records: Sequence[Record], wrote: Assignment | None = None) -> None:
        """Check all invariants of the group, which has evolved by these records.

        `wrote` is the assignment that the batch installed, if it did. A target that the test
        itself writes need not cover what is configured.
        """
        self._append(records, wrote)
        self._invariants.check(group, self._folded)

    def compacted(self, group: Group) -> None:
        """Check the group against its log after compaction with any trim point."""
        latest = {(entry.type, entry.key): entry for entry in self.entries}
        view = sorted(latest.values())
        for cut in {0, len(self.entries) // 2, len(self.entries)}:
            trimmed = [e for e in view if e.offset >= cut or e.value is not None]
            same(group, restore(group.group_id, trimmed, group.end))
            tail = [e for e in trimmed if e.offset < cut] + self.entries[cut:]
            same(group, restore(group.group_id, tail, group.end))

    def _append(self, records: Iterable[Record], wrote: Assignment | None) -> None:
        laid_out = lay_out(self._folded.record_parts, records)
        for record in (part for _, parts in laid_out for part in parts):
            kind, version, key, value = encode(record)
            entry = Entry(len(self.entries), kind, version, key, 0, value)
            read = decode(entry)
            assert read is not None
            assert read == record, "a record does not survive its bytes"
            evolve(self._folded, read, entry.offset)
            if not isinstance(read, TargetAssignment):
                self._invariants.see(read, self._folded)
            elif wrote is not None:
                self._invariants.installs[read.assignment_epoch] = wrote
                self._invariants.see(read, self._folded)
            self.entries.append(entry)
