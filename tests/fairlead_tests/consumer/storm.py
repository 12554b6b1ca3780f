"""A storm of consumers with lost requests and responses, and restarts of the group's process.

A client goes by KIP-848: what it is not assigned any more it gives up as soon as it hears so, and
says so with its next heartbeat. After a lost answer it says everything. Once its session has passed
without an answer it stops, as a member must that may be taken for lost.
"""

from dataclasses import dataclass, field
from random import Random
from typing import Any

from fairlead.actors.messages.consumers import ConsumerGroupHeartbeat, ConsumerGroupHeartbeatReply
from fairlead.actors.messages.errors import Error
from fairlead.events.entries.codec import fold, restore
from fairlead.events.group import Group
from fairlead.events.records import Topic
from fairlead.runtime.simulation.invariants.group import consistent, same
from fairlead_tests.consumer.driver import REBALANCE_MS, SESSION_MS, ConsumerDriver, topic

Owned = set[tuple[str, int]]
"""Topic ids with partition numbers."""


@dataclass
class Client:
    """The client side of one consumer."""

    member_id: str
    names: tuple[str, ...] = ()
    pattern: str = ""
    instance_id: str | None = None
    epoch: int = 0
    owned: Owned = field(default_factory=set[tuple[str, int]])
    says_all: bool = True
    """Whether its next request is a full one: a join, or after a lost response."""
    answered_ms: int = 0
    """When it sent the last request that was answered."""

    def request(self, group_id: str) -> ConsumerGroupHeartbeat:
        """Return its next request."""
        owned: dict[str, tuple[int, ...]] = {}
        for topic_id, number in sorted(self.owned):
            owned[topic_id] = (*owned.get(topic_id, ()), number)
        said: dict[str, Any] = {"topic_partitions": owned, "instance_id": self.instance_id}
        if self.epoch == 0 or self.says_all:
            said["rebalance_timeout_ms"] = REBALANCE_MS
            said["subscribed_topic_names"] = self.names
            said["subscribed_topic_regex"] = self.pattern
        return ConsumerGroupHeartbeat(group_id, self.member_id, self.epoch, **said)

    def hears(self, reply: ConsumerGroupHeartbeatReply, sent_ms: int) -> None:
        """Handle a response."""
        if reply.error is Error.UNRELEASED_INSTANCE_ID:
            return
        if reply.error is not Error.NONE:
            self.stop()
            return
        self.epoch, self.says_all, self.answered_ms = reply.member_epoch, False, sent_ms
        if reply.assignment is not None:
            self.owned = {
                (topic_id, number)
                for topic_id, numbers in reply.assignment.items()
                for number in numbers
            }

    def stop(self) -> None:
        """Give up all partitions, and rejoin."""
        self.epoch, self.owned, self.says_all = 0, set(), True


