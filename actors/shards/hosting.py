"""Many groups in one process, without the process: requests in, records and answers out.

It is a `CoordinatorShard` like a single group: what all of its groups decided since the last time
is appended at once. A group comes into being by the first call that has anything to remember, and
costs nothing while nobody speaks to it and none of its times has come: one queue has the timers of
all groups.
"""

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Final

from ...events.entries.codec import encode, restore
from ...events.entries.group_keys import by_group, flaw_in_group_id, in_group
from ...events.evolve import evolve
from ...events.group import Group
from ...events.log.frame import Entry
from ...events.log.space import Room
from ...events.records import Record
from ..classic.refusals import refusal_of
from ..classic.state import ClassicSettings
from ..group.shard import ENOUGH_ROOM, LOOK_FOR_ROOM_MS, AddressedReply, Now, Outbox, Ready
from ..messages.commands import Traffic
from ..messages.errors import Error
from ..messages.groups import (
    DescribeGroup,
    DescribeGroupReply,
    HostCall,
    HostReply,
    ListGroups,
    ListGroupsReply,
    RemoveGroup,
    RemoveGroupReply,
    SharedCall,
)
from ..timer_queue import TimerQueue
from .group import DEAD, ClientGroup

MOST_GROUPS: Final = 100_000
"""How many groups one process keeps; calls of further ones are refused."""
IDLE_MS: Final = 60_000
"""How long the process sleeps while nothing is due."""


class HostedGroups:
    """The groups of one process, by their ids."""

    warning = ""
    """What people should know: epochs of small groups are no matter."""

    def __init__(
        self,
        entries: Iterable[Entry],
        settings: ClassicSettings,
        epoch: int,
        steady_ms: int,
        new_id: Callable[[], str],
    ) -> None:
        """Take up the groups that the latest entry of each key tells of, in offset order."""
        self.coordinator_epoch = epoch
        """What tells this process of the groups from earlier ones."""
        self.settings = settings
        self.room = ENOUGH_ROOM
        """How much may be written, as of the last look at the disk."""
        self._new_id = new_id
        self._out = Outbox()
        self._groups: dict[str, ClientGroup] = {}
        self._timers: TimerQueue[str] = TimerQueue()
        self._calls = 0
        for group_id, found in by_group(entries).items():
            group = restore(group_id, found, found[-1].offset + 1)
            self._keep(ClientGroup(group, self, steady_ms, new_id), steady_ms)

    def __len__(self) -> int:
        """Return how many groups there are."""
        return len(self._groups)

    def traffic(self) -> Traffic:
        """Return what went through since the start."""
        return Traffic(self._calls, 0)

    # -- what the groups have to write and to say

    def write(self, group: Group, record: Record) -> None:
        """Have a group evolve by a record, and see that it is written."""
        entry = in_group(group.group_id, encode(record))
        evolve(group, record, group.end)
        self._out.entries.append(entry)

    def say(self, reply: AddressedReply) -> None:
        """Say this once all is durable that was written by now."""
        self._out.answers.append(reply)

    def ready(self, _: Now) -> Ready:
        """Hand out what was decided since the last call."""
        return self._out.hand_out(())

    def advance(self, _: Ready) -> None:
        """Learn that what was handed out is durable."""

    # -- what comes in

    def see_room(self, room: Room, now: Now) -> None:
        """Learn how much may be written; members that could not be heard have their time anew."""
        was_out, self.room = self.room.is_out, room
        if was_out and not room.is_out:
            for group in self._groups.values():
                group.grant_sessions(now.steady_ms)

    def take(self, request: HostCall, sender: int, now: Now) -> None:
        """Decide a call; its answer comes with a `Ready`, at once or later."""
        self._calls += 1
        if isinstance(request, ListGroups):
            listed = sorted(
                (each.listed() for each in self._groups.values()), key=lambda each: each.group_id
            )
            self.say(AddressedReply(sender, ListGroupsReply(tuple(listed), number=request.number)))
        elif refused := self._refuse(request):
            self.say(AddressedReply(sender, _refusal_of(request, *refused)))
        else:
            group = self._groups.get(request.group_id) or self._new(request.group_id, now)
            group.take(request, sender, now)
            self._keep(group, now.steady_ms)

    def _refuse(self, call: SharedCall) -> tuple[Error, str] | None:
        if call.group_id in self._groups:
            return None
        if flaw := flaw_in_group_id(call.group_id):
            return Error.INVALID_GROUP_ID, flaw
        if len(self._groups) >= MOST_GROUPS:
            message = f"there are {MOST_GROUPS} groups in this process: delete some"
            return Error.GROUP_MAX_SIZE_REACHED, message
        return None

    def _new(self, group_id: str, now: Now) -> ClientGroup:
        return ClientGroup(Group(group_id), self, now.steady_ms, self._new_id)

    def _keep(self, group: ClientGroup, steady_ms: int) -> None:
        """Keep a group as long as there is anything to know of it, and time what is due there."""
        group_id = group.group.group_id
        if not group.is_known:
            self._groups.pop(group_id, None)
            self._timers.cancel(group_id)
            return
        self._groups[group_id] = group
        next_ms = group.next_ms()
        if next_ms is None:
            self._timers.cancel(group_id)
        else:
            self._timers.set(group_id, max(next_ms, steady_ms + 1))

    # -- time

    def excuse(self, late_ms: int) -> None:
        """Let nobody's time run out for so long as the process itself was held up."""
        for group in self._groups.values():
            group.excuse(late_ms)

    def pass_time(self, now: Now) -> None:
        """Do what is due by now; what would have to be written waits until there is room."""
        if self.room.is_out:
            return
        for group_id in self._timers.due(now.steady_ms):
            group = self._groups[group_id]
            group.pass_time(now)
            self._keep(group, now.steady_ms)

    def next_tick_ms(self, now: Now) -> int:
        """Return when time must pass next, steady clock, unless something is taken before."""
        if self.room.is_out:
            return now.steady_ms + LOOK_FOR_ROOM_MS
        next_ms = self._timers.next_ms()
        return now.steady_ms + IDLE_MS if next_ms is None else next_ms


def _refusal_of(call: SharedCall, error: Error, message: str) -> HostReply:
    number = call.number
    if isinstance(call, DescribeGroup):
        return DescribeGroupReply(error, DEAD, message=message, number=number)
    if isinstance(call, RemoveGroup):
        return RemoveGroupReply(error, message, number)
    return replace(refusal_of(call, error, message), number=number)
