"""A worker's assignment in the classic protocol: what it starts and stops, and when it rejoins."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from ....events.model import NOTHING, Resource, Resources
from ...assignors.classic.protocol import (
    AT_ONCE,
    EAGER,
    AssignmentError,
    ReceivedAssignment,
    is_behind,
    react,
    stop_to_rejoin,
)
from ...classic.bytes.connect import WorkerMetadata
from ..instructions import Instruction, Start, Stop
from ..states import Work

UNASSIGNED: Final = ReceivedAssignment(config_offset=-1)
"""The assignment of a member before its first generation."""


class Share:
    """The last assignment of a member, and its pending stops, starts and rejoin; milliseconds."""

    def __init__(self, work: Work) -> None:
        self.work = work
        self.rejoins = False
        """Whether it rejoins as soon as nothing has to stop."""
        self.rejoin_at_ms: int | None = None
        """When it rejoins because the delay for lost work is over."""
        self._has: Sequence[Resource] = ()
        """All that it has to run, in the order in which it was given."""
        self._last = UNASSIGNED
        """Its last assignment."""
        self._may_start = False
        """Whether it may start all that it has; else it rejoins before."""

    @property
    def config_offset(self) -> int:
        """The config offset of its assignment."""
        return self._last.config_offset

    def apply(
        self, version: int, assignment: ReceivedAssignment, config_offset: int, now_ms: int
    ) -> list[Instruction]:
        """Apply an assignment; return the resources that must stop before others start."""
        if version == EAGER:  # it has all that there is to run
            revoked = tuple(each for each in self._has if each not in assignment.assigned)
            assignment = replace(assignment, revoked=revoked, version=EAGER)
        reaction = react(assignment, self._has, config_offset)
        self._last, self._has = assignment, reaction.has
        is_sound = assignment.error == AssignmentError.NO_ERROR
        self._may_start = is_sound and assignment.config_offset == config_offset
        again_ms = None if version == EAGER and self._may_start else reaction.rejoin_in_ms
        self.rejoins = again_ms == AT_ONCE
        self.rejoin_at_ms = now_ms + again_ms if again_ms else None
        return self.join_round() if self.rejoins else self._aim()

    def join_round(self) -> list[Instruction]:
        """Rejoin once all has stopped that has to; in the eager protocol that is everything."""
        if self._last.version == EAGER:
            return self.prepare_to_rejoin()
        self.rejoins = True
        return self._aim()

    def prepare_to_rejoin(self) -> list[Instruction]:
        """Start nothing more; return the resources to stop first: in the eager protocol all."""
        self.rejoins, self._may_start = True, False
        gone = frozenset(stop_to_rejoin(self._last.version, self._has))
        self._has = [each for each in self._has if each not in gone]
        return self._aim()

    def start(self) -> list[Instruction]:
        """Return the resources to start, once all stops are done."""
        granted = self.work.grant() if self._may_start else NOTHING
        return [Start(granted, self.work.log_offset)] if granted else []

    def waits_for_configs(self, config_offset: int) -> bool:
        """Return whether the log must be read further before the member rejoins."""
        return is_behind(self._last.config_offset, config_offset)

    def make_metadata(self, url: str, config_offset: int) -> WorkerMetadata:
        """Return the metadata with which it rejoins now; a new member has no allocation."""
        self.rejoins, self.rejoin_at_ms = False, None
        own = replace(self._last, assigned=tuple(self._has), revoked=())
        return WorkerMetadata(url, config_offset, own if own.leader is not None else None)

    def give_up(self) -> Resources:
        """Drop the assignment; return the resources that still run."""
        self._has, self._last, self.work.target = (), UNASSIGNED, NOTHING
        self.rejoins = self._may_start = False
        self.rejoin_at_ms = None
        return self.work.owned

    def _aim(self) -> list[Instruction]:
        newly = self.work.aim(frozenset(self._has))
        return [Stop(newly)] if newly else []
