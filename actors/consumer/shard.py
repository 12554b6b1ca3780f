"""One group of Kafka consumers, of either protocol: a `CoordinatorShard` of type CONSUMER.

A process creates one `ConsumerShard` for each of its groups of Kafka clients. It takes requests of
both protocols; the first member of an empty group decides its protocol (see `Sides`). Each request
has a `number`, which its reply repeats, and each is answered, at once or later.

* Committed offsets belong to the group whatever its type, and outlive its members until they
  expire.
* The process passes the topics of the cluster with `TopicsSeen`, whenever they change, and the same
  mapping to all groups. Before the first one, a group knows only the topics in its log.
* Heartbeats are answered at once; the process may hold the replies (long poll).
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Final, NamedTuple

from ...events.group import Group
from ...events.kafka.consumers import Topic
from ...events.log.space import Room
from ..assignors.built_in.catalogue import Computes
from ..classic.state import RoundPhase
from ..group.commit import OffsetLedger
from ..group.computing.compute import HOST, without_host
from ..group.coordinator import Coordinator
from ..group.shard import Address, AddressedReply, Ready
from ..group.sides import GroupKind, Sides
from ..group.state.settings import GroupSettings
from ..group.state.soft_state import Decision, SoftState
from ..messages.classic import ClassicHeartbeat, ClassicHeartbeatReply
from ..messages.commands import ConsumerRequest, Traffic
from ..messages.computing import Snapshot
from ..messages.consumers import (
    ConsumerGroupHeartbeat,
    ConsumerGroupHeartbeatReply,
    TopicsSeen,
)
from ..messages.errors import Error
from ..messages.members import NO_COORDINATOR_EPOCH, HeartbeatReply
from ..messages.offsets import OffsetCommit, OffsetDelete, OffsetFetch
from ..timing import Now, earliest
from .decide import SERVER_ASSIGNORS, decide, remove_group
from .heartbeat_cache import HeartbeatCache
from .offsets.clean_up import OffsetCleanUp
from .offsets.deleted_topics import DeletedTopics
from .offsets.handler import OffsetHandler
from .patterns import find_matches, flaw_in_pattern
from .requests import as_heartbeat, as_reply, refuse_request
from .topics import end_subscriptions
from .translation import CONSUMER_TRANSLATION

NO_TOPICS: Mapping[str, Topic] = {}

CONSUMER_KIND: Final = GroupKind(
    decide, end_subscriptions, CONSUMER_TRANSLATION, goes_by_grants=False
)


class HostComputation(NamedTuple):
    """A target that the host has to compute."""

    number: int
    assignor: str
    computes: Computes
    snapshot: Snapshot


@dataclass(frozen=True, slots=True)
class _Caller:
    """The sender of a heartbeat, and the heartbeat."""

    sender: Address
    request: ConsumerGroupHeartbeat
    end: int
    """The end of the group's log when it arrived."""


def _use_server_assignors(group: Group, soft: SoftState) -> Decision:
    """Let the coordinator compute targets."""
    del group
    return Decision(replace(soft, server_assignors=SERVER_ASSIGNORS))


