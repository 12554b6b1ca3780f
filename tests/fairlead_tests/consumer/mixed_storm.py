"""A storm of consumers of both protocols in one group, which is converted back and forth.

A classic client uses Kafka's cooperative protocol: it keeps what it owns while it joins, names
that, gives up at its SyncGroup what it is not assigned any more, and then joins once more. As the
leader it gives nobody what another still owns. An error, or a session without an answer, costs it
all that it owns.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from fairlead.actors.classic.bytes.consumer import (
    PartitionAssignment,
    Subscription,
    decode_assignment,
    decode_subscription,
    encode_assignment,
    encode_subscription,
)
from fairlead.actors.messages.classic import (
    ClassicHeartbeat,
    ClassicReply,
    JoinGroup,
    JoinGroupReply,
    LeaveGroup,
    Leaver,
    SyncGroup,
    SyncGroupReply,
)
from fairlead.actors.messages.errors import Error
from fairlead.events.model import ClassicProtocol, Resource
from fairlead.events.records import Topic
from fairlead_tests.consumer.driver import REBALANCE_MS, SESSION_MS
from fairlead_tests.consumer.storm import Storm

NO_GENERATION = -1
Partitions = set[Resource]


@dataclass
class ClassicClient:
    """The client side of one classic consumer."""

    names: tuple[str, ...]
    instance_id: str | None = None
    member_id: str = ""
    generation: int = NO_GENERATION
    owned: Partitions = field(default_factory=set[Resource])
    owned_in: int = NO_GENERATION
    """The generation of that assignment."""
    asked_ms: int = 0
    answered_ms: int = 0
    """When it sent the last request that was answered."""
    waits_for: int = 0
    """The number of the pending request; 0: none."""
    says: type = JoinGroup
    """The type of its next request."""
    made: dict[str, bytes] = field(default_factory=dict[str, bytes])
    """The assignments that it has computed as the leader."""
    seen: Mapping[str, Topic] = field(default_factory=dict[str, Topic])

    def call(self) -> JoinGroup | SyncGroup | ClassicHeartbeat:
        """Return its next request."""
        seat = "g", self.member_id, self.generation, self.instance_id
        if self.says is SyncGroup:
            return SyncGroup(*seat, assignments=self.made)
        if self.says is ClassicHeartbeat:
            return ClassicHeartbeat(*seat)
        said = Subscription(self.names, owned=sorted(self.owned), generation=self.owned_in)
        offered = (ClassicProtocol("cooperative-sticky", encode_subscription(said)),)
        return JoinGroup(
            *("g", self.member_id, "consumer", offered, SESSION_MS, REBALANCE_MS, self.instance_id),
            client_id="classic",
            asks_for_id=False,
        )

    def sees(self, topics: Mapping[str, Topic]) -> None:
        """Let a leader rejoin if the topics have changed since its assignment."""
        if self.made and self.says is ClassicHeartbeat and topics != self.seen:
            self.says = JoinGroup

    def hears(self, reply: ClassicReply, topics: Mapping[str, Topic]) -> None:
        """Handle a response."""
        match reply:
            case _ if reply.error is Error.REBALANCE_IN_PROGRESS:
                self.says = JoinGroup
            case JoinGroupReply(error=Error.NONE):
                self.member_id, self.generation, self.says = (
                    reply.member_id,
                    reply.generation,
                    SyncGroup,
                )
                leads = reply.leader == reply.member_id and not reply.skips_assignment
                self.made, self.seen = assigned(reply, topics) if leads else {}, topics
            case SyncGroupReply(error=Error.NONE):
                given = decode_assignment(reply.assignment).partitions if reply.assignment else ()
                gives_up = self.owned - {*given}
                self.owned, self.owned_in = {*given}, self.generation
                self.says = JoinGroup if gives_up else ClassicHeartbeat
            case _ if reply.error is Error.NONE:
                pass
            case _:
                forgets = reply.error in {Error.UNKNOWN_MEMBER_ID, Error.FENCED_INSTANCE_ID}
                self.stop(keeps_seat=not forgets)

    def stop(self, *, keeps_seat: bool = False) -> None:
        """Give up all partitions, and rejoin."""
        self.member_id = self.member_id if keeps_seat else ""
        self.owned, self.generation, self.owned_in = set(), NO_GENERATION, NO_GENERATION
        self.says, self.waits_for = JoinGroup, 0


def assigned(reply: JoinGroupReply, topics: Mapping[str, Topic]) -> dict[str, bytes]:
    """Compute a leader's assignment: partitions stay with their owners if the load is even.

    A partition that moves is unassigned in this generation.
    """
    told = {each.member_id: decode_subscription(each.metadata) for each in reply.members}
    given = _claims(told, topics)
    free = {
        Resource(name, number)
        for name in {name for each in told.values() for name in each.topics} & topics.keys()
        for number in range(topics[name].partitions)
    }
    for member_id, each in told.items():
        claimed = [part for part in each.owned if part.connector in topics]
        free -= {*claimed} - given[member_id]  # its owner gives it up first, whoever that is
    free -= {part for parts in given.values() for part in parts}
    for part in sorted(free):
        takers = [each for each in sorted(given) if part.connector in told[each].topics]
        given[min(takers, key=lambda each: len(given[each]))].add(part)
    most = max(given, key=lambda each: (len(given[each]), each))
    least = min(given, key=lambda each: (len(given[each]), each))
    spare = [each for each in sorted(given[most]) if each.connector in told[least].topics]
    if spare and len(given[most]) > len(given[least]) + 1 and not free:
        given[most].discard(spare[0])
    return {each: encode_assignment(PartitionAssignment(sorted(given[each]))) for each in given}


def _claims(told: dict[str, Subscription], topics: Mapping[str, Topic]) -> dict[str, Partitions]:
    """Return the valid claims of each member; of two conflicting claims the later generation's."""
    given: dict[str, Partitions] = {}
    taken: Partitions = set()
    for member_id in sorted(told, key=lambda each: -told[each].generation):
        each = told[member_id]
        known = {part for part in each.owned if part.connector in {*each.topics} & topics.keys()}
        given[member_id] = known - taken
        taken |= {*each.owned}
    return given


