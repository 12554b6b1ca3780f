"""A simulated node, which has one worker at a time, an assignor process and a supervisor.

The assignors are the real ones, but may be slow, fail, or return nonsense. The supervisor reports
ended workers to the group: at once or late, once or twice, correctly or not.
"""

from collections.abc import Callable
from dataclasses import replace
from enum import IntEnum
from functools import partial
from random import Random
from typing import TYPE_CHECKING, Final

from ...actors.assignors.built_in import counting
from ...actors.assignors.built_in.catalogue import BUILT_IN
from ...actors.messages.assignors import (
    ComputeAssignment,
    ComputeAssignmentReply,
    DescribeAssignors,
    DescribeAssignorsReply,
    NotifyAssignment,
    NotifyAssignmentReply,
)
from ...actors.messages.computing import Assignment, Snapshot
from ...actors.messages.orders import EndMember
from ...events.model import ClientAssignor
from ..cluster.messages import AssignorAt
from ..node.worker.core.contract import AssignorMessage
from .durable_state import GROUP_ID
from .environment.clock import SimulatedClock, Violation, stream
from .worker import SimulatedWorker

if TYPE_CHECKING:
    from .world import World

PATTERN: Final = 3
"""Traits in which nodes differ alternate in a pattern of so many."""
SERVED: Final = (counting.UNIFORM, counting.RANGE)
AGAIN_MS: Final = 500
"""How often one that is to come looks whether the worker before has ended."""
ASSIGNOR_DOWN_MS: Final = 2_000
"""How long it takes at most until a new assignor process is there."""
SOON_MS: Final = (1, 20, 500)
LATE_MS: Final = (4_000, 15_000, 40_000)
MISTAKE_EVERY_MS: Final = 20_000
"""How often, on the mean, a member that lives is reported, where that happens at all."""
LONGEST_ANSWER_MS: Final = 500
SOON_ANSWER_MS: Final = 20
CONF: Final = {"moves.per.round": "1", "moves.interval.ms": "3000"}
"""The settings of all assignors: the budget for moves is small, and soon there is a new one."""

Hear = Callable[[object], None]


class Node:
    """A node on which one worker lives at a time; its successors have its url."""

    def __init__(self, world: "World", number: int) -> None:
        self.number = number
        self.url = f"http://w{number}"
        traits = world.schedule.traits
        self.instance_id = f"i{number}" if number % PATTERN < traits.statics else None
        self.is_foreign = number % PATTERN < traits.foreign
        is_served = self.is_foreign or number % PATTERN < traits.served
        served = SERVED[number % len(SERVED)] if is_served else None
        self.server_assignor = served
        self.classic_mode = traits.modes[number % PATTERN]
        """What it speaks whenever it speaks the classic protocol."""
        self.mode = self.classic_mode if number % PATTERN < traits.classic else ""
        """What its next worker speaks, one of `connect.protocol`; empty: the connect protocol."""
        self.worker: SimulatedWorker | None = None
        self.assignor = SimulatedAssignor(
            world.clock, stream(world.schedule.seed, "assignor", number), world.assignor_names
        )
        self._rng = stream(world.schedule.seed, "assignor process", number)
        self.awaited = 0
        """How many are on their way here."""
        self._world = world
        self._lives = 0

    @property
    def live(self) -> SimulatedWorker | None:
        """The worker that lives here, if any does."""
        return self.worker if self.worker is not None and self.worker.is_alive else None

    def hear(self, message: object) -> None:
        """Have the worker that lives here by now hear a message, meant for it or for another."""
        if self.live is not None:
            self.live.hear(message)

    def comes(self) -> None:
        """Have a worker live here, unless one does."""
        if self.live is None:
            self._lives += 1
            self.worker = SimulatedWorker(self._world, self, f"w{self.number}.{self._lives}")
            self._world.story.tell("{} comes", self.worker.name)
            self.worker.begin()

    def replace_assignor(self, pid: int) -> None:
        """End an assignor process, and start another one, unless that was done already."""
        if pid == self.assignor.pid:
            self._world.story.tell("the assignor process of w{} ends", self.number)
            self.assignor.end()
            delay_ms = self._rng.randint(1, ASSIGNOR_DOWN_MS)
            self._world.clock.after(delay_ms, self._tell_of_assignor)

    def _tell_of_assignor(self) -> None:
        self.assignor.is_starting = False
        self.hear(AssignorAt(None, self.assignor.pid))

    def comes_back(self, delay_ms: int) -> None:
        """Have a worker live here after a while, unless one does by then."""
        self.awaited += 1
        self._world.clock.after(delay_ms, self._arrives)

    def _arrives(self) -> None:
        self.awaited -= 1
        self.comes()

    def roll(self, delay_ms: int, *, to_classic: bool) -> None:
        """Have the worker here leave, and another come that speaks this protocol."""
        self.mode = self.classic_mode if to_classic else ""
        worker = self.live
        if worker is not None and worker.is_classic is not to_classic:
            self._world.story.tell("{} leaves for one of the other protocol", worker.name)
            worker.leave()
            self.awaited += 1
            self._world.clock.after(delay_ms, self._follow, worker)

    def _follow(self, worker: SimulatedWorker) -> None:
        """Come as soon as the worker before has ended."""
        if worker.is_alive:
            worker.leave()
            self._world.clock.after(AGAIN_MS, self._follow, worker)
        else:
            self._arrives()