class ConsumerShard:
    """A group that consumers of both of Kafka's protocols may join."""

    def __init__(
        self,
        group: Group,
        settings: GroupSettings,
        ledger: OffsetLedger,
        steady_ms: int,
        new_id: Callable[[], str] = str,
        coordinator_epoch: int = NO_COORDINATOR_EPOCH,
    ) -> None:
        """Recover a group; see `Coordinator` for the parameters.

        Partitions of a lost member are not parked, and a static member that has left temporarily
        has its usual session timeout.
        """
        self.group = group
        settings = replace(settings, max_delay_ms=0)
        modern = Coordinator(group, settings, ledger, steady_ms, new_id, coordinator_epoch)
        modern.holds_heartbeats = False
        modern.carry_out(_use_server_assignors, Now(0, steady_ms))
        self.sides = Sides(modern, CONSUMER_KIND, steady_ms, new_id)
        """The group, with its members of both protocols."""
        self._offsets = OffsetHandler(self.sides, ledger)
        self._clean_up = OffsetCleanUp(self.sides, ledger, self.remove, steady_ms)
        self._deleted = DeletedTopics(self.sides, ledger)
        self._cache = HeartbeatCache(group)
        self._handed_out = 0
        """The number of the last computation that the host was given."""
        self._topics: Mapping[str, Topic] | None = None
        """The topics of the cluster, by name; None: unknown yet."""

    @property
    def coordinator_epoch(self) -> int:
        """The epoch of this process."""
        return self.sides.modern.coordinator_epoch

    @property
    def warning(self) -> str:
        """A warning about the group for operators, or ""."""
        return self.sides.modern.warning

    def traffic(self) -> Traffic:
        """Return the traffic counters since the start."""
        return self.sides.modern.traffic()

    def see_room(self, room: Room, now: Now) -> None:
        """Take the current space for log records.

        Without any, no computed target can be written: once there is some, it is computed anew.
        """
        was_out = self.sides.room.is_out
        self.sides.see_room(room, now)
        if was_out and not room.is_out:
            self.sides.modern.carry_out(lambda _, soft: Decision(without_host(soft)), now)

    def take(self, request: ConsumerRequest, sender: Address, now: Now) -> None:
        """Handle a request; its reply is in a later `Ready`."""
        if isinstance(request, ConsumerGroupHeartbeat):
            self._take_heartbeat(request, sender, now)
        elif isinstance(request, TopicsSeen):
            self._topics = request.topics
            self._deleted.see(request.topics, request.changed, now)
            patterns = {each.pattern for each in self.group.subscriptions.values()} - {""}
            matched = {each: find_matches(each, request.topics) for each in patterns}
            self.sides.take(TopicsSeen(request.topics, matched), sender, now)
        elif isinstance(request, OffsetCommit | OffsetFetch | OffsetDelete):
            reply = self._offsets.answer(request, self._topics, now)
            self.sides.out.answers.append(AddressedReply(sender, reply))
        else:
            self.sides.take(request, sender, now)

    def repeat(
        self, call: ClassicHeartbeat | ConsumerGroupHeartbeat, now: Now
    ) -> ClassicHeartbeatReply | ConsumerGroupHeartbeatReply | None:
        """Return the reply to a repeated heartbeat without news; None: it has to be decided."""
        if isinstance(call, ConsumerGroupHeartbeat):
            reply = self._cache.reply_to(call)
            if reply is not None:
                self.sides.hear(call.member_id, now)
            return reply
        classic, member = self.sides.classic, (call.member_id, call.instance_id, call.generation)
        if self.group.members or classic.phase is not RoundPhase.STABLE:
            return None
        refused = classic.hear_commit(*member, now.steady_ms)
        return None if refused else ClassicHeartbeatReply(Error.NONE, number=call.number)

    def offload(self) -> None:
        """Let the host compute targets beside its loop from now on."""
        begin = Now(0, 0)
        self.sides.modern.carry_out(lambda _, soft: Decision(replace(soft, offloads=True)), begin)

    def take_computation(self) -> HostComputation | None:
        """Return what the host has to compute, once; None: nothing new."""
        begun = self.sides.modern.computation
        if begun is None or begun.member_id != HOST or begun.number == self._handed_out:
            return None
        self._handed_out = begun.number
        assert begun.snapshot is not None  # noqa: S101  # it is made when it begins
        computes = SERVER_ASSIGNORS[begun.assignor]
        return HostComputation(begun.number, begun.assignor, computes, begun.snapshot)

    def remove(self, now: Now) -> None:
        """Delete a group without members, with its committed offsets."""
        self.sides.modern.carry_out(lambda group, soft: remove_group(group, soft, now.wall_ms), now)

    def _take_heartbeat(self, request: ConsumerGroupHeartbeat, sender: Address, now: Now) -> None:
        pattern, answers = request.subscribed_topic_regex, self.sides.out.answers
        refused = refuse_request(request, SERVER_ASSIGNORS)
        if refused is None and pattern and (flaw := flaw_in_pattern(pattern)):
            message = f"SubscribedTopicRegex is no regular expression of RE2: {flaw}"
            refused = Error.INVALID_REGULAR_EXPRESSION, message
        if refused is None:
            known = self.group.topics or NO_TOPICS
            names = known if self._topics is None else self._topics
            matched = find_matches(pattern, names) if pattern else ()
            count = len(answers)
            caller = _Caller(sender, request, self.group.end)
            self.sides.take(as_heartbeat(request, known, matched), caller, now)
            if len(answers) == count:  # its records were not written, for lack of space
                refused = Error.COORDINATOR_NOT_AVAILABLE, "the disk of the coordinator is full"
        if refused is not None:
            error, message = refused
            reply = ConsumerGroupHeartbeatReply(error, message=message, number=request.number)
            answers.append(AddressedReply(sender, reply))

    def excuse(self, late_ms: int) -> None:
        """Extend all member timers by the time that this process itself was blocked."""
        self.sides.excuse(late_ms)

    def pass_time(self, now: Now) -> None:
        """Handle due timers."""
        self.sides.pass_time(now)
        self._deleted.pass_time(now)
        self._clean_up.pass_time(now)

    def next_ms(self, now: Now) -> int:
        """Return when the next timer is due, steady clock."""
        check_ms = self._clean_up.next_ms()
        next_ms = earliest(self.sides.next_ms(now), self._deleted.next_ms())
        return check_ms if next_ms is None else min(next_ms, check_ms)

    def ready(self, now: Now) -> Ready:
        """Return the records and replies since the last call."""
        ready = self.sides.modern.ready(now)
        return replace(ready, answers=[self._to_kafka(each) for each in ready.answers])

    def _to_kafka(self, answer: AddressedReply) -> AddressedReply:
        """Convert the reply to a heartbeat into Kafka's."""
        caller, reply = answer.to, answer.reply
        if not isinstance(caller, _Caller) or not isinstance(reply, HeartbeatReply):
            return answer
        converted = as_reply(reply, self.group.topics or NO_TOPICS, caller.request.number)
        if not self.sides.modern.settings.requests_per_second:  # else the quota counts each
            self._cache.add(caller.request, caller.end, converted)
        return AddressedReply(caller.sender, converted)

    def advance(self, ready: Ready) -> None:
        """Take note that these records are durable."""
        self.sides.modern.advance(ready)
