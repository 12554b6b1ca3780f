"""A group of consumers as its members of both protocols see it: one side for each.

An empty group takes in members of either protocol and is of their type from then on. While it has
members, one of the other protocol converts a classic group, or is translated in one of consumers
(PROTOCOL §16). All sides evolve one group and write into one `Outbox`, in the order in which they
decide.
"""

from collections.abc import Callable
from dataclasses import replace

from ...events.entries.codec import encode
from ...events.evolve import evolve
from ...events.group import Group
from ...events.kafka.consumers import SubscribedTopics
from ...events.log.space import NoRoomError, Room
from ...events.model import GroupType
from ...events.records import ClassicGroup, Tombstone
from ..backoff import earliest
from ..classic.coordinator import ClassicCoordinator
from ..classic.state import Answer, Asked, ClassicSettings
from ..group.commit import OffsetLedger
from ..group.coordinator import Coordinator
from ..group.legality import Legality
from ..group.shard import ENOUGH_ROOM, LOOK_FOR_ROOM_MS, Address, AddressedReply, Now, Outbox
from ..group.state.settings import GroupSettings
from ..group.state.soft_state import Decision, Rule, SoftState
from ..group.translation.downgrade import Downgrade, downgrade, is_converted
from ..group.translation.joins import Terms
from ..group.translation.mixed import MixedMembers
from ..group.translation.upgrade import Brought, upgrade
from ..messages.classic import ClassicCall
from ..messages.commands import Command, CommandReply
from ..messages.errors import Error
from ..messages.members import JOIN_EPOCH, Heartbeat
from ..messages.orders import DeleteGroup
from ..timer_queue import Moment
from .decide import SERVER_ASSIGNORS, decide
from .topics import end_subscriptions
from .translation import CONSUMER_TRANSLATION


