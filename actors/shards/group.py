"""One group of Kafka clients in a shard: it takes calls, and returns records and replies."""

from collections.abc import Callable, Mapping
from dataclasses import replace

from ...events.entries.group_keys import GroupPart, Latest, encode_in_group, in_group
from ...events.group import Group
from ...events.kafka.consumers import Topic
from ...events.log.space import Room
from ..consumer.shard import ConsumerShard, HostComputation
from ..group.commit import OffsetLedger
from ..group.shard import AddressedReply, Ready
from ..group.state.settings import GroupSettings
from ..messages.computing import EndComputation
from ..messages.consumers import TopicsSeen
from ..messages.errors import Error
from ..messages.groups import (
    AdminCall,
    AdminReply,
    DescribeConsumerGroup,
    DescribeGroup,
    ListedGroup,
    RemoveGroup,
    RemoveGroupReply,
    SharedCall,
)
from ..timing import Now
from .describe import describe_classic, describe_consumers, list_group, unknown_group_message
from .held import HeartbeatCall, HeldHeartbeat, HeldHeartbeats
from .limits import Footprint, footprint_of, growth_by
from .refusals import refuse_host_call
from .telling import GroupTeller

NOBODY = None
"""The sender of calls that the process itself makes: it needs no reply."""


class ClientGroup:
    """A group with members of either protocol, their timers, and its committed offsets."""

    def __init__(
        self,
        group: Group,
        settings: GroupSettings,
        offsets: Latest,
        steady_ms: int,
        new_id: Callable[[], str],
        *,
        holds_heartbeats: bool,
    ) -> None:
        """Recover a group; every logged member starts a full session.

        With `holds_heartbeats` the replies to heartbeats without news are delayed (long poll).
        """
        self.group = group
        part = GroupPart(offsets, group.group_id)
        self._ledger = OffsetLedger(part, lambda each: encode_in_group(group.group_id, each))
        self._shard = ConsumerShard(group, settings, self._ledger, steady_ms, new_id)
        self._sides = self._shard.sides
        self._held = HeldHeartbeats(self._sides) if holds_heartbeats else None
        self._teller = GroupTeller(group)

    @property
    def is_known(self) -> bool:
        """Whether it has anything in the logs, or a member that is joining."""
        group = self.group
        is_logged = group.classic is not None or group.topics is not None or bool(group.members)
        if is_logged or not self._sides.classic.is_unused:
            return True
        return self._ledger.has_consumer_offsets()

    @property
    def footprint(self) -> Footprint:
        """What it keeps of its clients."""
        return footprint_of(self.group, self._sides.classic)

    def growth_by(self, call: SharedCall) -> Footprint:
        """Return by how much a call would make it grow, at most."""
        return growth_by(call, self.group, self._sides.classic)

    def offload(self) -> None:
        """Let the process compute its targets beside its loop from now on."""
        self._shard.offload()

    def take_computation(self) -> HostComputation | None:
        """Return what the process has to compute for it, once; None: nothing new."""
        return self._shard.take_computation()

    def listed(self) -> ListedGroup:
        """Return its entry in the list of groups."""
        return list_group(self._sides)

    # -- input

    def see_room(self, room: Room, now: Now) -> None:
        """Take the current space for log records."""
        self._shard.see_room(room, now)

    def see_topics(
        self, topics: Mapping[str, Topic], now: Now, changed: frozenset[str] | None = None
    ) -> None:
        """Take the current topics; `changed` as in `TopicsSeen`."""
        self._shard.take(TopicsSeen(topics, changed=changed), NOBODY, now)

    def end_computation(self, command: EndComputation, now: Now) -> None:
        """Take what the process has computed."""
        self._shard.take(command, NOBODY, now)

    def take(self, call: SharedCall, sender: int, now: Now) -> None:
        """Handle a call; its reply is in a later `Ready`."""
        if isinstance(call, AdminCall):
            reply = replace(self._answer(call, now), number=call.number)
            self._reply(AddressedReply(sender, reply))
            return
        if self._held is not None and isinstance(call, HeartbeatCall):
            self._reply_held(self._held.register(call, now.steady_ms))
        self._shard.take(call, sender, now)

    def repeat(self, call: HeartbeatCall, sender: int, now: Now) -> list[AddressedReply] | None:
        """Answer or hold a repeated heartbeat without news; None: it has to be decided.

        This is the fast path: it writes nothing, and causes no other replies.
        """
        reply = self._shard.repeat(call, now)
        if reply is None:
            return None
        answer, held = AddressedReply(sender, reply), self._held
        if held is None:
            return [answer]
        earlier = held.register(call, now.steady_ms)
        answers = [] if earlier is None else [earlier.answer]
        return answers if held.keep(answer) else [*answers, answer]

    def end_hold(self, number: int) -> None:
        """Answer a held heartbeat at once, since its client has sent another request."""
        if self._held is not None:
            self._reply_held(self._held.end(number))

    def _reply_held(self, held: HeldHeartbeat | None) -> None:
        if held is not None:
            self._reply(held.answer)

    def _reply(self, answer: AddressedReply) -> None:
        self._sides.out.answers.append(answer)

    def _answer(self, call: AdminCall, now: Now) -> AdminReply:
        if not self.is_known:
            reply = refuse_host_call(
                call, Error.GROUP_ID_NOT_FOUND, unknown_group_message(self.group)
            )
            assert isinstance(reply, AdminReply)  # noqa: S101  # as the call is
            return reply
        if isinstance(call, DescribeGroup):
            return describe_classic(self._sides)
        if isinstance(call, DescribeConsumerGroup):
            return describe_consumers(self._sides)
        return self._remove(call, now)

    def _remove(self, call: RemoveGroup, now: Now) -> RemoveGroupReply:
        if self.group.members or not self._sides.classic.is_empty:
            message = f"group {call.group_id!a} has members: nothing was deleted"
            return RemoveGroupReply(Error.NON_EMPTY_GROUP, message)
        if self._sides.room.is_low:
            return RemoveGroupReply(Error.COORDINATOR_NOT_AVAILABLE, self._sides.room.refusal())
        self._sides.classic.hand_over()  # no id that was given out is one of the next group
        self._shard.remove(now)
        return RemoveGroupReply(Error.NONE)

    # -- time

    def excuse(self, late_ms: int) -> None:
        """Extend all member timers by the time that this process itself was blocked."""
        self._shard.excuse(late_ms)

    def grant_sessions(self, late_ms: int, now: Now) -> None:
        """Start a full session for every member, after a time without a host."""
        self._sides.grant_sessions(late_ms, now)

    def pass_time(self, now: Now) -> None:
        """Handle due timers."""
        for each in self._held.due(now.steady_ms) if self._held is not None else ():
            self._reply_held(each)
        self._shard.pass_time(now)

    def next_ms(self, now: Now) -> int:
        """Return when the next timer may be due, steady clock."""
        next_ms = self._shard.next_ms(now)
        held_ms = None if self._held is None else self._held.next_ms()
        return next_ms if held_ms is None else min(next_ms, held_ms)

    # -- output

    def ready(self, now: Now) -> Ready:
        """Return the records (with keys of shared logs) and replies since the last call."""
        ready = self._shard.ready(now)
        offset_entries, entries = [*ready.offset_entries], [*ready.entries]
        answers = self._due_answers(ready)
        while self._held is not None and (held := self._held.take_changed()):
            for each in held:
                self._shard.take(each.call, each.answer.to, now)
            more = self._shard.ready(now)
            offset_entries += more.offset_entries
            entries += more.entries
            answers += self._due_answers(more)
        entries = [in_group(self.group.group_id, each) for each in entries]
        return Ready(offset_entries, entries, answers)

    def _due_answers(self, ready: Ready) -> list[AddressedReply]:
        """Return the replies to send now, without those that are held."""
        answers = [each for each in ready.answers if each.to is not NOBODY]
        held = self._held
        return answers if held is None else [each for each in answers if not held.keep(each)]

    def advance(self, ready: Ready) -> None:
        """Take note that these records are durable."""
        self._shard.advance(ready)
        if ready.entries:
            self._teller.tell()
