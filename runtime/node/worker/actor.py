"""A worker's process: it owns the threads, the engine and the timers, and obeys its core.

What a worker decides is in `core/worker_core.py`. Here is what the core is told (messages, what
the runner's threads report, the time), and how its effects are carried out. All of the actor's own
work is short: what takes time happens in the runner's threads, which post what became of it.
"""

import logging
import os
import threading
import time
from collections import deque

from ....actors.door.actor import Actor, Address, Failure
from ....actors.messages.assignors import ComputeAssignment
from ....events.entries.codec import CONTROL
from ....events.log.reader import LogReader
from ....events.model import RunState
from ....projections.follow import MemberFollower
from ...cluster.identity import cluster_id
from ...cluster.messages import AssignorAt, GroupAt, StartWorker, WorkerUp
from ...cluster.run_folder import RunFolder
from ...pipeline.tasks.reports import StatusChanged, Warned
from .core.contract import (
    AbandonAll,
    AnswerCommit,
    AskAssignor,
    CoreReport,
    Effect,
    Exit,
    SendToGroup,
    StartResource,
    StopResource,
    TellSupervisor,
)
from .core.worker_core import WorkerCore
from .group_ledger import GroupLedger
from .identity import core_of, membership_of
from .janitor import Rota
from .runner import NoopRunner, WorkerRunner
from .watchdog import Watchdog

LOGGER = logging.getLogger(__name__)
SLOW_TICK_MS = 1_000
"""How often the runner is seen after."""
SHORTEST_SLEEP_MS = 5
CLOSE_SECONDS = 5.0
EXIT_FAILED, EXIT_KILLED = 70, 75
TROUBLE = frozenset({RunState.FAILED, RunState.RESTARTING})


class ReportsWait:
    """To the worker itself: its threads have reported something."""


