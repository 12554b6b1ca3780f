"""What a group has to say to itself as time passes (PROTOCOL §4, §5, §7).

Most of it has a timer. The rest is looked at each time: what is durable has a time of the wall
clock, which may be set forth, and the work of a connector that is being deleted stops whenever it
does. Each rule checks once more that what it is told still holds.
"""

from collections.abc import Iterator
from typing import Final

from ...events.group import Group
from ...events.records import ConnectorConfig, CurrentAssignment, Operator, Record, Tombstone
from ..backoff import earliest
from ..messages.commands import Command
from ..messages.timers import (
    ContinueMoves,
    FinishDeletion,
    FreeSeat,
    ReleaseParked,
    RetryAssignor,
)
from .computing.recompute import is_next_move_due, is_retry_due
from .orders.departures import due_removals
from .state.soft_state import GroupSettings, SoftState
from .timers import ComputationTimer, MemberTimers, ParkingTimers

LOOK_MS: Final = 1_000
"""How often time passes at least: by the wall clock, which may be set."""
LOOK_SOON_MS: Final = 100
"""How often it passes where something may be due that no timer tells."""


class DueCommands:
    """The timers of one group, and what is due besides."""

    def __init__(self, group: Group, settings: GroupSettings, steady_ms: int) -> None:
        """Give every member of the log all the time that it can have."""
        self._group = group
        self.members = MemberTimers(group, settings, steady_ms)
        self._computation = ComputationTimer()
        self._parking = ParkingTimers()
        self._has_new_orders = True
        """Whether orders have changed since the parking timers saw them last."""
        self._has_removals = False
        """Whether any order removes a member: no timer tells when it holds nothing any more."""
        self._to_free = [each for each in group.members_away() if each.current.assigned]
        """Seats to which an earlier version left what they held."""
        self._deleting = {name for name, each in group.connectors.items() if each.deleting}
        """The connectors to bury as soon as their work has stopped."""

    def grant_sessions(self, settings: GroupSettings, steady_ms: int) -> None:
        """Give every member a full session again, as after a time in which nobody was heard."""
        self.members = MemberTimers(self._group, settings, steady_ms)

    def excuse(self, late_ms: int) -> None:
        """Give every member the time for which this process itself could hear nobody."""
        self.members.excuse(late_ms)

    def see_soft_state(self, soft: SoftState, steady_ms: int) -> SoftState:
        """Time the computation that has begun since the last decision; return with its rest."""
        return self._computation.see(soft, steady_ms)

    def see_record(self, record: Record, steady_ms: int) -> None:
        """Follow a record that the group has just evolved by."""
        kind = record.kind if isinstance(record, Tombstone) else type(record)
        if isinstance(record, CurrentAssignment):
            self.members.time_revocation(self._group.members[record.member_id], steady_ms)
        elif kind is Operator:
            self._has_new_orders = True
        elif isinstance(record, ConnectorConfig) and record.deleting:
            self._deleting.add(record.connector)
        elif isinstance(record, Tombstone) and kind is ConnectorConfig:
            self._deleting.discard(str(record.key[0]))

    def see_promises(self, wall_ms: int, steady_ms: int) -> None:
        """Time what the group has promised by now; costs nothing while that stays the same."""
        self._parking.see(self._group, wall_ms, steady_ms)
        if self._has_new_orders:
            self._has_new_orders = False
            orders = self._group.worker_orders.values()
            self._has_removals = any(order.removing for order in orders)
            self._parking.see_orders(self._group, wall_ms, steady_ms)

    def commands(self, settings: GroupSettings, wall_ms: int, steady_ms: int) -> Iterator[Command]:
        """Yield what is due by now; each is to be decided before the next is asked for."""
        while self._to_free:
            yield FreeSeat(self._to_free.pop().member_id)
        yield from self.members.due(steady_ms)
        yield from self._computation.due(steady_ms)
        yield from self._due_by_wall_clock(settings, wall_ms)
        yield from map(FinishDeletion, sorted(self._deleting))
        self.see_promises(wall_ms, steady_ms)
        yield from self._parking.due(steady_ms)

    def _due_by_wall_clock(self, settings: GroupSettings, now_ms: int) -> Iterator[Command]:
        group = self._group
        yield from [*due_removals(group, now_ms)]
        if group.next_deadline_ms is not None and group.next_deadline_ms <= now_ms:
            yield ReleaseParked()
        if is_next_move_due(group.schedule, now_ms):
            yield ContinueMoves()
        if is_retry_due(group, settings, now_ms):
            yield RetryAssignor()

    def next_ms(self, steady_ms: int) -> int:
        """Return when something may be due next, steady clock; that may be over already."""
        is_waiting = self._to_free or self._deleting or self._has_removals or self._has_new_orders
        look_ms = steady_ms + (LOOK_SOON_MS if is_waiting else LOOK_MS)
        timed_ms = earliest(
            self.members.next_ms(), self._computation.next_ms(), self._parking.next_ms()
        )
        return look_ms if timed_ms is None else min(look_ms, timed_ms)
