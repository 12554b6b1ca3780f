"""A group as its members of both protocols see it: one side for each, whatever the group's type.

An empty group takes in members of either protocol and is of their type from then on. While it has
members, one that joins by the modern protocol converts a classic group, if it may; a modern group
takes in classic members, whose calls are translated, and becomes classic when nobody else is left
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
from ..backoff import earliest
from ..classic.coordinator import ClassicCoordinator
from ..classic.state import Answer, Asked, ClassicSettings, RoundPhase
from ..messages.classic import ClassicCall, SyncGroupReply
from ..messages.commands import Command, CommandReply
from ..messages.errors import Error
from ..messages.members import JOIN_EPOCH, CommitOffsets, Heartbeat
from ..messages.orders import DeleteGroup
from ..timer_queue import Moment
from .coordinator import Coordinator
from .legality import Legality
from .shard import ENOUGH_ROOM, LOOK_FOR_ROOM_MS, Address, AddressedReply, Now, Outbox
from .state.soft_state import Decision, Rule, SoftState
from .translation.downgrade import Downgrade, downgrade, is_converted
from .translation.joins import Terms
from .translation.mixed import MixedMembers
from .translation.protocol import Translation
from .translation.upgrade import Brought, upgrade


@dataclass(frozen=True, slots=True)
class GroupKind:
    """What groups of one modern type go by."""

    decide: Callable[[Group, SoftState, Command, int], Decision]
    """Its rules, for what its members and people ask."""
    complete: Callable[[Group, Decision], Decision]
    """Adds what else ends with members to what a classic member's call has led to."""
    translation: Translation
    """How the bytes of its classic members are read."""
    goes_by_grants: bool
    """Whether classic members start only what the log grants them."""


class Sides:
    """The side of the members by the modern protocol, that of classic ones, and those in both."""

    def __init__(
        self, modern: Coordinator, kind: GroupKind, steady_ms: int, new_id: Callable[[], str]
    ) -> None:
        """Take up the group of a coordinator, which goes by the rules of this kind from now on."""
        self.group = modern.group
        self.room = ENOUGH_ROOM
        """How much may be written, as of the last look at the disk."""
        self._out_since_ms = 0
        """Since when nothing may be written, steady clock, where that is so."""
        self.modern = modern
        """The side of members by the modern protocol."""
        self.modern.rules = self._decide
        self.classic = ClassicCoordinator(self.group, self, steady_ms, new_id)
        """The side of classic members."""
        self._mixed = MixedMembers(self.group, self, new_id)
        self._kind = kind
        self._legality = Legality()
        self._downgrade: Downgrade | None = None
        """The last that was decided, with why."""
        self._is_agreed = not is_converted(self.group)
        """Whether the classic members have been asked to agree since the group is theirs."""

    @property
    def out(self) -> Outbox:
        """What was decided and is not handed out yet."""
        return self.modern.out

    # -- what the classic sides have to write and to say

    def write(self, record: ClassicGroup) -> None:
        """Have the group evolve by a generation; raises `NoRoomError`.

        What a modern group without members has left behind ends with it.
        """
        if self.room.is_out:
            raise NoRoomError(self.room.refusal())
        for each in (*self._kind.translation.bury(self.group), record):
            entry = encode(each)
            self._legality.check(self.group, each)
            evolve(self.group, each, self.group.end)
            self.out.entries.append(entry)

    def say(self, answer: Answer) -> None:
        """Say this once all is durable that was decided by now."""
        reply = answer.reply
        if isinstance(reply, SyncGroupReply):
            reply = replace(reply, log_offset=self.group.end)
        self.out.answers.append(AddressedReply(answer.to.sender, reply))

    def carry_out(self, rule: Rule, now: Moment) -> Decision:
        """Decide what a classic member of a mixed group asks; raises `NoRoomError`."""
        return self.modern.carry_out(
            lambda group, soft: self._or_downgrade(
                group, self._kind.complete(group, rule(group, soft)), now.wall_ms
            ),
            now,
        )

    def hear(self, member_id: str, now: Moment) -> None:
        """Begin the session of a member of a mixed group anew."""
        self.modern.hear(member_id, now)

    # -- what comes in

    def see_room(self, room: Room, now: Now) -> None:
        """Learn how much may be written; members that could not be heard have their time anew."""
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
        self._follow_conversion(now)  # as a new process, whose members have to be taken up first
        if isinstance(request, ClassicCall):
            self._take_call(request, Asked(sender, request.number), now)
        elif isinstance(request, DeleteGroup) and not self.classic.is_empty:
            # They may be in no record yet: a generation of theirs is about to be written.
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
        """Return what classic members go by."""
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
            told = side.remaining(), side.heard(), side.newcomers, side.protocol_type
            brought = Brought(*told, kind.translation)
            return upgrade(group, soft, command, brought, now_ms, kind.decide)
        return self._or_downgrade(group, kind.decide(group, soft, command, now_ms), now_ms)

    def _or_downgrade(self, group: Group, decision: Decision, now_ms: int) -> Decision:
        found = downgrade(group, decision, self._kind.translation, now_ms)
        self._downgrade = found or self._downgrade
        return found.decision if found else decision

    def _follow_conversion(self, now: Now) -> None:
        """Have the members' new side take them up, if the group is of another type by now."""
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
            # The generation that follows is none of a conversion any more.
            cause = told.cause if told else Cause(Why.REBALANCE_REQUESTED, last.leader)
            needs_round = told is None or told.needs_round
            self.classic.take_up(cause if needs_round else None, self.settings(), now)

    # -- time

    def excuse(self, late_ms: int) -> None:
        """Let nobody's time run out for so long as the process itself was held up."""
        self.modern.excuse(late_ms)
        self.classic.excuse(late_ms)
        self._mixed.excuse(late_ms)

    def grant_sessions(self, late_ms: int, now: Now) -> None:
        """Give every member a full session: nobody could be heard for so long."""
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
        """Return when a time that was set comes; None: not before something is taken.

        That is enough for a group without connectors and orders, which has nothing to look at.
        """
        timed_ms = self.modern.due.timed_ms()
        return self._or_room(earliest(timed_ms, self.classic.next_ms(), self._mixed.next_ms()), now)

    def _or_room(self, next_ms: int | None, now: Now) -> int | None:
        """Return when to look for room instead, where there is none: not before anything is due."""
        if next_ms is not None and self.room.is_out:
            return max(next_ms, now.steady_ms + LOOK_FOR_ROOM_MS)
        return next_ms
