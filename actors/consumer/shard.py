"""One group of consumers, behind what its process knows: a `CoordinatorShard` of type CONSUMER.

A process that hosts groups of Kafka's clients makes one `ConsumerShard` for each: of the group as
its log tells it, the settings, the ledger over its offset log, the steady clock, what makes member
ids, and the number of this process. It takes requests of both of Kafka's protocols; which one a
group speaks is decided by who joins it while it is empty (see `Sides`). Each request has a
`number`, and the answer names it; each is answered, at once or once it is its turn.

* Offsets are the group's whatever its type, and outlive its members until they expire.
* Which topics there are the host tells by `TopicsSeen`, again whenever that changes, with the same
  mapping for all its groups. Until it has, a group knows those that its log names.
* A heartbeat is answered at once: to hold it is the host's matter.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Final

from ...events.group import Group
from ...events.kafka.consumers import Topic
from ...events.log.space import Room
from ..classic.state import RoundPhase
from ..group.commit import OffsetLedger
from ..group.coordinator import Coordinator
from ..group.shard import Address, AddressedReply, Now, Ready
from ..group.sides import GroupKind, Sides
from ..group.state.settings import GroupSettings
from ..group.state.soft_state import Decision, SoftState
from ..messages.classic import ClassicHeartbeat, ClassicHeartbeatReply
from ..messages.commands import ConsumerRequest, Traffic
from ..messages.consumers import (
    ConsumerGroupHeartbeat,
    ConsumerGroupHeartbeatReply,
    TopicsSeen,
)
from ..messages.errors import Error
from ..messages.members import NO_COORDINATOR_EPOCH, HeartbeatReply
from ..messages.offsets import OffsetCommit, OffsetDelete, OffsetFetch
from .decide import SERVER_ASSIGNORS, decide
from .offsets.clean_up import OffsetCleanUp
from .offsets.desk import OffsetDesk
from .patterns import find_matches, flaw_in_pattern
from .removal import remove_group
from .repeats import RepeatedHeartbeats
from .requests import as_heartbeat, as_reply, refuse_request
from .topics import end_subscriptions
from .translation import CONSUMER_TRANSLATION

NO_TOPICS: Mapping[str, Topic] = {}

CONSUMER_KIND: Final = GroupKind(
    decide, end_subscriptions, CONSUMER_TRANSLATION, goes_by_grants=False
)


@dataclass(frozen=True, slots=True)
class _Caller:
    """Who waits for the answer to a heartbeat, and what it said."""

    sender: Address
    request: ConsumerGroupHeartbeat
    end: int
    """Where the group's log ended when it came."""


def _compute_here(group: Group, soft: SoftState) -> Decision:
    """Have the group itself compute its targets."""
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
        """Take up a group; see `Coordinator` for the parameters.

        Lost work waits for nobody here: a member that is away is waited for as long as any other.
        """
        self.group = group
        settings = replace(settings, max_delay_ms=0)
        modern = Coordinator(group, settings, ledger, steady_ms, new_id, coordinator_epoch)
        modern.holds_heartbeats = False
        modern.carry_out(_compute_here, Now(0, steady_ms))
        self.sides = Sides(modern, CONSUMER_KIND, steady_ms, new_id)
        """The group as its members of both protocols see it."""
        self._offsets = OffsetDesk(self.sides, ledger)
        self._clean_up = OffsetCleanUp(self.sides, ledger, self.remove, steady_ms)
        self._repeats = RepeatedHeartbeats(group)
        self._topics: Mapping[str, Topic] | None = None
        """The topics of the cluster, by name; None: nobody has told them yet."""

    @property
    def coordinator_epoch(self) -> int:
        """The number of this process."""
        return self.sides.modern.coordinator_epoch

    @property
    def warning(self) -> str:
        """What people should know of the group, or nothing."""
        return self.sides.modern.warning

    def traffic(self) -> Traffic:
        """Return what went through since the start."""
        return self.sides.modern.traffic()

    def see_room(self, room: Room, now: Now) -> None:
        """Learn how much may be written."""
        self.sides.see_room(room, now)

    def take(self, request: ConsumerRequest, sender: Address, now: Now) -> None:
        """Decide a request; its answer comes with a `Ready`, at once or later."""
        if isinstance(request, ConsumerGroupHeartbeat):
            self._take_heartbeat(request, sender, now)
        elif isinstance(request, TopicsSeen):
            self._topics = request.topics
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
        """Answer a heartbeat to which there is no news, at once; None: it is to be decided."""
        if isinstance(call, ConsumerGroupHeartbeat):
            told = self._repeats.reply_to(call)
            if told is None:
                return None
            self.sides.hear(call.member_id, now)
            return told
        classic, who = self.sides.classic, (call.member_id, call.instance_id, call.generation)
        if self.group.members or classic.phase is not RoundPhase.STABLE:
            return None
        refused = classic.hear_commit(*who, now.steady_ms)
        return None if refused else ClassicHeartbeatReply(Error.NONE, number=call.number)

    def remove(self, now: Now) -> None:
        """Have nothing left of a group without members, its offsets included."""
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
            said = len(answers)
            caller = _Caller(sender, request, self.group.end)
            self.sides.take(as_heartbeat(request, known, matched), caller, now)
            if len(answers) == said:  # it would have to be written, and there is no room
                refused = Error.COORDINATOR_NOT_AVAILABLE, "the disk of the coordinator is full"
        if refused is not None:
            error, message = refused
            reply = ConsumerGroupHeartbeatReply(error, message=message, number=request.number)
            answers.append(AddressedReply(sender, reply))

    def excuse(self, late_ms: int) -> None:
        """Let nobody's time run out for so long as the process itself was held up."""
        self.sides.excuse(late_ms)

    def pass_time(self, now: Now) -> None:
        """Do what is due by now."""
        self.sides.pass_time(now)
        self._clean_up.pass_time(now)

    def next_ms(self, now: Now) -> int:
        """Return when a time that was set comes, steady clock."""
        next_ms, look_ms = self.sides.next_ms(now), self._clean_up.next_ms()
        return look_ms if next_ms is None else min(next_ms, look_ms)

    def ready(self, now: Now) -> Ready:
        """Hand out what was decided since the last call."""
        ready = self.sides.modern.ready(now)
        return replace(ready, answers=[self._spell(each) for each in ready.answers])

    def _spell(self, answer: AddressedReply) -> AddressedReply:
        """Return an answer in the words in which was asked."""
        caller, reply = answer.to, answer.reply
        if not isinstance(caller, _Caller) or not isinstance(reply, HeartbeatReply):
            return answer
        told = as_reply(reply, self.group.topics or NO_TOPICS, caller.request.number)
        if not self.sides.modern.settings.requests_per_second:  # else each counts
            self._repeats.note(caller.request, caller.end, told)
        return AddressedReply(caller.sender, told)

    def advance(self, ready: Ready) -> None:
        """Learn that what was handed out is durable."""
        self.sides.modern.advance(ready)
