"""The process of a group: it decides, it writes, and only then it answers.

It knows the group as a `GroupHost`: requests that arrive together are decided together, with one
append for all (see `group/host`). A write that fails, or any other error, has an unknown outcome:
the process exits, the supervisor restarts it, and it rebuilds the group from the log. There is no
rollback and no recovery within the process.

It sleeps until something arrives or is due.
"""

import gc
import logging
import os
import secrets
import time
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final, Generic, NamedTuple, TypeVar

from ...events.entries.codec import CONTROL, OFFSETS, restore
from ...events.entries.compaction import RequestedCompaction
from ...events.entries.retention import UNLIMITED, Retention
from ...events.log.errors import LogError, OwnerFencedError
from ...events.stores.opening import StoreSpec
from ...events.stores.port import StoreAwayError
from ..assignors.built_in.catalogue import NO_ASSIGNORS, Computes
from ..consumer.calls import with_assignors
from ..group.group_shard import CoordinatorProcess, GroupShard
from ..group.host import (
    LATE_MS,
    TICK_MS,
    GroupHost,
    LatenessBudget,
    UnconfirmedAnswers,
    drain,
)
from ..group.kind import WORKERS
from ..group.members.commit import OffsetLedger
from ..group.members.request_filter import SALTS, first_epoch
from ..group.state.settings import GroupSettings
from ..messages.classic import ClassicCall
from ..messages.commands import (
    AddressedReply,
    CommandReply,
    CompactHistory,
    CompactionProgress,
    CompactionState,
    DescribeCompaction,
    DescribeTraffic,
    GroupCommand,
    GroupRequest,
    RequestedCommand,
    Traffic,
)
from ..messages.errors import Error
from ..messages.members import NO_COORDINATOR_EPOCH, CommitOffsets, HeartbeatReply
from ..timing import Now
from ..transport.actor import Actor, Address, Failure
from ..transport.log_format import REQUEST
from .figures import Figure, FiguresFile, WorkPhase
from .hosted_logs import HostedLogs, open_logs

LOGGER = logging.getLogger(__name__)
Q = TypeVar("Q")
EXIT_FAILED = 70
EXIT_LOG = 74
EXIT_FENCED = 75
"""Another node owns the logs now; the process is started anew without a pause."""
BEAT_SECONDS: Final = 0.75
"""How often an owner of logs in a store is heard of there, at least."""
FIRST_LOOK, BETWEEN_LOOKS, BETWEEN_SLICES = 60.0, 600.0, 0.05
"""When the process first looks for history to trim, how often then, and its pause after each slice
while there is some, in seconds: requests are handled between."""
BETWEEN_ASKED: Final = 0.01
"""The pause after each slice of a compaction that somebody waits for, in seconds."""


@dataclass(frozen=True, slots=True)
class OpenGroup:
    """To the actor: open this group, whose logs are in this folder."""

    group_id: str
    folder: Path
    settings: GroupSettings
    had_logs: bool = False
    """Whether it was open before: then missing logs are an error, and not a new group."""
    figures: Path | None = None
    """The file for the figures of its process."""
    retention: Retention = UNLIMITED
    """How much of its history the control log keeps."""
    store: StoreSpec | None = None
    """Where its commits count; None: in its folder."""


@dataclass(frozen=True, slots=True)
class GroupOpened:
    """From the group: it is rebuilt from its log, up to this end, and takes commands."""

    group_id: str
    end: int
    """The end of its control log: readers that have come so far know all of it."""
    pid: int
    coordinator_epoch: int = NO_COORDINATOR_EPOCH
    is_owner: bool = True
    """Whether it is decided here: else this process carries everything to another node."""
    flaw: str = ""
    """Why it does not follow its store for now; empty: it does, or is decided here."""


@dataclass(frozen=True, slots=True)
class Ping:
    """To the group: answer if you are alive."""


@dataclass(frozen=True, slots=True)
class Pong:
    """From the group: its process is alive."""


@dataclass(frozen=True, slots=True)
class Flush:
    """To itself: decide the queued requests."""


