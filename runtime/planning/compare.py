"""How a plan is made: the changes are rehearsed, and the end is held against the beginning."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from ...actors.messages.errors import Error
from ...events.group import Group
from ...events.model import GroupState, Resource
from ...events.placement.config import work_in
from ...events.records import MemberMetadata
from ...projections.explain.diff import Homes, Seat
from ...projections.explain.reasons import RETURN, Reason
from ...projections.moves import Measured
from .changes import Change, ConnectorPut, ConnectorScaled, make_change
from .dry_run import DryRun, DryRunAssignor, PlanError, Step
from .occupancy import Occupancy, occupancy_of
from .report import ExpectedDowntime, Plan, PlannedMove, PlannedRound, PlannedSplit, WorkerPlan

_UNKNOWN: Final = frozenset({Error.UNKNOWN_MEMBER_ID, Error.UNKNOWN_CONNECTOR})


def make_plan(
    group: Group,
    changes: Sequence[Change],
    assignors: Mapping[str, DryRunAssignor],
    measured: Measured,
    now_ms: int,
) -> Plan:
    """Return what would come of changes, made in this order; `group` stays as it is.

    `assignors` are those that can be asked here, by name; `measured` are past downtimes;
    `now_ms` is wall clock. Raises `PlanError`.
    """
    dry_run = DryRun(group, assignors, now_ms)
    for _ in dry_run.rest():
        pass  # what is under way already is not of these changes' making
    before = occupancy_of(dry_run)
    journey = _Journey(before.homes, Homes(dry_run.group))
    for number, change in enumerate(changes):
        try:
            for step in make_change(dry_run, change):
                journey.go(dry_run, step)
        except PlanError as refused:
            if number and refused.error in _UNKNOWN:
                text = f"{refused}, once the other changes of this plan are made"
                raise PlanError(refused.error, text) from None
            raise
    compared = _Comparison(before, occupancy_of(dry_run), journey, measured)
    return compared.plan(group, changes)


@dataclass(slots=True)
class _Journey:
    """What changes hands from target to target, and who had everything last."""

    first: Mapping[Resource, MemberMetadata]
    """Who has everything at the beginning."""
    homes: Homes
    rounds: list[PlannedRound] = field(default_factory=list[PlannedRound])
    reasons: dict[Resource, Reason] = field(default_factory=dict[Resource, Reason])
    """Why each leaves whom it is with at the beginning, however it goes on from there."""

    def go(self, dry_run: DryRun, step: Step) -> None:
        """Hold the target that the rehearsed group has now against the one before."""
        group = dry_run.group
        change = self.homes.compare(group, step.target, dry_run.now_ms, step.bumps)
        causes = tuple(bump.cause for bump in step.bumps)
        moved = len(change.moved) + len(change.returned)
        counts = (len(each) for each in (change.placed, change.retired, change.displaced))
        self.rounds.append(PlannedRound(causes, moved, *counts))
        givers = {each.resource: each.giver for each in change.moved} | dict(change.displaced)
        for resource, reason in change.reasons.items():
            giver, first = givers[resource], self.first.get(resource)
            if giver and first and giver.member_id == first.member_id:
                self.reasons[resource] = reason
            self.reasons.setdefault(resource, reason)
        self.homes.move(group)


@dataclass(frozen=True, slots=True)
class _Comparison:
    """The end held against the beginning."""

    before: Occupancy
    after: Occupancy
    journey: _Journey
    measured: Measured

    def plan(self, group: Group, changes: Iterable[Change]) -> Plan:
        """Return the plan for a group as it is now."""
        had, has = self.before.homes.keys(), self.after.homes.keys()
        moved = sorted(each for each in had & has if not self._stays(each))
        return Plan(
            group.group_id,
            group.state,
            group.group_epoch,
            _is_settled(group),
            self.after.assignor,
            [self._renamed(each) for each in self.journey.rounds],
            [self._move(each) for each in moved],
            [(each, self._taker(each)) for each in sorted(has - had)],
            [(each, self._giver(each)) for each in sorted(had - has)],
            self.after.parked,
            self.after.unplaceable,
            [*self._workers()],
            [*self._splits(group, changes)],
            sorted(self.after.cold),
        )

    def _stays(self, resource: Resource) -> bool:
        return self.before.homes[resource].member_id == self.after.homes[resource].member_id

    def _move(self, resource: Resource) -> PlannedMove:
        own = self.measured.by_connector.get(resource.connector)
        known = own or self.measured.overall
        return PlannedMove(
            resource,
            self._giver(resource),
            self._taker(resource),
            self.journey.reasons.get(resource, RETURN),
            ExpectedDowntime(known, is_its_own=own is not None) if known else None,
        )

    def _giver(self, resource: Resource) -> Seat:
        return self.before.seats[self.before.homes[resource].member_id]

    def _taker(self, resource: Resource) -> Seat:
        return self.after.seats[self.after.homes[resource].member_id]

    def _renamed(self, each: PlannedRound) -> PlannedRound:
        """Return a round whose causes name added workers as the plan does."""
        added = self.after.added
        subjects = (
            cause._replace(subject=added.get(cause.subject, cause.subject)) for cause in each.causes
        )
        return replace(each, causes=tuple(subjects))

    def _workers(self) -> Iterator[WorkerPlan]:
        both = self.before.homes.keys() & self.after.homes.keys()
        kept = Counter(self.before.homes[each].member_id for each in both if self._stays(each))
        seats = {**self.after.seats, **self.before.seats}
        for member_id in sorted(seats, key=lambda each: seats[each]):
            before, after = (each.loads.get(member_id) for each in (self.before, self.after))
            yield WorkerPlan(seats[member_id], before, after, kept[member_id])

    def _splits(self, group: Group, changes: Iterable[Change]) -> Iterator[PlannedSplit]:
        asked = [each for each in changes if isinstance(each, ConnectorPut | ConnectorScaled)]
        both = self.before.homes.keys() & self.after.homes.keys()
        kept = Counter(each.connector for each in both if self._stays(each))
        changed = {each.connector for each in asked if self._changes_work(group, each)}
        for connector in sorted({each.connector for each in asked}):
            before, after = (each.tasks.get(connector, 0) for each in (self.before, self.after))
            restarts = kept[connector] if connector in changed else 0
            yield PlannedSplit(connector, before, after, before != after, restarts)

    def _changes_work(self, group: Group, change: ConnectorPut | ConnectorScaled) -> bool:
        """Tell whether a connector that is there, and its tasks, will see another config."""
        if isinstance(change, ConnectorScaled):
            return self.before.tasks.get(change.connector, 0) != change.tasks
        was = group.connectors.get(change.connector)
        return was is not None and work_in(was.config) != work_in(change.config)


def _is_settled(group: Group) -> bool:
    """Tell whether nothing moves any more, nor is about to."""
    at_rest = group.state in {GroupState.STABLE, GroupState.EMPTY, GroupState.DEAD}
    return at_rest and not group.schedule.again_at_ms and not group.target.retry_at_ms
