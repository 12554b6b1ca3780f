"""The group as an actor: it decides, it writes, and only then it speaks.

What arrives is queued and decided together, with one append for all. A write that fails,
or any error on the way, has an unknown outcome: the process exits, the supervisor starts
it anew, and it rebuilds from the log. There is no rollback and no recovery in the process.
"""

import gc
import logging
import os
import secrets
import time
import uuid
from dataclasses import dataclass
from pathlib import Path

from ...events.entries.logs import CONTROL, OFFSETS, restore
from ...events.epochs import epoch_warning
from ...events.group import Group
from ...events.log.claim import require_log
from ...events.log.errors import LogError
from ...events.log.frame import NewEntry
from ...events.log.tables import LogKind
from ...events.log.writer import GroupLog
from ..door.actor import Actor, Address, Failure
from ..messages.commands import DescribeTraffic, GroupCommand, Reply
from ..messages.errors import Error
from ..messages.heartbeat import NO_COORDINATOR_EPOCH, HeartbeatReply
from ..messages.work import CommitOffsets
from .coordinator import Coordinator, Now
from .members.request_filter import SALTS, first_epoch
from .state.settings import GroupSettings
from .work.ledger import OffsetLedger

LOGGER = logging.getLogger(__name__)
TICK_SECONDS = 0.1
EXIT_FAILED = 70
EXIT_LOG = 74
OFFSETS_KEPT = 50_000
"""Entries of the offset log that stay readable one by one; the view keeps the latest of all."""


@dataclass(frozen=True, slots=True)
class OpenGroup:
    """Which group the actor is, and where its logs lie."""

    group_id: str
    folder: Path
    settings: GroupSettings
    had_logs: bool = False
    """Whether it was open before: an empty group must not take the place of logs that are gone."""


@dataclass(frozen=True, slots=True)
class GroupOpened:
    """The group is rebuilt from its log, whose end is given, and takes commands."""

    group_id: str
    end: int
    pid: int
    coordinator_epoch: int = NO_COORDINATOR_EPOCH


@dataclass(frozen=True, slots=True)
class Ping:
    """To the group: say that you are there."""


@dataclass(frozen=True, slots=True)
class Pong:
    """From the group: its process takes what comes."""


@dataclass(frozen=True, slots=True)
class Flush:
    """The queue is to be decided."""


@dataclass(frozen=True, slots=True)
class Tick:
    """Time has passed."""


Asking = CommitOffsets | GroupCommand


