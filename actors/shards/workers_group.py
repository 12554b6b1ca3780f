"""The group of a node's workers, which members reach by Kafka's wire as well.

What such a member says comes packed, from the process that listens for Kafka's clients, and is
decided and held as what a worker says. On that wire each request is answered, in its order: so one
that the group leaves unanswered is given up. That is the older one of two heartbeats of a process,
whichever came first; and any that is neither answered nor held once its client asks more, or hangs
up: there was no room for what it led to, it was a late copy, or its member was removed by force.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

from ..door.actor import Address
from ..group.actor import Flush, GroupActor, log_fence
from ..group.shard import AddressedReply
from ..group.typed_shard import TypedShard
from ..messages.commands import AnswerHeld
from ..messages.computing import InstallReply, PrepareReply
from ..messages.groups import (
    ConnectCall,
    ConnectReply,
    EndHold,
    FindStream,
    PackedCall,
)
from ..messages.members import NO_COORDINATOR_EPOCH, Heartbeat, HeartbeatReply
from .host_side import HostSide, SendRest


class MemberProcess(NamedTuple):
    """A process that speaks for a member."""

    member_id: str
    incarnation: str


class Caller(NamedTuple):
    """Who waits for an answer: a host, by the number of its call."""

    host: int
    number: int
    process: MemberProcess | None = None
    """Whose heartbeat it is, if it is one; None also where the group is to make the member id."""
    sequence: int = 0
    """That of the heartbeat."""

    @property
    def member_id(self) -> str:
        """Whose heartbeat it is, as far as that is known."""
        return self.process.member_id if self.process else ""

    def is_older(self, other: "Caller") -> bool:
        """Tell which of two heartbeats of one process is the older one; `other` came first.

        A process that is named numbers its heartbeats, and the group drops copies as well.
        """
        is_numbered = self.process is not None and self.process.incarnation
        return bool(is_numbered) and self.sequence <= other.sequence


class WorkersGroupActor(GroupActor):
    """The group, its workers, and a host of members that speak Kafka's wire."""

    title = "group"  # it is the group that a node tells of

    def __init__(self) -> None:
        super().__init__()
        self._host = HostSide(self._begin_host, self.wake_after)
        self._unanswered: dict[int, Caller] = {}
        """Who waits for the answer to a heartbeat, by the number of the call."""
        self._newest: dict[MemberProcess, Caller] = {}
        """Of these the newest of each process."""
        self._hurrying: set[int] = set()
        """The numbers of those whose clients ask more, or have gone."""
        self._given_up: list[ConnectReply] = []
        """What is to be said of heartbeats that are not answered any more."""

    def receive(self, message: object, sender: Address) -> None:
        """Tell a host where it speaks; all else is as with any group."""
        if self._shard is not None and isinstance(message, FindStream):
            self.send(sender, self._host.place(self._shard.coordinator_epoch))
        else:
            super().receive(message, sender)

    def watched(self) -> Sequence[int]:
        """Return the descriptors by which a host speaks."""
        return self._host.watched

    def readable(self, numbers: Sequence[int]) -> None:
        """Decide what a host asks."""
        for calls in self._host.read(numbers):
            for call in calls:
                self._enqueue_call(call)
            self.woken(Flush())

    def woken(self, payload: object) -> None:
        """Decide what has arrived, or go on telling."""
        if isinstance(payload, SendRest):
            self._host.send_rest()
        else:
            super().woken(payload)

    def _begin_host(self) -> None:
        for each in (self._unanswered, self._newest, self._hurrying, self._given_up):
            each.clear()

    def say(self, answers: Sequence[AddressedReply]) -> None:
        """Answer the workers, and tell the host what is for its members."""
        super().say([each for each in answers if not isinstance(each.to, Caller)])
        replies = [*self._replies(answers)]
        self._give_up_hurrying()
        given_up, self._given_up = self._given_up, []
        self._host.say([*given_up, *replies])

    def _replies(self, answers: Iterable[AddressedReply]) -> Iterator[ConnectReply]:
        for to, reply in ((each.to, each.reply) for each in answers):
            if isinstance(to, Caller) and to.host == self._host.number:
                self._forget(to)
                assert isinstance(reply, HeartbeatReply | PrepareReply | InstallReply)  # noqa: S101
                log_fence(reply)
                yield ConnectReply(reply, to.number)

    def _enqueue_call(self, call: PackedCall) -> None:
        """Have a call decided."""
        if isinstance(call, EndHold):
            caller = self._unanswered.get(call.held)
            if caller is not None:
                self._hurrying.add(call.held)
                self._queue.append((AnswerHeld(caller.member_id), caller))
        elif isinstance(call, ConnectCall) and isinstance(call.request, Heartbeat):
            self._enqueue_heartbeat(call.request, call.number)
        elif isinstance(call, ConnectCall):
            self._queue.append((call.request, Caller(self._host.number, call.number)))

    def _enqueue_heartbeat(self, request: Heartbeat, number: int) -> None:
        """Have a heartbeat decided; the older one of two of the same process is given up.

        Who names its process and no coordinator says it to this one: the host has just read it.
        """
        shard = self._shard
        assert shard is not None  # noqa: S101  # a host knows it by then
        process = (
            MemberProcess(request.member_id, request.incarnation) if request.member_id else None
        )
        caller = Caller(self._host.number, number, process, request.sequence)
        self._unanswered[number] = caller
        if process:
            self._keep_newest(process, caller)
        if request.incarnation and request.coordinator_epoch == NO_COORDINATOR_EPOCH:
            request = replace(request, coordinator_epoch=shard.coordinator_epoch)
        self._queue.append((request, caller))

    # -- what is given up

    def _keep_newest(self, process: MemberProcess, caller: Caller) -> None:
        other = self._newest.get(process)
        if other is not None and caller.is_older(other):
            self._give_up(caller)
            return
        if other is not None:
            self._give_up(other)
        self._newest[process] = caller

    def _give_up_hurrying(self) -> None:
        """Give up what is neither answered nor held, of those whose clients do not wait for it."""
        shard = self._shard
        assert isinstance(shard, TypedShard)  # noqa: S101  # as it is opened
        for caller in [self._unanswered[number] for number in self._hurrying]:
            if not shard.holds(caller.member_id, caller):
                self._give_up(caller)

    def _give_up(self, caller: Caller) -> None:
        self._forget(caller)
        self._given_up.append(ConnectReply(None, caller.number))

    def _forget(self, caller: Caller) -> None:
        """Forget that a heartbeat waits for its answer."""
        self._unanswered.pop(caller.number, None)
        self._hurrying.discard(caller.number)
        if caller.process and self._newest.get(caller.process) == caller:
            del self._newest[caller.process]
