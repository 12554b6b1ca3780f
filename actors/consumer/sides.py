"""A group of consumers as its members of both protocols see it: one side for each.

An empty group takes in members of either protocol and is of their type from then on; while it has
members it refuses those of the other. Both sides evolve one group and write into one `Outbox`, in
the order in which they decide.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import Final

from ...events.entries.codec import encode
from ...events.evolve import evolve
from ...events.group import Group
from ...events.kafka.consumers import SubscribedTopics
from ...events.log.space import NoRoomError, Room
from ...events.model import GroupType
from ...events.records import ClassicGroup, Tombstone
from ..backoff import earliest
from ..classic.coordinator import ClassicCoordinator
from ..classic.refusals import refusal_of
from ..classic.state import Answer, Asked, ClassicSettings
from ..group.commit import OffsetLedger
from ..group.coordinator import Coordinator
from ..group.legality import Legality
from ..group.shard import ENOUGH_ROOM, LOOK_FOR_ROOM_MS, Address, AddressedReply, Now, Outbox
from ..group.state.settings import GroupSettings
from ..group.state.soft_state import Decision
from ..messages.classic import ClassicCall, JoinGroup
from ..messages.commands import Command, CommandReply
from ..messages.errors import Error
from ..messages.members import JOIN_EPOCH, Heartbeat, HeartbeatReply
from ..messages.orders import DeleteGroup
from .decide import SERVER_ASSIGNORS, decide

CLASSIC_MEMBERS: Final = (
    "the group has members of the classic protocol: have them leave first, or join another group"
)
"""Why nobody joins by heartbeat, and what to do."""


MODERN_MEMBERS: Final = (
    "the group has members of the protocol of KIP-848: join again once they have left"
)
"""Why nobody joins by JoinGroup."""


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
        self.modern.rules, self.modern.holds_heartbeats = decide, False
        self.modern.carry_out(
            lambda _, soft: Decision(replace(soft, server_assignors=SERVER_ASSIGNORS)),
            Now(0, steady_ms),
        )
        self.classic = ClassicCoordinator(group, self, steady_ms, new_id)
        """The side of classic members."""

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
        if isinstance(request, JoinGroup) and self.group.members:
            told = refusal_of(request, Error.INCONSISTENT_GROUP_PROTOCOL, MODERN_MEMBERS)
            self.say(Answer(Asked(sender, request.number), replace(told, number=request.number)))
        elif isinstance(request, ClassicCall):
            asked, settings = Asked(sender, request.number), self._settings()
            self.classic.take(request, asked, settings, now.wall_ms, now.steady_ms)
        elif self.classic.is_empty:
            self.modern.take(request, sender, now)
        else:
            self._take_beside_classic(request, sender, now)

    def _take_beside_classic(self, request: Command, sender: Address, now: Now) -> None:
        """Refuse what classic members are in the way of, also those that are not in a record yet.

        A generation of theirs may be about to be written.
        """
        if isinstance(request, Heartbeat) and request.member_epoch == JOIN_EPOCH:
            error, who = Error.GROUP_ID_NOT_FOUND, (request.member_id, request.member_epoch)
            refused = HeartbeatReply(error, *who, message=CLASSIC_MEMBERS)
            self.out.answers.append(AddressedReply(sender, refused))
        elif isinstance(request, DeleteGroup):
            message = "classic members are in the group: delete it once they have left"
            refusal = CommandReply(Error.NON_EMPTY_GROUP, message)
            self.out.answers.append(AddressedReply(sender, refusal))
        else:
            self.modern.take(request, sender, now)

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

    def pass_time(self, now: Now) -> None:
        """Do what is due by now; what would have to be written waits until there is room."""
        self.modern.pass_time(now)
        if not self.room.is_out:
            self.classic.pass_time(self._settings(), now.wall_ms, now.steady_ms)

    def next_tick_ms(self, now: Now) -> int:
        """Return when time must pass next, steady clock, unless something is taken before."""
        next_ms = self.next_ms(now)
        return self.modern.next_tick_ms(now) if next_ms is None else next_ms

    def next_ms(self, now: Now) -> int | None:
        """Return when time must pass next, steady clock; None: not before something is taken."""
        next_ms = earliest(self.modern.due.timed_ms(), self.classic.next_ms())
        if next_ms is not None and self.room.is_out:
            return now.steady_ms + LOOK_FOR_ROOM_MS
        return next_ms
