"""The actor of a group shard: it serves the calls of the listener process (the host) in batches.

It computes targets beside its loop: a large group's takes tens of milliseconds, in which all other
groups would wait. A thread runs the assignors, one computation after another. Its results come by a
queue, and a pipe wakes the loop for them.
"""

import os
import secrets
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from queue import SimpleQueue
from typing import Final

from ...events.entries.group_keys import SHARED_CONTROL, SHARED_OFFSETS, name_shard
from ...events.entries.retention import UNLIMITED, Retention
from ...events.log.errors import WrongLogError
from ...events.stores.opening import StoreSpec
from ..group.computing.compute import run_assignor
from ..group.evolving_group import HostComputation
from ..group.group_shard import CoordinatorProcess
from ..group.members.request_filter import SALTS, first_epoch
from ..group.state.settings import DEFAULT_LIMITS, GroupSettings, ShardLimits
from ..messages.commands import (
    AddressedReply,
    CommandReply,
    DescribeTraffic,
    RequestedCommand,
)
from ..messages.computing import EndComputation, InstallReply, PrepareReply
from ..messages.groups import (
    AlterGroupConfigsReply,
    ConnectReply,
    FindStream,
    HostCall,
    HostReply,
    PackedReply,
    as_call,
)
from ..messages.members import HeartbeatReply
from ..messages.orders import ConfigureGroup
from ..transport.actor import Address, Failure
from .figures import FiguresFile
from .host_actor import CommandSender, Flush, HostActor, Ping, Pong, clocks, new_id
from .host_connection import HostConnection, SendRest
from .hosted_logs import HostedLogs, open_logs
from .hosting import ConnectCaller, HostedGroups

SILENT_MS: Final = 2_000
"""How long the host may be silent before it, and its members, count as disconnected."""

Ended = tuple[str, EndComputation]
"""A group id, and the result for that group."""


class TargetComputer:
    """The thread that computes targets; it starts with the first computation."""

    def __init__(self) -> None:
        self._queue: SimpleQueue[tuple[str, HostComputation]] = SimpleQueue()
        """The computations that the thread has not begun, by group id."""
        self._ended: SimpleQueue[Ended] = SimpleQueue()
        """The results that the loop has not handled yet."""
        self._thread: threading.Thread | None = None
        self._read_end, self._write_end = os.pipe()
        """A pipe with a byte while there are results: the loop waits for it."""
        os.set_blocking(self._read_end, False)
        os.set_blocking(self._write_end, False)

    def fileno(self) -> int:
        """Return the descriptor that has input once a computation has ended."""
        return self._read_end

    def start(self, computations: Mapping[str, HostComputation]) -> None:
        """Compute these, by group id."""
        if computations and self._thread is None:
            self._thread = threading.Thread(target=self._run, name="targets", daemon=True)
            self._thread.start()
        for each in computations.items():
            self._queue.put(each)

    def ended(self) -> Iterator[Ended]:
        """Yield the results since the last call."""
        try:
            os.read(self._read_end, 4_096)
        except BlockingIOError:
            return
        while not self._ended.empty():
            yield self._ended.get()

    def _run(self) -> None:
        while True:
            group_id, (number, assignor, computes, snapshot) = self._queue.get()
            found = run_assignor(assignor, computes, snapshot)
            self._ended.put((group_id, EndComputation(number, *found)))
            with suppress(BlockingIOError):  # it is woken already
                os.write(self._write_end, b"\0")


@dataclass(frozen=True, slots=True)
class OpenShard:
    """To a shard actor: open this shard, with the logs in this folder."""

    number: int
    count: int
    """The number of shards; groups are spread over them by their ids."""
    folder: Path
    settings: GroupSettings
    limits: ShardLimits = DEFAULT_LIMITS
    had_logs: bool = False
    """Whether it was open before: then missing logs are an error, not an empty shard."""
    figures: Path | None = None
    """The file for the figures of its process."""
    retention: Retention = UNLIMITED
    """How much of its history the control log keeps."""
    store: StoreSpec | None = None
    """Where its commits count; None: in its folder."""


@dataclass(frozen=True, slots=True)
class ShardOpened:
    """From a shard actor: the groups are recovered from their log, and accept calls."""

    number: int
    pid: int
    groups: int
    """The number of groups in the shard."""


def _is_of_people(answer: AddressedReply) -> bool:
    return isinstance(answer.to, CommandSender)


def _as_reply(answer: AddressedReply) -> AddressedReply:
    """Return the answer to a change of settings as that to a command."""
    assert isinstance(answer.reply, AlterGroupConfigsReply)  # noqa: S101  # nothing else is asked
    reply = CommandReply(answer.reply.error, answer.reply.message)
    return AddressedReply(answer.to, reply)


class OffloadingGroups(HostedGroups):
    """Groups whose targets are computed beside the loop."""

    offloads = True


class WrongShardCountError(Exception):
    """The log was written with another number of shards, so its groups would not be found."""


