"""The decisions of a worker, without I/O: messages, reports and time go in, effects come out.

The core decides everything in a worker: its membership in either protocol, its part in computing
assignments, which resources it starts and stops, its reports to the group, and the commits of its
tasks. It uses no clock, no thread and no I/O. A shell (the worker's actor, or the simulator in
virtual time) passes each event in, and carries out the effects in order before the next event:

    core.begin(now_ms)                      # and each of the following: -> list[Effect]
    core.receive(reply, now_ms)             # from the group, an assignor process, a supervisor
    core.report(reports, now_ms, wall_ms)   # from the runner, its tasks and the janitor
    core.tick(now_ms, wall_ms)              # by `next_tick_ms()` at the latest

Times are milliseconds on the monotonic clock; `wall_ms` is the time of day.

The core keeps three rules of order. The group gets the report of a task's end before the heartbeat
that gives up its resource, since the next owner reports under a newer token. It gets these reports
and commits before a leave. And a resource starts only when it does not run, with a launch that the
log grants.

The log is read on every message of the group (a reply has the log position that it depends on),
when a resource has ended, and at each tick. `MemberLog.group` does not change in between.
"""

from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import replace

from .....actors.messages.assignors import (
    ComputeAssignment,
    ComputeAssignmentReply,
    DescribeAssignorsReply,
    Worker,
)
from .....actors.messages.classic import ClassicCall, LeaveGroup, MemberReply
from .....actors.messages.members import JOIN_EPOCH, CommitReply, Heartbeat, HeartbeatReply
from .....actors.timing import earliest
from .....actors.worker.group_membership import GroupMembership
from .....actors.worker.instructions import (
    Compute,
    ComputeRound,
    Fence,
    Gone,
    Instruction,
    Kill,
    Send,
    SendCall,
    Start,
    Stop,
)
from .....events.group import Group
from .....events.model import Resource, RunState, Token
from .....projections.launches import launches
from ....cluster.messages import EngineRuns, GroupAt, Leave, WorkerGone
from ....pipeline.tasks.reports import SPLITS_AGAIN, Hung, Stopped
from .assignor_client import AssignorClient, MetadataQuestions, ShareNotices
from .commit_queue import CommitQueue
from .computing import Computing
from .contract import (
    AbandonAll,
    BatchPublished,
    CommitAsked,
    CoreReport,
    Effect,
    EngineStarted,
    EngineWarm,
    Exit,
    MemberLog,
    PresentAsked,
    SendToGroup,
    TellSupervisor,
)
from .present_questions import PresentQuestions
from .starts import Starts
from .status_reporter import StatusReporter

LOOK_MS, LOOK_AGAIN_MS = 1_000, 50
"""How often to read the log, and how often if it has not reached the position of a reply yet."""