@dataclass(frozen=True, slots=True)
class Tick:
    """To itself: a timer has expired, steady clock."""

    at_ms: int


@dataclass(frozen=True, slots=True)
class Beat:
    """To itself: be heard of in the store."""


@dataclass(frozen=True, slots=True)
class Confirm:
    """To itself: ask the store whether this is the owner, for the answers that wait for that."""

    due_ms: int
    """When that is due, steady clock; another beat may have come before."""


@dataclass(frozen=True, slots=True)
class Compact:
    """To itself: trim history that exceeds the retention."""


@dataclass(frozen=True, slots=True)
class ContinueCompaction:
    """To itself: go on with the compaction that was asked for."""


class CommandSender(NamedTuple):
    """The sender of a command of people."""

    sender: Address
    requested: RequestedCommand


class HostActor(Actor, Generic[Q]):
    """A process that drives a group host, whose whole state is the fold of its log."""

    _logs: HostedLogs

    def __init__(self) -> None:
        super().__init__()
        self._group_host: GroupHost[Q] | None = None
        """None until `begin`."""
        self._queue: list[tuple[Q, Any]] = []
        """The requests that arrived since the last decision, each with its sender."""
        self._arrived_at = 0.0
        """When the first of them arrived, by the counter of performance."""
        self._figures = FiguresFile()
        """The figures of its work."""
        self._tick_at_ms: int | None = None
        """When it is woken next for its timers, steady clock; None: that is not set yet."""
        self._ticked_ms = 0
        """When it looked at its timers last, steady clock."""
        self._lateness = LatenessBudget()
        self._has_warned = False
        """Whether the warning of the group is logged already."""
        self._unconfirmed = UnconfirmedAnswers()
        """What waits for a word of the store; nothing without one."""
        self._confirm_at_ms: int | None = None
        """For when a timer is set for the next such word, steady clock; None: none is set."""
        self._is_store_lost = False
        """Whether the store did not answer the last time, which is logged once."""
        self._confirmed_ms = 0
        """When the last beat began that the store has confirmed, steady clock."""
        self._requested: RequestedCompaction | None = None
        """The compaction that was asked for last; None before the first."""

    def users_assignors(self) -> Mapping[str, Computes]:
        """Return the server assignors of users by name: there are none, unless a subclass has."""
        return NO_ASSIGNORS

    def enqueue(self, request: Q, sender: Any) -> None:  # noqa: ANN401  # as its host knows it
        """Queue a request, which is decided together with all others that arrive by then."""
        if not self._queue:
            self._arrived_at = time.perf_counter()
            self.wake_after(0, Flush())
        self._queue.append((request, sender))

    def send_answers(self, answers: Sequence[AddressedReply]) -> None:
        """Send answers whose records are durable."""
        for answer in answers:
            to, reply = answer.to, answer.reply
            if isinstance(to, CommandSender):
                log_command(to.requested, reply)
                to = to.sender
            self.send(to, reply)
            log_fence(reply)

    def woken(self, payload: object) -> None:
        """Decide the queued requests and due timers, make the decisions durable, and answer."""
        if self._group_host is None:
            return
        with self._figures.working():
            if isinstance(payload, Beat):
                if self._confirm_at_ms is None:  # else one is about to begin
                    self._beat()
                self.wake_after(BEAT_SECONDS, payload)
            elif isinstance(payload, Confirm):
                self._confirm(payload.due_ms)
            elif isinstance(payload, Compact):
                self._compact(payload)
            elif isinstance(payload, ContinueCompaction):
                self._continue_compaction(payload)
            else:
                self._decide(self._group_host, payload)

    def _decide(self, host: GroupHost[Q], payload: object) -> None:
        now, appended = clocks(), self._logs.append_seconds
        decided_at, figures = time.perf_counter(), self._figures
        is_time = isinstance(payload, Tick) and payload.at_ms == self._tick_at_ms
        if isinstance(payload, Tick) and is_time:
            self._extend_by_lateness(host, now.steady_ms - payload.at_ms, now.steady_ms)
        host.set_disk_space(self._logs.space, now)
        queue, self._queue = self._queue, []
        if queue:
            figures.observe(WorkPhase.QUEUE, decided_at - self._arrived_at, len(queue))
        for request, sender in queue:
            host.submit(request, sender, now)
        if is_time:
            self._tick_at_ms, self._ticked_ms = None, now.steady_ms
            host.run_timers(now)
            self._warn_of_epochs(host)
        ends = self._logs.ends
        answers = self.confirmed(drain(host, self._logs, now), has_written=self._logs.ends != ends)
        drained_at = time.perf_counter()
        # All but the answering itself is counted before: whoever has an answer may look at once.
        took = drained_at - decided_at - self._logs.append_seconds + appended
        figures.observe(WorkPhase.DECIDE, took)
        figures.add(Figure.REQUESTS, len(queue))
        figures.count_answers(answers)
        figures.set_traffic(host.traffic())
        self.send_answers(answers)
        self._wake_in_time(host, now)
        figures.observe(WorkPhase.ANSWER, time.perf_counter() - drained_at)
        self._logs.compact_store()  # it may take seconds, and nobody waits for it

    def confirmed(
        self, answers: Sequence[AddressedReply], *, has_written: bool
    ) -> Sequence[AddressedReply]:
        """Return which answers leave now: with a store, the others wait for a word of it."""
        if not self._logs.is_stored:
            return answers
        leaving = self._unconfirmed.take(answers, has_written=has_written)
        self._confirm_in_time()
        return leaving

    def _confirm_in_time(self) -> None:
        due_ms = self._unconfirmed.next_beat_ms()
        if due_ms is not None and due_ms != self._confirm_at_ms:
            self._confirm_at_ms = due_ms
            self.wake_after(max(0, due_ms - clocks().steady_ms) / 1_000, Confirm(due_ms))

    def _confirm(self, due_ms: int) -> None:
        """Beat if that is still due, or set the timer for when it is."""
        if due_ms == self._confirm_at_ms:
            self._confirm_at_ms = None
        if due_ms == self._unconfirmed.next_beat_ms():
            self._beat()
        else:
            self._confirm_in_time()

    def _beat(self) -> None:
        """Be heard of in the store, and send what waits for that; what fails is tried again."""
        began_ms = clocks().steady_ms
        self._unconfirmed.begin_beat(began_ms)
        try:
            self._logs.beat()
        except StoreAwayError as error:
            self._unconfirmed.fail_beat(clocks().steady_ms)
            if not self._is_store_lost:  # it is asked many times a second
                LOGGER.warning("nothing is answered until the store is back: %s", error)
            self._is_store_lost = True
            self.end_if_unconfirmed()
        else:
            self._is_store_lost, self._confirmed_ms = False, began_ms
            self.send_answers(self._unconfirmed.confirm())
        self._confirm_in_time()

    def end_if_unconfirmed(self) -> None:
        """Go on after a beat that failed; a subclass may end the process."""

    @property
    def unconfirmed_ms(self) -> int:
        """For how long the store has not confirmed that this is the owner; 0 while it answers."""
        return clocks().steady_ms - self._confirmed_ms if self._is_store_lost else 0

    def _compact(self, payload: Compact) -> None:
        has_more = self._logs.compact(clocks())
        self.wake_after(BETWEEN_SLICES if has_more else BETWEEN_LOOKS, payload)

    def _continue_compaction(self, payload: ContinueCompaction) -> None:
        if self._requested is not None and self._requested.step(clocks().wall_ms):
            self.wake_after(BETWEEN_ASKED, payload)
        else:
            self._logs.log_compaction()

    def compact_or_describe(
        self, message: CompactHistory | DescribeCompaction
    ) -> CompactionProgress:
        """Begin a compaction that is asked for, unless one is running; return how far it is."""
        is_running = self._requested is not None and self._requested.is_running
        if isinstance(message, CompactHistory) and not is_running:
            self._begin_compaction(message)
        is_refused = is_running and isinstance(message, CompactHistory)
        return replace(describe_compaction(self._requested), is_refused=is_refused)

    def _begin_compaction(self, order: CompactHistory) -> None:
        limits = order.keep_ms, order.keep_epochs, order.keep_bytes
        kept = self._logs.retention.with_limits(*limits)
        self._requested = RequestedCompaction(self._logs.control, kept)
        self.wake_after(0, ContinueCompaction())
        fields = {"group": order.group_id, REQUEST: order.request}
        text = "the history is compacted to %d ms, %d epochs and %d bytes (0: no limit), by %s"
        LOGGER.info(text, kept.ms, kept.epochs, kept.bytes, ascii(order.principal), extra=fields)

    def stopping(self) -> None:
        """Close the logs."""
        if self._group_host is not None:
            self._logs.close()

    def failed(self, error: Exception, message: object, sender: Address | None) -> None:
        """Exit: the group in memory may be wrong, its log is not."""
        if isinstance(error, OwnerFencedError):
            LOGGER.warning("another node owns the group now: %s", error)
            self.die(EXIT_FENCED)
        is_of_log = isinstance(error, LogError)  # what to do is in its words
        if is_of_log:
            LOGGER.critical("the process of the group ends: %s", error)
        else:
            LOGGER.critical("the group ends on %s", type(message).__name__, exc_info=error)
        if sender is not None:
            words = f"{error}" if is_of_log else f"{type(error).__name__}: {error}"
            self.send(sender, Failure(words))
        self.die(EXIT_LOG if is_of_log else EXIT_FAILED)

    def begin(self, host: GroupHost[Q], now: Now, figures: FiguresFile) -> None:
        """Start to serve: requests go to this host from now on, its work is counted there."""
        self._group_host = host
        self._figures = self._logs.figures = figures
        self._wake_in_time(host, now)
        self.wake_after(FIRST_LOOK, Compact())
        if self._logs.is_stored:
            self._confirmed_ms = now.steady_ms
            self.wake_after(BEAT_SECONDS, Beat())
        gc.collect()
        gc.freeze()  # the host lives as long as the process: no collection has to walk it

    def _extend_by_lateness(self, host: GroupHost[Q], late_ms: int, now_ms: int) -> None:
        """Extend the members' timers if this process was held up for long."""
        if late_ms >= LATE_MS:
            granted_ms = self._lateness.grant(late_ms, now_ms)
            self._figures.add(Figure.HELD_UP_SECONDS, late_ms / 1_000)
            LOGGER.warning("held up for %d ms: all members have %d ms more", late_ms, granted_ms)
            host.extend_timers(granted_ms)

    def _wake_in_time(self, host: GroupHost[Q], now: Now) -> None:
        """Set the next tick, unless an earlier one is set.

        For what is due already it is set for now: a tick counts as late from its own time on.
        """
        at_ms = max(host.next_tick_ms(now), self._ticked_ms + TICK_MS, now.steady_ms)
        if self._tick_at_ms is None or at_ms < self._tick_at_ms:
            self._tick_at_ms = at_ms
            self.wake_after(max(0, at_ms - now.steady_ms) / 1_000, Tick(at_ms))

    def _warn_of_epochs(self, host: GroupHost[Q]) -> None:
        """Log once that the group's epoch is high."""
        if not self._has_warned and (warning := host.warning):
            self._has_warned = True
            LOGGER.warning(warning)


