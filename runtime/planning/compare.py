"""Computes a plan: it executes changes in a dry run, and compares the group before and after.

It compares the occupancy of the stable group: the resources and the load of each worker, and the
unassigned resources. The targets in between give the reason for each move.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from ...actors.group.computing.snapshot import snapshot_of
from ...actors.messages.errors import Error
from ...events.group import Group
from ...events.model import Grants, GroupState, Resource, Resources
from ...events.placement import assignor_of, is_warm, work_in
from ...events.records import MemberMetadata
from ...projections.explain.diff import Owners, owners_in
from ...projections.explain.reasons import RETURN, Reason
from .changes import Change, ConnectorScaled, ConnectorsPut, PlannedConfig, make_change
from .dry_run import DryRun, DryRunAssignor, PlanError, Step
from .report import (
    ExpectedDowntimes,
    Plan,
    PlannedCause,
    PlannedLoad,
    PlannedMove,
    PlannedRefusal,
    PlannedRound,
    PlannedSeat,
    PlannedSplit,
    PlannedStart,
    PlannedStop,
    PlannedWait,
    PlannedWorker,
)

_UNKNOWN: Final = frozenset({Error.UNKNOWN_MEMBER_ID, Error.UNKNOWN_CONNECTOR})
"""Errors that an earlier change of the same plan may have caused."""

NOWHERE = "no worker is left to run it"


def make_plan(
    group: Group,
    changes: Sequence[Change],
    assignors: Mapping[str, DryRunAssignor],
    expected: ExpectedDowntimes,
    now_ms: int,
) -> Plan:
    """Compute the plan of changes in this order; `group` is not changed.

    `assignors` are the available ones, by name; `expected` are past downtimes; `now_ms` is wall
    clock. Raises `PlanError`.
    """
    dry_run = DryRun(group, assignors, now_ms)
    for _ in dry_run.settle():
        pass  # moves that are under way already are not due to these changes
    before = _occupancy_of(dry_run)
    rounds = _Rounds(before.homes, Owners(dry_run.group))
    for number, change in enumerate(changes):
        try:
            for step in make_change(dry_run, change):
                rounds.add(dry_run, step)
        except PlanError as refused:
            if number and refused.error in _UNKNOWN:
                text = f"{refused}, once the other changes of this plan are made"
                raise PlanError(refused.error, text) from None
            raise
    return _Comparison(before, _occupancy_of(dry_run), rounds, expected).plan(group, changes)


@dataclass(frozen=True, slots=True)
class _Occupancy:
    """The assignments of a group at one time, copied since the group of a dry run changes."""

    assignor: str
    homes: Mapping[Resource, MemberMetadata]
    """The owner of each resource; other resources are parked or unplaceable."""
    seats: Mapping[str, PlannedSeat]
    """The name of each member in the plan, by member id."""
    loads: Mapping[str, PlannedLoad]
    """The load of each member, by member id."""
    tasks: Mapping[str, int]
    """The number of tasks of each connector."""
    parked: Grants
    unplaceable: Mapping[Resource, str]
    cold: frozenset[PlannedSeat]
    """Members that report that they cannot take work yet."""


def _occupancy_of(dry_run: DryRun) -> _Occupancy:
    """Return the occupancy of a dry run's group, in time linear in its size."""
    group, added = dry_run.group, dry_run.joiners
    weights = snapshot_of(group, group.target.assignor, dry_run.now_ms).weights
    members = {each: member.metadata for each, member in group.members.items()}
    homes = dict(owners_in(group))
    return _Occupancy(
        group.target.assignor,
        homes,
        {each: _seat(metadata, added) for each, metadata in members.items()},
        {each: _load(group.share_of(each), weights) for each in members},
        {name: len(split.tasks) for name, split in group.task_configs.items()},
        group.schedule.parked,
        dict(_left_out(group, homes)),
        frozenset(_seat(each, added) for each in members.values() if _is_cold(group, each)),
    )


def _is_cold(group: Group, member: MemberMetadata) -> bool:
    return not is_warm(assignor_of(group.target.assignor, member.assignors).metadata)


def _seat(metadata: MemberMetadata, added: Mapping[str, str]) -> PlannedSeat:
    worker = metadata.url or metadata.member_id
    return PlannedSeat(added.get(worker, worker), metadata.member_id)


def _load(share: Resources, weights: Mapping[Resource, int]) -> PlannedLoad:
    tasks = sum(resource.is_task for resource in share)
    return PlannedLoad(len(share) - tasks, tasks, sum(weights.get(each, 1) for each in share))


def _left_out(
    group: Group, homes: Mapping[Resource, MemberMetadata]
) -> Iterator[tuple[Resource, str]]:
    for resource in group.configured:
        if resource not in homes and resource not in group.schedule.parked:
            reason = group.target.unplaceable.get(resource) if group.members else None
            yield resource, reason or NOWHERE