class ShardActor(HostActor[HostCall]):
    """Many groups, with one log as their whole state."""

    def __init__(self) -> None:
        super().__init__()
        self._groups: HostedGroups | None = None
        """The groups, once the shard is open."""
        self._computer = TargetComputer()
        """Computes targets on a thread of its own."""
        self._host = HostConnection(self._suspend_timers, self.wake_after)
        """The streams of the listener process."""
        self._last_input_ms = clocks().steady_ms
        """When the host sent something last, steady clock."""

    def receive(self, message: object, sender: Address) -> None:
        """Open the shard, or queue calls of its groups."""
        if isinstance(message, OpenShard):
            self._open(message, sender)
        elif isinstance(message, Ping):
            self.send(sender, Pong())
        elif self._group_host is None:
            self.send(sender, Failure("the groups are not open yet: ask again"))
        elif isinstance(message, FindStream):
            self.send(sender, self._host.address(self._group_host.coordinator_epoch))
        elif isinstance(message, DescribeTraffic):
            self.send(sender, self._group_host.traffic())
        elif isinstance(message, RequestedCommand) and isinstance(message.command, ConfigureGroup):
            self.enqueue(as_call(message.command), CommandSender(sender, message))
        else:
            self.send(sender, Failure(f"groups do not understand {type(message).__name__}"))

    def watched(self) -> Sequence[int]:
        """Return the descriptors of the host's streams."""
        return [*self._host.watched, self._computer.fileno()]

    def readable(self, numbers: Sequence[int]) -> None:
        """Handle computed targets, and the calls of the host, one packet after another."""
        self._arrived_at = time.perf_counter()
        with self._figures.working():
            self._read(numbers)

    def _read(self, numbers: Sequence[int]) -> None:
        of_host = [each for each in numbers if each != self._computer.fileno()]
        if len(of_host) < len(numbers) and self._groups is not None:
            for each in self._computer.ended():
                self._groups.end_computation(*each, clocks())
            self.woken(Flush())
        for calls in self._host.read(of_host) if of_host else ():
            self._note_input()
            self._queue += [(each, self._host.number) for each in calls]
            self.woken(Flush())

    def woken(self, payload: object) -> None:
        """Handle queued calls and timers, or continue sending."""
        if isinstance(payload, SendRest):
            self._host.send_rest()
        else:
            self._suspend_if_silent()
            super().woken(payload)
        if self._groups is not None:
            self._computer.start(self._groups.take_computations())

    def send_answers(self, answers: Sequence[AddressedReply]) -> None:
        """Send replies to the host, and tell it which of its calls get none."""
        super().send_answers([_as_reply(each) for each in answers if _is_of_people(each)])
        of_host = (each for each in answers if not _is_of_people(each))
        replies = [packed for each in of_host if (packed := self._packed(each)) is not None]
        given_up = self._groups.take_given_up() if self._groups is not None else ()
        host = self._host.number
        nothing = [ConnectReply(None, each.number) for each in given_up if each.host == host]
        self._host.send_replies([*replies, *nothing])

    def _packed(self, answer: AddressedReply) -> PackedReply | None:
        """Return an answer as the host expects it; None if it is for an earlier host."""
        to, reply = answer.to, answer.reply
        if isinstance(to, ConnectCaller):
            assert isinstance(reply, HeartbeatReply | PrepareReply | InstallReply)  # noqa: S101
            return ConnectReply(reply, to.number) if to.host == self._host.number else None
        assert isinstance(reply, HostReply)  # noqa: S101  # as the calls of a host are
        return reply if to == self._host.number else None

    def _suspend_timers(self) -> None:
        """Suspend member timers until the new host sends calls: members have to reconnect first."""
        if self._groups is not None:
            self._groups.suspend_timers(self._last_input_ms)

    def _suspend_if_silent(self) -> None:
        """Suspend member timers while the host is away: members cannot reach the shard."""
        is_silent = clocks().steady_ms - self._last_input_ms > SILENT_MS
        if is_silent and self._groups is not None and not self._host.has_input:
            self._groups.suspend_timers(self._last_input_ms)

    def _note_input(self) -> None:
        now, groups = clocks(), self._groups
        self._last_input_ms = now.steady_ms
        if groups is not None and groups.resume_timers(now):
            self._wake_in_time(groups, now)

    def _open(self, order: OpenShard, sender: Address) -> None:
        if self._group_host is None:
            now, name = clocks(), name_shard(order.number, order.count)
            began = time.perf_counter()
            kinds = (SHARED_CONTROL, SHARED_OFFSETS)
            try:
                self._logs = HostedLogs(
                    open_logs(order.folder, name, kinds, order.store, had_logs=order.had_logs),
                    order.retention,
                )
            except WrongLogError as error:
                raise WrongShardCountError(
                    f"kafka.group.shards = {order.count} is not what the groups in"
                    f" {order.folder.parent} were spread over ({error}): set it back"
                ) from None
            entries, _ = self._logs.control.load()
            epoch = first_epoch(self._logs.control.epoch, secrets.randbelow(SALTS))
            process = CoordinatorProcess(epoch, new_id, self.users_assignors())
            groups = OffloadingGroups(entries, self._logs.offsets, order.settings, process, now)
            groups.kept.limits = order.limits
            self._groups, self._last_input_ms = groups, now.steady_ms
            figures = FiguresFile(order.figures)
            figures.begin(time.perf_counter() - began)
            self.begin(groups, now, figures)
            self._opened = ShardOpened(order.number, os.getpid(), len(groups))
        self.send(sender, self._opened)
