"""The assignor of one node: the real one, which may be slow, fail, or hand in nonsense."""

from collections.abc import Callable
from dataclasses import replace
from enum import IntEnum
from random import Random
from typing import Final

from ...actors.assignors.built_in.catalogue import BUILT_IN
from ...actors.messages.assignors import Assign, Assigned
from ...actors.messages.computing import Assignment, Snapshot
from .clock import SimulatedClock

LONGEST_MS: Final = 500
CONF: Final = {"moves.per.round": "1", "moves.interval.ms": "3000"}
"""The settings of all assignors: the budget for moves is small, and soon there is a new one."""


class Blunder(IntEnum):
    """What an assignor may do wrong."""

    FAIL = 0
    LEAVE_OUT = 1
    PLACE_TWICE = 2


class SimulatedAssignor:
    """Computes for the worker on its node."""

    def __init__(self, clock: SimulatedClock, rng: Random) -> None:
        self._clock = clock
        self._rng = rng
        self._blunder: Blunder | None = None
        self._delay_ms = 0
        self._assignors = {name: make(CONF) for name, make in BUILT_IN.items()}

    def spoil(self, blunder: Blunder) -> None:
        """Have the next assignment go wrong."""
        self._blunder = blunder

    def slow(self, delay_ms: int) -> None:
        """Have the next assignment take so much longer."""
        self._delay_ms = delay_ms

    def heal(self) -> None:
        """Call off what was to go wrong."""
        self._blunder, self._delay_ms = None, 0

    def compute(self, asked: Assign, hear: Callable[[object], None]) -> None:
        """Compute, and tell the result after a while."""
        blunder, delay_ms = self._blunder, self._delay_ms
        self.heal()
        epoch, snapshot_id = asked.snapshot.group_epoch, asked.snapshot.snapshot_id
        if blunder is Blunder.FAIL:
            result = Assigned(epoch, None, "ValueError: the assignor has failed", snapshot_id)
        else:
            made = self._assignors[asked.snapshot.assignor].assign(asked.snapshot)
            result = Assigned(epoch, _spoilt(made, asked.snapshot, blunder), "", snapshot_id)
        self._clock.after(delay_ms + self._rng.randint(1, LONGEST_MS), hear, result)


def _spoilt(made: Assignment, snapshot: Snapshot, blunder: Blunder | None) -> Assignment:
    if blunder is None:
        return made
    if blunder is Blunder.LEAVE_OUT:
        return replace(made, members={})
    return replace(made, members=dict.fromkeys(sorted(snapshot.members), snapshot.configured))
