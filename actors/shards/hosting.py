"""The groups of a shard, without I/O: calls go in, records and replies come out.

It is a `GroupHost` like a single group: the records of all its groups since the last call are
appended together, each under the key of its group. A group is made by the first call that changes
state, of the kind that this call names: a group of consumers, or one of workers. One that was
rebuilt from its log is of the kind of its last members; one whose members and records are all gone
may become the other kind. An idle group costs nothing: one
queue has the timers of all groups.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Final, NamedTuple

from ...events.entries.codec import restore
from ...events.entries.group_keys import (
    GroupPart,
    Latest,
    by_group,
    encode_in_group,
    flaw_in_group_id,
    groups_with_offsets,
    in_group,
)
from ...events.group import Group
from ...events.log.frame import Entry, NewEntry
from ...events.log.space import DiskSpace
from ...events.model import CONNECT
from ...events.records import Topic
from ..consumer.calls import CONSUMERS, OffsetCalls, with_assignors
from ..consumer.offsets.clean_up import topics_changed
from ..group.decide import decide_outside
from ..group.evolving_group import NOBODY, HostComputation
from ..group.group_shard import IDLE_MS, CoordinatorProcess, GroupShard
from ..group.host import ENOUGH_SPACE, LOOK_FOR_SPACE_MS, Ready
from ..group.kind import WORKERS, GroupKind
from ..group.members.commit import OffsetLedger
from ..group.state.own_settings import OF_CONNECT, OF_CONSUMERS, describe_settings
from ..group.state.settings import GroupSettings
from ..group.translation.outside import OUTSIDE_TRANSLATION
from ..messages.classic import JoinGroup
from ..messages.commands import Address, AddressedReply, Traffic
from ..messages.computing import EndComputation
from ..messages.consumers import ConsumerGroupHeartbeat, TopicsSeen
from ..messages.errors import Error
from ..messages.groups import (
    AdminCall,
    AdminReply,
    AlterGroupConfigs,
    AlterGroupConfigsReply,
    ConnectCall,
    ConnectReply,
    DescribeGroup,
    DescribeGroupConfigs,
    DescribeGroupConfigsReply,
    EndHold,
    HeartbeatCall,
    HostCall,
    HostReply,
    ListGroups,
    ListGroupsReply,
    ListTransactions,
    ListTransactionsReply,
    RemoveGroup,
    RemoveGroupReply,
    SharedCall,
    TellTopics,
    TellTopicsReply,
    WaitsFor,
)
from ..messages.members import NO_COORDINATOR_EPOCH, Heartbeat
from ..messages.offsets import OffsetFetch
from ..timing import Now, TimerQueue
from .describe import describe, list_group, unknown_group_message
from .limits import NOTHING, Footprint, KeptByClients, flaw_in_ids, footprint_of, growth_by
from .refusals import refuse_host_call
from .telling import GroupTeller

READ_WITHOUT_ID: Final = (OffsetFetch, DescribeGroup, RemoveGroup)
"""The calls that are answered for an empty group id as for an unknown one."""

CONNECTORS: Final = replace(
    WORKERS,
    decide=decide_outside,
    translation=OUTSIDE_TRANSLATION,
    grants_from_log=False,
    own_settings=OF_CONNECT,
    is_of_clients=True,
    open_calls=OffsetCalls,
)
"""A group of workers from outside: Kafka Connect's own, and members of the connect protocol. Tools
may commit offsets to it, as to any group."""


NOT_OF_CONNECT: Final = (
    "the group is no connect group: use another group id, or delete it once it is empty"
)


class ConnectCaller(NamedTuple):
    """The host that has passed on a call of Connect's protocol, and the number of the call."""

    host: int
    number: int


