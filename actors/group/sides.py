"""The sides of a group: one for members of the modern protocol, one for classic ones, one for both.

An empty group takes members of either protocol, and is of their type from then on. While it has
members, a join by the modern protocol upgrades a classic group if that is allowed; a modern group
takes classic members, whose calls are translated, and is downgraded when only these are left
(PROTOCOL §16). All sides evolve one group and write into one `Outbox`, in the order in which they
decide.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace

from ...events.entries.codec import encode
from ...events.evolve import evolve
from ...events.group import Group
from ...events.log.space import NoRoomError, Room
from ...events.model import Cause, Why
from ...events.records import ClassicGroup
from ..classic.coordinator import ClassicCoordinator
from ..classic.state import Answer, Asked, ClassicSettings, RoundPhase
from ..messages.classic import ClassicCall, SyncGroupReply
from ..messages.commands import Command, CommandReply
from ..messages.errors import Error
from ..messages.members import JOIN_EPOCH, CommitOffsets, Heartbeat
from ..messages.orders import DeleteGroup
from ..timing import Now, earliest
from .coordinator import Coordinator
from .shard import ENOUGH_ROOM, LOOK_FOR_ROOM_MS, Address, AddressedReply, Outbox
from .state.soft_state import Decision, Rule, SoftState
from .translation.downgrade import Downgrade, downgrade, is_converted
from .translation.joins import Terms
from .translation.mixed import MixedMembers
from .translation.protocol import Translation
from .translation.upgrade import ConvertingMembers, upgrade


@dataclass(frozen=True, slots=True)
class GroupKind:
    """The rules of one modern type of group."""

    decide: Callable[[Group, SoftState, Command, int], Decision]
    """Decides a command of a member or of people."""
    complete: Callable[[Group, Decision], Decision]
    """Completes the decision of a classic member's call by what else ends with removed members."""
    translation: Translation
    """How the bytes of its classic members are read."""
    goes_by_grants: bool
    """Whether classic members start only what the log grants them."""