class GroupActor(HostActor[GroupRequest]):
    """The actor of one group with its own process and logs."""

    def receive(self, message: object, sender: Address) -> None:
        """Open the group, or queue a request."""
        if isinstance(message, OpenGroup):
            self.open_group(message, sender)
        elif isinstance(message, Ping):
            self.send(sender, Pong())
        elif self._group_host is None:
            self.send(sender, Failure("the group is not open yet: ask again"))
        elif isinstance(message, DescribeTraffic):
            self.send(sender, self._describe_traffic())
        elif isinstance(message, CompactHistory | DescribeCompaction):
            self.send(sender, self.compact_or_describe(message))
        elif isinstance(message, RequestedCommand):
            self.enqueue(message.command, CommandSender(sender, message))
        elif isinstance(message, CommitOffsets | ClassicCall | GroupCommand):
            self.enqueue(message, sender)
        else:
            self.send(sender, Failure(f"a group does not understand {type(message).__name__}"))

    def _describe_traffic(self) -> Traffic:
        shard = self._group_host
        assert isinstance(shard, GroupShard)  # noqa: S101  # as it is opened
        return shard.describe_traffic(clocks())

    def open_group(self, order: OpenGroup, sender: Address) -> None:
        """Open the group from its logs, unless it is open, and tell the sender."""
        if self._group_host is None:
            began, kinds = time.perf_counter(), (CONTROL, OFFSETS)
            where = order.folder, order.group_id, kinds, order.store
            logs = open_logs(*where, had_logs=order.had_logs)
            self.serve(order, HostedLogs(logs, order.retention), began)
        self.send(sender, self.opened(order))

    def serve(self, order: OpenGroup, logs: HostedLogs, began: float) -> None:
        """Rebuild the group from its logs, and take requests from now on."""
        now, self._logs = clocks(), logs
        control, ledger = logs.control, OffsetLedger(logs.offsets)
        group = restore(order.group_id, *control.load())
        number = first_epoch(control.epoch, secrets.randbelow(SALTS))
        process = CoordinatorProcess(number, new_id, self.users_assignors())
        kind = with_assignors(WORKERS, process.assignors)
        host = GroupShard(group, kind, order.settings, ledger, now.steady_ms, process)
        figures = FiguresFile(order.figures)
        figures.begin(time.perf_counter() - began)
        self.begin(host, now, figures)
        text = "group %s is open at entry %d of its log, with %d members and %d connectors"
        sizes = len(group.members), len(group.connectors)
        LOGGER.info(text, order.group_id, control.end, *sizes)

    def opened(self, order: OpenGroup) -> GroupOpened:
        """Return that the group takes requests."""
        host, end = self._group_host, self._logs.control.end
        number = NO_COORDINATOR_EPOCH if host is None else host.coordinator_epoch
        return GroupOpened(order.group_id, end, os.getpid(), number)