class HostedGroup:
    """One group of a shard, with its part of the two logs."""

    def __init__(
        self,
        group: Group,
        kind: GroupKind,
        settings: GroupSettings,
        offsets: Latest,
        steady_ms: int,
        process: CoordinatorProcess,
    ) -> None:
        """Recover a group; every logged member starts a full session."""
        part, group_id = GroupPart(offsets, group.group_id), group.group_id
        self.ledger = OffsetLedger(part, lambda each: encode_in_group(group_id, each))
        self.shard = GroupShard(group, kind, settings, self.ledger, steady_ms, process)
        self.teller = GroupTeller(group)
        """Logs what becomes of the group."""

    @property
    def is_known(self) -> bool:
        """Whether it is in use, or has settings: these are there before it, and outlive it."""
        return self.is_used or bool(self.shard.group.configs)

    @property
    def is_used(self) -> bool:
        """Whether it has or had members, has offsets, or a member that is joining."""
        group = self.shard.group
        is_logged = group.classic is not None or group.topics is not None or bool(group.members)
        if is_logged or group.bump is not None or group.connectors:
            return True
        return not self.shard.classic.coordinator.is_unused or self.ledger.has_consumer_offsets()

    @property
    def is_kept(self) -> bool:
        """Whether it must be kept: it is known, or was deleted and its epoch must go on."""
        return self.is_known or self.shard.group.deletion is not None

    @property
    def footprint(self) -> Footprint:
        """The number of its members, and their bytes."""
        return footprint_of(self.shard.group, self.shard.classic.coordinator)

    def ready(self, now: Now) -> Ready:
        """Return the records, with keys of shared logs, and the replies since the last call."""
        ready, group_id = self.shard.ready(now), self.shard.group.group_id
        return replace(ready, entries=[in_group(group_id, each) for each in ready.entries])

    def advance(self, ready: Ready) -> None:
        """Record that its decisions are durable, and log the changes of the group."""
        self.shard.advance(ready)
        if ready.entries:
            self.teller.tell()