class WorkerActor(Actor):
    """One member of a group, and what it runs."""

    _order: StartWorker
    _supervisor: Address
    _group: Address
    _assignor: Address
    _core: WorkerCore
    _log: MemberFollower
    _runner: WorkerRunner
    _ledger: GroupLedger
    _watchdog: Watchdog

    def __init__(self) -> None:
        super().__init__()
        self._is_up = False
        self._reports: deque[CoreReport] = deque()
        """What the core has not been told yet; any thread may add to it."""
        self._slow_at_ms = 0
        """When the runner is looked after next; monotonic clock."""
        self._wake_at_ms: int | None = None
        """For when the earliest timer is set; None: there is none."""

    # -- what comes in

    def receive(self, message: object, sender: Address) -> None:
        """Take an order, an answer, or what the runner's threads have to say."""
        if isinstance(message, StartWorker):
            self._begin(message, sender)
        elif isinstance(message, Failure):
            LOGGER.warning("refused: %s", message.reason)
        elif self._is_up and not isinstance(message, ReportsWait):
            if isinstance(message, GroupAt):
                self._group = message.address
            elif isinstance(message, AssignorAt):
                self._assignor = message.address
            self._obey(self._core.receive(message, _steady_ms()))
        self._settle()

    def woken(self, payload: object) -> None:
        """Let time pass, unless an earlier timer did so already."""
        if payload != self._wake_at_ms:
            return
        self._wake_at_ms, now_ms = None, _steady_ms()
        if now_ms >= self._slow_at_ms:
            self._slow_at_ms = now_ms + SLOW_TICK_MS
            self._runner.look(now_ms)
        self._obey(self._core.tick(now_ms, _wall_ms()))
        self._settle()

    def undelivered(self, message: object, to: Address) -> None:
        """Ask the assignor again, who may have had no time to listen."""
        super().undelivered(message, to)
        if isinstance(message, ComputeAssignment):
            self._core.take_back(message, _steady_ms())
            self._settle()

    def stopping(self) -> None:
        """End what still runs, and let go of everything."""
        if self._is_up:
            end_ms = self._core.end_ms
            left_s = CLOSE_SECONDS if end_ms is None else (end_ms - _steady_ms()) / 1000 - 0.2
            if self._runner.close(max(0.0, min(CLOSE_SECONDS, left_s))):
                self.die(EXIT_KILLED)  # its engine dies with it
            self._watchdog.until(None)
            self._runner.close_engine(CLOSE_SECONDS)
            self._ledger.close()
            self._log.close()

    def failed(self, error: Exception, message: object, sender: Address | None) -> None:
        """Exit: what runs here may not be what the membership takes to run."""
        LOGGER.critical("the worker ends on %s", type(message).__name__, exc_info=error)
        if sender is not None and isinstance(message, StartWorker):
            self.send(sender, Failure(f"{type(error).__name__}: {error}"))
        self.die(EXIT_FAILED)

    def _report(self, report: CoreReport) -> None:
        """Take a report, from any thread."""
        self._reports.append(report)
        if threading.current_thread() is not threading.main_thread():
            self.post(ReportsWait())

    # -- beginning

    def _begin(self, order: StartWorker, supervisor: Address) -> None:
        node, membership = order.node, membership_of(order)
        identity = membership.identity
        self._order, self._supervisor, self._group = order, supervisor, order.group
        folder = node.group_folder(node.group_id)
        reader = LogReader.open(folder / "control", node.group_id, CONTROL)
        self._log = MemberFollower(node.group_id, identity.member_id, reader)
        cluster = cluster_id(RunFolder(node.data_dir).key())
        self._ledger = GroupLedger(node.group_id, folder / "offsets", self._report, cluster)
        self._core = core_of(order, membership, self._log)
        self._runner = self._make_runner(reader)
        self._watchdog = Watchdog()
        self._is_up = True
        up = WorkerUp(order.name, os.getpid(), identity.member_id, identity.incarnation)
        self.send(supervisor, up)
        if order.assignor is not None:
            self.receive(order.assignor, supervisor)
        self._obey(self._core.begin(_steady_ms()))

    def _make_runner(self, log: LogReader) -> WorkerRunner:
        node = self._order.node
        if node.engine.kind == "noop":
            return NoopRunner(self._report)
        from .spark_runner import SparkRunner  # noqa: PLC0415  # heavy, and only here

        rota = Rota(node.group_id, self._log.member_id, log)
        return SparkRunner(node, self._order.name, self._ledger, rota, self._report)

    # -- what the core wants

    def _settle(self) -> None:
        """Tell the core all that was reported, and see when it is to be woken next."""
        if not self._is_up:
            return
        while self._reports:
            reports = [self._reports.popleft() for _ in range(len(self._reports))]
            for each in reports:
                log_trouble(each)
            self._obey(self._core.report(reports, _steady_ms(), _wall_ms()))
        self._watchdog.until(self._core.end_ms)
        self._sleep()

    def _sleep(self) -> None:
        """Set a timer for when time matters next, unless an earlier one is set."""
        due_ms, now_ms = self._core.next_tick_ms(), _steady_ms()
        due_ms = max(min(due_ms, self._slow_at_ms), now_ms + SHORTEST_SLEEP_MS)
        if self._wake_at_ms is None or due_ms < self._wake_at_ms:
            self._wake_at_ms = due_ms
            self.wake_after((due_ms - now_ms) / 1000, due_ms)

    def _obey(self, effects: list[Effect]) -> None:
        self._watchdog.until(self._core.end_ms)  # first: a start may hang
        for effect in effects:
            self._carry_out(effect)

    def _carry_out(self, effect: Effect) -> None:
        match effect:
            case SendToGroup(message):
                self._send(self._group, message)
            case AskAssignor(message):
                self._send(self._assignor, message)
            case TellSupervisor(message):
                self._send(self._supervisor, message)
            case AnswerCommit():
                self._ledger.answer(effect)
            case StartResource() | StopResource() | AbandonAll():
                self._run(effect)
            case Exit(reason):
                LOGGER.error("%s ends itself: %s", self._order.name, reason)
                self.die(EXIT_KILLED)

    def _run(self, effect: StartResource | StopResource | AbandonAll) -> None:
        match effect:
            case StartResource(launch):
                self._runner.start(launch)
            case StopResource(resource):
                self._runner.stop(resource)
            case AbandonAll(reason):
                LOGGER.warning("%s stops everything: %s", self._order.name, reason)
                self._runner.abandon()
                self._ledger.give_up(reason)  # after: a task that asks again sees its end

    def _send(self, to: Address, message: object) -> None:
        """Send a message, unless nobody is there: what matters is said again."""
        if to is not None:
            self.send(to, message)


def log_trouble(report: CoreReport) -> None:
    """Log each failure and each restart, and what a task's owner should look at."""
    match report:
        case StatusChanged(resource, _, state, reason) if state in TROUBLE:
            LOGGER.warning("%s is %s: %s", resource, state.value, reason)
        case Warned(resource, _, text):
            LOGGER.warning("%s: %s", resource, text)
        case _:
            pass


def _steady_ms() -> int:
    return time.monotonic_ns() // 1_000_000


def _wall_ms() -> int:
    return time.time_ns() // 1_000_000