class WorkerCore:
    """One member of a group, with its membership, its resources and its reports."""

    def __init__(
        self,
        membership: GroupMembership,
        log: MemberLog,
        worker: Worker,
        assignors: Sequence[str],
        *,
        is_warm: bool = True,
        joins_warm: bool = False,
    ) -> None:
        """Create a worker that has not joined yet; `worker` has its facts once it is warm.

        `assignors` are the names of its assignors, in the order of preference; empty if the group
        itself runs one. With `joins_warm` it joins only once it is warm.
        """
        identity, timeout_ms = membership.identity, membership.timing.rebalance_timeout_ms
        self.membership = membership
        self._log = log
        self._worker = worker
        self._is_warm = is_warm
        self._joins_warm = joins_warm
        self._waits_to_join = False
        facts = worker if is_warm else replace(worker, capacity=0)
        self._assignors = AssignorClient(
            worker.name,
            MetadataQuestions(identity.member_id, facts, assignors, timeout_ms),
            ShareNotices(identity.member_id),
            Computing(identity.group_id, identity.member_id, timeout_ms),
        )
        self._reporter = StatusReporter(identity.group_id, log)
        self._starts = Starts(log)
        self._commits = CommitQueue(identity.group_id)
        self._present = PresentQuestions(identity.group_id)
        self._effects: list[Effect] = []
        """The effects of the current call."""
        self._rests_on = 0
        """The log position that has to be read before the last grant is used."""
        self._look_at_ms = 0
        """When to read the log next without an event."""
        self._has_new_share = False
        """Whether the assignor may have to be notified of a new share."""

    @property
    def end_ms(self) -> int | None:
        """The fencing deadline: without a reply, nothing may run after it; None: no deadline."""
        return self.membership.end_ms() if self.membership.owned else None

    def next_tick_ms(self) -> int:
        """Return when `tick` has to be called at the latest."""
        due_ms = earliest(
            self.membership.next_tick_ms(),
            self._assignors.next_tick_ms(),
            self._reporter.next_tick_ms(),
            self._starts.next_tick_ms(),
            self._commits.next_tick_ms(),
        )
        return self._look_at_ms if due_ms is None else min(due_ms, self._look_at_ms)

    # -- what threads ask

    def may_write(self, resource: Resource, token: Token, now_ms: int) -> bool:
        """Return whether a task may write under a token, by the log's end here and the clock.

        That is the present end, or it was reached by a `PresentAsked`. It may not after the
        worker's deadline, nor if the log does not grant it, or not as it runs. And it may not while
        its connector is about to fence the tasks of before (DATA_PLANE §1).
        """
        if self.end_ms is None or now_ms >= self.end_ms:
            return False
        connector = Resource(resource.connector)
        self._log.watch(self._reporter.awaited | {connector})
        group = self._log.catch_up()
        found = launches(group, self._log.member_id, frozenset({resource})).get(resource)
        if found is None or found.token != token or not self._starts.is_current(found):
            return False
        status = group.statuses.get(connector)
        return status is None or status.reason != SPLITS_AGAIN

    def has_logged(self, resource: Resource) -> bool:
        """Return whether the log shows all that was reported of a resource, or never will."""
        return not self._reporter.is_pending(resource)

    def has_ended(self, resource: Resource) -> bool:
        """Return whether no member is to run a task any more, by the log's present end."""
        name, number = resource
        self._log.watch(self._reporter.awaited | {Resource(name)})
        group = self._log.catch_up()
        config = group.connectors.get(name)
        if config is None or config.deleting or group.target_state(name) is RunState.STOPPED:
            return True
        split = group.task_configs.get(name)
        return split is None or number >= len(split.tasks)

    # -- what comes in

    def begin(self, now_ms: int) -> list[Effect]:
        """Join the group, as soon as the facts and metadata for a join are complete."""
        self._waits_to_join = True
        return self._go_on(now_ms)

    def receive(self, message: object, now_ms: int) -> list[Effect]:
        """Handle an order or a reply; unknown messages are ignored."""
        match message:
            case _ if isinstance(message, MemberReply):
                self._take_reply(message, now_ms)
            case CommitReply():
                self._effects += self._commits.settle(message, now_ms)
                self._effects += self._present.settle(message)
            case GroupAt():
                number = message.coordinator_epoch
                self._assignors.computing.move_to(number)
                self._effects += self._commits.lose()
                self._effects += self._present.lose()
                self._reporter.repeat()
                self._obey(self.membership.reconnect(now_ms, number), now_ms)
            case Leave():
                self._leave(message, now_ms)
            case ComputeAssignmentReply() if assigns := self.membership.take_assignment(
                message, now_ms
            ):
                self._effects += self._assignors.report_failure(message.error)
                self._obey(assigns, now_ms)
            case DescribeAssignorsReply():
                self._take_assignors(message, now_ms)
            case _:
                epoch = self.membership.member_epoch
                self._effects += self._assignors.receive(message, epoch, now_ms)
        return self._go_on(now_ms)

    def _take_reply(self, message: MemberReply, now_ms: int) -> None:
        if isinstance(message, HeartbeatReply):
            self._has_new_share |= message.assignment is not None
        self._obey(self.membership.handle_reply(message, now_ms), now_ms)

    def _take_assignors(self, message: DescribeAssignorsReply, now_ms: int) -> None:
        """Use the new metadata of the assignors in heartbeats."""
        effects, metadata = self._assignors.answer(message, now_ms)
        self._effects += effects
        if metadata is not None:
            self._has_new_share = True
            self._obey(self.membership.change_assignors(metadata, now_ms), now_ms)

    def retry_later(self, question: ComputeAssignment, now_ms: int) -> None:
        """Retry a question that the busy assignor process did not receive."""
        self._assignors.computing.retry_later(question, now_ms)

    def report(self, reports: Iterable[CoreReport], now_ms: int, wall_ms: int) -> list[Effect]:
        """Handle reports of the runner, its tasks and the janitor."""
        ended = list[Resource]()
        for each in reports:
            self._hear(each, wall_ms)
            if isinstance(each, Stopped):
                ended.append(each.resource)
        return self._go_on(now_ms, ended)

    def tick(self, now_ms: int, wall_ms: int) -> list[Effect]:
        """Handle all timers that are due."""
        self._obey(self.membership.tick(now_ms), now_ms)
        epoch = self.membership.member_epoch
        self._effects += self._assignors.tick(epoch, now_ms, wall_ms)
        self._effects += self._commits.tick(now_ms)
        return self._go_on(now_ms)

    def _leave(self, order: Leave, now_ms: int) -> None:
        self._waits_to_join = False
        temporary = order.is_temporary and self.membership.identity.instance_id is not None
        self._obey(self.membership.leave(now_ms, temporary=temporary), now_ms)

    def _hear(self, report: CoreReport, wall_ms: int) -> None:
        self._starts.note_report(report)
        match report:
            case CommitAsked(commit):
                self._commits.add(commit)
            case BatchPublished(commit_id):
                self._commits.add_published(commit_id)
            case PresentAsked(asker):
                self._present.add(asker)
            case Hung():
                self._effects.append(Exit(f"{report.resource} does not end"))
            case EngineStarted(pid):
                self._effects.append(TellSupervisor(EngineRuns(self._worker.name, pid)))
            case Stopped() if self._starts.begins_again(report.resource):
                pass  # it reports its own state later; until then the last status stands
            case EngineWarm():
                self._is_warm = True
                self._assignors.metadata.set_worker(self._worker)
            case _:
                self._reporter.add(report, wall_ms)

    # -- what follows

    def _go_on(self, now_ms: int, ended: Sequence[Resource] = ()) -> list[Effect]:
        """Handle the consequences of an event, and return the effects of the whole call."""
        if ended:
            self._tell(self._catch_up(), now_ms)
            free = [each for each in ended if self._starts.take_end(each, now_ms)]
            self._obey(self.membership.release(free, now_ms), now_ms)
        self._join_if_ready(now_ms)
        self._look(now_ms)
        self.membership.computing = self._assignors.computing.is_busy
        self._tell(self._log.group, now_ms)
        effects, self._effects = self._effects, []
        return effects

    def _join_if_ready(self, now_ms: int) -> None:
        """Join once the assignors' metadata are known and, if required, the engine is warm."""
        may_join = self._is_warm or not self._joins_warm
        if self._waits_to_join and may_join and self._assignors.metadata.is_complete:
            self._waits_to_join = False
            self._obey(self.membership.join(now_ms), now_ms)

    def _look(self, now_ms: int) -> None:
        """Read new entries of the log, and start what it grants."""
        group = self._catch_up()
        seen = group.configured, group.configured_offset
        self._obey(self.membership.set_configured(*seen, now_ms), now_ms)
        is_behind = group.end < self._rests_on
        self._look_at_ms = now_ms + (LOOK_AGAIN_MS if is_behind else LOOK_MS)
        self._effects += self._starts.align(now_ms, self._reporter.see(group, now_ms))
        if self._has_new_share and not is_behind:
            self._has_new_share = False
            member = group.members.get(self._log.member_id)
            if member is not None:
                share = frozenset(member.current.assigned)
                self._effects += self._assignors.notify(group.target, share)

    def _catch_up(self) -> Group:
        """Read new entries of the log, including the status of pending reports."""
        self._log.rename(self.membership.member_id)
        self._log.watch(self._reporter.awaited)
        return self._log.catch_up()

    def _tell(self, group: Group, now_ms: int) -> None:
        self._effects += map(SendToGroup, self._reporter.take_due(group, now_ms))
        for queue in (self._commits, self._present):
            if carried := queue.carry(self.membership.member_id, now_ms):
                self._effects.append(SendToGroup(carried))

    # -- what the membership wants

    def _obey(self, instructions: Iterable[Instruction], now_ms: int) -> None:
        waiting = deque(instructions)
        while waiting:
            waiting.extend(self._carry_out(waiting.popleft(), now_ms))

    def _carry_out(self, instruction: Instruction, now_ms: int) -> list[Instruction]:
        match instruction:
            case Send(request) | SendCall(request):
                self._send(request, now_ms)
            case Start(resources, log_offset):
                self._rests_on = max(self._rests_on, log_offset)
                self._starts.allow(resources)
            case Stop(resources):
                orders, idle = self._starts.stop(resources)
                self._effects += orders
                return self.membership.release(idle, now_ms)
            case Fence(reason):
                owned = self.membership.owned
                self._effects.append(AbandonAll(reason))
                return self.membership.release(owned - self._starts.abandon(), now_ms)
            case Kill(reason):
                self._effects.append(Exit(reason))
            case Compute() | ComputeRound():
                self._compute(instruction, now_ms)
            case Gone(error):
                self._effects.append(TellSupervisor(WorkerGone(self._worker.name, error)))
        return []

    def _compute(self, instruction: Compute | ComputeRound, now_ms: int) -> None:
        """Ask the group for its snapshot, or the assignor at once where the member has one."""
        if isinstance(instruction, ComputeRound):
            member_id = self.membership.identity.member_id
            question = ComputeAssignment(instruction.snapshot, member_id)
            self._effects += self._assignors.ask(question)
            return
        epoch, number = instruction.member_epoch, self.membership.coordinator_epoch
        prepare = self._assignors.computing.begin(epoch, now_ms, number)
        self._effects.append(SendToGroup(prepare))

    def _send(self, request: Heartbeat | ClassicCall, now_ms: int) -> None:
        """Send a member's request; pending reports and commits are sent before a leave."""
        is_goodbye = isinstance(request, LeaveGroup)
        if is_goodbye or (isinstance(request, Heartbeat) and request.member_epoch < JOIN_EPOCH):
            self._tell(self._catch_up(), now_ms)
        self._effects.append(SendToGroup(request))
