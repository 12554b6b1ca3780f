"""The assignor process of one node: the real assignors, but slow, failing or talking nonsense."""

from collections.abc import Callable
from dataclasses import replace
from enum import IntEnum
from functools import partial
from random import Random
from typing import Final

from ...actors.assignors.built_in.catalogue import BUILT_IN
from ...actors.messages.assignors import Assign, Assigned, Given, Introduce, Introduced, Noted
from ...actors.messages.computing import Assignment, Snapshot
from ...events.model import ClientAssignor
from ..node.worker.core.effects import AssignorMessage
from .clock import SimulatedClock
from .exclusivity import Violation

LONGEST_MS: Final = 500
SOON_MS: Final = 20
CONF: Final = {"moves.per.round": "1", "moves.interval.ms": "3000"}
"""The settings of all assignors: the budget for moves is small, and soon there is a new one."""

Hear = Callable[[object], None]


class Blunder(IntEnum):
    """What an assignor may do wrong."""

    FAIL = 0
    LEAVE_OUT = 1
    PLACE_TWICE = 2


class SimulatedAssignor:
    """Speaks and computes for the worker on its node."""

    def __init__(self, clock: SimulatedClock, rng: Random, names: tuple[str, ...]) -> None:
        """Run assignors by these names, the one that the worker likes best first."""
        self.pid = 1
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
        """Have the next assignment go wrong."""
        self._blunder = blunder

    def slow(self, delay_ms: int) -> None:
        """Have the next assignment take so much longer."""
        self._delay_ms = delay_ms

    def call_for_rebalance(self) -> None:
        """Ask for a rebalance, the next time that it speaks for its worker."""
        self._reason = 3 + self._rng.randrange(2)

    def heal(self) -> None:
        """Call off what was to go wrong, and what was to be said."""
        self._blunder, self._delay_ms, self._reason = None, 0, self._said_reason

    def end(self) -> None:
        """End the process, with all that it was asked; the next one was asked nothing yet."""
        self.pid += 1
        self._asked.clear()

    def ask(self, message: AssignorMessage, hear: Hear) -> None:
        """Take a question; `hear` is told the answer after a while. Raises `Violation`."""
        match message:
            case Introduce(number=number):
                self._said_reason = self._reason
                own = tuple(ClientAssignor(each, reason=self._reason) for each in self._names)
                self._answer(SOON_MS, hear, Introduced(number, own))
            case Given(number=number):
                self._answer(SOON_MS, hear, Noted(number))
            case Assign():
                self._compute(message, hear)

    def _compute(self, asked: Assign, hear: Hear) -> None:
        blunder, delay_ms = self._blunder, self._delay_ms
        self._blunder, self._delay_ms = None, 0
        epoch, snapshot_id = asked.snapshot.group_epoch, asked.snapshot.snapshot_id
        if snapshot_id in self._asked:
            raise Violation(f"5: an assignor that computes from {snapshot_id} is asked to again")
        self._asked.add(snapshot_id)
        if blunder is Blunder.FAIL:
            result = Assigned(epoch, None, "ValueError: the assignor has failed", snapshot_id)
        else:
            made = self._assignors[asked.snapshot.assignor].assign(asked.snapshot)
            result = Assigned(epoch, _spoilt(made, asked.snapshot, blunder), "", snapshot_id)
        self._answer(LONGEST_MS, partial(self._hand_in, hear), result, delay_ms)

    def _hand_in(self, hear: Hear, result: object) -> None:
        if isinstance(result, Assigned):
            self._asked.discard(result.snapshot_id)
        hear(result)

    def _answer(self, longest_ms: int, hear: Hear, answer: object, delay_ms: int = 0) -> None:
        delay_ms += self._rng.randint(1, longest_ms)
        self._clock.after(delay_ms, self._arrive, self.pid, hear, answer)

    def _arrive(self, pid: int, hear: Hear, answer: object) -> None:
        if pid == self.pid:
            hear(answer)


def _spoilt(made: Assignment, snapshot: Snapshot, blunder: Blunder | None) -> Assignment:
    if blunder is None:
        return made
    if blunder is Blunder.LEAVE_OUT:
        return replace(made, members={})
    return replace(made, members=dict.fromkeys(sorted(snapshot.members), snapshot.configured))