class SimulatedSupervisor:
    """The supervisor of all nodes in one world.

    It names exactly the process that it means. After a wrong report the group may at once give to
    others what a living worker runs; its commits are refused by then, so it does not count as
    running anything until it joins again.
    """

    def __init__(self, world: "World") -> None:
        self._world = world
        self._rng = stream(world.schedule.seed, "supervisor")
        if world.schedule.traits.mistakes:
            self._schedule_mistake()

    def sees_end(self, worker: SimulatedWorker) -> None:
        """Take note of a worker's end, and tell the group of it unless it goes unseen."""
        if self._rng.random() >= self._world.schedule.traits.seen:
            return
        is_late = self._rng.random() < 1 / 3 and not self._world.is_calm
        self._report_after(self._rng.choice(LATE_MS if is_late else SOON_MS), worker)
        if self._rng.random() < 1 / 3:
            self._report_after(self._rng.choice(LATE_MS), worker)

    def _report_after(self, delay_ms: int, worker: SimulatedWorker) -> None:
        self._world.clock.after(self._rng.randint(1, delay_ms), self._report, worker)

    def _report(self, worker: SimulatedWorker) -> None:
        ended_ms = self._world.clock.wall_ms
        member_id = worker.member_id if worker.is_classic else worker.name
        self._world.command(EndMember(GROUP_ID, member_id, worker.incarnation, ended_ms))

    def _schedule_mistake(self) -> None:
        delay_ms = self._rng.randint(1, 2 * MISTAKE_EVERY_MS)
        self._world.clock.after(delay_ms, self._mistake)

    def _mistake(self) -> None:
        if self._world.is_calm:
            return
        living = [each for each in self._world.workers() if each.foreign is None]
        if living and not self._world.process.is_down:
            worker = self._rng.choice(living)
            self._world.exclusivity.disown(worker.name)
            self._report(worker)
        self._schedule_mistake()


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
        self.is_starting = True
        self._asked.clear()

    def ask(self, message: AssignorMessage, hear: Hear) -> None:
        """Take a question; `hear` is told the answer after a while. Raises `Violation`."""
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

    def _compute(self, asked: ComputeAssignment, hear: Hear) -> None:
        blunder, delay_ms = self._blunder, self._delay_ms
        self._blunder, self._delay_ms = None, 0
        epoch, snapshot_id = asked.snapshot.group_epoch, asked.snapshot.snapshot_id
        if snapshot_id in self._asked:
            raise Violation(f"5: an assignor that computes from {snapshot_id} is asked to again")
        self._asked.add(snapshot_id)
        if blunder is Blunder.FAIL:
            result = ComputeAssignmentReply(
                epoch, None, "ValueError: the assignor has failed", snapshot_id
            )
        else:
            made = self._assignors[asked.snapshot.assignor].assign(asked.snapshot)
            result = ComputeAssignmentReply(
                epoch, _spoilt(made, asked.snapshot, blunder), "", snapshot_id
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


def _spoilt(made: Assignment, snapshot: Snapshot, blunder: Blunder | None) -> Assignment:
    if blunder is None:
        return made
    if blunder is Blunder.LEAVE_OUT:
        return replace(made, members={})
    return replace(made, members=dict.fromkeys(sorted(snapshot.members), snapshot.configured))
