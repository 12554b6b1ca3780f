"""A worker: one process that sits in a group and runs what the log grants it.

It is put together from parts that know nothing of one another: the membership says what may
run, the follower what that means, the runner runs it. All of the actor's work is short: what
takes time happens in the runner's threads, which post what became of it.
"""

import logging
import os
import threading
import time
from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from ...actors.door.actor import Actor, Address, Failure
from ...actors.messages.assignors import Assign, Assigned, Introduced, Noted
from ...actors.messages.computing import InstallReply, PrepareReply
from ...actors.messages.heartbeat import JOIN_EPOCH, Heartbeat, HeartbeatReply
from ...actors.messages.work import CommitReply
from ...actors.worker.instructions import (
    Compute,
    Fence,
    Gone,
    Instruction,
    Kill,
    Send,
    Start,
    Stop,
)
from ...actors.worker.membership import Membership
from ...events.entries.logs import CONTROL
from ...events.log.reader import LogReader
from ...events.model import Resource, Resources
from ...projections.member_follower import MemberFollower
from ..cluster.identity import cluster_id
from ..cluster.run_folder import RunFolder
from ..cluster.spec import (
    AssignorAt,
    EngineRuns,
    GroupAt,
    Leave,
    StartWorker,
    WorkerGone,
    WorkerUp,
)
from ..config.redaction import Redaction
from ..tasks.reports import (
    BatchDone,
    Hung,
    Report,
    StatusChanged,
    Stopped,
    TaskConfigsChanged,
    Warned,
)
from .assignor_client import AssignorClient, AssignorTalk
from .computing import Computing
from .group_ledger import GroupLedger
from .identity import facts_of, joins_warm, membership_of
from .janitor import Janitor, Rota
from .runner import NoopRunner, ResourceRunner
from .starts import Starts
from .status_reporter import StatusReporter
from .watchdog import ParentWatch, Watchdog

if TYPE_CHECKING:
    from ...projections.metrics.workers import WorkerMetrics
    from .spark_runner import EngineCare

LOGGER = logging.getLogger(__name__)
TICK_SECONDS = 0.05
SLOW_TICK_MS = 1_000
ANSWER_MS = 4_000
"""How long a message with commits may be on its way before the tasks are told to ask again."""
CLOSE_SECONDS = 5.0
EXIT_FAILED, EXIT_KILLED = 70, 75


class ReportsWait:
    """To the worker itself: its runner's threads have reported something."""