def describe_compaction(requested: RequestedCompaction | None) -> CompactionProgress:
    """Return how far the compaction is that was asked for last; None: there was none."""
    if requested is None:
        return CompactionProgress(CompactionState.NONE)
    done = CompactionState.STOPPED if requested.why else CompactionState.DONE
    state = CompactionState.RUNNING if requested.is_running else done
    return CompactionProgress(state, requested.trimmed, requested.why)


def log_command(requested: RequestedCommand, reply: object) -> None:
    """Log what was decided of a command of people, with the id of the request that sent it."""
    if isinstance(reply, CommandReply):
        command = requested.command
        about = {each: getattr(command, each, None) for each in ("connector", "worker")}
        fields = {**about, "group": command.group_id, REQUEST: requested.request}
        is_refused = reply.error is not Error.NONE
        verdict = f"is refused: {reply.error.value}" if is_refused else "is carried out"
        text = "%s by %s %s, the log ends at %d"
        told = type(command).__name__, ascii(command.principal), verdict, reply.log_offset
        LOGGER.info(text, *told, extra=fields)


def log_fence(reply: object) -> None:
    """Log that a member was fenced: its tasks stop, and restart where they are assigned."""
    if isinstance(reply, HeartbeatReply) and reply.error is Error.FENCED_MEMBER_EPOCH:
        LOGGER.warning("%s is fenced: %s", reply.member_id, reply.message)


def clocks() -> Now:
    """Return the time of both clocks."""
    return Now(time.time_ns() // 1_000_000, time.monotonic_ns() // 1_000_000)


def new_id() -> str:
    """Return an id that was never used."""
    return str(uuid.uuid4())
