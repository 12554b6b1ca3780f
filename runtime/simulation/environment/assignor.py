"""A simulated assignor process: the real assignors, which may be slow, fail, or return nonsense."""

from collections.abc import Callable
from dataclasses import replace
from enum import IntEnum
from functools import partial
from random import Random
from typing import Final

from ....actors.assignors.built_in.catalogue import BUILT_IN
from ....actors.messages.assignors import (
    ComputeAssignment,
    ComputeAssignmentReply,
    DescribeAssignors,
    DescribeAssignorsReply,
    NotifyAssignment,
    NotifyAssignmentReply,
)
from ....actors.messages.computing import Assignment, Snapshot
from ....events.model import ClientAssignor
from ...node.worker.core.contract import AssignorMessage
from .clock import SimulatedClock, Violation

LONGEST_ANSWER_MS: Final = 500
SOON_ANSWER_MS: Final = 20
CONF: Final = {"moves.per.round": "1", "moves.interval.ms": "3000"}
"""The settings of all assignors: the budget for moves is small, and soon there is a new one."""

Hear = Callable[[object], None]


class Blunder(IntEnum):
    """The errors of an assignor."""

    FAIL = 0
    LEAVE_OUT = 1
    PLACE_TWICE = 2


class SimulatedAssignor:
    """Speaks and computes for the worker on its node."""

    def __init__(self, clock: SimulatedClock, rng: Random, names: tuple[str, ...]) -> None:
        """Run assignors by these names, the one that the worker likes best first."""
        self.pid = 1
        self.is_starting = False
        """Whether nobody knows the process yet: what is asked was sent to the one before."""
        self._clock = clock
        self._rng = rng
        self._names = names
        self._reason = self._said_reason = 0
        """Why it calls for a rebalance, if it does; and as of its last word."""
        self._blunder: Blunder | None = None
        self._delay_ms = 0
        self._assignors = {name: make(CONF) for name, make in BUILT_IN.items()}
        self._asked: set[str] = set()
        """The snapshots that this process is computing from."""

    def spoil(self, blunder: Blunder) -> None:
        """Make the next assignment invalid."""
        self._blunder = blunder

    def slow(self, delay_ms: int) -> None:
        """Delay the next assignment by so much."""
        self._delay_ms = delay_ms

    def call_for_rebalance(self) -> None:
        """Request a rebalance with the next metadata."""
        self._reason = 3 + self._rng.randrange(2)

    def heal(self) -> None:
        """Cancel pending faults and requests."""
        self._blunder, self._delay_ms, self._reason = None, 0, self._said_reason

    def end(self) -> None:
        """End the process, with all open questions; the next process has none."""
        self.pid += 1
        self.is_starting = True
        self._asked.clear()

    def ask(self, message: AssignorMessage, hear: Hear) -> None:
        """Answer a question later, by a call of `hear`. Raises `Violation`."""
        if self.is_starting:
            return
        match message:
            case DescribeAssignors(number=number):
                self._said_reason = self._reason
                own = tuple(ClientAssignor(each, reason=self._reason) for each in self._names)
                self._answer(SOON_ANSWER_MS, hear, DescribeAssignorsReply(number, own))
            case NotifyAssignment(number=number):
                self._answer(SOON_ANSWER_MS, hear, NotifyAssignmentReply(number))
            case ComputeAssignment():
                self._compute(message, hear)

    def _compute(self, question: ComputeAssignment, hear: Hear) -> None:
        blunder, delay_ms = self._blunder, self._delay_ms
        self._blunder, self._delay_ms = None, 0
        epoch, snapshot_id = question.snapshot.group_epoch, question.snapshot.snapshot_id
        if snapshot_id in self._asked:
            raise Violation(f"5: an assignor that computes from {snapshot_id} is asked to again")
        self._asked.add(snapshot_id)
        if blunder is Blunder.FAIL:
            result = ComputeAssignmentReply(
                epoch, None, "ValueError: the assignor has failed", snapshot_id
            )
        else:
            assignment = self._assignors[question.snapshot.assignor].assign(question.snapshot)
            result = ComputeAssignmentReply(
                epoch, _spoilt(assignment, question.snapshot, blunder), "", snapshot_id
            )
        self._answer(LONGEST_ANSWER_MS, partial(self._hand_in, hear), result, delay_ms)

    def _hand_in(self, hear: Hear, result: object) -> None:
        if isinstance(result, ComputeAssignmentReply):
            self._asked.discard(result.snapshot_id)
        hear(result)

    def _answer(self, longest_ms: int, hear: Hear, answer: object, delay_ms: int = 0) -> None:
        delay_ms += self._rng.randint(1, longest_ms)
        self._clock.after(delay_ms, self._arrive, self.pid, hear, answer)

    def _arrive(self, pid: int, hear: Hear, answer: object) -> None:
        if pid == self.pid:
            hear(answer)


def _spoilt(assignment: Assignment, snapshot: Snapshot, blunder: Blunder | None) -> Assignment:
    if blunder is None:
        return assignment
    if blunder is Blunder.LEAVE_OUT:
        return replace(assignment, members={})
    return replace(assignment, members=dict.fromkeys(sorted(snapshot.members), snapshot.configured))
