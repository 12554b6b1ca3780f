"""A group's two logs, and the fold of what is durable, checked at every write.

Workers read the fold, as they read the log in real life: they never see what was decided but
not written.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Final

from ...actors.messages.computing import Install
from ...events.codec import decode
from ...events.evolve import evolve
from ...events.group import Group
from ...events.log.frame import NewEntry
from ...events.log.writer import GroupLog
from ...events.restore import restore
from .clock import SimulatedClock
from .invariants import GroupInvariants, same
from .log import GROUP_ID, MemoryLog
from .progress import CommitInvariants
from .rng import stream
from .story import Story, spelled
from .violation import Violation

COMPACT_EVERY: Final = 64
"""After so many writes the group is restored from a log that was trimmed somewhere."""


class DurableState:
    """All that is durable of one group."""

    def __init__(self, clock: SimulatedClock, story: Story, seed: int, folder: Path | None) -> None:
        """Keep the logs in memory, and, where a folder is given, the first one there as well."""
        self.control = MemoryLog()
        self.offsets = MemoryLog()
        self.group = Group(GROUP_ID)
        self.checks = GroupInvariants()
        self.progress = CommitInvariants()
        self.writes = 0
        self._clock = clock
        self._story = story
        self._rng = stream(seed, "cuts")
        self._folder = folder
        self._disk = self._open() if folder else None

    def write(self, entries: Sequence[NewEntry], live: Group) -> None:
        """Append to the control log, and hold the group against it; raises `Violation`."""
        if not entries:
            return
        wall_ms = self._clock.wall_ms
        if self._disk is not None:
            self._disk.append(self._disk.end, entries, wall_ms)
        is_told = self._story.is_told
        for entry in self.control.append(entries, wall_ms):
            record = decode(entry)
            if record is None:
                raise Violation(f"5: the log does not know its own entry {entry}")
            evolve(self.group, record, entry.offset)
            self.checks.saw(record, self.group)
            if is_told:
                self._story.tell("log {}: {}", entry.offset, spelled(record))
        self.checks.hold(live, self.group)
        self.writes += 1
        if self.writes % COMPACT_EVERY == 0:
            self._restored()

    def write_offsets(self, entries: Sequence[NewEntry]) -> None:
        """Append to the offset log, and see that progress is progress; raises `Violation`."""
        for entry in self.offsets.append(entries, self._clock.wall_ms):
            self.progress.saw(decode(entry))

    def restored(self) -> Group:
        """Return the group as a new process reads it; raises `Violation` if it is another."""
        if self._disk is not None:
            self._disk.close()
            self._disk = self._open()
            group = restore(GROUP_ID, *self._disk.load())
            same(group, self.group)
            return group
        return self._restored()

    def close(self) -> None:
        """Let go of the files."""
        if self._disk is not None:
            self._disk.close()

    def _restored(self) -> Group:
        """Restore the group from a log that compaction has trimmed somewhere."""
        cut = self._rng.randint(0, self.control.end)
        group = restore(GROUP_ID, self.control.compacted(cut), self.control.end)
        same(group, self.group)
        return group

    def _open(self) -> GroupLog:
        assert self._folder is not None  # noqa: S101
        return GroupLog.open_writer(self._folder, GROUP_ID)

    def heard(self, install: Install) -> None:
        """Remember what was handed in: a target may leave out only who has gone meanwhile."""
        if install.assignment is not None:
            self.checks.installs[install.group_epoch] = install.assignment
