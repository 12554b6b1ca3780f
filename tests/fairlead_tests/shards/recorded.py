"""The history of some groups of Kafka clients, in the logs of their shard."""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fairlead.actors.classic.bytes.consumer import (
    PartitionAssignment,
    Subscription,
    encode_assignment,
    encode_subscription,
)
from fairlead.actors.messages.classic import JoinGroup, JoinGroupReply, SyncGroup
from fairlead.actors.messages.consumers import ConsumerGroupHeartbeat
from fairlead.actors.messages.groups import TellTopics
from fairlead.actors.messages.offsets import OffsetCommit, TopicOffset
from fairlead.events.entries.codec import restore
from fairlead.events.entries.group_keys import by_group
from fairlead.events.group import Group
from fairlead.events.log.frame import Entry
from fairlead.events.log.writer import GroupLog
from fairlead.events.model import ClassicMember, ClassicProtocol, Resource
from fairlead.events.records import Topic
from fairlead_tests.shards.driver import AT_ONCE, ShardDriver

TOPICS = {"orders": Topic("ORDERS", 4), "clicks": Topic("CLICKS", 2)}
HOST = "/10.0.0.7"


class Written:
    """The reader's view of a log that is open for writing: a process can open it only once."""

    def __init__(self, log: GroupLog) -> None:
        self._log = log

    def __getattr__(self, name: str) -> Any:
        return getattr(self._log, name)

    def end(self) -> int:
        """Return the offset behind the last entry."""
        return self._log.end

    def tail(self, start: int) -> Iterator[list[Entry]]:
        """Yield the entries from an offset on."""
        while entries := self._log.read(start, 7).entries:
            start = entries[-1].offset + 1
            yield entries


@dataclass
class Clients:
    """Kafka's clients in the first shard of a data folder."""

    data_dir: Path
    shards: int = 1
    """How many shards there are."""

    def __post_init__(self) -> None:
        folder = self.data_dir / "shards" / "0"
        self.shard = ShardDriver(folder, AT_ONCE, shards=self.shards)
        self.shard.asks(TellTopics(TOPICS))

    def close(self) -> None:
        """Close the logs, so that they can be read."""
        self.shard.close()

    @property
    def control(self) -> Any:
        """The control log, to be read."""
        return Written(self.shard.log)

    @property
    def offsets(self) -> Any:
        """The offset log, to be read."""
        return Written(self.shard.offsets)

    def group(self, group_id: str) -> Group:
        """Return a group from its log."""
        entries = by_group(self.shard.log.load().entries).get(group_id, [])
        return restore(group_id, entries, self.shard.log.end)

    def commits(self, group_id: str, member_id: str, epoch: int, *offsets: TopicOffset) -> None:
        """Commit offsets for a member, or without one."""
        self.shard.asks(OffsetCommit(group_id, offsets, member_id, epoch))

    # -- consumers of KIP-848

    def joins(self, group_id: str, member_id: str, *topics: str, **told: Any) -> None:
        """Let a consumer join; its client id is by default the first word of its member id."""
        fields: dict[str, Any] = {
            "client_id": member_id.partition("-")[0],
            "client_host": HOST,
            "rebalance_timeout_ms": 20_000,
            "subscribed_topic_names": topics,
            "topic_partitions": {},
        }
        self.shard.asks(ConsumerGroupHeartbeat(group_id, member_id, 0, **{**fields, **told}))

    def goes(self, group_id: str, member_id: str, epoch: int = -1, **told: Any) -> None:
        """Let a consumer leave."""
        self.shard.asks(ConsumerGroupHeartbeat(group_id, member_id, epoch, **told))

    def beats(self, group_id: str, member_id: str) -> None:
        """Send a heartbeat of a consumer that owns exactly its assignment."""
        current = self.group(group_id).members[member_id].current
        owned: dict[str, tuple[int, ...]] = {}
        for name, number in sorted(current.assigned):
            topic_id = TOPICS[name].topic_id
            owned[topic_id] = (*owned.get(topic_id, ()), number)
        told = current.member_epoch
        beat = ConsumerGroupHeartbeat(group_id, member_id, told, topic_partitions=owned)
        self.shard.asks(beat)

    def settles(self, group_id: str) -> None:
        """Let all consumers acknowledge their assignment until the group is stable."""
        for _ in range(20):
            end = self.shard.log.end
            for member_id in [*self.group(group_id).members]:
                self.shard.passes(50)
                self.beats(group_id, member_id)
            if self.shard.log.end == end:
                return
        raise AssertionError(f"{group_id} does not come to rest")

    # -- consumers of the classic protocol

    def agrees(
        self, group_id: str, *given: tuple[str, str], statics: Collection[str] = ()
    ) -> list[str]:
        """Have a classic group agree on who has what, a member and its partitions each.

        One that has joined before is named by its member id, a new one by its client id, which is
        its instance id as well if it is a static one. Returns their member ids.
        """
        offered = (ClassicProtocol("range", encode_subscription(Subscription(["orders"]))),)
        told = [
            (name, offered, encode_assignment(PartitionAssignment(partitions(text))))
            for name, text in given
        ]
        return self.has_round(group_id, "consumer", told, statics)

    def has_round(
        self,
        group_id: str,
        protocol_type: str,
        said: Sequence[tuple[str, tuple[ClassicProtocol, ...], bytes]],
        statics: Collection[str] = (),
    ) -> list[str]:
        """Have a classic group join anew; each member with what it offers, and what it is given.

        Returns their member ids.
        """
        known = {each.member_id for each in self.seats(group_id)}
        replies: list[Any] = []
        for name, offered, _ in sorted(said, key=lambda each: each[0] in known):
            label = name.rpartition("-")[0] if name in known else name
            join = JoinGroup(
                group_id,
                name if name in known else "",
                protocol_type,
                offered,
                6_000,
                20_000,
                label if label in statics else None,
                label,
                HOST,
                asks_for_id=False,
            )
            replies += self.shard.asks(join)
        told = {each.member_id: each for each in replies if isinstance(each, JoinGroupReply)}
        names = [name for name, *_ in said]
        ids = [next(i for i in reversed(told) if i == n or i.startswith(f"{n}-")) for n in names]
        given = dict(zip(ids, (each for *_, each in said), strict=True))
        last = [*told.values()][-1]
        for each in sorted(ids, key=lambda each: each != last.leader):
            mine = given if each == last.leader else {}
            self.shard.asks(SyncGroup(group_id, each, last.generation, assignments=mine))
        return ids

    def seats(self, group_id: str) -> tuple[ClassicMember, ...]:
        """Return the members of the last generation."""
        last = self.group(group_id).classic
        return last.members if last else ()

    def leaves(self, group_id: str, member_id: str) -> None:
        """Let a classic member leave."""
        self.shard.leaves(group_id, member_id)


