"""The actor of a worker process: it owns threads, engine and timers, and drives the `WorkerCore`.

All decisions are in `core/worker_core.py`. The actor passes messages, reports of the runner's
threads, and the time to the core, and carries out the effects that it returns. The actor thread
never blocks for long: long work is done in the runner's threads, which post their results.
"""

import logging
import os
import threading
import time
from collections import deque

from ....actors.messages.assignors import ComputeAssignment
from ....actors.transport.actor import Actor, Address, Failure
from ....events.commits import Commit
from ....events.model import Resource, RunState
from ....projections.follow.member import MemberFollower
from ....projections.watch.lines import fields_about
from ...cluster.messages import AssignorAt, GroupAt, StartWorker, Undecided, WorkerUp
from ...pipeline.tasks.reports import BatchDone, StatusChanged, Warned
from .assembly import assemble
from .core.contract import (
    AbandonAll,
    AnswerCommit,
    AskAssignor,
    CoreReport,
    Effect,
    Exit,
    PresentAsked,
    PresentReached,
    SendToGroup,
    StartResource,
    StopResource,
    TellSupervisor,
    TurnResource,
)
from .core.worker_core import WorkerCore
from .group_ledger import GroupLedger
from .plugins.rights import ActorRights, RightsQuestion
from .runner import WorkerRunner
from .watchdog import Watchdog

LOGGER = logging.getLogger(__name__)
SHORTEST_SLEEP_MS = 5
CLOSE_SECONDS = 5.0
EXIT_FAILED, EXIT_KILLED = 70, 75
OFTEN = 100
TROUBLE = frozenset({RunState.FAILED, RunState.RESTARTING})


class ReportsWait:
    """To the worker itself: another thread has added a report."""


class WorkerActor(Actor):
    """One member of a group, with the connectors and tasks that it runs."""

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
        """The recipient of the messages of each type of effect."""
        self._reports: deque[CoreReport] = deque()
        """Reports for the core; any thread may append."""
        self._is_report_told = False
        """Whether a `ReportsWait` is on its way; one is enough for all reports."""
        self._told_name: str | None = None
        """The member id last reported to the supervisor; None: not reported yet."""
        self._wake_at_ms: int | None = None
        """When the earliest timer fires; None: there is none."""
        self._reads_copy = False
        """Whether the logs here are copies of those in a store, which lag."""

    # -- what comes in

    def receive(self, message: object, sender: Address) -> None:
        """Handle a message: an order, an answer, or a wake-up by the runner's threads."""
        if isinstance(message, StartWorker):
            self._begin(message, sender)
        elif isinstance(message, Failure | Undecided):
            LOGGER.warning("refused: %s", message.reason)
        elif isinstance(message, RightsQuestion):
            self._settle()  # what that thread has reported before comes first
            self._take_question(message)
        elif self._is_up and not isinstance(message, ReportsWait):
            if isinstance(message, GroupAt):
                self._addresses[SendToGroup] = message.address
            elif isinstance(message, AssignorAt):
                self._addresses[AskAssignor] = message.address
            self._obey(self._core.receive(message, _steady_ms()))
        if isinstance(message, ReportsWait):
            self._is_report_told = False  # before the reports are taken: a later one is told again
        self._settle()

    def woken(self, payload: object) -> None:
        """Tick the core and the runner; ignores a timer that an earlier one replaced."""
        if payload != self._wake_at_ms:
            return
        self._wake_at_ms, now_ms = None, _steady_ms()
        self._runner.look(now_ms)
        self._obey(self._core.tick(now_ms, _wall_ms()))
        self._settle()

    def undelivered(self, message: object, to: Address) -> None:
        """Retry a computation that the busy assignor process did not receive."""
        super().undelivered(message, to)
        if isinstance(message, ComputeAssignment):
            self._core.retry_later(message, _steady_ms())
            self._settle()

    def stopping(self) -> None:
        """Stop all connectors and tasks, and close the engine and the logs."""
        if self._is_up:
            end_ms = self._core.end_ms
            left_s = CLOSE_SECONDS if end_ms is None else (end_ms - _steady_ms()) / 1000 - 0.2
            if self._runner.close(max(0.0, min(CLOSE_SECONDS, left_s))):
                self.die(EXIT_KILLED)  # the engine ends with this process
            self._watchdog.until(None)
            self._runner.close_engine(CLOSE_SECONDS)
            self._ledger.close()
            self._log.close()

    def failed(self, error: Exception, message: object, sender: Address | None) -> None:
        """Exit: after an error, the running work may not match the state of the membership."""
        LOGGER.critical("the worker ends on %s", type(message).__name__, exc_info=error)
        if sender is not None and isinstance(message, StartWorker):
            self.send(sender, Failure(f"{type(error).__name__}: {error}"))
        self.die(EXIT_FAILED)

    def _report(self, report: CoreReport) -> None:
        """Queue a report for the core; called from any thread."""
        log_report(report)
        self._reports.append(report)
        if threading.current_thread() is not threading.main_thread():
            self._tell_of_reports()

    def _take_question(self, question: RightsQuestion) -> None:
        """Answer a thread, at once or when the log here has all that counts now."""
        if self._is_up and self._reads_copy and question.is_of_present:
            asked = PresentAsked(question)
            self._obey(self._core.report([asked], _steady_ms(), _wall_ms()))
        else:
            self._answer(question, may_ask=self._is_up)

    def _answer(self, question: RightsQuestion, *, may_ask: bool) -> None:
        question.answer.set_result(may_ask and question.ask(self._core, _steady_ms()))

    def _tell_of_reports(self) -> None:
        """Post a wake-up for new reports, unless one is pending; thread-safe.

        With one message a report, hundreds of starting tasks would have the worker take reports,
        and start more of them, again and again before it hears its group.
        """
        if not self._is_report_told:
            self._is_report_told = True
            self.post(ReportsWait())

    # -- beginning

    def _begin(self, order: StartWorker, supervisor: Address) -> None:
        self._name, self._reads_copy = order.name, order.node.store is not None
        self._addresses = {SendToGroup: order.group, TellSupervisor: supervisor}
        self._core, self._runner, self._ledger, self._log = assemble(
            order, self._report, ActorRights(self.post)
        )
        self._watchdog = Watchdog()
        self._is_up = True
        self._tell_name()
        if order.assignor is not None:
            self.receive(order.assignor, supervisor)
        self._obey(self._core.begin(_steady_ms()))

    def _tell_name(self) -> None:
        """Report the member id to the supervisor if it is new: the group names classic members."""
        membership = self._core.membership
        if membership.member_id != self._told_name:
            self._told_name = membership.member_id
            up = WorkerUp(self._name, os.getpid(), membership.member_id, membership.incarnation)
            self.send(self._addresses[TellSupervisor], up)

    # -- effects and timers

    def _settle(self) -> None:
        """Pass queued reports to the core, then set the watchdog and the next timer.

        Those that come meanwhile have their turn after the messages of the group: while hundreds of
        tasks start, there would be no end of them.
        """
        if not self._is_up:
            return
        if self._reports:
            reports = [self._reports.popleft() for _ in range(len(self._reports))]
            self._obey(self._core.report(reports, _steady_ms(), _wall_ms()))
        self._tell_name()
        self._watchdog.until(self._core.end_ms)
        self._sleep()
        if self._reports:
            self._tell_of_reports()

    def _sleep(self) -> None:
        """Set a timer for the core's next tick, unless an earlier one is set."""
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
                    self.send(to, message)  # else there is no recipient yet: the core repeats it
            case AnswerCommit():
                self._ledger.answer(effect)
            case PresentReached(RightsQuestion() as question, is_known):
                self._answer(question, may_ask=is_known)
            case StartResource() | StopResource() | TurnResource():
                self._order_runner(effect)
            case AbandonAll(reason):
                LOGGER.warning("%s stops everything: %s", self._name, reason)
                self._runner.abandon()
                self._ledger.give_up(reason)  # last: a task that retries sees that it is stopped
            case Exit(reason):
                LOGGER.error("%s ends itself: %s", self._name, reason)
                self.die(EXIT_KILLED)

    def _order_runner(self, effect: StartResource | StopResource | TurnResource) -> None:
        match effect:
            case StartResource(launch):
                self._runner.start(launch)
            case StopResource(resource):
                self._runner.stop(resource)
            case TurnResource(resource, target_state):
                self._runner.turn(resource, target_state)


