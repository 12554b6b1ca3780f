"""One group of either type, behind what its process knows: the members' protocol decides.

An empty group takes in members of either protocol and is of their type from then on; while it has
members it refuses those of the other. What is no member's matter, such as connectors and their
offsets, belongs to the group whatever its type.

Both sides evolve one group and write into one `Outbox`, in the order in which they decide.
"""

from collections.abc import Callable
from typing import Final

from ...events.entries.codec import encode
from ...events.evolve import evolve
from ...events.group import Group
from ...events.log.space import NoRoomError, Room
from ...events.records import ClassicGroup
from ..classic.coordinator import ClassicCoordinator
from ..classic.state import Answer, Asked, ClassicSettings
from ..messages.classic import ClassicCall
from ..messages.commands import CommandReply, ConnectRequest, GroupRequest, Traffic
from ..messages.errors import Error
from ..messages.members import (
    JOIN_EPOCH,
    NO_COORDINATOR_EPOCH,
    Heartbeat,
    HeartbeatReply,
)
from ..messages.orders import DeleteGroup
from .commit import OffsetLedger
from .coordinator import ENOUGH_ROOM, LOOK_FOR_ROOM_MS, Coordinator
from .legality import Legality
from .shard import Address, AddressedReply, Now, Ready
from .state.settings import GroupSettings

CLASSIC_MEMBERS: Final = (
    "the group has members of the classic protocol: have them leave first, or join another group"
)
"""Why nobody joins by heartbeat, and what to do."""


class TypedShard:
    """The two sides of a group: of its connect members, and of its classic ones."""

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
        self._connect = Coordinator(group, settings, ledger, steady_ms, new_id, coordinator_epoch)
        self._classic = ClassicCoordinator(group, self, steady_ms, new_id)

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

    # -- what the classic side has to write and to say

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
        self._connect.out.answers.append(AddressedReply(answer.to.sender, answer.reply))

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
            asked, settings = Asked(sender, request.number), self._settings()
            self._classic.take(request, asked, settings, now.wall_ms, now.steady_ms)
        elif self._classic.is_empty:
            self._connect.take(request, sender, now)
        else:
            self._take_beside_classic(request, sender, now)

    def _take_beside_classic(self, request: ConnectRequest, sender: Address, now: Now) -> None:
        """Refuse what classic members are in the way of, also those that are not in a record yet.

        A generation of theirs may be about to be written.
        """
        if isinstance(request, Heartbeat) and request.member_epoch == JOIN_EPOCH:
            refused = HeartbeatReply(
                Error.GROUP_ID_NOT_FOUND,
                request.member_id,
                request.member_epoch,
                request.incarnation,
                request.sequence,
                CLASSIC_MEMBERS,
                coordinator_epoch=self.coordinator_epoch,
            )
            self._connect.out.answers.append(AddressedReply(sender, refused))
        elif isinstance(request, DeleteGroup):
            message = "classic members are in the group: delete it once they have left"
            refusal = CommandReply(Error.NON_EMPTY_GROUP, message)
            self._connect.out.answers.append(AddressedReply(sender, refusal))
        else:
            self._connect.take(request, sender, now)

    def _settings(self) -> ClassicSettings:
        settings = self._connect.settings
        return ClassicSettings(
            settings.initial_delay_ms,
            settings.least_classic_session_ms,
            settings.longest_classic_session_ms,
            settings.max_size,
        )

    # -- time

    def excuse(self, late_ms: int) -> None:
        """Let nobody's time run out for so long as the process itself was held up."""
        self._connect.excuse(late_ms)
        self._classic.excuse(late_ms)

    def pass_time(self, now: Now) -> None:
        """Do what is due by now; what would have to be written waits until there is room."""
        self._connect.pass_time(now)
        if not self._room.is_out:
            self._classic.pass_time(self._settings(), now.wall_ms, now.steady_ms)

    def next_tick_ms(self, now: Now) -> int:
        """Return when time must pass next, steady clock, unless something is taken before."""
        connect_ms, classic_ms = self._connect.next_tick_ms(now), self._classic.next_ms()
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