def live(data_dir: Path, shards: int = 1) -> None:
    """Record the history of the groups `billing`, `pay`, `resets` and `registry`.

    Of the consumers of `billing` app stays, web comes and leaves, and comes again as a static
    member that takes over when app is silent. The classic ones of `pay` share partitions out until
    y leaves; then a consumer of KIP-848 converts the group, and leaves. `resets` has offsets and
    never a member, and the members of `registry` are no consumers.
    """
    clients = Clients(data_dir, shards)
    clients.joins("billing", "app-1111aaaa", "orders")
    clients.settles("billing")
    clients.shard.passes(1_000)
    clients.joins("billing", WEB, "orders", client_id="web")
    clients.settles("billing")
    clients.shard.passes(1_000)
    clients.goes("billing", WEB)
    clients.settles("billing")
    clients.joins("billing", AGAIN, "orders", client_id="web", instance_id="w1")
    clients.settles("billing")
    for _ in range(3):
        clients.shard.passes(2_500)
        clients.beats("billing", AGAIN)
    epoch = clients.group("billing").members[AGAIN].current.member_epoch
    read = TopicOffset("orders", 1, 17), TopicOffset("orders", 2, 4, 1, "note")
    clients.commits("billing", AGAIN, epoch, *read)
    (x,) = clients.agrees("pay", ("x", "orders-0 orders-1 orders-2 orders-3"))
    x, y = clients.agrees("pay", (x, "orders-0 orders-1"), ("y", "orders-2 orders-3"))
    clients.leaves("pay", y)
    clients.agrees("pay", (x, "orders-0 orders-1 orders-2 orders-3"))
    clients.joins("pay", "modern", "orders")
    clients.goes("pay", "modern")
    clients.agrees("pay", (x, "orders-0 orders-1 orders-2 orders-3"))
    clients.commits("resets", "", -1, TopicOffset("clicks", 1, 99))
    clients.shard.member_of("registry")
    clients.close()


WEB, AGAIN = "7QyFKHtlTf2r6QOUsL83KA", "X3yFKHtlTf2r6QOUsL83KA"
"""Member ids as Java's consumers make them."""


def partitions(text: str) -> list[Resource]:
    """Return partitions by their short forms, without blanks within."""
    return [Resource(topic, int(number)) for topic, number in _split(text)]


def _split(text: str) -> list[list[str]]:
    return [each.rsplit("-", 1) for each in text.split()]