class HostedGroups:
    """The groups of one process."""

    warning = ""
    """Always empty: small groups do not run out of epochs."""
    holds_heartbeats = True
    """Whether replies to heartbeats without news are held (long poll), if their kind holds them."""
    offloads = False
    """Whether the process computes targets beside its loop; see `take_computations`."""

    def __init__(
        self,
        entries: Iterable[Entry],
        offsets: Latest,
        settings: GroupSettings,
        process: CoordinatorProcess,
        now: Now,
    ) -> None:
        """Recover the groups from the latest entry of each key, in offset order.

        `offsets` is the offset log.
        """
        self.kept = KeptByClients()
        """What all groups keep of their clients, which has limits."""
        self.coordinator_epoch = process.epoch
        """The epoch of this process, which distinguishes it from earlier ones."""
        self._settings, self._offsets = settings, offsets
        self._process = process
        self._space, self._calls, self._expired, self._deleted = ENOUGH_SPACE, 0, 0, 0
        """The space for log records, as of the last check of the disk; how many calls came; how
        many offsets have expired, and how many were deleted, the expired ones among them."""
        self._topics: Mapping[str, Topic] | None = None
        """The current topics; None: not received yet."""
        self._groups: dict[str, HostedGroup] = {}
        self._changed: dict[HostedGroup, None] = {}
        """The groups that may have records or replies, in the order of their first change.

        One id may have two: the end of a group of one kind, and the next one of another."""
        self._not_durable: list[tuple[HostedGroup, Ready]] = []
        """The output of groups that is not durable yet."""
        self._answers: list[AddressedReply] = []
        """Replies that do not come from a single group."""
        self._given_up: list[ConnectCaller] = []
        """The calls that get no answer, since the last `take_given_up`."""
        self._timers: TimerQueue[str] = TimerQueue()
        self._suspended_since_ms: int | None = None
        """Since when no host is connected, steady clock; None: one is."""
        self._computations: dict[str, HostComputation] = {}
        """What is to be computed beside the loop, by group id."""
        self._recover(entries, now)

    def _recover(self, entries: Iterable[Entry], now: Now) -> None:
        groups = [restore(*each) for each in _entries_by_group(entries)]
        without = {*groups_with_offsets(self._offsets)}.difference(each.group_id for each in groups)
        for group in (*groups, *map(Group, sorted(without))):
            hosted = self._host(group, kind_of_group(group), now)
            if hosted.is_kept:
                self._groups[group.group_id] = hosted
                self.kept.set_footprint(group.group_id, hosted.footprint)
                self._schedule(hosted, now)

    def __len__(self) -> int:
        """Return the number of groups."""
        return len(self._groups)

    def traffic(self) -> Traffic:
        """Return the traffic counters since the start."""
        return Traffic(self._calls, 0, self._expired, self._deleted)

    # -- output

    def ready(self, now: Now) -> Ready:
        """Return the records and replies of all groups since the last call."""
        answers, self._answers = self._answers, []
        offset_entries: list[NewEntry] = []
        entries: list[NewEntry] = []
        for group in self._changed:
            group_id, ready = group.shard.group.group_id, group.ready(now)
            self.kept.set_footprint(group_id, group.footprint)
            self._not_durable.append((group, ready))
            self._schedule(group, now)
            offset_entries += ready.offset_entries
            self._count_deleted(group.ledger, ready)
            entries += ready.entries
            answers += ready.answers
            if (computation := group.shard.take_computation()) is not None:
                self._computations[group_id] = computation
        self._changed = {}
        return Ready(offset_entries, entries, answers)

    def _count_deleted(self, ledger: OffsetLedger, ready: Ready) -> None:
        self._deleted += sum(each.value is None for each in ready.offset_entries)
        expired, ledger.expired = ledger.expired, 0
        self._expired += expired

    def advance(self, _: Ready) -> None:
        """Record that the last output is durable; remove groups without any state."""
        handed, self._not_durable = self._not_durable, []
        for group, ready in handed:
            group.advance(ready)
            group_id = group.shard.group.group_id
            if not group.is_kept and self._groups.get(group_id) is group:
                self._groups.pop(group_id, None)
                self._timers.cancel(group_id)

    # -- input

    def set_disk_space(self, space: DiskSpace, now: Now) -> None:
        """Record the current space for log records; after a shortage, sessions start again."""
        is_other = (space.is_low, space.is_out) != (self._space.is_low, self._space.is_out)
        was_out, self._space = self._space.is_out, space
        for group in self._groups.values() if is_other else ():
            group.shard.set_disk_space(space, now)
        if was_out and not space.is_out and self._topics is not None:
            self._set_topics(self._topics, now)  # a change may not have been written before

    def submit(self, request: HostCall, sender: Address, now: Now) -> None:
        """Handle a call; its reply is in a later `Ready`."""
        self._calls += 1
        if isinstance(request, ListGroups | ListTransactions):
            self._reply(sender, replace(self._list(request), number=request.number))
        elif isinstance(request, EndHold):
            if group := self._groups.get(request.group_id):
                self._changed[group] = None
                group.shard.end_hold(request.held)
        elif isinstance(request, TellTopics):
            self._set_topics(request.topics, now)
            self._reply(sender, TellTopicsReply(number=request.number))
        elif isinstance(request, HeartbeatCall) and self._repeat(request, sender, now):
            pass
        elif refused := self._refuse(request):
            self._refuse_call(sender, request, *refused)
        elif isinstance(request, AdminCall):
            self._reply(sender, replace(self._answer(request, now), number=request.number))
        else:
            self._submit(request, sender, now)

    def take_given_up(self) -> Sequence[ConnectCaller]:
        """Return the callers that wait for an answer which no group is going to give."""
        taken, self._given_up = self._given_up, []
        return taken

    def take_computations(self) -> Mapping[str, HostComputation]:
        """Return the targets to compute beside the loop now, by group id."""
        taken, self._computations = self._computations, {}
        return taken

    def end_computation(self, group_id: str, ended: EndComputation, now: Now) -> None:
        """Install a target that the process has computed for the group."""
        if group := self._groups.get(group_id):
            self._changed[group] = None
            group.shard.submit(ended, NOBODY, now)

    def _submit(self, request: SharedCall, sender: int, now: Now) -> None:
        """Submit a call to its group, unless that would grow beyond the limits."""
        group = self._group_for(request, now)
        growth = growth_by(request, group.shard.group, group.shard.classic.coordinator)
        if refused := self.kept.refuse(growth):
            self._refuse_call(sender, request, *refused)
            return
        self._groups[request.group_id] = group
        self._changed[group] = None
        if isinstance(request, ConnectCall):
            self._submit_connect_call(group.shard, request, sender, now)
        else:
            group.shard.submit(request, sender, now)
        if growth != NOTHING:
            self.kept.set_footprint(request.group_id, group.footprint)

    def _submit_connect_call(
        self, shard: GroupShard, call: ConnectCall, sender: int, now: Now
    ) -> None:
        """Submit a call of Connect's protocol; one that is neither answered nor held is given up.

        Such is a late copy, or one whose records have no space. A heartbeat of a process that names
        no coordinator is meant for this one.
        """
        if shard.kind.translation.protocol_type != CONNECT:
            self._refuse_call(sender, call, Error.GROUP_ID_NOT_FOUND, NOT_OF_CONNECT)
            return
        request, caller = call.request, ConnectCaller(sender, call.number)
        if isinstance(request, Heartbeat) and request.incarnation:
            epoch = request.coordinator_epoch
            epoch = shard.coordinator_epoch if epoch == NO_COORDINATOR_EPOCH else epoch
            request = replace(request, coordinator_epoch=epoch)
        answers = shard.state.outbox.answers
        before = len(answers)
        shard.submit(request, caller, now)
        is_answered = any(each.to == caller for each in answers[before:])
        if not is_answered and not shard.holds(request.member_id, caller):
            self._given_up.append(caller)

    def _group_for(self, request: SharedCall, now: Now) -> HostedGroup:
        """Return the group of a call; a new one if none of the joining kind exists."""
        group = self._groups.get(request.group_id)
        if group is not None and group.is_used:
            return group
        kind = kind_of_call(request)
        if group is None:
            return self._host(Group(request.group_id), kind, now)
        is_other = kind is not None and kind.translation is not group.shard.kind.translation
        return self._host(group.shard.group, kind, now) if is_other else group

    def _list(
        self, request: ListGroups | ListTransactions
    ) -> ListGroupsReply | ListTransactionsReply:
        if isinstance(request, ListTransactions):
            return ListTransactionsReply(frozenset(self._transactions()))
        groups = sorted(self._groups.items())
        listed = tuple(list_group(each.shard) for _, each in groups if each.is_used)
        configured = tuple(group_id for group_id, each in groups if each.shard.group.configs)
        return ListGroupsReply(listed, configured=configured)

    def _transactions(self) -> Iterable[WaitsFor]:
        """Yield the transactions that groups wait for."""
        for group_id, group in self._groups.items():
            for each in group.ledger.pending_offsets():
                yield WaitsFor(group_id, each.producer_id, each.after)

    def _answer(self, call: AdminCall, now: Now) -> AdminReply:
        group = self._groups.get(call.group_id)
        if isinstance(call, DescribeGroupConfigs):
            configs = group.shard.group.configs if group is not None else {}
            own = describe_settings(OF_CONSUMERS, self._settings, configs)
            return DescribeGroupConfigsReply(Error.NONE, own)
        if isinstance(call, AlterGroupConfigs):
            return self._configure(call, now)
        if group is None or not group.is_used:
            message = unknown_group_message(call.group_id)
            reply = refuse_host_call(call, Error.GROUP_ID_NOT_FOUND, message)
            assert isinstance(reply, AdminReply)  # noqa: S101  # as the call is
            return reply
        if not isinstance(call, RemoveGroup):
            return describe(group.shard, call)
        self._changed[group] = None
        return self._remove(group.shard, now)

    def _configure(self, call: AlterGroupConfigs, now: Now) -> AlterGroupConfigsReply:
        """Change settings of a group, which need not be in use yet."""
        group = self._groups.get(call.group_id) or self._host(Group(call.group_id), None, now)
        self._groups[call.group_id] = group
        self._changed[group] = None
        reply = group.shard.configure(call.command(), now)
        return AlterGroupConfigsReply(reply.error, reply.message)

    def _remove(self, shard: GroupShard, now: Now) -> RemoveGroupReply:
        if shard.group.members or not shard.classic.coordinator.is_empty:
            message = f"group {shard.group.group_id!a} has members: nothing was deleted"
            return RemoveGroupReply(Error.NON_EMPTY_GROUP, message)
        if self._space.is_low:
            return RemoveGroupReply(Error.COORDINATOR_NOT_AVAILABLE, self._space.refusal())
        removed = shard.remove(now)
        return RemoveGroupReply(removed.error, removed.message)

    def _repeat(self, call: HeartbeatCall, sender: int, now: Now) -> bool:
        """Handle a heartbeat without news on the fast path; return whether that was possible."""
        group = self._groups.get(call.group_id)
        if group is None or group in self._changed:
            return False
        answers = group.shard.repeat(call, sender, now)
        if answers is None:
            return False
        self._answers += answers
        if not answers:  # it is held, until then
            self._schedule(group, now)
        return True

    def _refuse_call(self, sender: int, call: SharedCall, error: Error, message: str) -> None:
        reply = refuse_host_call(call, error, message)
        if isinstance(reply, ConnectReply):
            assert reply.reply is not None  # noqa: S101  # a refusal says why
            self._answers.append(AddressedReply(ConnectCaller(sender, call.number), reply.reply))
        else:
            assert isinstance(reply, HostReply)  # noqa: S101  # no node calls groups of clients
            self._reply(sender, reply)

    def _reply(self, sender: Address, reply: HostReply) -> None:
        self._answers.append(AddressedReply(sender, reply))

    def _set_topics(self, topics: Mapping[str, Topic], now: Now) -> None:
        changed, self._topics = topics_changed(self._topics, topics), topics
        for group in self._groups.values():
            group.shard.submit(TopicsSeen(topics, changed=changed), NOBODY, now)
            self._changed[group] = None

    def _refuse(self, call: SharedCall) -> tuple[Error, str] | None:
        is_known = call.group_id in self._groups
        # Kafka knows no group without an id, but takes these calls for it.
        is_asked = not call.group_id and isinstance(call, READ_WITHOUT_ID)
        if not (is_known or is_asked) and (flaw := flaw_in_group_id(call.group_id)):
            request = call.request if isinstance(call, ConnectCall) else call
            is_modern = isinstance(request, ConsumerGroupHeartbeat | Heartbeat) or (
                isinstance(call, ConnectCall) and not call.group_id
            )
            return Error.INVALID_REQUEST if is_modern else Error.INVALID_GROUP_ID, flaw
        if flaw := flaw_in_ids(call):
            return Error.INVALID_REQUEST, flaw
        most = self.kept.limits.groups
        if not is_known and len(self._groups) >= most:
            full = f"there are {most} groups in this process, as kafka.max.groups allows"
            message = f"{full}: delete some, or raise it"
            return Error.GROUP_MAX_SIZE_REACHED, message
        return None

    def _host(self, group: Group, kind: GroupKind | None, now: Now) -> HostedGroup:
        kind = with_assignors(kind or kind_of_group(group), self._process.assignors)
        if not self.holds_heartbeats:
            kind = replace(kind, holds_heartbeats=False)
        hosted = HostedGroup(
            group, kind, self._settings, self._offsets, now.steady_ms, self._process
        )
        hosted.shard.set_disk_space(self._space, now)
        if self.offloads:
            hosted.shard.offload()
        if self._topics is not None:
            hosted.shard.submit(TopicsSeen(self._topics), NOBODY, now)
        return hosted

    def _schedule(self, group: HostedGroup, now: Now) -> None:
        """Put the next timer of a group into the queue."""
        at_ms = max(group.shard.next_tick_ms(now), now.steady_ms + 1)
        self._timers.set(group.shard.group.group_id, at_ms)

    # -- time

    def extend_timers(self, late_ms: int) -> None:
        """Extend all member timers by the time that this process itself was blocked."""
        for group in self._groups.values():
            group.shard.extend_timers(late_ms)

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
            group.shard.grant_sessions(now.steady_ms - since_ms, now)
            self._schedule(group, now)
        return True

    def run_timers(self, now: Now) -> None:
        """Handle due timers; those that write records wait while there is no space."""
        if self._suspended_since_ms is not None:
            return
        for group_id in self._timers.due(now.steady_ms):
            group = self._groups[group_id]
            self._changed[group] = None
            group.shard.run_timers(now)

    def next_tick_ms(self, now: Now) -> int:
        """Return when `run_timers` has to be called next, steady clock."""
        if self._space.is_out:
            return now.steady_ms + LOOK_FOR_SPACE_MS
        if self._suspended_since_ms is not None:
            return now.steady_ms + IDLE_MS
        next_ms = self._timers.next_ms()
        return now.steady_ms + IDLE_MS if next_ms is None else next_ms


def _entries_by_group(entries: Iterable[Entry]) -> Iterable[tuple[str, Sequence[Entry], int]]:
    """Group entries by group id; yield the id, its entries, and the offset after them."""
    for group_id, own in by_group(entries).items():
        yield group_id, own, own[-1].offset + 1


def kind_of_call(call: SharedCall) -> GroupKind | None:
    """Return the kind of group that a member of this call joins; None: it does not join."""
    if isinstance(call, ConnectCall):
        return CONNECTORS
    if isinstance(call, JoinGroup):
        return CONNECTORS if call.protocol_type == CONNECT else CONSUMERS
    return None


def kind_of_group(group: Group) -> GroupKind:
    """Return the kind of a group by its log; one that never had any members is of consumers."""
    if group.classic is not None and group.topics is None:
        return CONNECTORS if group.classic.protocol_type == CONNECT else CONSUMERS
    is_of_workers = group.topics is None and (bool(group.members) or group.bump is not None)
    return CONNECTORS if is_of_workers or group.deletion is not None else CONSUMERS