class WorkerActor(Actor):
    """One member of a group, and what it runs."""

    _order: StartWorker
    _supervisor: Address
    _membership: Membership
    _log: MemberFollower
    _rota: Rota
    _runner: ResourceRunner
    _ledger: GroupLedger
    _computing: Computing
    _talk: AssignorTalk
    _reporter: StatusReporter
    _watchdog: Watchdog
    _metrics: "WorkerMetrics"
    """Only where an engine runs batches."""
    _starts: Starts
    _parent_watch: ParentWatch
    _group: Address

    def __init__(self) -> None:
        super().__init__()
        self._is_up = False
        self._waits_to_join = False
        self._care: EngineCare | None = None
        self._janitor: Janitor | None = None
        self._reports: deque[Report] = deque()
        self._ended: deque[Resource] = deque()
        """What has ended, as the group was told, and the membership was not."""
        self._slow_at_ms = 0
        self._carried_at_ms = 0
        self._handlers: dict[type, Callable[[Any, int], None]] = {
            HeartbeatReply: self._answered,
            PrepareReply: self._prepared,
            Introduced: self._introduced,
            Assigned: self._assigned,
            Noted: self._noted,
            InstallReply: self._installed,
            CommitReply: self._committed,
            GroupAt: self._group_moved,
            AssignorAt: self._assignor_moved,
            Leave: self._leave,
        }

    # -- what comes in

    def receive(self, message: object, sender: Address) -> None:
        """Take an order, an answer, or what the runner's threads have to say."""
        now_ms = _steady_ms()
        if isinstance(message, StartWorker):
            self._begin(message, sender)
        elif isinstance(message, Failure):
            LOGGER.warning("refused: %s", message.reason)
        elif handle := self._handlers.get(type(message)):
            handle(message, now_ms)
        self._go_on(now_ms)

    def woken(self, payload: object) -> None:
        """Let time pass for all parts."""
        del payload
        self.wake_after(TICK_SECONDS)
        now_ms = _steady_ms()
        self._obey(self._membership.tick(now_ms))
        if now_ms >= self._slow_at_ms:
            self._slow_at_ms = now_ms + SLOW_TICK_MS
            self._look_after_engine(now_ms)
            self._look_after_parent(now_ms)
            if self._janitor is not None and (group := self._rota.group(now_ms)) is not None:
                self._janitor.tick(group, self._log.member_id)
        if self._carried_at_ms and now_ms >= self._carried_at_ms + ANSWER_MS:
            self._carried_at_ms = 0
            self._ledger.lose()
        self._to_group(self._computing.tick(self._membership.member_epoch, now_ms))
        self._talk.tick(now_ms)
        self._go_on(now_ms)

    def undelivered(self, message: object, to: Address) -> None:
        """Ask the assignor again, who may have had no time to listen."""
        super().undelivered(message, to)
        if isinstance(message, Assign):
            self._computing.not_delivered(message, _steady_ms())

    def stopping(self) -> None:
        """End what still runs, and let go of everything."""
        if self._is_up:
            end_ms = self._membership.end_ms() if self._membership.owned else None
            left_s = CLOSE_SECONDS if end_ms is None else (end_ms - _steady_ms()) / 1000 - 0.2
            if self._runner.close(max(0.0, min(CLOSE_SECONDS, left_s))):
                self.die(EXIT_KILLED)  # its engine dies with it
            self._watchdog.until(None)
            if self._care is not None:
                self._care.engine.close(CLOSE_SECONDS)
            self._ledger.close()
            self._log.close()

    def failed(self, error: Exception, message: object, sender: Address | None) -> None:
        """Exit: what runs here may not be what the membership takes to run."""
        LOGGER.critical("the worker ends on %s", type(message).__name__, exc_info=error)
        if sender is not None and isinstance(message, StartWorker):
            self.send(sender, Failure(f"{type(error).__name__}: {error}"))
        self.die(EXIT_FAILED)

    def _answered(self, reply: HeartbeatReply, now_ms: int) -> None:
        self._obey(self._membership.answered(reply, now_ms))
        if reply.assignment is not None:
            self._tell_share()

    def _prepared(self, reply: PrepareReply, now_ms: int) -> None:
        self._talk.ask(self._computing.prepared(reply, now_ms))

    def _introduced(self, reply: Introduced, now_ms: int) -> None:
        said = self._talk.introduced(reply, now_ms)
        if said is not None:
            self._obey(self._membership.changed(said, now_ms))
            self._join_if_ready(now_ms)
            self._tell_share()

    def _assigned(self, result: Assigned, now_ms: int) -> None:
        epoch = self._membership.member_epoch
        self._to_group(self._computing.assigned(result, epoch, now_ms))

    def _noted(self, reply: Noted, _: int) -> None:
        self._talk.noted(reply)

    def _installed(self, reply: InstallReply, now_ms: int) -> None:
        self._computing.installed(reply, now_ms)

    def _committed(self, reply: CommitReply, _: int) -> None:
        self._carried_at_ms = 0
        self._ledger.settle(reply)

    def _leave(self, order: Leave, now_ms: int) -> None:
        is_static = self._membership.identity.instance_id is not None
        temporary = order.is_temporary and is_static
        self._waits_to_join = False
        self._obey(self._membership.leave(now_ms, temporary=temporary))

    def _group_moved(self, news: GroupAt, now_ms: int) -> None:
        self._group = news.address
        self._computing.drop()
        self._ledger.lose()
        self._obey(self._membership.reconnected(now_ms, news.coordinator_epoch))

    def _assignor_moved(self, news: AssignorAt, now_ms: int) -> None:
        self._to_group(self._talk.moved(news, self._membership.member_epoch, now_ms))

    def _go_on(self, now_ms: int) -> None:
        """Do what follows from what just happened."""
        if not self._is_up:
            return
        self._hear_reports(now_ms)
        if self._starts.align(now_ms):
            self._hear_reports(now_ms)
        self._watchdog.until(self._membership.end_ms() if self._membership.owned else None)
        self._membership.computing = self._computing.is_busy
        self._tell_reports(now_ms)
        carried = self._ledger.carry()
        if carried is not None:
            self._carried_at_ms = now_ms
            self._to_group(carried)

    # -- beginning

    def _begin(self, order: StartWorker, supervisor: Address) -> None:
        node = order.node
        self._order, self._supervisor = order, supervisor
        self._group, self._assignor = order.group, order.assignor
        is_warm = node.engine.kind == "noop"
        self._membership = membership_of(order)
        member_id = self._membership.identity.member_id
        folder = node.group_folder(node.group_id)
        reader = LogReader.open(folder / "control", node.group_id, CONTROL)
        self._log = MemberFollower(node.group_id, member_id, reader)
        cluster = cluster_id(RunFolder(node.data_dir).key())
        offsets = folder / "offsets"
        self._ledger = GroupLedger(node.group_id, member_id, offsets, self.post, cluster)
        timeout_ms = node.timing.rebalance_timeout_ms
        self._computing = Computing(node.group_id, member_id, timeout_ms)
        names = node.assignors.names
        client = AssignorClient(member_id, facts_of(order, is_warm=is_warm), names, timeout_ms)
        self._talk = AssignorTalk(order, client, self._computing, self.send, supervisor)
        self._reporter = StatusReporter(node.group_id, member_id)
        self._runner = self._make_runner(reader)
        self._starts = Starts(self._log, self._runner)
        self._watchdog = Watchdog()
        self._parent_watch = ParentWatch(order.tied_to)
        self._is_up = True
        incarnation = self._membership.identity.incarnation
        self.send(supervisor, WorkerUp(order.name, os.getpid(), member_id, incarnation))
        self._waits_to_join = True
        if order.assignor is not None:
            self._assignor_moved(order.assignor, _steady_ms())
        self._join_if_ready(_steady_ms())
        self.wake_after(TICK_SECONDS)

    def _join_if_ready(self, now_ms: int) -> None:
        """Join once an assignor has spoken for this worker, and its engine is as it must be."""
        is_warm = self._care is None or self._care.is_warm
        may_join = is_warm or not joins_warm(self._order.node, self._order.name)
        if self._waits_to_join and may_join and self._talk.may_join:
            self._waits_to_join = False
            self._obey(self._membership.join(now_ms))

    def _make_runner(self, log: LogReader) -> ResourceRunner:
        node = self._order.node
        if node.engine.kind == "noop":
            return NoopRunner(self._report)
        # Heavy, and only here.
        from ...projections.metrics.workers import WorkerMetrics  # noqa: PLC0415
        from .spark_runner import (  # noqa: PLC0415
            EngineCare,
            make_engine,
            make_janitor,
            make_runner,
        )

        self._metrics = WorkerMetrics(RunFolder(node.data_dir).metrics, self._order.name)
        redaction = Redaction()
        engine = make_engine(node, self._order.name, redaction)
        engine.open()
        self._care = EngineCare(engine)
        self._janitor = make_janitor(self._ledger, node, redaction)
        self._rota = Rota(node.group_id, self._log.member_id, log)
        return make_runner(engine, self._ledger, node, self._report, redaction)

    # -- what the membership wants

    def _obey(self, instructions: list[Instruction]) -> None:
        waiting = deque(instructions)
        while waiting:
            waiting.extend(self._carry_out(waiting.popleft()))

    def _carry_out(self, instruction: Instruction) -> list[Instruction]:
        match instruction:
            case Send(request):
                self._speak(request)
            case Start(resources):
                self._starts.allow(resources)
            case Stop(resources):
                return self._stop(resources)
            case Fence(reason):
                LOGGER.warning("%s stops everything: %s", self._order.name, reason)
                return self._stop(self._membership.owned, abandon=True)
            case Kill(reason):
                LOGGER.error("%s ends itself: %s", self._order.name, reason)
                self.die(EXIT_KILLED)
            case Compute(epoch):
                self._to_group(self._computing.begin(epoch, _steady_ms()))
            case Gone(error):
                self.send(self._supervisor, WorkerGone(self._order.name, error))
        return []

    def _speak(self, request: Heartbeat) -> None:
        """Send a heartbeat; a goodbye comes last, for the group takes no word from who has left."""
        if request.member_epoch < JOIN_EPOCH:
            self._take_reports(_steady_ms())
        self._to_group(request)

    def _stop(self, resources: Resources, *, abandon: bool = False) -> list[Instruction]:
        """Bring resources to an end; those of which nothing runs have ended already."""
        idle = self._starts.stop(resources, abandon=abandon)
        return self._membership.stopped(idle, _steady_ms())

    # -- what the runner reports

    def _report(self, report: Report) -> None:
        """Take a report, from any thread."""
        self._reports.append(report)
        if threading.current_thread() is not threading.main_thread():
            self.post(ReportsWait())

    def _hear_reports(self, now_ms: int) -> None:
        """Take what was reported, and tell the membership of each end, one at a time."""
        self._take_reports(now_ms)
        while self._ended:
            self._tell_end(self._ended.popleft(), now_ms)
            self._take_reports(now_ms)

    def _take_reports(self, now_ms: int) -> None:
        """Take what was reported; the group hears of ends before the membership does."""
        count = len(self._ended)
        while self._reports:
            report = self._reports.popleft()
            self._hear(report)
            if isinstance(report, Stopped):
                self._ended.append(report.resource)
        if len(self._ended) > count:
            self._tell_reports(now_ms)

    def _tell_reports(self, now_ms: int) -> None:
        self._log.watch(self._reporter.awaited)
        for message in self._reporter.unsaid(self._log.catch_up(), now_ms):
            self._to_group(message)

    def _hear(self, report: Report) -> None:
        wall_ms = time.time_ns() // 1_000_000
        match report:
            case Stopped():
                self._reporter.stopped(report, wall_ms)
            case StatusChanged():
                self._reporter.changed(report, wall_ms)
            case TaskConfigsChanged():
                self._reporter.split(report)
            case BatchDone():
                self._metrics.observe_batch(report.seconds)
                if report.is_first:
                    connector, task, token, _ = report.commit.commit_id
                    self._reporter.began(Resource(connector, task), token, report.began_ms)
            case Hung():
                LOGGER.error("%s does not end: the worker ends itself", report.resource)
                self.die(EXIT_KILLED)
            case Warned():
                LOGGER.warning("%s: %s", report.resource, report.text)
            case _:
                pass

    def _tell_end(self, resource: Resource, now_ms: int) -> None:
        """Tell the membership of what has ended for good."""
        if self._starts.has_ended(resource, now_ms):
            self._obey(self._membership.stopped([resource], now_ms))

    # -- others

    def _look_after_engine(self, now_ms: int) -> None:
        """Have the engine started again if it went down; tell assignors once it is warm."""
        if self._care is not None:
            self._care.look(now_ms)
            if (pid := self._care.new_pid()) is not None:
                self.send(self._supervisor, EngineRuns(self._order.name, pid))
            self._talk.tell_warmth(is_warm=self._care.is_warm)
            self._join_if_ready(now_ms)

    def _tell_share(self) -> None:
        """Have the assignor know what this worker has been given."""
        self._talk.tell_share(self._log.catch_up(), self._log.member_id)

    def _look_after_parent(self, now_ms: int) -> None:
        """Leave when the command that this worker is tied to is gone."""
        if self._parent_watch.has_ended:
            self._leave(Leave(), now_ms)

    def _to_group(self, message: object | None) -> None:
        if message is not None and self._group is not None:
            self.send(self._group, message)


def _steady_ms() -> int:
    return time.monotonic_ns() // 1_000_000
