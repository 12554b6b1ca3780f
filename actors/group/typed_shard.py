"""The `CoordinatorShard` of a workers' group, which is of the connect type or classic.

Workers join it by the connect protocol or by the classic one (see `Sides`). Connectors and their
offsets belong to the group whatever its type.
"""

from collections.abc import Callable
from typing import Final

from ...events.group import Group
from ...events.log.space import Room
from ..messages.classic import ClassicCall, LeaveGroup
from ..messages.commands import AnswerHeld, GroupRequest, Traffic
from ..messages.members import NO_COORDINATOR_EPOCH
from ..messages.orders import EndMember
from ..timing import Now
from .commit import OffsetLedger
from .coordinator import Coordinator
from .decide import decide
from .members.request_filter import CallFilter
from .shard import Address, Ready
from .sides import GroupKind, Sides
from .state.settings import GroupSettings
from .state.soft_state import Decision
from .translation.connect import CONNECT_TRANSLATION


def _as_it_is(group: Group, decision: Decision) -> Decision:
    """Add nothing: what is configured does not depend on the members."""
    del group
    return decision


CONNECT_KIND: Final = GroupKind(decide, _as_it_is, CONNECT_TRANSLATION, goes_by_grants=True)


class TypedShard:
    """A group that workers of both of Connect's protocols may join."""

    def __init__(
        self,
        group: Group,
        settings: GroupSettings,
        ledger: OffsetLedger,
        steady_ms: int,
        new_id: Callable[[], str] = str,
        coordinator_epoch: int = NO_COORDINATOR_EPOCH,
    ) -> None:
        """Coordinate a group; see `Coordinator` for the parameters."""
        self.group = group
        self._filter = CallFilter()
        modern = Coordinator(group, settings, ledger, steady_ms, new_id, coordinator_epoch)
        self.sides = Sides(modern, CONNECT_KIND, steady_ms, new_id)
        """The group as its members of both protocols see it."""

    @property
    def coordinator_epoch(self) -> int:
        """The number that a heartbeat must name."""
        return self.sides.modern.coordinator_epoch

    @property
    def warning(self) -> str:
        """A warning for people about the group, or nothing."""
        return self.sides.modern.warning

    def traffic(self) -> Traffic:
        """Return counts since the start."""
        return self.sides.modern.traffic()

    def see_room(self, room: Room, now: Now) -> None:
        """Take note of how much may be written."""
        self.sides.see_room(room, now)

    def take(self, request: GroupRequest, sender: Address, now: Now) -> None:
        """Decide a request; its answer comes with a `Ready`, at once or later."""
        if isinstance(request, ClassicCall) and not self._is_new(request):
            return
        if isinstance(request, AnswerHeld):
            self.sides.modern.long_poll.make_due(request.member_id, sender, now.steady_ms)
            return
        if isinstance(request, EndMember):
            self.sides.classic.end_member(request.member_id, self.sides.settings(), now)
        self.sides.take(request, sender, now)

    def holds(self, member_id: str, sender: Address) -> bool:
        """Tell whether a heartbeat of a member is held for this sender."""
        return self.sides.modern.long_poll.holds(member_id, sender)

    def _is_new(self, call: ClassicCall) -> bool:
        return isinstance(call, LeaveGroup) or self._filter.is_new(call.member_id, call.number)

    def excuse(self, late_ms: int) -> None:
        """Extend all timers by the time for which the process was held up."""
        self.sides.excuse(late_ms)

    def pass_time(self, now: Now) -> None:
        """Do what is due by now; what would have to be written waits until there is room."""
        self.sides.pass_time(now)

    def next_tick_ms(self, now: Now) -> int:
        """Return when time must pass next, steady clock, unless something is taken before."""
        return self.sides.next_tick_ms(now)

    def ready(self, now: Now) -> Ready:
        """Hand out what was decided since the last call."""
        return self.sides.modern.ready(now)

    def advance(self, ready: Ready) -> None:
        """Take note that what was handed out is durable."""
        self.sides.modern.advance(ready)
