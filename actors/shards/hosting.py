"""The groups of a shard, without I/O: calls go in, records and replies come out.

It is a `CoordinatorShard` like a single group: the records of all its groups since the last call
are appended together. A group is created by the first call that changes state. An idle group costs
nothing: one queue has the timers of all groups.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final

from ...events.entries.codec import restore
from ...events.entries.group_keys import Latest, by_group, flaw_in_group_id, groups_with_offsets
from ...events.group import Group
from ...events.kafka.consumers import Topic
from ...events.log.frame import Entry, NewEntry
from ...events.log.space import Room
from ..consumer.offsets.deleted_topics import topics_changed
from ..consumer.shard import HostComputation
from ..group.shard import ENOUGH_ROOM, LOOK_FOR_ROOM_MS, AddressedReply, Ready
from ..group.state.settings import GroupSettings
from ..messages.commands import Traffic
from ..messages.computing import EndComputation
from ..messages.consumers import ConsumerGroupHeartbeat
from ..messages.errors import Error
from ..messages.groups import (
    DescribeGroup,
    EndHold,
    HostCall,
    HostReply,
    ListGroups,
    ListGroupsReply,
    RemoveGroup,
    SharedCall,
    TellTopics,
    TellTopicsReply,
)
from ..messages.offsets import OffsetFetch
from ..timing import Now, TimerQueue
from .group import ClientGroup
from .held import HeartbeatCall
from .limits import NOTHING, KeptByClients
from .refusals import flaw_in_ids, refuse_host_call

READ_WITHOUT_ID: Final = (OffsetFetch, DescribeGroup, RemoveGroup)
"""The calls that are answered for an empty group id as for an unknown one."""
IDLE_MS: Final = 60_000
"""The longest sleep of the process without a timer."""


class HostedGroups:
    """The groups of one process."""

    warning = ""
    """Always empty: small groups do not run out of epochs."""
    holds_heartbeats = True
    """Whether replies to heartbeats without news are held (long poll)."""
    offloads = False
    """Whether the process computes targets beside its loop; see `take_computations`."""

    def __init__(
        self,
        entries: Iterable[Entry],
        offsets: Latest,
        settings: GroupSettings,
        epoch: int,
        now: Now,
        new_id: Callable[[], str],
    ) -> None:
        """Recover the groups from the latest entry of each key, in offset order.

        `offsets` is the offset log.
        """
        self.kept = KeptByClients()
        """What all groups keep of their clients, which has limits."""
        self.coordinator_epoch = epoch
        """The epoch of this process, which distinguishes it from earlier ones."""
        self._settings, self._offsets, self._new_id = settings, offsets, new_id
        self._room, self._calls = ENOUGH_ROOM, 0
        """The space for log records, as of the last check of the disk; and how many calls came."""
        self._topics: Mapping[str, Topic] | None = None
        """The current topics; None: not received yet."""
        self._groups: dict[str, ClientGroup] = {}
        self._changed: dict[str, ClientGroup] = {}
        """The groups that may have records or replies, by id."""
        self._not_durable: list[tuple[ClientGroup, Ready]] = []
        """The output of groups that is not durable yet."""
        self._answers: list[AddressedReply] = []
        """Replies that do not come from a single group."""
        self._timers: TimerQueue[str] = TimerQueue()
        self._suspended_since_ms: int | None = None
        """Since when no host is connected, steady clock; None: one is."""
        self._computations: dict[str, HostComputation] = {}
        """What is to be computed beside the loop, by group id."""
        groups = [restore(*each) for each in _entries_by_group(entries)]
        without = {*groups_with_offsets(offsets)}.difference(each.group_id for each in groups)
        for group in (*groups, *map(Group, sorted(without))):
            hosted = self._host(group, now)
            if hosted.is_known:
                self._groups[group.group_id] = hosted
                self.kept.weigh(group.group_id, hosted.footprint)
                self._schedule(hosted, now)

    def __len__(self) -> int:
        """Return the number of groups."""
        return len(self._groups)

    def traffic(self) -> Traffic:
        """Return the traffic counters since the start."""
        return Traffic(self._calls, 0)

    # -- output

    def ready(self, now: Now) -> Ready:
        """Return the records and replies of all groups since the last call."""
        answers, self._answers = self._answers, []
        offset_entries: list[NewEntry] = []
        entries: list[NewEntry] = []
        for group_id, group in self._changed.items():
            ready = group.ready(now)
            self.kept.weigh(group_id, group.footprint)
            self._not_durable.append((group, ready))
            self._schedule(group, now)
            offset_entries += ready.offset_entries
            entries += ready.entries
            answers += ready.answers
            if (computation := group.take_computation()) is not None:
                self._computations[group_id] = computation
        self._changed = {}
        return Ready(offset_entries, entries, answers)

    def advance(self, _: Ready) -> None:
        """Take note that the last output is durable; remove groups without any state."""
        handed, self._not_durable = self._not_durable, []
        for group, ready in handed:
            group.advance(ready)
            if not group.is_known:
                self._groups.pop(group.group.group_id, None)
                self._timers.cancel(group.group.group_id)

    # -- input

    def see_room(self, room: Room, now: Now) -> None:
        """Take the current space for log records; after a shortage, sessions start again."""
        is_other = (room.is_low, room.is_out) != (self._room.is_low, self._room.is_out)
        was_out, self._room = self._room.is_out, room
        for group in self._groups.values() if is_other else ():
            group.see_room(room, now)
        if was_out and not room.is_out and self._topics is not None:
            self._see_topics(self._topics, now)  # a change may not have been written before

    def take(self, request: HostCall, sender: int, now: Now) -> None:
        """Handle a call; its reply is in a later `Ready`."""
        self._calls += 1
        if isinstance(request, ListGroups):
            listed = (each.listed() for _, each in sorted(self._groups.items()))
            self._reply(sender, ListGroupsReply(tuple(listed), number=request.number))
        elif isinstance(request, EndHold):
            if group := self._groups.get(request.group_id):
                self._changed[request.group_id] = group
                group.end_hold(request.held)
        elif isinstance(request, TellTopics):
            self._see_topics(request.topics, now)
            self._reply(sender, TellTopicsReply(number=request.number))
        elif isinstance(request, HeartbeatCall) and self._repeat(request, sender, now):
            pass
        elif refused := self._refuse(request):
            self._reply(sender, refuse_host_call(request, *refused))
        else:
            self._take(request, sender, now)

    def take_computations(self) -> Mapping[str, HostComputation]:
        """Return what is to be computed beside the loop now, by group id."""
        taken, self._computations = self._computations, {}
        return taken

    def end_computation(self, group_id: str, ended: EndComputation, now: Now) -> None:
        """Take the target that the process has computed."""
        if group := self._groups.get(group_id):
            self._changed[group_id] = group
            group.end_computation(ended, now)

    def _take(self, request: SharedCall, sender: int, now: Now) -> None:
        """Let the group of a call handle it, unless it would grow beyond the limits."""
        group = self._groups.get(request.group_id) or self._host(Group(request.group_id), now)
        growth = group.growth_by(request)
        if refused := self.kept.refuse(growth):
            self._reply(sender, refuse_host_call(request, *refused))
            return
        self._groups[request.group_id] = self._changed[request.group_id] = group
        group.take(request, sender, now)
        if growth != NOTHING:
            self.kept.weigh(request.group_id, group.footprint)

    def _repeat(self, call: HeartbeatCall, sender: int, now: Now) -> bool:
        """Handle a heartbeat without news on the fast path; return whether that was possible."""
        group = self._groups.get(call.group_id)
        if group is None or call.group_id in self._changed:
            return False
        answers = group.repeat(call, sender, now)
        if answers is None:
            return False
        self._answers += answers
        if not answers:  # it is held, until then
            self._schedule(group, now)
        return True

    def _reply(self, sender: int, reply: HostReply) -> None:
        self._answers.append(AddressedReply(sender, reply))

    def _see_topics(self, topics: Mapping[str, Topic], now: Now) -> None:
        changed, self._topics = topics_changed(self._topics, topics), topics
        for group_id, group in self._groups.items():
            group.see_topics(topics, now, changed)
            self._changed[group_id] = group

    def _refuse(self, call: SharedCall) -> tuple[Error, str] | None:
        is_known = call.group_id in self._groups
        # Kafka knows no group without an id, but takes these calls for it.
        is_asked = not call.group_id and isinstance(call, READ_WITHOUT_ID)
        if not (is_known or is_asked) and (flaw := flaw_in_group_id(call.group_id)):
            is_modern = isinstance(call, ConsumerGroupHeartbeat)
            return Error.INVALID_REQUEST if is_modern else Error.INVALID_GROUP_ID, flaw
        if flaw := flaw_in_ids(call):
            return Error.INVALID_REQUEST, flaw
        most = self.kept.limits.groups
        if not is_known and len(self._groups) >= most:
            told = f"there are {most} groups in this process, as kafka.max.groups allows"
            message = f"{told}: delete some, or raise it"
            return Error.GROUP_MAX_SIZE_REACHED, message
        return None

    def _host(self, group: Group, now: Now) -> ClientGroup:
        hosted = ClientGroup(
            group,
            self._settings,
            self._offsets,
            now.steady_ms,
            self._new_id,
            holds_heartbeats=self.holds_heartbeats,
        )
        hosted.see_room(self._room, now)
        if self.offloads:
            hosted.offload()
        if self._topics is not None:
            hosted.see_topics(self._topics, now)
        return hosted

    def _schedule(self, group: ClientGroup, now: Now) -> None:
        """Put the next timer of a group into the queue."""
        self._timers.set(group.group.group_id, max(group.next_ms(now), now.steady_ms + 1))

    # -- time

    def excuse(self, late_ms: int) -> None:
        """Extend all member timers by the time that this process itself was blocked."""
        for group in self._groups.values():
            group.excuse(late_ms)

    def suspend_timers(self, since_ms: int) -> None:
        """Suspend all member timers: the host is away, so no member can send heartbeats."""
        if self._suspended_since_ms is None:
            self._suspended_since_ms = since_ms

    def resume_timers(self, now: Now) -> bool:
        """Resume member timers with full sessions; return whether they were suspended.

        A Kafka broker does the same when it becomes the coordinator of a group.
        """
        since_ms, self._suspended_since_ms = self._suspended_since_ms, None
        if since_ms is None:
            return False
        for group in self._groups.values():
            group.grant_sessions(now.steady_ms - since_ms, now)
            self._schedule(group, now)
        return True

    def pass_time(self, now: Now) -> None:
        """Handle due timers; those that write records wait while there is no space."""
        if self._suspended_since_ms is not None:
            return
        for group_id in self._timers.due(now.steady_ms):
            group = self._changed[group_id] = self._groups[group_id]
            group.pass_time(now)

    def next_tick_ms(self, now: Now) -> int:
        """Return when `pass_time` has to be called next, steady clock."""
        if self._room.is_out:
            return now.steady_ms + LOOK_FOR_ROOM_MS
        if self._suspended_since_ms is not None:
            return now.steady_ms + IDLE_MS
        next_ms = self._timers.next_ms()
        return now.steady_ms + IDLE_MS if next_ms is None else next_ms


def _entries_by_group(entries: Iterable[Entry]) -> Iterable[tuple[str, Sequence[Entry], int]]:
    """Group entries by group id; yield the id, its entries, and the offset after them."""
    for group_id, found in by_group(entries).items():
        yield group_id, found, found[-1].offset + 1