class Sides:
    """The modern side of one group, its classic side, and the classic members of a modern group."""

    def __init__(
        self, modern: Coordinator, kind: GroupKind, steady_ms: int, new_id: Callable[[], str]
    ) -> None:
        """Take the group of a coordinator, whose rules are replaced by those of this kind."""
        self.group = modern.group
        self.room = ENOUGH_ROOM
        """How much may be written, as of the last look at the disk."""
        self._out_since_ms = 0
        """Since when nothing may be written, steady clock, while that is so."""
        self.modern = modern
        """The side of members by the modern protocol."""
        self.modern.rules = self._decide
        self.classic = ClassicCoordinator(self.group, self, steady_ms, new_id)
        """The side of classic members."""
        self._mixed = MixedMembers(self.group, self, new_id)
        self._kind = kind
        self._downgrade: Downgrade | None = None
        """The last downgrade that was decided."""
        self._is_agreed = not is_converted(self.group)
        """Whether the classic side has taken up the members since the last downgrade."""

    @property
    def out(self) -> Outbox:
        """What was decided and is not handed out yet."""
        return self.modern.out

    # -- the host of the classic sides

    def write(self, record: ClassicGroup) -> None:
        """Evolve the group by a generation, and queue it for the log; raises `NoRoomError`.

        What a modern group without members has left behind is buried first.
        """
        if self.room.is_out:
            raise NoRoomError(self.room.refusal())
        for each in (*self._kind.translation.bury(self.group), record):
            entry = encode(each)
            self.modern.legality.check(self.group, each)
            evolve(self.group, each, self.group.end)
            self.out.entries.append(entry)

    def say(self, answer: Answer) -> None:
        """Send an answer once everything decided so far is durable."""
        reply = answer.reply
        if isinstance(reply, SyncGroupReply):
            reply = replace(reply, log_offset=self.group.end)
        self.out.answers.append(AddressedReply(answer.to.sender, reply))

    def carry_out(self, rule: Rule, now: Now) -> Decision:
        """Decide a call of a classic member of a mixed group; raises `NoRoomError`."""
        return self.modern.carry_out(
            lambda group, soft: self._or_downgrade(
                group, self._kind.complete(group, rule(group, soft)), now.wall_ms
            ),
            now,
        )

    def hear(self, member_id: str, now: Now) -> None:
        """Renew the session of a member of a mixed group."""
        self.modern.hear(member_id, now)

    # -- what comes in

    def see_room(self, room: Room, now: Now) -> None:
        """Take note of how much may be written; with room again, members have full sessions."""
        was_out, self.room = self.room.is_out, room
        self.modern.see_room(room, now)
        if room.is_out and not was_out:
            self._out_since_ms = now.steady_ms
        elif was_out and not room.is_out:
            late_ms = now.steady_ms - self._out_since_ms
            self.classic.excuse(late_ms)
            self._mixed.excuse(late_ms)
            self.classic.grant_sessions(now.steady_ms)

    def take(
        self, request: Command | CommitOffsets | ClassicCall, sender: Address, now: Now
    ) -> None:
        """Decide a request; its answer comes with a `Ready`, at once or later."""
        self._follow_conversion(now)  # a new process has to take up the members first
        if isinstance(request, ClassicCall):
            self._take_call(request, Asked(sender, request.number), now)
        elif isinstance(request, DeleteGroup) and not self.classic.is_empty:
            # They may be in no record yet, but in the generation that is being made.
            message = "classic members are in the group: delete it once they have left"
            refusal = CommandReply(Error.NON_EMPTY_GROUP, message)
            self.out.answers.append(AddressedReply(sender, refusal))
        else:
            self.modern.take(request, sender, now)
        self._follow_conversion(now)

    def _take_call(self, call: ClassicCall, asked: Asked, now: Now) -> None:
        settings = self.settings()
        if self.group.members:
            self._mixed.take(call, asked, Terms(settings, self._kind.translation), now)
        else:
            self.classic.take(call, asked, settings, now.wall_ms, now.steady_ms)

    def settings(self) -> ClassicSettings:
        """Return the settings for classic members."""
        settings = self.modern.settings
        return ClassicSettings(
            settings.initial_delay_ms,
            settings.least_classic_session_ms,
            settings.longest_classic_session_ms,
            settings.max_size,
            goes_by_grants=self._kind.goes_by_grants,
        )

    # -- conversions

    def _decide(self, group: Group, soft: SoftState, command: Command, now_ms: int) -> Decision:
        """Decide by the rules of the modern type; some decisions convert the group."""
        kind, side = self._kind, self.classic
        is_join = isinstance(command, Heartbeat) and command.member_epoch == JOIN_EPOCH
        if isinstance(command, Heartbeat) and is_join and not side.is_empty:
            told = side.remaining(), side.ids_with_assignment(), side.newcomers, side.protocol_type
            converting = ConvertingMembers(*told, kind.translation)
            return upgrade(group, soft, command, converting, now_ms, kind.decide)
        return self._or_downgrade(group, kind.decide(group, soft, command, now_ms), now_ms)

    def _or_downgrade(self, group: Group, decision: Decision, now_ms: int) -> Decision:
        found = downgrade(group, decision, self._kind.translation, now_ms)
        self._downgrade = found or self._downgrade
        return found.decision if found else decision

    def _follow_conversion(self, now: Now) -> None:
        """Move the members to their new side if the group was converted."""
        last = self.group.classic
        is_unused = self.classic.is_unused and self.classic.phase is RoundPhase.EMPTY
        if self.group.members and not is_unused:
            for member_id, session_ms in self.classic.hand_over().items():
                self._mixed.expect(member_id, session_ms, now)
            for member_id in self.group.translated:
                self.hear(member_id, now)
        elif last is not None and last.members and is_unused:
            self._is_agreed = False
        if not self._is_agreed and last is not None and not self.room.is_out:
            self._is_agreed, told = True, self._downgrade
            self._mixed.clear()
            # The cause of the next generation is not the conversion any more.
            cause = told.cause if told else Cause(Why.REBALANCE_REQUESTED, last.leader)
            needs_round = told is None or told.needs_round
            self.classic.take_up(cause if needs_round else None, self.settings(), now)

    # -- time

    def excuse(self, late_ms: int) -> None:
        """Extend all timers by the time for which the process was held up."""
        self.modern.excuse(late_ms)
        self.classic.excuse(late_ms)
        self._mixed.excuse(late_ms)

    def grant_sessions(self, late_ms: int, now: Now) -> None:
        """Give every member a full session, after no member could be heard for this time."""
        self.excuse(late_ms)
        self.modern.due.grant_sessions(self.modern.settings, now.steady_ms)
        self.classic.grant_sessions(now.steady_ms)

    def pass_time(self, now: Now) -> None:
        """Do what is due by now; what would have to be written waits until there is room."""
        self.modern.pass_time(now)
        self._follow_conversion(now)
        if not self.room.is_out:
            self._mixed.pass_time(now)
            self._follow_conversion(now)
            self.classic.pass_time(self.settings(), now.wall_ms, now.steady_ms)

    def next_tick_ms(self, now: Now) -> int:
        """Return when time must pass next, steady clock, unless something is taken before."""
        modern_ms = self.modern.next_tick_ms(now)
        classic_ms = self._or_room(earliest(self.classic.next_ms(), self._mixed.next_ms()), now)
        return modern_ms if classic_ms is None else min(modern_ms, classic_ms)

    def next_ms(self, now: Now) -> int | None:
        """Return when the next timer is due; None: there is none.

        That is enough for a group without connectors and orders, which needs no regular look.
        """
        timed_ms = self.modern.due.timed_ms()
        return self._or_room(earliest(timed_ms, self.classic.next_ms(), self._mixed.next_ms()), now)

    def _or_room(self, next_ms: int | None, now: Now) -> int | None:
        """Return the same, or when to look for room again if nothing can be written."""
        if next_ms is not None and self.room.is_out:
            return max(next_ms, now.steady_ms + LOOK_FOR_ROOM_MS)
        return next_ms
