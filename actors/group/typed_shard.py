"""One group of either type, behind what its process knows: the members' protocol decides.

An empty group takes in members of either protocol and is of their type from then on. While it has
members, one that joins by the connect protocol converts a classic group, if it may; a connect group
takes in classic members, whose calls are translated, and becomes classic when nobody else is left.
What is no member's matter, such as connectors and their offsets, belongs to the group whatever its
type.

All sides evolve one group and write into one `Outbox`, in the order in which they decide.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import Final

from ...events.entries.codec import encode
from ...events.evolve import evolve
from ...events.group import Group
from ...events.log.space import NoRoomError, Room
from ...events.records import ClassicGroup
from ..backoff import earliest
from ..classic.coordinator import ClassicCoordinator
from ..classic.state import Answer, Asked, ClassicSettings
from ..messages.classic import ClassicCall, LeaveGroup, SyncGroupReply
from ..messages.commands import Command, CommandReply, GroupRequest, Traffic
from ..messages.errors import Error
from ..messages.members import JOIN_EPOCH, NO_COORDINATOR_EPOCH, Heartbeat
from ..messages.orders import DeleteGroup, EndMember
from ..timer_queue import Moment
from .commit import OffsetLedger
from .coordinator import Coordinator
from .decide import decide
from .legality import Legality
from .members.request_filter import CallFilter
from .shard import ENOUGH_ROOM, LOOK_FOR_ROOM_MS, Address, AddressedReply, Now, Ready
from .state.settings import GroupSettings
from .state.soft_state import Decision, Rule, SoftState
from .translation.connect import CONNECT_TRANSLATION
from .translation.downgrade import Downgrade, downgrade, is_converted
from .translation.joins import Terms
from .translation.mixed import MixedMembers
from .translation.upgrade import Brought, upgrade

TRANSLATION: Final = CONNECT_TRANSLATION
"""How the bytes of classic members are read in a group of the connect type."""


class TypedShard:
    """The sides of a group: of its connect members, of classic ones, and of those in both."""

    def __init__(
        self,
        group: Group,
        settings: GroupSettings,
        ledger: OffsetLedger,
        steady_ms: int,
        new_id: Callable[[], str] = str,
        coordinator_epoch: int = NO_COORDINATOR_EPOCH,
    ) -> None:
        """Take up a group; see `Coordinator` for the parameters."""
        self.group = group
        self._room = ENOUGH_ROOM
        """How much may be written, as of the last look at the disk."""
        self._legality = Legality()
        self._filter = CallFilter()
        self._connect = Coordinator(group, settings, ledger, steady_ms, new_id, coordinator_epoch)
        self._connect.rules = self._decide
        self._classic = ClassicCoordinator(group, self, steady_ms, new_id)
        self._mixed = MixedMembers(group, self, new_id)
        self._downgrade: Downgrade | None = None
        """The last that was decided, with why."""
        self._is_agreed = not is_converted(group)
        """Whether the classic members have been asked to agree since the group is theirs."""

    @property
    def coordinator_epoch(self) -> int:
        """The number that a heartbeat must carry."""
        return self._connect.coordinator_epoch

    @property
    def warning(self) -> str:
        """What people should know of the group, or nothing."""
        return self._connect.warning

    def traffic(self) -> Traffic:
        """Return what went through since the start."""
        return self._connect.traffic()

    # -- what the classic sides have to write and to say

    def write(self, record: ClassicGroup) -> None:
        """Have the group evolve by a generation; raises `NoRoomError`."""
        if self._room.is_out:
            raise NoRoomError(self._room.refusal())
        entry = encode(record)
        self._legality.check(self.group, record)
        evolve(self.group, record, self.group.end)
        self._connect.out.entries.append(entry)

    def say(self, answer: Answer) -> None:
        """Say this once all is durable that was decided by now."""
        reply = answer.reply
        if isinstance(reply, SyncGroupReply):
            reply = replace(reply, log_offset=self.group.end)
        self._connect.out.answers.append(AddressedReply(answer.to.sender, reply))

    def carry_out(self, rule: Rule, now: Moment) -> Decision:
        """Decide what a classic member of a connect group asks; raises `NoRoomError`."""
        return self._connect.carry_out(
            lambda group, soft: self._or_downgrade(group, rule(group, soft), now.wall_ms), now
        )

    def hear(self, member_id: str, now: Moment) -> None:
        """Begin the session of a member of a connect group anew."""
        self._connect.hear(member_id, now)

    # -- conversions

    def _decide(self, group: Group, soft: SoftState, command: Command, now_ms: int) -> Decision:
        """Decide by the rules of the connect type; some decisions convert the group."""
        side = self._classic
        if (
            isinstance(command, Heartbeat)
            and command.member_epoch == JOIN_EPOCH
            and not side.is_empty
        ):
            told = side.remaining(), side.heard(), side.newcomers, side.protocol_type
            return upgrade(group, soft, command, Brought(*told, TRANSLATION), now_ms, decide)
        return self._or_downgrade(group, decide(group, soft, command, now_ms), now_ms)

    def _or_downgrade(self, group: Group, decision: Decision, now_ms: int) -> Decision:
        found = downgrade(group, decision, TRANSLATION, now_ms) if group.translated else None
        self._downgrade = found or self._downgrade
        return found.decision if found else decision

    def _follow_conversion(self, now: Now) -> None:
        """Have the members' new side take them up, if the group is of another type by now."""
        if self.group.members and not self._classic.is_unused:
            for member_id, session_ms in self._classic.hand_over().items():
                self._mixed.expect(member_id, session_ms, now)
            for member_id in self.group.translated:
                self.hear(member_id, now)
        elif self.group.classic and self.group.classic.members and self._classic.is_empty:
            self._is_agreed = False
        if not self._is_agreed and self.group.classic and not self._room.is_out:
            self._is_agreed, last = True, self._downgrade
            self._mixed.clear()
            cause = last.cause if last else self.group.classic.cause
            needs_round = last is None or last.needs_round
            self._classic.take_up(cause if needs_round else None, self._settings(), now)

    # -- what comes in

    def see_room(self, room: Room, now: Now) -> None:
        """Learn how much may be written; members that could not be heard have their time anew."""
        was_out = self._room.is_out
        self._room = room
        self._connect.see_room(room, now)
        if was_out and not room.is_out:
            self._classic.grant_sessions(now.steady_ms)

    def take(self, request: GroupRequest, sender: Address, now: Now) -> None:
        """Decide a request; its answer comes with a `Ready`, at once or later."""
        if isinstance(request, ClassicCall):
            if not isinstance(request, LeaveGroup) and not self._filter.is_new(
                request.member_id, request.number
            ):
                return
            self._take_call(request, Asked(sender, request.number), now)
        elif isinstance(request, DeleteGroup) and not self._classic.is_empty:
            # They may be in no record yet: a generation of theirs is about to be written.
            message = "classic members are in the group: delete it once they have left"
            refusal = CommandReply(Error.NON_EMPTY_GROUP, message)
            self._connect.out.answers.append(AddressedReply(sender, refusal))
        else:
            if isinstance(request, EndMember):
                self._classic.take_end(request.member_id, self._settings(), now)
            self._connect.take(request, sender, now)
        self._follow_conversion(now)

    def _take_call(self, call: ClassicCall, asked: Asked, now: Now) -> None:
        settings = self._settings()
        if self.group.members:
            self._mixed.take(call, asked, Terms(settings, TRANSLATION), now)
        else:
            self._classic.take(call, asked, settings, now.wall_ms, now.steady_ms)

    def _settings(self) -> ClassicSettings:
        settings = self._connect.settings
        return ClassicSettings(
            settings.initial_delay_ms,
            settings.least_classic_session_ms,
            settings.longest_classic_session_ms,
            settings.max_size,
            goes_by_grants=True,
        )

    # -- time

    def excuse(self, late_ms: int) -> None:
        """Let nobody's time run out for so long as the process itself was held up."""
        self._connect.excuse(late_ms)
        self._classic.excuse(late_ms)
        self._mixed.excuse(late_ms)

    def pass_time(self, now: Now) -> None:
        """Do what is due by now; what would have to be written waits until there is room."""
        self._connect.pass_time(now)
        self._follow_conversion(now)
        if not self._room.is_out:
            self._mixed.pass_time(now)
            self._follow_conversion(now)
            self._classic.pass_time(self._settings(), now.wall_ms, now.steady_ms)

    def next_tick_ms(self, now: Now) -> int:
        """Return when time must pass next, steady clock, unless something is taken before."""
        connect_ms = self._connect.next_tick_ms(now)
        classic_ms = earliest(self._classic.next_ms(), self._mixed.next_ms())
        if classic_ms is None:
            return connect_ms
        if self._room.is_out:
            classic_ms = now.steady_ms + LOOK_FOR_ROOM_MS
        return min(connect_ms, classic_ms)

    # -- what goes out

    def ready(self, now: Now) -> Ready:
        """Hand out what was decided since the last call."""
        return self._connect.ready(now)

    def advance(self, ready: Ready) -> None:
        """Learn that what was handed out is durable."""
        self._connect.advance(ready)
