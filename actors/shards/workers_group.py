"""The group of a node's workers, with members that use Kafka's wire protocol as well.

The calls of such members come in packets from the listener process, and are handled like those of
workers; what tools ask is answered at once. On Kafka's wire each request needs a response, in
order: so a heartbeat that the group does not answer is given up with an error. That is the older
one of two heartbeats of a process, in whichever order they came. It is also any heartbeat that is
neither answered nor held when its client sends another request or disconnects: there was no space
for its records, it was a late duplicate, or its member was removed by force.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from ..group.group_shard import GroupShard
from ..group.members.outlook import outlook_of
from ..messages.asks import AskReply, ReportReply
from ..messages.commands import (
    AddressedReply,
    AnswerHeld,
    CommandReply,
    CompactHistory,
    DescribeCompaction,
    DescribeTraffic,
    HeardNodes,
    NodeHeartbeat,
    Reply,
    RequestedCommand,
)
from ..messages.computing import InstallReply, PrepareReply
from ..messages.groups import (
    AlterGroupConfigs,
    AlterGroupConfigsReply,
    ConnectCall,
    ConnectReply,
    EndHold,
    FindStream,
    HostReply,
    NodeCall,
    NodeReply,
    Outlook,
    PackedCall,
    PackedReply,
)
from ..messages.members import NO_COORDINATOR_EPOCH, Heartbeat, HeartbeatReply
from ..transport.actor import Address
from .describe import ToolCall, answer_tool
from .host_actor import Flush, GroupActor, log_command, log_fence
from .host_connection import HostConnection, SendRest


class MemberProcess(NamedTuple):
    """A process of a member."""

    member_id: str
    incarnation: str


class Caller(NamedTuple):
    """The sender of a call: a host, with the number of its call."""

    host: int
    number: int
    process: MemberProcess | None = None
    """The process of a heartbeat; None for other calls, and before the group creates its id."""
    sequence: int = 0
    """The sequence number of the heartbeat."""
    epoch: int = 0
    """The member epoch in the heartbeat."""
    is_tool: bool = False
    """Whether it is no member: it alters settings of the group."""
    is_node: bool = False
    """Whether it is another node, for one of its workers, its supervisor or people."""
    requested: RequestedCommand | None = None
    """The command of people that the node sends; None: it sends something else."""

    @property
    def member_id(self) -> str:
        """The member id of the heartbeat, "" if unknown."""
        return self.process.member_id if self.process else ""

    def is_older(self, other: "Caller") -> bool:
        """Return whether this heartbeat is older than `other` of its process, which came first.

        A process with an incarnation numbers its heartbeats; the group drops duplicates itself.
        """
        is_numbered = self.process is not None and self.process.incarnation
        return bool(is_numbered) and self.sequence <= other.sequence


class WorkersGroupActor(GroupActor):
    """The group actor of workers, and of members behind a host."""

    title = "group"  # it is the group that a node tells of

    def __init__(self) -> None:
        super().__init__()
        self._host = HostConnection(self._drop_pending_calls, self.wake_after)
        self._unanswered: dict[int, Caller] = {}
        """The senders of pending heartbeats, by the number of the call."""
        self._newest: dict[MemberProcess, Caller] = {}
        """The newest pending heartbeat of each process."""
        self._hold_ended: set[int] = set()
        """The numbers of heartbeats whose clients have sent more, or disconnected."""
        self._at_once: list[PackedReply] = []
        """The replies to send next: to tools, and to heartbeats that were given up."""

    def receive(self, message: object, sender: Address) -> None:
        """Give a host its stream address; other messages are handled as in any group."""
        if self._group_host is not None and isinstance(message, FindStream):
            self.send(sender, self._host.address(self._group_host.coordinator_epoch))
        else:
            super().receive(message, sender)

    def watched(self) -> Sequence[int]:
        """Return the descriptors of the hosts' streams."""
        return self._host.watched

    def readable(self, numbers: Sequence[int]) -> None:
        """Handle the calls of a host."""
        with self._figures.working():
            for calls in self._host.read(numbers):
                for call in calls:
                    self._enqueue_call(call)
                self.woken(Flush())

    def woken(self, payload: object) -> None:
        """Handle queued calls and timers, or continue sending."""
        if isinstance(payload, SendRest):
            self._host.send_rest()
        else:
            super().woken(payload)

    def _drop_pending_calls(self) -> None:
        for each in (self._unanswered, self._newest, self._hold_ended, self._at_once):
            each.clear()

    def send_answers(self, answers: Sequence[AddressedReply]) -> None:
        """Send replies to workers, and those for other members to the host."""
        super().send_answers([each for each in answers if not isinstance(each.to, Caller)])
        replies = [*self._replies(answers)]
        self._give_up_unheld()
        at_once, self._at_once = self._at_once, []
        self._host.send_replies([*at_once, *replies])

    def _replies(self, answers: Iterable[AddressedReply]) -> Iterator[PackedReply]:
        for to, reply in ((each.to, each.reply) for each in answers):
            if not isinstance(to, Caller) or to.host != self._host.number:
                continue
            if to.is_tool and isinstance(reply, CommandReply):
                yield AlterGroupConfigsReply(reply.error, reply.message, to.number)
            elif to.is_tool:
                assert isinstance(reply, HostReply | NodeReply)  # noqa: S101  # see `_answer_now`
                yield reply
            elif to.is_node:
                self._forget(to)
                log_fence(reply)
                if to.requested is not None:
                    log_command(to.requested, reply)
                yield self._reply_to_node(to.number, reply)
            else:
                self._forget(to)
                log_fence(reply)
                yield self._reply(to, reply)

    def _reply(self, to: Caller, reply: Reply) -> ConnectReply:
        return ConnectReply(reply_to_member(reply), to.number, self._outlook(to, reply))

    def _reply_to_node(self, number: int, reply: object) -> NodeReply:
        """Return a reply with the ends of both logs: all that it rests on is before them."""
        return NodeReply(reply, number, self._logs.control.end, self._logs.offsets.end)

    def _outlook(self, to: Caller, reply: object) -> Outlook | None:
        """Return what a member is to expect, if its answer has news."""
        shard = self._group_host
        if not isinstance(reply, HeartbeatReply) or not isinstance(shard, GroupShard):
            return None
        has_news = reply.assignment is not None or reply.member_epoch != to.epoch
        return outlook_of(shard.group, reply.member_id) if has_news else None

    def _enqueue_call(self, call: PackedCall) -> None:
        """Queue a call."""
        if isinstance(call, EndHold):
            caller = self._unanswered.get(call.held)
            if caller is not None:
                self._hold_ended.add(call.held)
                self._queue.append((AnswerHeld(caller.member_id), caller))
        elif isinstance(call, ConnectCall) and isinstance(call.request, Heartbeat):
            self._enqueue_heartbeat(call.request, call.number)
        elif isinstance(call, ConnectCall):
            self._queue.append((call.request, Caller(self._host.number, call.number)))
        elif isinstance(call, AlterGroupConfigs):
            self._queue.append(
                (call.command(), Caller(self._host.number, call.number, is_tool=True))
            )
        elif isinstance(call, ToolCall):
            assert isinstance(self._group_host, GroupShard)  # noqa: S101  # as it is opened
            self._answer_now(call.number, answer_tool(self._group_host, call))
        elif isinstance(call, NodeCall):
            self._enqueue_of_node(call.message, call.number)

    def _answer_now(self, number: int, reply: HostReply | NodeReply) -> None:
        """Send a reply next that rests on no record; with a store it waits for a word of that."""
        answer = AddressedReply(Caller(self._host.number, number, is_tool=True), reply)
        for each in self.confirmed([answer], has_written=False):
            self._at_once += self._replies([each])

    def _enqueue_of_node(self, message: Any, number: int) -> None:  # noqa: ANN401  # of the table
        """Queue a message of another node, or answer it as `receive` does."""
        if isinstance(message, Heartbeat):
            self._enqueue_heartbeat(message, number, is_node=True)
        elif isinstance(message, DescribeTraffic):
            self._answer_now(number, self._reply_to_node(number, self._describe_traffic()))
        elif isinstance(message, CompactHistory | DescribeCompaction):
            progress = self.compact_or_describe(message)
            self._answer_now(number, self._reply_to_node(number, progress))
        elif isinstance(message, NodeHeartbeat):
            self._answer_now(number, self._reply_to_node(number, self.hear_of(message)))
        else:
            is_command = isinstance(message, RequestedCommand)
            requested = message if is_command else None
            caller = Caller(self._host.number, number, is_node=True, requested=requested)
            self._queue.append((message.command if is_command else message, caller))

    def hear_of(self, beat: NodeHeartbeat) -> HeardNodes:  # noqa: ARG002  # of the signature
        """Return the nodes of the cluster: a group on one host has none."""
        return HeardNodes()

    def _enqueue_heartbeat(self, request: Heartbeat, number: int, *, is_node: bool = False) -> None:
        """Queue a heartbeat, and give up the older one of two of the same process.

        If it has an incarnation but no coordinator epoch, it is meant for this coordinator, unless
        a node sends it: its workers find their coordinator as they do on this host.
        """
        shard = self._group_host
        assert shard is not None  # noqa: S101  # a host knows it by then
        process = (
            MemberProcess(request.member_id, request.incarnation) if request.member_id else None
        )
        caller = Caller(
            self._host.number,
            number,
            process,
            request.sequence,
            request.member_epoch,
            is_node=is_node,
        )
        self._unanswered[number] = caller
        if process:
            self._keep_newest(process, caller)
        is_for_this = request.coordinator_epoch == NO_COORDINATOR_EPOCH and not is_node
        if request.incarnation and is_for_this:
            request = replace(request, coordinator_epoch=shard.coordinator_epoch)
        self._queue.append((request, caller))

    # -- giving up heartbeats

    def _keep_newest(self, process: MemberProcess, caller: Caller) -> None:
        other = self._newest.get(process)
        if other is not None and caller.is_older(other):
            self._give_up(caller)
            return
        if other is not None:
            self._give_up(other)
        self._newest[process] = caller

    def _give_up_unheld(self) -> None:
        """Give up heartbeats in `_hold_ended` that are neither answered nor held."""
        shard = self._group_host
        assert isinstance(shard, GroupShard)  # noqa: S101  # as it is opened
        for caller in [self._unanswered[number] for number in self._hold_ended]:
            if not shard.holds(caller.member_id, caller) and not self._unconfirmed.has(caller):
                self._give_up(caller)

    def _give_up(self, caller: Caller) -> None:
        self._forget(caller)
        kind = NodeReply if caller.is_node else ConnectReply
        self._at_once.append(kind(None, caller.number))

    def _forget(self, caller: Caller) -> None:
        """Remove a heartbeat from those that are pending."""
        self._unanswered.pop(caller.number, None)
        self._hold_ended.discard(caller.number)
        if caller.process and self._newest.get(caller.process) == caller:
            del self._newest[caller.process]


MemberReply = HeartbeatReply | PrepareReply | InstallReply | AskReply


def reply_to_member(reply: Reply) -> MemberReply:
    """Return a reply as members over Kafka's wire have it."""
    if isinstance(reply, CommandReply):
        return ReportReply(reply.error, reply.message)
    assert isinstance(reply, MemberReply)  # noqa: S101  # as their calls are
    return reply
