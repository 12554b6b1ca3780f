"""One group of Kafka's clients among many: what it is asked, and has to write and to say."""

from collections.abc import Callable, Mapping
from dataclasses import replace

from ...events.entries.group_keys import GroupPart, Latest, encode_in_group, in_group
from ...events.group import Group
from ...events.kafka.consumers import Topic
from ...events.log.space import Room
from ..consumer.shard import ConsumerShard
from ..group.commit import OffsetLedger
from ..group.shard import AddressedReply, Now, Ready
from ..group.state.settings import GroupSettings
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
from .describe import describe_classic, describe_consumers, list_group, say_unknown
from .held import HeartbeatCall, HeldHeartbeat, HeldHeartbeats
from .refusals import refuse_host_call

NOBODY = None
"""Who waits for the answer to what the process itself tells a group."""


class ClientGroup:
    """A group with its members of either protocol, their timers, and what it has committed."""

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
        """Take up a group; every member of its log has a full session.

        `holds_heartbeats` tells whether those wait that have no news.
        """
        self.group = group
        part = GroupPart(offsets, group.group_id)
        self._ledger = OffsetLedger(part, lambda each: encode_in_group(group.group_id, each))
        self._shard = ConsumerShard(group, settings, self._ledger, steady_ms, new_id)
        self._sides = self._shard.sides
        self._held = HeldHeartbeats(self._sides) if holds_heartbeats else None

    @property
    def is_known(self) -> bool:
        """Whether anything of it is in the logs, or anybody is about to be in it."""
        group = self.group
        is_told = group.classic is not None or group.topics is not None or bool(group.members)
        if is_told or not self._sides.classic.is_unused:
            return True
        return bool(self._ledger.consumer_offsets())

    def listed(self) -> ListedGroup:
        """Return what a list of groups says of it."""
        return list_group(self._sides)

    # -- what comes in

    def see_room(self, room: Room, now: Now) -> None:
        """Learn how much may be written."""
        self._shard.see_room(room, now)

    def see_topics(self, topics: Mapping[str, Topic], now: Now) -> None:
        """Learn which topics there are."""
        self._shard.take(TopicsSeen(topics), NOBODY, now)

    def take(self, call: SharedCall, sender: int, now: Now) -> None:
        """Decide a call; its answer comes with a `Ready`, at once or later."""
        if isinstance(call, AdminCall):
            reply = replace(self._answer(call, now), number=call.number)
            self._say(AddressedReply(sender, reply))
            return
        if self._held is not None and isinstance(call, HeartbeatCall):
            self._say_held(self._held.see(call, now.steady_ms))
        self._shard.take(call, sender, now)

    def repeat(self, call: HeartbeatCall, sender: int, now: Now) -> list[AddressedReply] | None:
        """Answer a heartbeat to which there is no news, or hold it; None: it is to be decided.

        Nothing is to be written by that, and nothing else has come to be said.
        """
        reply = self._shard.repeat(call, now)
        if reply is None:
            return None
        answer, held = AddressedReply(sender, reply), self._held
        if held is None:
            return [answer]
        earlier = held.see(call, now.steady_ms)
        answers = [] if earlier is None else [earlier.answer]
        return answers if held.keep(answer) else [*answers, answer]

    def end_hold(self, number: int) -> None:
        """Answer a heartbeat that is held: its client waits with what it asks next."""
        if self._held is not None:
            self._say_held(self._held.end(number))

    def _say_held(self, held: HeldHeartbeat | None) -> None:
        if held is not None:
            self._say(held.answer)

    def _say(self, answer: AddressedReply) -> None:
        self._sides.out.answers.append(answer)

    def _answer(self, call: AdminCall, now: Now) -> AdminReply:
        if not self.is_known:
            reply = refuse_host_call(call, Error.GROUP_ID_NOT_FOUND, say_unknown(self.group))
            assert isinstance(reply, AdminReply)  # noqa: S101  # as the call is
            return reply
        if isinstance(call, DescribeGroup):
            return describe_classic(self._sides)
        if isinstance(call, DescribeConsumerGroup):
            return describe_consumers(self._sides)
        return self._remove(call, now)

    def _remove(self, call: RemoveGroup, now: Now) -> RemoveGroupReply:
        if self.group.members or not self._sides.classic.is_unused:
            message = f"group {call.group_id!a} has members: nothing was deleted"
            return RemoveGroupReply(Error.NON_EMPTY_GROUP, message)
        if self._sides.room.is_low:
            return RemoveGroupReply(Error.COORDINATOR_NOT_AVAILABLE, self._sides.room.refusal())
        self._shard.remove(now)
        return RemoveGroupReply(Error.NONE)

    # -- time

    def excuse(self, late_ms: int) -> None:
        """Let nobody's time run out for so long as the process itself was held up."""
        self._shard.excuse(late_ms)

    def grant_sessions(self, late_ms: int, now: Now) -> None:
        """Give every member a full session: nobody could be heard for so long."""
        self._sides.grant_sessions(late_ms, now)

    def pass_time(self, now: Now) -> None:
        """Do what is due by now."""
        for each in self._held.due(now.steady_ms) if self._held is not None else ():
            self._say_held(each)
        self._shard.pass_time(now)

    def next_ms(self, now: Now) -> int:
        """Return when something may be due next, steady clock."""
        next_ms = self._shard.next_ms(now)
        held_ms = None if self._held is None else self._held.next_ms()
        return next_ms if held_ms is None else min(next_ms, held_ms)

    # -- what goes out

    def ready(self, now: Now) -> Ready:
        """Hand out what was decided since the last call, as the logs that it shares have it."""
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
        """Return what is to be said, without what waits for news."""
        answers = [each for each in ready.answers if each.to is not NOBODY]
        held = self._held
        return answers if held is None else [each for each in answers if not held.keep(each)]

    def advance(self, ready: Ready) -> None:
        """Learn that this is durable."""
        self._shard.advance(ready)