class GroupActor(Actor):
    """One group, whose whole state is the fold of its log."""

    _control: GroupLog
    _offsets: GroupLog
    _ledger: OffsetLedger

    def __init__(self) -> None:
        super().__init__()
        self._coordinator: Coordinator | None = None
        self._queue: list[tuple[Asking, Address]] = []
        self._offsets_low = 0
        self._has_warned = False

    def receive(self, message: object, sender: Address) -> None:
        """Open the group, or queue what is asked of it."""
        if isinstance(message, OpenGroup):
            self._open(message, sender)
        elif isinstance(message, Ping):
            self.send(sender, Pong())
        elif self._coordinator is None:
            self.send(sender, Failure("the group is not open yet: ask again"))
        elif isinstance(message, DescribeTraffic):
            self.send(sender, self._coordinator.traffic())
        elif isinstance(message, CommitOffsets | GroupCommand):
            self._enqueue(message, sender)
        else:
            self.send(sender, Failure(f"a group does not understand {type(message).__name__}"))

    def woken(self, payload: object) -> None:
        """Decide the queue, or let time pass; both end with what is due being written."""
        if self._coordinator is None:
            return
        now = _now()
        self._coordinator.see_room(self._control.room, now)
        queue, self._queue = self._queue, []
        for message, sender in queue:
            self._take(self._coordinator, message, sender, now)
        if isinstance(payload, Tick):
            self.wake_after(TICK_SECONDS, Tick())
            self._coordinator.pass_time(now)
            self._warn_of_epochs(self._coordinator.group)
        self._coordinator.settle(now)
        self._write(self._coordinator, now)
        self._speak(self._coordinator)

    def stopping(self) -> None:
        """Close the logs."""
        if self._coordinator is not None:
            self._control.close()
            self._offsets.close()

    def failed(self, error: Exception, message: object, sender: Address | None) -> None:
        """Exit: what became of the group's memory is unknown, its log is not."""
        LOGGER.critical("the group ends on %s", type(message).__name__, exc_info=error)
        if sender is not None:
            self.send(sender, Failure(f"{type(error).__name__}: {error}"))
        self.die(EXIT_LOG if isinstance(error, LogError) else EXIT_FAILED)

    def _open(self, order: OpenGroup, sender: Address) -> None:
        if self._coordinator is None:
            self._control = _open_log(order, CONTROL)
            self._offsets = _open_log(order, OFFSETS)
            self._ledger = OffsetLedger(self._offsets)
            group = restore(order.group_id, *self._control.load())
            steady_ms = _now().steady_ms
            number = first_epoch(self._control.epoch, secrets.randbelow(SALTS))
            self._coordinator = Coordinator(
                group, order.settings, self._ledger, steady_ms, _new_id, number
            )
            self.wake_after(TICK_SECONDS, Tick())
            gc.collect()
            gc.freeze()  # the group lives as long as the process: no collection has to walk it
        number = self._coordinator.coordinator_epoch
        self.send(sender, GroupOpened(order.group_id, self._control.end, os.getpid(), number))

    def _enqueue(self, asking: Asking, sender: Address) -> None:
        if not self._queue:
            self.wake_after(0, Flush())
        self._queue.append((asking, sender))

    def _take(self, coordinator: Coordinator, message: Asking, sender: Address, now: Now) -> None:
        match message:
            case CommitOffsets():
                coordinator.commit(message, sender, now)
            case _:
                coordinator.take(message, sender, now)

    def _write(self, coordinator: Coordinator, now: Now) -> None:
        """Make durable what was decided: first the commits, then what could end their token."""
        if coordinator.offset_entries:
            self._append(self._offsets, coordinator.offset_entries, now)
            coordinator.offset_entries.clear()
            self._ledger.clear()
            self._trim()
        if coordinator.entries:
            self._append(self._control, coordinator.entries, now)
            coordinator.entries.clear()

    def _append(self, log: GroupLog, entries: list[NewEntry], now: Now) -> None:
        """Append what was decided; where room is low, that is only what may not wait for more."""
        log.append(log.end, entries, now.wall_ms, into_reserve=True)

    def _warn_of_epochs(self, group: Group) -> None:
        """Say once in each process that the group has counted far."""
        if not self._has_warned and (warning := epoch_warning(group.group_epoch)):
            self._has_warned = True
            LOGGER.warning("group %s is at %s", group.group_id, warning)

    def _trim(self) -> None:
        keep_from = self._offsets.end - OFFSETS_KEPT
        if keep_from - self._offsets_low >= OFFSETS_KEPT // 10:
            self._offsets_low = self._offsets.trim(keep_from)

    def _speak(self, coordinator: Coordinator) -> None:
        """Release the answers."""
        outbox, coordinator.outbox = coordinator.outbox, []
        for answer in outbox:
            self.send(answer.to, answer.reply)
            log_fence(answer.reply)


def log_fence(reply: Reply) -> None:
    """Log that a member was told to stop everything: its tasks will start anew."""
    if isinstance(reply, HeartbeatReply) and reply.error is Error.FENCED_MEMBER_EPOCH:
        LOGGER.warning("%s is fenced: %s", reply.member_id, reply.message)


def _open_log(order: OpenGroup, kind: LogKind) -> GroupLog:
    path = order.folder / kind.name
    if order.had_logs:
        require_log(path)
    return GroupLog.open_writer(path, order.group_id, kind)


def _now() -> Now:
    return Now(time.time_ns() // 1_000_000, time.monotonic_ns() // 1_000_000)


def _new_id() -> str:
    return str(uuid.uuid4())