@dataclass(slots=True)
class _Rounds:
    """Collects the moves from target to target."""

    first: Mapping[Resource, MemberMetadata]
    """The owner of each resource at the beginning."""
    homes: Owners
    """The owner of each resource in the latest target."""
    rounds: list[PlannedRound] = field(default_factory=list[PlannedRound])
    reasons: dict[Resource, Reason] = field(default_factory=dict[Resource, Reason])
    """The reason why each resource leaves its first owner."""

    def add(self, dry_run: DryRun, step: Step) -> None:
        """Compare the current target of the dry run's group with the one before."""
        group = dry_run.group
        change = self.homes.compare(group, step.target, dry_run.now_ms, step.bumps)
        causes = [
            PlannedCause(why.value, dry_run.joiners.get(subject, subject))
            for why, subject in (bump.cause for bump in step.bumps)
        ]
        moved = len(change.moved) + len(change.returned)
        counts = (len(each) for each in (change.placed, change.retired, change.displaced))
        self.rounds.append(PlannedRound(causes, moved, *counts))
        owners = {each.resource: each.previous_owner for each in change.moved}
        owners |= change.displaced
        for resource, reason in change.reasons.items():
            owner, first = owners[resource], self.first.get(resource)
            if owner and first and owner.member_id == first.member_id:
                self.reasons[resource] = reason
            self.reasons.setdefault(resource, reason)
        self.homes.move(group)


@dataclass(frozen=True, slots=True)
class _Comparison:
    """Compares the end of a dry run with its beginning."""

    before: _Occupancy
    after: _Occupancy
    rounds: _Rounds
    expected: ExpectedDowntimes

    def plan(self, group: Group, changes: Iterable[Change]) -> Plan:
        """Return the plan for a group."""
        had, has = self.before.homes.keys(), self.after.homes.keys()
        moved = sorted(each for each in had & has if not self._stays(each))
        rounds, workers = self.rounds.rounds, [*self._workers()]
        return Plan(
            group_id=group.group_id,
            state=group.state,
            group_epoch=group.group_epoch,
            settled=_is_settled(group),
            assignor=self.after.assignor,
            rounds=rounds,
            moves=[*map(self._move, moved)],
            starts=[PlannedStart(str(each), self._taker(each)) for each in sorted(has - had)],
            stops=[PlannedStop(str(each), self._giver(each)) for each in sorted(had - has)],
            parked=[
                PlannedWait(str(each), due_ms) for each, due_ms in sorted(self.after.parked.items())
            ],
            unplaceable=[
                PlannedRefusal(str(each), reason)
                for each, reason in sorted(self.after.unplaceable.items())
            ],
            workers=workers,
            splits=[*self._splits(group, changes)],
            cold=sorted(self.after.cold),
            stays=sum(each.stays for each in workers),
            handovers=sum(each.moved for each in rounds),
        )

    def _stays(self, resource: Resource) -> bool:
        return self.before.homes[resource].member_id == self.after.homes[resource].member_id

    def _move(self, resource: Resource) -> PlannedMove:
        reason = self.rounds.reasons.get(resource, RETURN)
        return PlannedMove(
            str(resource),
            self._giver(resource),
            self._taker(resource),
            reason.kind.value,
            reason.detail,
            self.expected.of_connector(resource.connector),
        )

    def _giver(self, resource: Resource) -> PlannedSeat:
        return self.before.seats[self.before.homes[resource].member_id]

    def _taker(self, resource: Resource) -> PlannedSeat:
        return self.after.seats[self.after.homes[resource].member_id]

    def _workers(self) -> Iterator[PlannedWorker]:
        both = self.before.homes.keys() & self.after.homes.keys()
        kept = Counter(self.before.homes[each].member_id for each in both if self._stays(each))
        seats = {**self.after.seats, **self.before.seats}
        for member_id in sorted(seats, key=lambda each: seats[each]):
            before, after = (each.loads.get(member_id) for each in (self.before, self.after))
            seat = seats[member_id]
            yield PlannedWorker(seat.worker, member_id, before, after, kept[member_id])

    def _splits(self, group: Group, changes: Iterable[Change]) -> Iterator[PlannedSplit]:
        wishes: list[PlannedConfig | ConnectorScaled] = []
        for change in changes:
            if isinstance(change, ConnectorsPut):
                wishes += change.connectors
            elif isinstance(change, ConnectorScaled):
                wishes.append(change)
        both = self.before.homes.keys() & self.after.homes.keys()
        kept = Counter(each.connector for each in both if self._stays(each))
        changed = {each.connector for each in wishes if self._changes_work(group, each)}
        for connector in sorted({each.connector for each in wishes}):
            before, after = (each.tasks.get(connector, 0) for each in (self.before, self.after))
            restarts = kept[connector] if connector in changed else 0
            yield PlannedSplit(connector, before, after, before != after, restarts)

    def _changes_work(self, group: Group, change: PlannedConfig | ConnectorScaled) -> bool:
        """Return whether an existing connector and its tasks will get another config."""
        if isinstance(change, ConnectorScaled):
            return self.before.tasks.get(change.connector, 0) != change.tasks
        was = group.connectors.get(change.connector)
        return was is not None and work_in(was.config) != work_in(change.config)


def _is_settled(group: Group) -> bool:
    """Return whether no move is in progress or due."""
    at_rest = group.state in {GroupState.STABLE, GroupState.EMPTY, GroupState.DEAD}
    return at_rest and not group.schedule.again_at_ms and not group.target.retry_at_ms
