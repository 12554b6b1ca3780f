"""One group of Kafka's clients among many: what it is asked, and what of it is told."""

from collections.abc import Callable
from dataclasses import replace
from typing import Final, Protocol

from ...events.group import Group
from ...events.log.space import NoRoomError, Room
from ...events.records import ClassicGroup, Record, Tombstone
from ..classic.coordinator import ClassicCoordinator
from ..classic.state import Answer, Asked, ClassicSettings, RoundPhase
from ..group.legality import Legality
from ..group.shard import AddressedReply, Now
from ..messages.errors import Error
from ..messages.groups import (
    AdminReply,
    DescribeGroup,
    DescribeGroupReply,
    ListedGroup,
    RemoveGroup,
    RemoveGroupReply,
    SharedCall,
)

DEAD: Final = "Dead"
CLASSIC: Final = "classic"


class GroupHost(Protocol):
    """The process of many groups, as one of them knows it."""

    @property
    def room(self) -> Room:
        """How much may be written."""
        ...

    @property
    def settings(self) -> ClassicSettings:
        """What all of its groups go by."""
        ...

    def write(self, group: Group, record: Record) -> None:
        """Have a group evolve by a record, and see that it is written."""
        ...

    def say(self, reply: AddressedReply) -> None:
        """Say this once all is durable that was written by now."""
        ...


class ClientGroup:
    """A group with its classic members and their timers."""

    def __init__(
        self, group: Group, host: GroupHost, steady_ms: int, new_id: Callable[[], str]
    ) -> None:
        """Take up a group; every member of its log has a full session."""
        self.group = group
        self._host = host
        self._legality = Legality()
        self._classic = ClassicCoordinator(group, self, steady_ms, new_id)

    @property
    def is_known(self) -> bool:
        """Whether anything of it is in the log, or anybody is about to be in it."""
        return self.group.classic is not None or not self._classic.is_unused

    @property
    def state(self) -> str:
        """How far the group is, as Kafka spells it."""
        return self._classic.phase.value

    # -- what the classic side has to write and to say

    def write(self, record: ClassicGroup) -> None:
        """Have the group evolve by a generation; raises `NoRoomError`."""
        if self._host.room.is_out:
            raise NoRoomError(self._host.room.refusal())
        self._legality.check(self.group, record)
        self._host.write(self.group, record)

    def say(self, answer: Answer) -> None:
        """Say this once all is durable that was decided by now."""
        self._host.say(AddressedReply(answer.to.sender, answer.reply))

    # -- what comes in

    def take(self, call: SharedCall, sender: int, now: Now) -> None:
        """Decide a call; its answer comes once it is durable, at once or later."""
        asked = Asked(sender, call.number)
        if isinstance(call, DescribeGroup | RemoveGroup):
            reply = self._describe() if isinstance(call, DescribeGroup) else self._remove()
            self._host.say(AddressedReply(sender, replace(reply, number=call.number)))
        else:
            settings = self._host.settings
            self._classic.take(call, asked, settings, now.wall_ms, now.steady_ms)

    def _describe(self) -> AdminReply:
        if not self.is_known:
            return DescribeGroupReply(Error.GROUP_ID_NOT_FOUND, DEAD, message=_unknown(self.group))
        last, is_stable = self.group.classic, self._classic.phase is RoundPhase.STABLE
        protocol = last.protocol if last and is_stable else None
        members = self._classic.members()
        if not is_stable:
            members = tuple(replace(each, protocols=(), assignment=b"") for each in members)
        kind = self._classic.protocol_type
        return DescribeGroupReply(Error.NONE, self.state, kind, protocol or "", members)

    def _remove(self) -> AdminReply:
        if not self.is_known:
            return RemoveGroupReply(Error.GROUP_ID_NOT_FOUND, _unknown(self.group))
        if not self._classic.is_unused:
            message = f"group {self.group.group_id!a} has members: nothing was deleted"
            return RemoveGroupReply(Error.NON_EMPTY_GROUP, message)
        if self._host.room.is_low:
            return RemoveGroupReply(Error.COORDINATOR_NOT_AVAILABLE, self._host.room.refusal())
        self._host.write(self.group, Tombstone(ClassicGroup, ()))
        return RemoveGroupReply(Error.NONE)

    def listed(self) -> ListedGroup:
        """Return what a list of groups says of it."""
        kind = self._classic.protocol_type
        return ListedGroup(self.group.group_id, kind, self.state, CLASSIC)

    # -- time

    def grant_sessions(self, steady_ms: int) -> None:
        """Give every member a full session, as after a time in which nobody was heard."""
        self._classic.grant_sessions(steady_ms)

    def excuse(self, late_ms: int) -> None:
        """Let nobody's time run out for so long as the process itself was held up."""
        self._classic.excuse(late_ms)

    def pass_time(self, now: Now) -> None:
        """Do what is due by now; not to be called while there is no room."""
        self._classic.pass_time(self._host.settings, now.wall_ms, now.steady_ms)

    def next_ms(self) -> int | None:
        """Return when something may be due next, steady clock; None: never."""
        return self._classic.next_ms()


def _unknown(group: Group) -> str:
    return f"Group {group.group_id} not found."
