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
from ....events.model import RunState
from ....projections.follow import MemberFollower
from ...cluster.messages import AssignorAt, GroupAt, StartWorker, WorkerUp
from ...pipeline.tasks.reports import StatusChanged, Warned
from .assembly import assemble
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
from .runner import WorkerRunner
from .watchdog import Watchdog

LOGGER = logging.getLogger(__name__)
SHORTEST_SLEEP_MS = 5
CLOSE_SECONDS = 5.0
EXIT_FAILED, EXIT_KILLED = 70, 75
TROUBLE = frozenset({RunState.FAILED, RunState.RESTARTING})


class ReportsWait:
    """To the worker itself: its threads have reported something."""


class WorkerActor(Actor):
    """One member of a group, and what it runs."""

    _name: str
    _core: WorkerCore
    _log: MemberFollower
    _runner: WorkerRunner
    _ledger: GroupLedger
    _watchdog: Watchdog

    def __init__(self) -> None:
        super().__init__()
        self._is_up = False
        self._addresses: dict[type[Effect], Address] = {}
        """Who is sent the messages of which effect."""
        self._reports: deque[CoreReport] = deque()
        """What the core has not been told yet; any thread may add to it."""
        self._told_name: str | None = None
        """The member id that the supervisor was told; None: it was told nothing."""
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
                self._addresses[SendToGroup] = message.address
            elif isinstance(message, AssignorAt):
                self._addresses[AskAssignor] = message.address
            self._obey(self._core.receive(message, _steady_ms()))
        self._settle()

    def woken(self, payload: object) -> None:
        """Let time pass, unless an earlier timer did so already."""
        if payload != self._wake_at_ms:
            return
        self._wake_at_ms, now_ms = None, _steady_ms()
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
        log_trouble(report)
        self._reports.append(report)
        if threading.current_thread() is not threading.main_thread():
            self.post(ReportsWait())

    # -- beginning

    def _begin(self, order: StartWorker, supervisor: Address) -> None:
        self._name = order.name
        self._addresses = {SendToGroup: order.group, TellSupervisor: supervisor}
        self._core, self._runner, self._ledger, self._log = assemble(order, self._report)
        self._watchdog = Watchdog()
        self._is_up = True
        self._tell_name()
        if order.assignor is not None:
            self.receive(order.assignor, supervisor)
        self._obey(self._core.begin(_steady_ms()))

    def _tell_name(self) -> None:
        """Tell the supervisor which member this process is: the group names a classic one."""
        membership = self._core.membership
        if membership.member_id != self._told_name:
            self._told_name = membership.member_id
            up = WorkerUp(self._name, os.getpid(), membership.member_id, membership.incarnation)
            self.send(self._addresses[TellSupervisor], up)

    # -- what the core wants

    def _settle(self) -> None:
        """Tell the core all that was reported, and see when it is to be woken next."""
        if not self._is_up:
            return
        while self._reports:
            reports = [self._reports.popleft() for _ in range(len(self._reports))]
            self._obey(self._core.report(reports, _steady_ms(), _wall_ms()))
        self._tell_name()
        self._watchdog.until(self._core.end_ms)
        self._sleep()

    def _sleep(self) -> None:
        """Set a timer for when time matters next, unless an earlier one is set."""
        now_ms = _steady_ms()
        due_ms = max(self._core.next_tick_ms(), now_ms + SHORTEST_SLEEP_MS)
        if self._wake_at_ms is None or due_ms < self._wake_at_ms:
            self._wake_at_ms = due_ms
            self.wake_after((due_ms - now_ms) / 1000, due_ms)

    def _obey(self, effects: list[Effect]) -> None:
        self._watchdog.until(self._core.end_ms)  # first: a start may hang
        for effect in effects:
            self._carry_out(effect)

    def _carry_out(self, effect: Effect) -> None:
        match effect:
            case SendToGroup(message) | AskAssignor(message) | TellSupervisor(message):
                if (to := self._addresses.get(type(effect))) is not None:
                    self.send(to, message)  # else nobody is there: what matters is said again
            case AnswerCommit():
                self._ledger.answer(effect)
            case StartResource(launch):
                self._runner.start(launch)
            case StopResource(resource):
                self._runner.stop(resource)
            case AbandonAll(reason):
                LOGGER.warning("%s stops everything: %s", self._name, reason)
                self._runner.abandon()
                self._ledger.give_up(reason)  # after: a task that asks again sees its end
            case Exit(reason):
                LOGGER.error("%s ends itself: %s", self._name, reason)
                self.die(EXIT_KILLED)


def log_trouble(report: CoreReport) -> None:
    """Log each failure, each restart and each wait, and what a task's owner should look at."""
    match report:
        case StatusChanged(resource, _, state) if report.error or state in TROUBLE:
            LOGGER.warning("%s is %s: %s", resource, state.value, report.headline)
        case Warned(resource, _, text):
            LOGGER.warning("%s: %s", resource, text)
        case _:
            pass


def _steady_ms() -> int:
    return time.monotonic_ns() // 1_000_000


def _wall_ms() -> int:
    return time.time_ns() // 1_000_000