class ConsumerSides:
    """The two sides of a group: of its consumers by KIP-848, and of its classic members."""

    def __init__(
        self,
        group: Group,
        settings: GroupSettings,
        ledger: OffsetLedger,
        steady_ms: int,
        new_id: Callable[[], str],
        coordinator_epoch: int,
    ) -> None:
        """Take up a group; see `Coordinator` for the parameters."""
        self.group = group
        self.room = ENOUGH_ROOM
        """How much may be written, as of the last look at the disk."""
        self._legality = Legality()
        self.modern = Coordinator(group, settings, ledger, steady_ms, new_id, coordinator_epoch)
        """The side of consumers by KIP-848."""
        self.modern.rules, self.modern.holds_heartbeats = self._decide, False
        self.modern.carry_out(
            lambda _, soft: Decision(replace(soft, server_assignors=SERVER_ASSIGNORS)),
            Now(0, steady_ms),
        )
        self.classic = ClassicCoordinator(group, self, steady_ms, new_id)
        """The side of classic members."""
        self._mixed = MixedMembers(group, self, new_id)
        self._downgrade: Downgrade | None = None
        """The last that was decided, with why."""
        self._is_agreed = not is_converted(group)
        """Whether the classic members have been asked to agree since the group is theirs."""

    @property
    def out(self) -> Outbox:
        """What was decided and is not handed out yet."""
        return self.modern.out

    @property
    def is_modern(self) -> bool:
        """Whether it is a group of consumers by KIP-848, or was one last."""
        return self.group.type is GroupType.CONSUMER and self.classic.is_unused

    @property
    def has_classic_members(self) -> bool:
        """Whether classic members are in the group, or wait to be."""
        return not self.classic.is_empty

    # -- what the classic side has to write and to say

    def write(self, record: ClassicGroup) -> None:
        """Have the group evolve by a generation; raises `NoRoomError`."""
        if self.room.is_out:
            raise NoRoomError(self.room.refusal())
        is_first = self.group.topics is not None  # it was a group of consumers, and is empty
        for each in (Tombstone(SubscribedTopics, ()), record) if is_first else (record,):
            entry = encode(each)
            self._legality.check(self.group, each)
            evolve(self.group, each, self.group.end)
            self.out.entries.append(entry)

    def say(self, answer: Answer) -> None:
        """Say this once all is durable that was decided by now."""
        self.out.answers.append(AddressedReply(answer.to.sender, answer.reply))

    # -- what comes in

    def see_room(self, room: Room, now: Now) -> None:
        """Learn how much may be written; members that could not be heard have their time anew."""
        was_out = self.room.is_out
        self.room = room
        self.modern.see_room(room, now)
        if was_out and not room.is_out:
            self.classic.grant_sessions(now.steady_ms)

    def take(self, request: Command | ClassicCall, sender: Address, now: Now) -> None:
        """Decide a request; its answer comes with a `Ready`, at once or later."""
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
        settings = self._settings()
        if self.group.members:
            self._mixed.take(call, asked, Terms(settings, CONSUMER_TRANSLATION), now)
        else:
            self.classic.take(call, asked, settings, now.wall_ms, now.steady_ms)

    # -- conversions

    def carry_out(self, rule: Rule, now: Moment) -> Decision:
        """Decide what a classic member of a mixed group asks; raises `NoRoomError`."""
        return self.modern.carry_out(
            lambda group, soft: self._or_downgrade(
                group, end_subscriptions(group, rule(group, soft)), now.wall_ms
            ),
            now,
        )

    def hear(self, member_id: str, now: Moment) -> None:
        """Begin the session of a member of a mixed group anew."""
        self.modern.hear(member_id, now)

    def _decide(self, group: Group, soft: SoftState, command: Command, now_ms: int) -> Decision:
        """Decide by the rules of consumers; some decisions convert the group."""
        side = self.classic
        is_join = isinstance(command, Heartbeat) and command.member_epoch == JOIN_EPOCH
        if isinstance(command, Heartbeat) and is_join and not side.is_empty:
            told = side.remaining(), side.heard(), side.newcomers, side.protocol_type
            brought = Brought(*told, CONSUMER_TRANSLATION)
            return upgrade(group, soft, command, brought, now_ms, decide)
        return self._or_downgrade(group, decide(group, soft, command, now_ms), now_ms)

    def _or_downgrade(self, group: Group, decision: Decision, now_ms: int) -> Decision:
        found = downgrade(group, decision, CONSUMER_TRANSLATION, now_ms)
        self._downgrade = found or self._downgrade
        return found.decision if found else decision

    def _follow_conversion(self, now: Now) -> None:
        """Have the members' new side take them up, if the group is of another type by now."""
        last = self.group.classic
        if self.group.members and not self.classic.is_unused:
            for member_id, session_ms in self.classic.hand_over().items():
                self._mixed.expect(member_id, session_ms, now)
            for member_id in self.group.translated:
                self.hear(member_id, now)
        elif last is not None and last.members and self.classic.is_empty:
            self._is_agreed = False
        if not self._is_agreed and last is not None and not self.room.is_out:
            self._is_agreed, told = True, self._downgrade
            cause = told.cause if told else last.cause
            needs_round = told is None or told.needs_round
            self.classic.take_up(cause if needs_round else None, self._settings(), now)

    def hear_commit(
        self, member_id: str, instance_id: str | None, generation: int, now: Now
    ) -> Error | None:
        """Hear a classic member that commits offsets; return why it may not."""
        return self.classic.hear_commit(member_id, instance_id, generation, now.steady_ms)

    def _settings(self) -> ClassicSettings:
        settings = self.modern.settings
        return ClassicSettings(
            settings.initial_delay_ms,
            settings.least_classic_session_ms,
            settings.longest_classic_session_ms,
            settings.max_size,
        )

    # -- time

    def excuse(self, late_ms: int) -> None:
        """Let nobody's time run out for so long as the process itself was held up."""
        self.modern.excuse(late_ms)
        self.classic.excuse(late_ms)
        self._mixed.excuse(late_ms)

    def pass_time(self, now: Now) -> None:
        """Do what is due by now; what would have to be written waits until there is room."""
        self.modern.pass_time(now)
        self._follow_conversion(now)
        if not self.room.is_out:
            self._mixed.pass_time(now)
            self._follow_conversion(now)
            self.classic.pass_time(self._settings(), now.wall_ms, now.steady_ms)

    def next_tick_ms(self, now: Now) -> int:
        """Return when time must pass next, steady clock, unless something is taken before."""
        next_ms = self.next_ms(now)
        return self.modern.next_tick_ms(now) if next_ms is None else next_ms

    def next_ms(self, now: Now) -> int | None:
        """Return when time must pass next, steady clock; None: not before something is taken."""
        next_ms = earliest(
            self.modern.due.timed_ms(), self.classic.next_ms(), self._mixed.next_ms()
        )
        if next_ms is not None and self.room.is_out:
            return now.steady_ms + LOOK_FOR_ROOM_MS
        return next_ms