class Storm:
    """A group, its clients, and random actions by one seed."""

    def __init__(self, seed: int) -> None:
        self.rng = Random(seed)
        self.driver = ConsumerDriver(topics={"a": topic("a", 3), "b": topic("b", 5)})
        self.clients: dict[str, Client] = {}
        self._born = self._lives = 0
        self._folded = Group("g")
        self._epochs: tuple[int, ...] = ()
        self._member_epochs: dict[tuple[str, int], int] = {}

    def step(self) -> None:
        """Do a random action, and check the invariants."""
        deeds = [self._beat] * 12 + [self._lapse] * 4 + [self._born_anew, self._dies]
        deeds += [self._leaves, self._subscribes, self._topics_change, self._restarts]
        self.rng.choice(deeds)()
        self.hold()

    def _beat(self, is_lossy: bool = True) -> None:
        if self.clients:
            self.beat(self.rng.choice([*self.clients.values()]), is_lossy=is_lossy)

    def beat(self, client: Client, *, is_lossy: bool) -> None:
        """Send a client's next request; the request or its response may be lost."""
        lost = self.rng.random() if is_lossy else 1.0
        if lost < 0.1:
            client.says_all = True
            return
        reply = self.driver.asks(client.request("g"))
        assert isinstance(reply, ConsumerGroupHeartbeatReply)
        if lost < 0.25:
            client.says_all = True
        else:
            client.hears(reply, self.driver.now_ms)

    def _lapse(self) -> None:
        self.lapse(self.rng.choice([10, 300, 1_000, 2_500]))

    def lapse(self, milliseconds: int) -> None:
        """Advance the clock; clients without a response for a session stop."""
        self.driver.passes(milliseconds)
        for client in self.clients.values():
            if client.epoch and self.driver.now_ms - client.answered_ms >= SESSION_MS:
                client.stop()

    def _born_anew(self) -> None:
        if len(self.clients) < 6:
            self._born += 1
            free = {"i1", "i2"} - {each.instance_id for each in self.clients.values()}
            instance_id = self.rng.choice([None, None, *sorted(free)])
            client = Client(f"m{self._born}", instance_id=instance_id)
            client.names, client.pattern = self._draw()
            self.clients[client.member_id] = client

    def _draw(self) -> tuple[tuple[str, ...], str]:
        names = tuple(each for each in "abcd" if self.rng.random() < 0.5)
        return names, self.rng.choice(["", "", "[ab]", ".*"])

    def _dies(self) -> None:
        if len(self.clients) > 1:
            del self.clients[self.rng.choice([*self.clients])]

    def _leaves(self) -> None:
        if len(self.clients) > 1:
            client = self.clients.pop(self.rng.choice([*self.clients]))
            epoch = -2 if client.instance_id and self.rng.random() < 0.5 else -1
            self.driver.asks(
                ConsumerGroupHeartbeat("g", client.member_id, epoch, client.instance_id)
            )

    def _subscribes(self) -> None:
        if self.clients:
            client = self.rng.choice([*self.clients.values()])
            client.names, client.pattern = self._draw()
            client.says_all = True

    def _topics_change(self) -> None:
        topics = dict(self.driver.topics)
        name = self.rng.choice("abcd")
        known = topics.pop(name, None)
        if known is None or self.rng.random() < 0.3:
            self._lives += 1
            topics[name] = topic(name, self.rng.randrange(1, 5), self._lives)
        elif self.rng.random() < 0.7:
            topics[name] = Topic(known.topic_id, known.partitions + 1)
        self.driver.sees(topics)

    def _restarts(self) -> None:
        self.driver.open()

    def recreate_topics(self) -> None:
        """Delete and recreate all topics: they have new ids, and no owners."""
        self._lives += 1
        topics = {name: topic(name, 3, self._lives) for name in "abcd"}
        self.driver.sees(topics)

    def swap_subscriptions(self) -> None:
        """Let all subscribe to the same topics, and then each to other ones."""
        for names in (("a", "b"), ("b",), ("a",)):
            for place, client in enumerate(self.clients.values()):
                client.names, client.pattern = ("a", "b") if place else names, ""
                client.says_all = True
                self.beat(client, is_lossy=False)
            self.settle()

    def hold(self) -> None:
        """Check the group against its log and its past, and the clients for overlaps."""
        group, entries = self.driver.group, self.driver.control.entries
        fold(self._folded, entries[self._folded.end :])
        same(group, self._folded)
        consistent(group)
        epochs = self.epochs()
        assert epochs >= self._epochs
        self._epochs = epochs
        for member in group.members.values():
            seat = member.member_id, member.metadata.joined_epoch
            epoch = member.current.member_epoch
            assert epoch < 0 or epoch >= self._member_epochs.get(seat, 0)
            self._member_epochs[seat] = epoch
        owned = [each for client in self.clients.values() for each in client.owned]
        assert len(owned) == len(set(owned)), "a partition is read by two"

    def epochs(self) -> tuple[int, ...]:
        """Return the values that must never decrease."""
        return self.driver.group.group_epoch, self.driver.group.assignment_epoch

    def settle(self) -> None:
        """Stop all message losses, and wait until the group is stable."""
        for _ in range(15):
            for client in [*self.clients.values()]:
                self.beat(client, is_lossy=False)
            self.lapse(1_000)
            self.hold()
        self.hold_log()

    def hold_log(self) -> None:
        """Check the group against its whole log, as a new process reads it."""
        entries = self.driver.control.entries
        same(self.driver.group, restore("g", entries, len(entries)))

    def read_by(self) -> dict[str, set[str]]:
        """Return the subscribed topics, each with its subscribers."""
        found: dict[str, set[str]] = {}
        for member_id, subscription in self.driver.group.subscriptions.items():
            for name in subscription.topics & self.driver.topics.keys():
                found.setdefault(name, set()).add(member_id)
        return found
