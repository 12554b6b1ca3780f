"""The invariants of a group whose logs lie in a store (PROTOCOL §11: 11 to 15).

`HostInvariants` knows all that was told of the group, on whichever host, and all that counts.
"""

from collections.abc import Sequence
from typing import Protocol

from ....events.commits import Committed
from ....events.entries.codec import decode
from ....events.log.frame import Entry
from ....events.model import Resource
from ....events.records import Record, Tombstone
from ...node.door.delivery import LogEnds
from ..environment.clock import Violation


class CopiedLog(Protocol):
    """A log, or a copy of one."""

    entries: list[Entry]


class CopyInvariants:
    """Checks one copy of a log against the store, each entry once."""

    def __init__(self, host: str, stored: CopiedLog, copy: CopiedLog) -> None:
        self._host, self._stored, self._copy = host, stored, copy
        self._checked = 0

    def check(self) -> None:
        """Check that the copy is a prefix of what counts; raises `Violation`."""
        mine, stored = self._copy.entries, self._stored.entries
        if len(mine) > len(stored):
            raise Violation(
                f"12: the copy of {self._host} has {len(mine)} of {len(stored)} entries"
            )
        if mine[self._checked :] != stored[self._checked : len(mine)]:
            raise Violation(f"12: the copy of {self._host} is another log than the store's")
        self._checked = len(mine)

    def begin_anew(self) -> None:
        """Check all of the copy again, which was lost."""
        self._checked = 0


class HostInvariants:
    """Checks what owners say, and what they write."""

    def __init__(self) -> None:
        self.answers = self.owners = 0
        """How many answers were told, and how many owners there were."""
        self.told = LogEnds()
        """The furthest ends of the logs that any answer rested on."""
        self._last_writer: dict[str, int] = {}
        """The owner epoch that wrote last to each log."""

    def write(self, log: str, epoch: int) -> None:
        """Record that an owner's commit counts; raises `Violation` if a newer one has written."""
        last = self._last_writer.get(log, 0)
        if epoch < last:
            raise Violation(f"13: owner {epoch} writes after owner {last}")
        self._last_writer[log] = epoch

    @staticmethod
    def copy(ends: LogEnds, rests_on: int) -> None:
        """Check that a host has the offsets that its control log rests on; raises `Violation`."""
        if ends.offsets < rests_on:
            raise Violation(f"12: copies end at {ends}, and rest on {rests_on} entries of offsets")

    def tell(self, rests_on: LogEnds, stored: LogEnds, before: LogEnds) -> None:
        """Check an answer as it leaves its owner; raises `Violation`.

        It rests on its owner's logs up to these ends. `before` is what had been told when it was
        asked for.
        """
        self.answers += 1
        if not stored.have(rests_on):
            raise Violation(f"11: an answer rests on {rests_on}, the store has {stored}")
        if not rests_on.have(before):
            raise Violation(f"14: an answer rests on {rests_on}, {before} was told before")
        ends = map(max, self.told, rests_on)
        self.told = LogEnds(*ends)


class SimulatedSink:
    """A sink with a mark for each task: all up to it counts as published."""

    def __init__(self) -> None:
        self.published = 0
        """How many batches were published."""
        self._marks: dict[Resource, int] = {}
        self._open: dict[Resource, dict[bytes, int]] = {}
        """The batches of each task that count and are not published: sequence by key."""

    def see(self, entries: Sequence[Entry]) -> None:
        """Record what counts by now; raises `Violation` if what is lost is taken for published."""
        for entry in entries:
            record = decode(entry)
            if isinstance(record, Committed):
                self._batches_of(record)[entry.key] = entry.offset
            elif isinstance(record, Tombstone) and record.kind is Committed:
                self._see_end(record, entry.key)

    def publish(self, resource: Resource, sequence: int) -> None:
        """Publish a batch, unless the mark says that it is; raises `Violation`."""
        if sequence <= self._marks.get(resource, -1):
            return
        self._marks[resource] = sequence
        self.published += 1
        batches = self._open.get(resource, {})
        for key, each in list(batches.items()):
            if each == sequence:
                del batches[key]
            elif each < sequence:
                raise Violation(
                    f"15: batch {each} of {resource} is not published, the mark is {sequence}"
                )

    def _batches_of(self, record: Committed) -> dict[bytes, int]:
        commit_id = record.commit.commit_id
        return self._open.setdefault(Resource(commit_id.connector, commit_id.task), {})

    def _see_end(self, record: Record, key: bytes) -> None:
        for resource, batches in self._open.items():
            if key in batches:
                raise Violation(f"15: {record} of {resource} is recorded as published, and is not")
