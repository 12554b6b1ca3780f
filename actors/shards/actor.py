"""The process of many groups: what a host asks comes packed, and so are the answers.

A host has two lines: on one it sends the calls of a tick and is answered at once, with all that is
known by then; on the other it waits for what had to wait. So neither side ever speaks unasked.
"""

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from ...events.entries.group_keys import SHARED_CONTROL, SHARED_OFFSETS
from ...events.log.errors import WrongLogError
from ..door.actor import Address, Failure
from ..group.actor import HostActor, HostedLogs, Ping, Pong, clocks, new_id
from ..group.shard import AddressedReply
from ..group.state.settings import GroupSettings
from ..messages.commands import DescribeTraffic
from ..messages.groups import AwaitReplies, GroupCalls, GroupReplies, HostCall
from .hosting import HostedGroups
from .packets import Undelivered

WAIT_SECONDS: Final = 1.0
"""How long a host waits for later answers at most: then it is told that there are none."""
SILENT_MS: Final = 1_000
"""How long a host that does not wait may say nothing: then it is away, and so are its members."""


@dataclass(frozen=True, slots=True)
class OpenShard:
    """Which of how many shards the actor is, and where its logs lie."""

    number: int
    count: int
    folder: Path
    settings: GroupSettings
    had_logs: bool = False
    """Whether it was open before: an empty shard must not take the place of logs that are gone."""


@dataclass(frozen=True, slots=True)
class ShardOpened:
    """The groups are rebuilt from their log, and take calls."""

    number: int
    pid: int
    groups: int


@dataclass(frozen=True, slots=True)
class _EndWait:
    """A host has waited for long enough; the number is that of its question."""

    number: int


class WrongShardCountError(Exception):
    """Groups were spread over another number of shards: here nobody would find them."""


class ShardActor(HostActor[HostCall]):
    """Many groups, whose whole state is the fold of one log."""

    def __init__(self) -> None:
        super().__init__()
        self._groups: HostedGroups | None = None
        """What it is the shell of."""
        self._host = 0
        """The latest host that has spoken; what others wait for is said to nobody."""
        self._calling: Address | None = None
        """Where the host waits for the answer to its last packet of calls."""
        self._seen = 0
        """The number of the host's last packet: one that comes a second time is dropped."""
        self._waiting: Address | None = None
        """Where the host waits for later answers."""
        self._waits = 0
        """How often it has begun to."""
        self._heard_ms = clocks().steady_ms
        """When a host has spoken last, steady clock."""
        self._outbox = Undelivered()
        """What the host is to be told next."""
        self._told: dict[type, GroupReplies] = {}
        """What each of the host's two ways was told last, which may be lost; by what it asks."""
        self._tellings = 0

    def receive(self, message: object, sender: Address) -> None:
        """Open the groups, or queue what is asked of them."""
        if isinstance(message, OpenShard):
            self._open(message, sender)
        elif isinstance(message, Ping):
            self.send(sender, Pong())
        elif self._shard is None:
            self.send(sender, Failure("the groups are not open yet: ask again"))
        elif isinstance(message, GroupCalls | AwaitReplies):
            if self._is_of_latest(message.host):
                self._hear_host()
                self._take(message, sender)
        elif isinstance(message, DescribeTraffic):
            self.send(sender, self._shard.traffic())
        else:
            self.send(sender, Failure(f"groups do not understand {type(message).__name__}"))

    def woken(self, payload: object) -> None:
        """Decide what has arrived, or end a wait."""
        if isinstance(payload, _EndWait):
            if payload.number == self._waits:
                self._tell_waiting()
        else:
            self._miss_host()
            super().woken(payload)

    def say(self, answers: Sequence[AddressedReply]) -> None:
        """Tell the host, if it asks; what it does not ask for now it is told later."""
        self._outbox.add(each.reply for each in answers if each.to == self._host)
        calling, self._calling = self._calling, None
        if calling is not None:
            self._tell(calling, GroupCalls)
        if self._outbox:
            self._tell_waiting()

    def _is_of_latest(self, host: int) -> bool:
        """Tell whether a host is the latest; one that is new has asked nothing yet."""
        if host > self._host:
            if self._groups is not None:
                self._groups.hear_nobody(self._heard_ms)  # they have to find the new one first
            self._host, self._seen, self._waiting, self._calling = host, 0, None, None
            self._outbox.clear()
            self._told.clear()
        return host == self._host

    def _miss_host(self) -> None:
        """Let no time pass while there is no host: nobody's silence is its own then."""
        is_silent = clocks().steady_ms - self._heard_ms > SILENT_MS
        if is_silent and self._waiting is None and self._groups is not None:
            self._groups.hear_nobody(self._heard_ms)

    def _hear_host(self) -> None:
        now, groups = clocks(), self._groups
        self._heard_ms = now.steady_ms
        if groups is not None and groups.hear_again(now):
            self._wake_in_time(groups, now)

    def _take(self, message: GroupCalls | AwaitReplies, sender: Address) -> None:
        if isinstance(message, AwaitReplies):
            self._tell_anew(message)
            self._waiting, self._waits = sender, self._waits + 1
            self.wake_after(WAIT_SECONDS, _EndWait(self._waits))
            if self._outbox:
                self._tell_waiting()
        elif message.number > self._seen:
            self._tell_anew(message)
            self._seen = message.number
            self._calling = sender
            for call in message.calls:
                self.enqueue(call, self._host)

    def _tell_waiting(self) -> None:
        if (waiting := self._waiting) is not None:
            self._waiting = None
            self._tell(waiting, AwaitReplies)

    def _tell(self, sender: Address, way: type) -> None:
        epoch = 0 if self._shard is None else self._shard.coordinator_epoch
        self._tellings += 1
        number = (epoch << 32) + self._tellings
        told = self._told[way] = GroupReplies(epoch, tuple(self._outbox.take()), number)
        self.send(sender, told)

    def _tell_anew(self, message: GroupCalls | AwaitReplies) -> None:
        """Tell once more what has not come to who asks: by now it waits for that no longer."""
        told = self._told.pop(type(message), None)
        if told is not None and told.number != message.heard:
            self._outbox.put_back(told.replies)

    def _open(self, order: OpenShard, sender: Address) -> None:
        if self._shard is None:
            now, name = clocks(), f"shard {order.number} of {order.count}"
            kinds = (SHARED_CONTROL, SHARED_OFFSETS)
            try:
                self._logs = HostedLogs(order.folder, name, kinds, had_logs=order.had_logs)
            except WrongLogError as error:
                raise WrongShardCountError(
                    f"kafka.group.shards = {order.count} is not what the groups in"
                    f" {order.folder.parent} were spread over ({error}): set it back"
                ) from None
            entries, _ = self._logs.control.load()
            epoch = self._logs.control.epoch
            groups = HostedGroups(entries, self._logs.offsets, order.settings, epoch, now, new_id)
            self._groups, self._heard_ms = groups, now.steady_ms
            self.begin(groups, now)
            self._opened = ShardOpened(order.number, os.getpid(), len(groups))
        self.send(sender, self._opened)
