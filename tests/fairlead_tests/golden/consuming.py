"""The history of a consumer group for golden logs."""

from itertools import count
from typing import Any

from fairlead.actors.group.group_shard import CoordinatorProcess, GroupShard
from fairlead.actors.group.host import drain
from fairlead.actors.group.members.commit import OffsetLedger
from fairlead.actors.messages.consumers import ConsumerGroupHeartbeat, TopicsSeen
from fairlead.actors.messages.offsets import (
    EndTransaction,
    OffsetCommit,
    OffsetDelete,
    OpenTransaction,
    TopicOffset,
)
from fairlead.events.log.writer import GroupLog
from fairlead.events.records import Topic
from fairlead_tests.consumer.driver import AT_ONCE
from fairlead_tests.coordination.driver import CoordinatorDriver

TOPICS = {"flights": Topic("FLIGHTS", 4), "trains": Topic("TRAINS", 2)}


class Consuming:
    """Consumers of a group with the logs of a stage."""

    def __init__(self, stage: CoordinatorDriver, offsets: GroupLog) -> None:
        ids, self.stage = map(str, count()), stage
        ledger = OffsetLedger(offsets)
        self.shard = GroupShard(
            stage.group,
            AT_ONCE,
            stage.settings,
            ledger,
            0,
            CoordinatorProcess(1, lambda: next(ids)),
        )

    def ask(self, request: object) -> None:
        """Send a request, and write its records."""
        self.shard.submit(request, "someone", self.stage.now)
        drain(self.shard, self.stage, self.stage.now)

    def beat(self, member_id: str, epoch: int | None = None, **said: Any) -> None:
        """Send a consumer's heartbeat; epoch 0 is a join."""
        if epoch is None:
            epoch = self.stage.group.members[member_id].current.member_epoch
        if epoch == 0:
            said = {"rebalance_timeout_ms": 60_000, "topic_partitions": {}, **said}
        self.ask(ConsumerGroupHeartbeat("connect", member_id, epoch, **said))

    def commit_in_transactions(self, epoch: int) -> None:
        """Commit in a transaction that is committed, and in one that stays open."""
        for after in (100, 102):
            transaction = OpenTransaction("copy", 7, 0, after)
            read = (TopicOffset("flights", 1, after),)
            self.ask(OffsetCommit("connect", read, "C1", epoch, transaction=transaction))
        self.ask(EndTransaction("connect", 7, 101, is_committed=True))

    def settle(self) -> None:
        """Let all members acknowledge their assignment until the group is stable."""
        for _ in range(6):
            for member in [*self.stage.group.members.values()]:
                owned: dict[str, tuple[int, ...]] = {}
                for topic, partition in sorted(member.current.assigned):
                    owned[topic.upper()] = (*owned.get(topic.upper(), ()), partition)
                if member.current.member_epoch > 0:
                    self.beat(member.member_id, topic_partitions=owned)

    def lead(self) -> None:
        """Produce the history."""
        self.ask(TopicsSeen(TOPICS))
        self.beat("C1", 0, subscribed_topic_names=("flights", "trains"), client_id="c")
        static = {"instance_id": "i2", "server_assignor": "range", "rack_id": "r"}
        self.beat("C2", 0, subscribed_topic_regex="f.*", **static)
        self.settle()
        self.ask(TopicsSeen({**TOPICS, "ferries": Topic("FERRIES", 1)}))
        self.settle()
        epoch = self.stage.group.members["C1"].current.member_epoch
        read = TopicOffset("flights", 0, 7, 3, "note"), TopicOffset("trains", 1, 9)
        self.ask(OffsetCommit("connect", read, "C1", epoch))
        self.commit_in_transactions(epoch)
        self.beat("C1", subscribed_topic_names=())
        self.ask(OffsetDelete("connect", {"trains": (1,)}))
        self.settle()
        self.beat("C2", -2, instance_id="i2")
        self.stage.now_ms += 1_000
        self.beat("C3", 0, subscribed_topic_regex="f.*", instance_id="i2")
        self.beat("C1", -1)
        self.settle()
