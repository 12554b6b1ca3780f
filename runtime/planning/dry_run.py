"""A dry run: it executes changes on a copy of a group, with the code of the real group.

`decide` handles the same commands as in the real group, `evolve` applies their records, the elected
assignor computes each target, and every member reaches it before the next change. So without other
changes the real group behaves exactly as its dry run.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Protocol

from ...actors.group.computing.compute import is_due, schedule_target
from ...actors.group.decide import decide
from ...actors.group.members.reconcile import Goal, reconcile
from ...actors.group.state.own_settings import effective
from ...actors.group.state.settings import GroupSettings
from ...actors.group.state.soft_state import SoftState
from ...actors.messages.assignors import Metadata, Worker
from ...actors.messages.commands import Command, ContinueMoves, Reply
from ...actors.messages.computing import (
    Assignment,
    Install,
    InstallReply,
    Prepare,
    PrepareReply,
    Snapshot,
)
from ...actors.messages.errors import Error
from ...actors.messages.members import JOIN_EPOCH
from ...events.evolve import evolve, evolve_copy
from ...events.group import Group, Member
from ...events.model import NOTHING, MemberState, Resources
from ...events.records import GroupMetadata, Record, TargetAssignment

ROUNDS_MAX = 10_000
"""The maximum number of rounds of moves in a dry run."""


class DryRunAssignor(Protocol):
    """The interface of an assignor in a dry run, which never calls `on_assignment`."""

    def metadata(self, worker: Worker) -> Metadata:
        """Return the assignor's metadata for a worker that joins."""
        ...

    def assign(self, group: Snapshot) -> Assignment:
        """Compute the assignment of all configured resources."""
        ...


class PlanError(Exception):
    """The plan is impossible: the group refuses a change, or a target cannot be computed."""

    def __init__(self, error: Error, message: str) -> None:
        super().__init__(message)
        self.error = error
        """The error of the group's reply, or an equivalent one."""


@dataclass(frozen=True, slots=True)
class Step:
    """A new target, which the group of the dry run has already."""

    bumps: tuple[GroupMetadata, ...]
    """The epochs since the former target, which this one answers."""
    target: TargetAssignment


class DryRun:
    """A copy of a group on which changes are executed.

    `assignors` are the available ones, by name. The clock stands still at `now_ms` (wall clock),
    except that it advances to the next round of an assignor that moves in rounds.
    """

    def __init__(self, group: Group, assignors: Mapping[str, DryRunAssignor], now_ms: int) -> None:
        self.group = evolve_copy(group, ())
        """The copy, which changes with each command."""
        self.now_ms = now_ms
        self.assignors = assignors
        self.joiners: dict[str, str] = {}
        """The member ids of the added workers, new-1, new-2 and so on, by their urls."""
        settings = effective(GroupSettings(), group.configs)
        # The clock stands still, so a delayed target would never be computed.
        settings = replace(settings, assignment_interval_ms=0, connect_initial_delay_ms=0)
        self._soft = SoftState(settings)
        self._rounds = 0
        """The number of rounds of moves so far."""
        self._round_began_with: Mapping[str, Resources] | None = None
        """The target at the start of the latest round, by member id."""
        self._bumps: list[GroupMetadata] = []
        """The epochs since the latest target."""
        self._targets: list[Step] = []
        """The targets that `settle` has not yielded yet."""

    def carry_out(self, command: Command) -> Reply:
        """Execute a command; `settle` then yields the targets that are due."""
        decision = decide(self.group, self._soft, command, self.now_ms)
        self._soft = decision.soft
        self._write(decision.records)
        return decision.reply

    def settle(self) -> Iterator[Step]:
        """Run the group until it is stable; yield each new target once it is installed.

        Raises `PlanError` if a target cannot be computed.
        """
        while True:
            if is_due(self.group):
                self._compute()
            yield from self._take_targets()
            self._reach_target()
            if not is_due(self.group) and not self._begin_round():
                return

    def _begin_round(self) -> bool:
        """Advance the clock to the next round of moves; return False if there is none.

        There is none after a round without moves, since that waits for a member that is away.
        """
        again_at_ms = self.group.schedule.again_at_ms
        if (
            not again_at_ms
            or not self.group.members
            or self.group.target_of == self._round_began_with
        ):
            return False
        self._round_began_with = dict(self.group.target_of)
        self._rounds += 1
        if self._rounds > ROUNDS_MAX:
            text = f"the moves come to no end in {ROUNDS_MAX} rounds"
            raise PlanError(Error.INVALID_ASSIGNMENT, text)
        self.now_ms = max(self.now_ms, again_at_ms)
        self.carry_out(ContinueMoves(again_at_ms))
        return is_due(self.group)

    def _take_targets(self) -> Iterator[Step]:
        targets, self._targets = self._targets, []
        yield from targets

    def _compute(self) -> None:
        """Compute a target with the assignor of the elected member, as the coordinator does."""
        group = self.group
        self._soft, records, _ = schedule_target(group, self._soft, (), self.now_ms)
        self._write(records)
        computation = self._soft.computation
        if computation is None:
            return  # the group has computed it itself
        member = group.members[computation.member_id]
        who = (group.group_id, member.member_id, member.current.member_epoch)
        prepared = self.carry_out(Prepare(*who))
        if not isinstance(prepared, PrepareReply) or prepared.snapshot is None:
            raise PlanError(Error.INVALID_ASSIGNMENT, f"no snapshot was to be had: {prepared}")
        assignment = self._ask_assignor(prepared.snapshot)
        epoch = prepared.snapshot.group_epoch
        reply = self.carry_out(Install(*who, epoch, assignment))
        if not isinstance(reply, InstallReply) or reply.error is not Error.NONE:
            raise PlanError(Error.INVALID_ASSIGNMENT, f"{computation.assignor}: {reply}")

    def _ask_assignor(self, snapshot: Snapshot) -> Assignment:
        name = snapshot.assignor
        if name not in self.assignors:
            raise PlanError(
                Error.UNSUPPORTED_ASSIGNOR,
                f"the group's assignor is {name}, which this node is not set to run: what it would"
                f" do cannot be told; plans can be made with {_join_names(self.assignors)}",
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

    def _reach_target(self) -> None:
        """Advance every present member to the target, step by step."""
        has_moved = True
        while has_moved:
            steps = [self._step(member) for member in list(self.group.members.values())]
            has_moved = any(steps)

    def _step(self, member: Member) -> bool:
        """Execute a member's current assignment; return whether its state changed."""
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


def _join_names(names: Mapping[str, object]) -> str:
    return ", ".join(sorted(names)) or "none"
