"""The group of a node's workers, which members reach by Kafka's wire as well.

What such a member says comes packed, from the process that listens for Kafka's clients, and is
decided and held as what a worker says. On that wire each request is answered, in its order: so one
that the group leaves unanswered, as its member has asked anew on another connection, is given up.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

from ..door.actor import Address
from ..group.actor import GroupActor, log_fence
from ..group.shard import AddressedReply
from ..messages.commands import AnswerHeld
from ..messages.computing import InstallReply, PrepareReply
from ..messages.groups import (
    AwaitReplies,
    ConnectCall,
    ConnectReply,
    EndHold,
    GroupCalls,
    PackedCall,
)
from ..messages.members import NO_COORDINATOR_EPOCH, Heartbeat, HeartbeatReply
from .host_side import EndWait, HostSide


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


class WorkersGroupActor(GroupActor):
    """The group, its workers, and a host of members that speak Kafka's wire."""

    def __init__(self) -> None:
        super().__init__()
        self._host = HostSide(self.send, self.wake_after)
        self._beating: dict[MemberProcess, int] = {}
        """The number of the heartbeat of each that is not answered yet."""
        self._given_up: list[ConnectReply] = []
        """What is to be said of heartbeats that are not answered any more."""

    def receive(self, message: object, sender: Address) -> None:
        """Queue what a host brings; all else is as with any group."""
        shard = self._shard
        if shard is None or not isinstance(message, GroupCalls | AwaitReplies):
            super().receive(message, sender)
        elif message.host >= self._host.number:
            if message.host > self._host.number:
                self._host.begin(message.host)
                self._host.epoch = self._host.epoch or shard.coordinator_epoch
                self._beating.clear()
                self._given_up.clear()
            for call in self._host.take(message, sender):
                self._enqueue_call(call, shard.coordinator_epoch)

    def woken(self, payload: object) -> None:
        """Decide what has arrived, or end a wait."""
        if isinstance(payload, EndWait):
            self._host.end_wait(payload)
        else:
            super().woken(payload)

    def say(self, answers: Sequence[AddressedReply]) -> None:
        """Answer the workers, and tell the host what is for its members."""
        super().say([each for each in answers if not isinstance(each.to, Caller)])
        given_up, self._given_up = self._given_up, []
        self._host.say([*given_up, *self._replies(answers)])

    def _replies(self, answers: Iterable[AddressedReply]) -> Iterator[ConnectReply]:
        for to, reply in ((each.to, each.reply) for each in answers):
            if isinstance(to, Caller) and to.host == self._host.number:
                if to.process and self._beating.get(to.process) == to.number:
                    del self._beating[to.process]
                assert isinstance(reply, HeartbeatReply | PrepareReply | InstallReply)  # noqa: S101
                log_fence(reply)
                yield ConnectReply(reply, to.number)

    def _enqueue_call(self, call: PackedCall, coordinator_epoch: int) -> None:
        if isinstance(call, EndHold):
            found = (who for who, number in self._beating.items() if number == call.held)
            for who in [*found]:
                del self._beating[who]
                self.enqueue(AnswerHeld(who.member_id), None)
        elif isinstance(call, ConnectCall) and isinstance(call.request, Heartbeat):
            self._enqueue_heartbeat(call.request, call.number, coordinator_epoch)
        elif isinstance(call, ConnectCall):
            self.enqueue(call.request, Caller(self._host.number, call.number))

    def _enqueue_heartbeat(self, request: Heartbeat, number: int, coordinator_epoch: int) -> None:
        """Have a heartbeat decided; an earlier one of the same process is given up.

        Who names its process and no coordinator says it to this one: the host has just read it.
        """
        process = (
            MemberProcess(request.member_id, request.incarnation) if request.member_id else None
        )
        if process:
            if earlier := self._beating.pop(process, 0):
                self._given_up.append(ConnectReply(None, earlier))
            self._beating[process] = number
        if request.incarnation and request.coordinator_epoch == NO_COORDINATOR_EPOCH:
            request = replace(request, coordinator_epoch=coordinator_epoch)
        self.enqueue(request, Caller(self._host.number, number, process))
