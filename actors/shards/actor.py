"""The process of many groups: what a host asks comes packed, and so are the answers."""

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from ...events.entries.group_keys import SHARED_CONTROL, SHARED_OFFSETS, name_shard
from ...events.log.errors import WrongLogError
from ..door.actor import Address, Failure
from ..group.actor import Flush, HostActor, HostedLogs, Ping, Pong, clocks, new_id
from ..group.shard import AddressedReply
from ..group.state.settings import GroupSettings
from ..messages.commands import DescribeTraffic
from ..messages.groups import FindStream, HostCall
from .host_side import HostSide, SendRest
from .hosting import HostedGroups

SILENT_MS: Final = 1_000
"""How long a host may say nothing: then it is away, and so are its members."""


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


class WrongShardCountError(Exception):
    """Groups were spread over another number of shards: here nobody would find them."""


class ShardActor(HostActor[HostCall]):
    """Many groups, whose whole state is the fold of one log."""

    def __init__(self) -> None:
        super().__init__()
        self._groups: HostedGroups | None = None
        """What it is the shell of."""
        self._host = HostSide(self._begin_host, self.wake_after)
        self._heard_ms = clocks().steady_ms
        """When a host has spoken last, steady clock."""

    def receive(self, message: object, sender: Address) -> None:
        """Open the groups, or queue what is asked of them."""
        if isinstance(message, OpenShard):
            self._open(message, sender)
        elif isinstance(message, Ping):
            self.send(sender, Pong())
        elif self._shard is None:
            self.send(sender, Failure("the groups are not open yet: ask again"))
        elif isinstance(message, FindStream):
            self.send(sender, self._host.place(self._shard.coordinator_epoch))
        elif isinstance(message, DescribeTraffic):
            self.send(sender, self._shard.traffic())
        else:
            self.send(sender, Failure(f"groups do not understand {type(message).__name__}"))

    def watched(self) -> Sequence[int]:
        """Return the descriptors by which the host speaks."""
        return self._host.watched

    def readable(self, numbers: Sequence[int]) -> None:
        """Decide what the host asks; it packs itself what came together."""
        for calls in self._host.read(numbers):
            self._hear_host()
            self._queue += [(each, self._host.number) for each in calls]
            self.woken(Flush())

    def woken(self, payload: object) -> None:
        """Decide what has arrived, or go on telling."""
        if isinstance(payload, SendRest):
            self._host.send_rest()
        else:
            self._miss_host()
            super().woken(payload)

    def say(self, answers: Sequence[AddressedReply]) -> None:
        """Tell the host what is known by now."""
        self._host.say(each.reply for each in answers if each.to == self._host.number)

    def _begin_host(self) -> None:
        """Have nobody heard until the host is: members have to find the new one first."""
        if self._groups is not None:
            self._groups.hear_nobody(self._heard_ms)

    def _miss_host(self) -> None:
        """Let no time pass while there is no host: nobody's silence is its own then."""
        is_silent = clocks().steady_ms - self._heard_ms > SILENT_MS
        if is_silent and self._groups is not None:
            self._groups.hear_nobody(self._heard_ms)

    def _hear_host(self) -> None:
        now, groups = clocks(), self._groups
        self._heard_ms = now.steady_ms
        if groups is not None and groups.hear_again(now):
            self._wake_in_time(groups, now)

    def _open(self, order: OpenShard, sender: Address) -> None:
        if self._shard is None:
            now, name = clocks(), name_shard(order.number, order.count)
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