class MixedStorm(Storm):
    """A group with clients of both protocols; topics are added and grow, but are not recreated."""

    def __init__(self, seed: int) -> None:
        super().__init__(seed)
        self.classics: list[ClassicClient] = []

    def step(self) -> None:
        """Do a random action, and check the invariants."""
        deeds = [self._beat] * 10 + [self._speaks] * 14 + [self._lapse] * 5 + [self._dies]
        deeds += [self._born_anew, self._comes, self._ends, self._leaves, self._subscribes]
        deeds += [self._topics_change, self._restarts]
        self.rng.choice(deeds)()
        self.hold()

    def _draw(self) -> tuple[tuple[str, ...], str]:
        return tuple(each for each in "abc" if self.rng.random() < 0.6), ""

    def _comes(self) -> None:
        if len(self.classics) < 4:
            taken = {each.instance_id for each in self.classics}
            free = {"c1"} - taken
            self.classics.append(
                ClassicClient(self._draw()[0] or ("a",), self.rng.choice([None, None, *free]))
            )

    def _ends(self) -> None:
        """Let a client leave, or kill it."""
        if self.classics:
            client = self.classics.pop(self.rng.randrange(len(self.classics)))
            if client.member_id and self.rng.random() < 0.6:
                self.driver.ask(LeaveGroup("g", (Leaver(client.member_id),)))

    def _leaves(self) -> None:
        if self.clients:
            super()._leaves() if len(self.clients) > 1 else self._last_leaves()

    def _last_leaves(self) -> None:
        (client,) = self.clients.values()
        if client.instance_id is None:
            self.clients.clear()
            self.driver.beats(client.member_id, -1)

    def _topics_change(self) -> None:
        topics = dict(self.driver.topics)
        name = self.rng.choice("abc")
        known = topics.get(name)
        topics[name] = Topic(f"{name}#0", known.partitions + 1 if known else 2)
        if topics[name].partitions < 9:
            self.driver.sees(topics)

    def _restarts(self) -> None:
        super()._restarts()
        for each in self.classics:
            each.waits_for = 0  # its connection is lost, and it repeats the request

    def _speaks(self) -> None:
        if self.classics:
            self.speak(self.rng.choice(self.classics), is_lossy=True)

    def speak(self, client: ClassicClient, *, is_lossy: bool) -> None:
        """Deliver a client's response if there is one, else send its next request."""
        client.sees(self.driver.topics)
        if not client.waits_for:
            if is_lossy and self.rng.random() < 0.1:
                return
            client.asked_ms = self.driver.now_ms
            client.waits_for = self.driver.ask(client.call())
            if is_lossy and self.rng.random() < 0.1:
                client.waits_for = 0
                return
        self._hear(client)

    def _hear(self, client: ClassicClient) -> None:
        reply = self.driver.said.get(client.waits_for)
        if reply is not None:
            client.waits_for, client.answered_ms = 0, client.asked_ms
            client.hears(reply, self.driver.topics)

    def lapse(self, milliseconds: int) -> None:
        """Advance the clock; clients without a response for a session stop, unless they wait."""
        super().lapse(milliseconds)
        for client in self.classics:
            self._hear(client)
            is_late = self.driver.now_ms - client.answered_ms >= SESSION_MS
            if client.owned and is_late and not client.waits_for:
                client.stop(keeps_seat=True)

    def settle(self) -> None:
        """Stop all message losses, and wait until the group is stable."""
        for _ in range(60):
            for classic in self.classics:
                self.speak(classic, is_lossy=False)
            for client in [*self.clients.values()]:
                self.beat(client, is_lossy=False)
            self.lapse(500)
            self.hold()
        self.hold_log()

    def hold(self) -> None:
        """Check also that clients of both protocols do not overlap."""
        super().hold()
        owned = [*self.owned_by_name()]
        assert len(owned) == len(set(owned)), "a partition is read by two"

    def epochs(self) -> tuple[int, ...]:
        """Return the generation; in a consumer group it is the epoch."""
        group = self.driver.group
        return (group.classic.generation if group.classic else group.group_epoch,)

    def owned_by_name(self) -> Iterable[Resource]:
        """Yield the partitions of all owners."""
        names = {each.topic_id: name for name, each in self.driver.topics.items()}
        for client in self.clients.values():
            yield from (Resource(names[topic_id], number) for topic_id, number in client.owned)
        for classic in self.classics:
            yield from classic.owned