def log_report(report: CoreReport) -> None:
    """Log the facts that only the worker knows: failures, warnings and batches."""
    match report:
        case StatusChanged(resource, token, state) if report.error or state in TROUBLE:
            about = fields_about(resource, token.grant_epoch)
            LOGGER.warning("%s is %s: %s", resource, state.value, report.headline, extra=about)
        case Warned(resource, token, text):
            about = fields_about(resource, token.grant_epoch)
            LOGGER.warning("%s: %s", resource, text, extra=about)
        case BatchDone(commit):
            log_batch(commit, report)
        case _:
            pass


def log_batch(commit: Commit, report: BatchDone) -> None:
    """Log the first batch of a task and each hundredth; the others at level DEBUG."""
    name, task, token, batch = commit.commit_id
    level = logging.INFO if report.is_first or (batch + 1) % OFTEN == 0 else logging.DEBUG
    if not LOGGER.isEnabledFor(level):
        return
    rows = f"{commit.rows_in} rows in, {commit.manifest.rows} out"
    skipped = f", {commit.skipped} bad rows left out" if commit.skipped else ""
    took = ", ".join(f"{phase} {took:.3f} s" for phase, took in report.seconds.items())
    text = "%s committed batch %d: %s%s; %s; %s"
    about = fields_about(Resource(name, task), token.grant_epoch)
    of_batch = batch, rows, skipped, _lanes_of(report), took
    LOGGER.log(level, text, Resource(name, task), *of_batch, extra=about)


def _lanes_of(report: BatchDone) -> str:
    """Return how much of a batch went through Arrow and through Spark, and why not all by Arrow."""
    shown = (
        f"by {lane.title()} {ranges} ranges with {rows} rows"
        for lane, (ranges, rows) in report.by_lane.items()
        if ranges
    )
    why = report.lanes.why_spark
    return ", ".join(shown) + (f" ({why})" if why else "")


def _steady_ms() -> int:
    return time.monotonic_ns() // 1_000_000


def _wall_ms() -> int:
    return time.time_ns() // 1_000_000
