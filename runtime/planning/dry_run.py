"""A group's next steps, played through on a copy by the rules that lead the group itself.

What the real commands would write is decided by `decide` and folded by `evolve`; the elected
assignor computes each target, and every member goes all the way to it before the next change
comes. So what is rehearsed is what becomes of a group that is left alone meanwhile.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Protocol

from ...actors.group.computing.compute import is_due, schedule_target
from ...actors.group.computing.preview import evolve_copy
from ...actors.group.decide import decide
from ...actors.group.members.reconcile import Goal, reconcile
from ...actors.group.orders.configuration import effective
from ...actors.group.state.settings import GroupSettings
from ...actors.group.state.soft_state import SoftState
from ...actors.messages.assignors import Metadata, Worker
from ...actors.messages.commands import Command, Reply
from ...actors.messages.computing import (
    Assignment,
    Install,
    InstallReply,
    Prepare,
    PrepareReply,
    Snapshot,
)
from ...actors.messages.errors import Error
from ...actors.messages.heartbeat import JOIN_EPOCH
from ...actors.messages.timers import ContinueMoves
from ...events.evolve import evolve
from ...events.group import Group, Member
from ...events.model import NOTHING, MemberState, Resources
from ...events.records import GroupMetadata, Record, TargetAssignment

ROUNDS_MAX = 10_000
"""How many further rounds of moves a dry_run waits for."""


class DryRunAssignor(Protocol):
    """An assignor as a dry_run asks it: what it would say and make, with no effect on it."""

    def metadata(self, worker: Worker) -> Metadata:
        """Return what it says for a worker that joins."""
        ...

    def assign(self, group: Snapshot) -> Assignment:
        """Return what it makes of a group."""
        ...


class PlanError(Exception):
    """Nobody can tell what would come of it: `error` is the group's word for why."""

    def __init__(self, error: Error, message: str) -> None:
        super().__init__(message)
        self.error = error


@dataclass(frozen=True, slots=True)
class Step:
    """A new target, and the bumps that it answers; the rehearsed group has it already."""

    bumps: tuple[GroupMetadata, ...]
    target: TargetAssignment


class DryRun:
    """A copy of a group, and what it is led through.

    `assignors` are those that can be asked here, by name. Time stands still at `now_ms`, wall
    clock, but where an assignor makes its moves in rounds: then it goes on to the next.
    """

    def __init__(self, group: Group, assignors: Mapping[str, DryRunAssignor], now_ms: int) -> None:
        self.group = evolve_copy(group, ())
        self.now_ms = now_ms
        self.assignors = assignors
        self.joiners: dict[str, str] = {}
        """The member ids of those who were added, new-1, new-2 and so on, by their urls."""
        settings = effective(GroupSettings(), group.configs)
        # Time does not pass here, so nothing is put off: it would never come.
        self._soft = SoftState(replace(settings, assignment_interval_ms=0))
        self._continued = 0
        self._continued_from: Mapping[str, Resources] | None = None
        self._bumps: list[GroupMetadata] = []
        self._targets: list[Step] = []

    def carry_out(self, command: Command) -> Reply:
        """Do what a command asks of the group; its consequences come with `rest`."""
        decision = decide(self.group, self._soft, command, self.now_ms)
        self._soft = decision.soft
        self._write(decision.records)
        return decision.reply

    def rest(self) -> Iterator[Step]:
        """Yield each target that is due, once the group has it, until nothing more is to do.

        Raises `PlanError` where a target cannot be computed.
        """
        while True:
            if is_due(self.group):
                self._compute()
            yield from self._told()
            self._settle()
            if not is_due(self.group) and not self._continues():
                return

    def _continues(self) -> bool:
        """Let the time pass until the rest of a target's moves, if there are more.

        A round that moves nothing waits for somebody who is away: nobody comes here.
        """
        again_at_ms = self.group.schedule.again_at_ms
        if (
            not again_at_ms
            or not self.group.members
            or self.group.target_of == self._continued_from
        ):
            return False
        self._continued_from = dict(self.group.target_of)
        self._continued += 1
        if self._continued > ROUNDS_MAX:
            text = f"the moves come to no end in {ROUNDS_MAX} rounds"
            raise PlanError(Error.INVALID_ASSIGNMENT, text)
        self.now_ms = max(self.now_ms, again_at_ms)
        self.carry_out(ContinueMoves(again_at_ms))
        return is_due(self.group)

    def _told(self) -> Iterator[Step]:
        targets, self._targets = self._targets, []
        yield from targets

    def _compute(self) -> None:
        """Have the elected member compute, as the coordinator would have it."""
        group = self.group
        self._soft, made, _ = schedule_target(group, self._soft, (), self.now_ms)
        self._write(made)
        computation = self._soft.computation
        if computation is None:
            return  # the group computed it itself
        member = group.members[computation.member_id]
        who = (group.group_id, member.member_id, member.current.member_epoch)
        prepared = self.carry_out(Prepare(*who))
        if not isinstance(prepared, PrepareReply) or prepared.snapshot is None:
            raise PlanError(Error.INVALID_ASSIGNMENT, f"no snapshot was to be had: {prepared}")
        assignment = self._assigned(prepared.snapshot)
        epoch = prepared.snapshot.group_epoch
        reply = self.carry_out(Install(*who, epoch, assignment))
        if not isinstance(reply, InstallReply) or reply.error is not Error.NONE:
            raise PlanError(Error.INVALID_ASSIGNMENT, f"{computation.assignor}: {reply}")

    def _assigned(self, snapshot: Snapshot) -> Assignment:
        name = snapshot.assignor
        if name not in self.assignors:
            raise PlanError(
                Error.UNSUPPORTED_ASSIGNOR,
                f"the group's assignor is {name}, which this node is not set to run: what it would"
                f" do cannot be told; plans can be made with {_listed(self.assignors)}",
            )
        try:
            return self.assignors[name].assign(snapshot)
        except PlanError:
            raise
        except Exception as error:
            text = f"assignor {name} fails on this group: {type(error).__name__}: {error}"
            raise PlanError(Error.INVALID_ASSIGNMENT, text) from error

    def _write(self, records: tuple[Record, ...]) -> None:
        for record in records:
            evolve(self.group, record, self.group.end)
            if isinstance(record, GroupMetadata):
                self._bumps.append(record)
            elif isinstance(record, TargetAssignment):
                if record.error:
                    raise PlanError(Error.INVALID_ASSIGNMENT, record.error)
                self._targets.append(Step(tuple(self._bumps), record))
                self._bumps.clear()

    def _settle(self) -> None:
        """Have every member that is there reach the target, step by step."""
        moving = True
        while moving:
            moving = False
            for member in list(self.group.members.values()):
                moving = self._step(member) or moving

    def _step(self, member: Member) -> bool:
        """Let a member do at once what it is asked to; tell whether that took it further."""
        group, current = self.group, member.current
        if current.member_epoch < JOIN_EPOCH:
            return False  # it left for a while
        goal = Goal(group.assignment_epoch, group.share_of(member.member_id), group.owner)
        is_lost = current.state is MemberState.UNKNOWN
        owned = NOTHING if is_lost else frozenset(current.assigned)
        after = reconcile(current, goal, owned)
        if after is not current:
            evolve(group, after, group.end)
        return after is not current


def _listed(names: Mapping[str, object]) -> str:
    return ", ".join(sorted(names)) or "none"
