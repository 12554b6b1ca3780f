"""A driver of one consumer group, with logs and a virtual clock."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import count
from typing import Any

from fairlead.actors.consumer.calls import CONSUMERS
from fairlead.actors.consumer.offsets.clean_up import topics_changed
from fairlead.actors.group.group_shard import CoordinatorProcess, GroupShard
from fairlead.actors.group.host import drain
from fairlead.actors.group.members.commit import OffsetLedger
from fairlead.actors.group.state.settings import GroupSettings
from fairlead.actors.messages.classic import ClassicHeartbeat
from fairlead.actors.messages.consumers import (
    ConsumerGroupHeartbeat,
    ConsumerGroupHeartbeatReply,
    TopicsSeen,
)
from fairlead.actors.timing import Now
from fairlead.events.entries.codec import restore
from fairlead.events.group import Group
from fairlead.events.log.frame import Entry, NewEntry
from fairlead.events.records import Topic

SESSION_MS, INTERVAL_MS, REBALANCE_MS = 6_000, 1_000, 20_000
SETTINGS = GroupSettings(
    session_timeout_ms=SESSION_MS, heartbeat_interval_ms=INTERVAL_MS, initial_delay_ms=0
)
WALL_MS = 1_700_000_000_000


@dataclass
class MemoryLog:
    """A log in memory."""

    entries: list[Entry] = field(default_factory=list[Entry])

    def append(self, entries: Sequence[NewEntry], wall_ms: int) -> None:
        """Append to it."""
        for each in entries:
            offset = len(self.entries)
            self.entries.append(Entry(offset, *each[:3], wall_ms, each.value))

    def scan(self, kind: int, key_prefix: bytes = b"") -> list[Entry]:
        """Return the latest entries with this key prefix."""
        latest = {each.key: each for each in self.entries if each.type == kind}
        found = (latest[key] for key in sorted(latest) if key.startswith(key_prefix))
        return [each for each in found if each.value is not None]

    def get(self, kind: int, key: bytes) -> Entry | None:
        """Return the latest entry of a key."""
        return next((each for each in self.scan(kind, key) if each.key == key), None)


def topic(name: str, partitions: int, life: int = 0) -> Topic:
    """Return a topic whose id is derived from its name, and from how often it was created."""
    return Topic(f"{name}#{life}", partitions)


AT_ONCE = replace(CONSUMERS, holds_heartbeats=False)
"""A group of consumers whose heartbeats are answered at once."""


@dataclass
class ConsumerDriver:
    """Drives the shard of one group, as its process does."""

    group_id: str = "g"
    settings: GroupSettings = SETTINGS
    now_ms: int = 0
    control: MemoryLog = field(default_factory=MemoryLog)
    offsets: MemoryLog = field(default_factory=MemoryLog)
    topics: Mapping[str, Topic] = field(default_factory=lambda: {"t4": topic("t4", 4)})
    seen: Mapping[str, Topic] | None = None
    """The topics that the process has told the group."""
    said: dict[int, Any] = field(default_factory=dict[int, Any])
    """The replies, by the number of the call."""
    numbers: Iterator[int] = field(default_factory=lambda: count(1))
    ids: Iterator[int] = field(default_factory=lambda: count(1))

    def __post_init__(self) -> None:
        self.open()

    def open(self, *, is_told: bool = True) -> None:
        """Restart from the log, as a new process, which may know the topics already."""
        entries = self.control.entries
        self.seen = None
        group: Group = restore(self.group_id, entries, len(entries))
        ledger = OffsetLedger(self.offsets)
        self.shard = GroupShard(
            group,
            AT_ONCE,
            self.settings,
            ledger,
            self.now_ms,
            CoordinatorProcess(new_id=lambda: f"u{next(self.ids)}"),
        )
        if is_told:
            self.sees(self.topics)

    @property
    def group(self) -> Group:
        """The current group."""
        return self.shard.group

    @property
    def now(self) -> Now:
        """The current time."""
        return Now(WALL_MS + self.now_ms, self.now_ms)

    def append_offsets(self, entries: Sequence[NewEntry], now: Now) -> None:
        """Append to the offset log."""
        self.offsets.append(entries, now.wall_ms)

    def append(self, entries: Sequence[NewEntry], now: Now) -> None:
        """Append to the control log."""
        self.control.append(entries, now.wall_ms)

    def flush(self) -> None:
        """Append the records, and keep the replies."""
        for each in drain(self.shard, self, self.now):
            self.said[getattr(each.reply, "number", 0)] = each.reply

    def sees(self, topics: Mapping[str, Topic]) -> None:
        """Send the current topics to the group."""
        changed = topics_changed(self.seen, topics)
        self.topics = self.seen = topics
        self.shard.submit(TopicsSeen(topics, changed=changed), "cluster", self.now)
        self.flush()

    def ask(self, request: object) -> int:
        """Send a request; return its number."""
        number = next(self.numbers)
        numbered: Any = request
        self.shard.submit(replace(numbered, number=number), "somebody", self.now)
        self.flush()
        return number

    def asks(self, request: object) -> Any:
        """Send a request; return its reply, None if that is held."""
        return self.said.get(self.ask(request))

    def asks_plain(self, request: object) -> Any:
        """Send a request whose reply has no number; return the reply."""
        self.said.pop(0, None)
        self.shard.submit(request, "somebody", self.now)
        self.flush()
        return self.said.get(0)

    def repeats(self, call: ClassicHeartbeat | ConsumerGroupHeartbeat) -> Any:
        """Send a heartbeat by the fast path; return its reply, None if it has to be decided."""
        answers = self.shard.repeat(call, "somebody", self.now)
        return None if answers is None else answers[0].reply

    def passes(self, milliseconds: int) -> None:
        """Advance the clock, running all timers meanwhile."""
        end_ms = self.now_ms + milliseconds
        while self.now_ms < end_ms:
            due_ms = self.shard.next_tick_ms(self.now)
            self.now_ms = min(end_ms, max(due_ms, self.now_ms + 1))
            self.shard.run_timers(self.now)
            self.flush()

    def joins(self, member_id: str, *names: str, **told: Any) -> ConsumerGroupHeartbeatReply:
        """Let a consumer with a subscription join."""
        fields: dict[str, Any] = {
            "rebalance_timeout_ms": REBALANCE_MS,
            "topic_partitions": {},
            "subscribed_topic_names": names,
        }
        reply = self.asks(ConsumerGroupHeartbeat(self.group_id, member_id, 0, **{**fields, **told}))
        assert isinstance(reply, ConsumerGroupHeartbeatReply)
        return reply

    def beats(self, member_id: str, epoch: int | None = None, **told: Any) -> Any:
        """Send a consumer's heartbeat, by default with its logged epoch."""
        if epoch is None:
            epoch = self.group.members[member_id].current.member_epoch
        if epoch == 0:  # there is no target yet: it repeats its join
            names = self.group.subscriptions[member_id].names
            return self.joins(member_id, *names, **{**told, "topic_partitions": {}})
        return self.asks(ConsumerGroupHeartbeat(self.group_id, member_id, epoch, **told))

    def acknowledges(self, member_id: str) -> ConsumerGroupHeartbeatReply:
        """Send a heartbeat in which a consumer owns exactly its assignment."""
        owned: dict[str, tuple[int, ...]] = {}
        topics = self.group.topics or {}
        for name, partition in sorted(self.group.members[member_id].current.assigned):
            topic_id = topics[name].topic_id
            owned[topic_id] = (*owned.get(topic_id, ()), partition)
        reply = self.beats(member_id, topic_partitions=owned)
        assert isinstance(reply, ConsumerGroupHeartbeatReply)
        return reply

    def settles(self) -> None:
        """Let all members acknowledge until the group is stable."""
        for _ in range(20):
            end = len(self.control.entries)
            for member in [*self.group.members.values()]:
                if not member.is_away:
                    self.acknowledges(member.member_id)
            if len(self.control.entries) == end:
                return
        raise AssertionError("the group does not come to rest")

    def holds(self) -> dict[str, str]:
        """Return the assignment of each member."""
        members = self.group.members.items()
        return {
            each: " ".join(map(str, sorted(member.current.assigned))) for each, member in members
        }
