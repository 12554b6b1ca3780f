"""A simulated worker: the real worker core, in virtual time, on a simulated engine.

Like the worker's actor it passes messages, reports and the time to the core, and carries out the
effects in order. What the engine reports waits for `settle`, since the core may not be called while
it is carrying out. After each event the worker asks the core when it has to be called next, and
sets a timer; an earlier timer that fires finds that it was replaced.

It may also die: then its engine is gone, and the supervisor sees it or not. Or it freezes, and gets
later what arrived meanwhile, before or after its timers. A worker speaks either protocol; one
that is foreign speaks the modern one through a client of its own (`ForeignClient`).

It knows its world and its node by what it uses of them: `WorkerSurroundings` and `Home`.
"""

from collections import deque
from functools import partial
from typing import Protocol

from ...actors.messages.assignors import Worker
from ...actors.messages.classic import ClassicCall, ClassicReply, JoinGroup
from ...actors.messages.errors import SUCCESS
from ...actors.messages.members import JOIN_EPOCH, Heartbeat, HeartbeatReply
from ...actors.worker.group_membership import GroupMembership
from ...projections.follow.member import MemberFollower
from ..cluster.messages import AssignorAt, AssignorHangs, GroupAt, Leave, WorkerGone
from ..node.worker.core.contract import (
    AbandonAll,
    AnswerCommit,
    AskAssignor,
    CoreReport,
    Effect,
    Exit,
    GroupMessage,
    SendToGroup,
    StartResource,
    StopResource,
    SupervisorMessage,
    TellSupervisor,
    TurnResource,
)
from ..node.worker.core.worker_core import WorkerCore
from .engine import SimulatedEngine, Surroundings
from .environment.assignor import SimulatedAssignor
from .environment.clients import ForeignClient, ForeignLog
from .environment.clock import NEVER, random_stream
from .environment.network import Network, Way
from .group.durable_state import GROUP_ID
from .group.place import GroupPlace
from .invariants.classic import MemberPosition, RoundInvariants


class WorkerSurroundings(Surroundings, Protocol):
    """The part of a world that a worker uses, besides that of its engine."""

    network: Network
    rounds: RoundInvariants
    assignor_names: tuple[str, ...]
    """The assignors of workers that have some of their own, the best liked first."""

    def worker_ended(self, worker: "SimulatedWorker") -> None:
        """Report the end of a worker, as its supervisor may."""
        ...


class Home(Protocol):
    """The node of a worker."""

    number: int
    place: GroupPlace
    """What stands for the group here."""
    instance_id: str | None
    is_foreign: bool
    server_assignor: str | None
    mode: str
    """One of `connect.protocol`; empty: the connect protocol."""
    assignor: SimulatedAssignor

    def membership(self, name: str) -> GroupMembership:
        """Return a new member for a worker here."""
        ...

    def hear(self, message: object) -> None:
        """Pass a message to the worker that lives here by now."""
        ...

    def replace_assignor(self, pid: int) -> None:
        """End an assignor process, and start another one."""
        ...

    def comes_back(self, delay_ms: int) -> None:
        """Start a worker here after a while."""
        ...

    def roll(self, delay_ms: int, *, to_classic: bool) -> None:
        """Replace the worker here by one of this protocol."""
        ...


class SimulatedWorker:
    """One worker process on a node; once it has ended, another one takes its place."""

    def __init__(self, world: WorkerSurroundings, node: Home, name: str) -> None:
        self.world = world
        self.node = node
        self.name = name
        self.is_alive, self.is_frozen = True, False
        self.rng = random_stream(world.schedule.seed, name)
        self.is_classic = bool(node.mode)
        is_foreign = node.is_foreign and not self.is_classic
        self.foreign = ForeignClient() if is_foreign else None
        self.member = node.membership(name)
        self.engine = SimulatedEngine(world, self, self.rng, node.place)
        own = () if node.server_assignor or self.is_classic else world.assignor_names
        log = ForeignLog(self._follow, self.foreign) if self.foreign else self._follow(name)
        self._core = WorkerCore(self.member, log, Worker(name), own)
        self._clock, self._durable_state = world.clock, world.durable_state
        self._reports: deque[CoreReport] = deque()
        self._inbox: list[object] = []
        """What arrived while it was frozen."""
        self._calls: dict[int, ClassicCall] = {}
        """What it has asked as a classic member, by number."""
        self._tick_at_ms = NEVER
        self._answers = (node.number, Way.TO_WORKER)

    @property
    def member_id(self) -> str:
        """Its member id; empty while the group has not given one."""
        return self.member.member_id if self.foreign is None else self.foreign.member_id

    @property
    def incarnation(self) -> str:
        """The id of its process among those of the same member id; empty: there are no others."""
        return "" if self.is_classic else self.name

    @property
    def is_awake(self) -> bool:
        """Whether it is neither frozen nor dead."""
        return self.is_alive and not self.is_frozen

    def _follow(self, member_id: str) -> MemberFollower:
        log = self.node.place.control
        return MemberFollower(GROUP_ID, member_id, log, sees_configured=self.is_classic)

    def begin(self) -> None:
        """Join, once its assignors have sent their metadata."""
        self.hear(AssignorAt(None, self.node.assignor.pid))
        self._obey(self._core.begin(self._clock.now_ms))
        self.settle()
        self._clock.after(self.world.schedule.traits.commit_every_ms, self._commit)

    # -- what befalls it

    def freeze(self, span_ms: int, *, ticks_first: bool) -> None:
        """Do nothing for a while; messages wait meanwhile."""
        if self.is_awake:
            self.is_frozen = True
            self._clock.after(span_ms, self._wake, ticks_first)

    def die(self, *, is_seen: bool = True) -> None:
        """End at once, with all that runs here; with its host nobody is left who may see it."""
        if self.is_alive:
            self.is_alive = False
            self.engine.die()
            if is_seen:
                self.world.worker_ended(self)

    def leave(self, *, temporary: bool = False) -> None:
        """Stop everything gracefully, then leave; a static worker may return."""
        if self.is_awake:
            self.hear(Leave(temporary))

    def hears_of_group(self) -> None:
        """Repeat everything: the group has a new process."""
        self.hear(GroupAt(None, self.node.place.coordinator_epoch))

    def split(self, tasks: int, shade: int) -> None:
        """Split the work of a connector that runs here anew."""
        running = [each for each in self.engine.find_working() if not each.is_task]
        if self.is_awake and running:
            self.engine.split(self.engine.tasks[running[shade % len(running)]], tasks, shade)
            self.settle()

    def fail(self, which: int) -> None:
        """Fail a resource that runs here, for good."""
        running = self.engine.find_working()
        if self.is_awake and running:
            self.engine.fail(running[which % len(running)])
            self.settle()

    def _wake(self, ticks_first: bool) -> None:  # noqa: FBT001
        if not self.is_alive:
            return
        self.is_frozen = False
        inbox, self._inbox = self._inbox, []
        if ticks_first:
            self._pass_time()
        for message in inbox:
            self.hear(message)
        self._pass_time()
        for resource in sorted(self.engine.tasks):
            self.world.exclusivity.look(resource)

    # -- what the core is told

    def hear(self, message: object) -> None:
        """Deliver a message; it is lost if the worker is dead."""
        if self.is_frozen:
            self._inbox.append(message)
        elif self.is_alive:
            if isinstance(message, HeartbeatReply):
                self._see_goodbye(message)
            if isinstance(message, ClassicReply):
                self._hear_classic(message)
            else:
                self._obey(self._core.receive(message, self._clock.now_ms))
            self.settle()

    def _hear_classic(self, reply: ClassicReply) -> None:
        """Deliver the answer to a call, and check the core's reaction."""
        call = self._calls.get(reply.number)
        before = self._position
        effects = self._core.receive(reply, self._clock.now_ms)
        if call is not None:
            before_after = before, self._position
            self.world.rounds.check_reply(self.name, call, reply, before_after, effects)
        self._obey(effects)

    @property
    def _position(self) -> MemberPosition:
        return MemberPosition(self.member.state, self.member.member_epoch)

    def report(self, report: CoreReport) -> None:
        """Queue a report of the engine; `settle` passes it to the core."""
        self._reports.append(report)

    def settle(self) -> None:
        """Pass all reports to the core, and set a timer for its next tick."""
        while self._reports and self.is_awake:
            reports, self._reports = self._reports, deque()
            clock = self._clock
            self._obey(self._core.report(reports, clock.now_ms, clock.wall_ms))
        if self.is_alive:
            self._sleep()

    def _pass_time(self) -> None:
        if self.is_alive:
            self._obey(self._core.tick(self._clock.now_ms, self._clock.wall_ms))
            self.settle()

    def _sleep(self) -> None:
        now_ms = self._clock.now_ms
        due_ms = max(self._core.next_tick_ms(), now_ms + 1)
        if due_ms < self._tick_at_ms:
            self._tick_at_ms = due_ms
            self._clock.after(due_ms - now_ms, self._tick, due_ms)

    def _tick(self, due_ms: int) -> None:
        if due_ms == self._tick_at_ms:
            self._tick_at_ms = NEVER
            if self.is_awake:
                self._pass_time()

    def _commit(self) -> None:
        if not self.is_alive:
            return
        self._clock.after(self.world.schedule.traits.commit_every_ms, self._commit)
        if self.is_awake:
            self._reports.extend(self.engine.ask_for_commits(self._clock.now_ms))
            self.engine.clean_up()
            if self._reports:
                self.settle()

    def _see_goodbye(self, reply: HeartbeatReply) -> None:
        """Record that the group knows a member's end: this process never comes back."""
        is_mine = reply.member_id == self.member.identity.member_id
        if is_mine and reply.member_epoch < JOIN_EPOCH and reply.error in SUCCESS:
            self._durable_state.checks.gone.add(self.member_id)

    # -- what the core wants

    def _obey(self, effects: list[Effect]) -> None:
        for effect in effects:
            if self.is_alive:
                self._carry_out(effect)

    def _carry_out(self, effect: Effect) -> None:
        match effect:
            case SendToGroup(message):
                self._say(message)
            case AskAssignor(message):
                self.node.assignor.ask(message, self.hear)
            case TellSupervisor(message):
                self._tell_supervisor(message)
            case AnswerCommit():
                self.engine.answer(effect)
            case StartResource() | StopResource() | TurnResource() | AbandonAll():
                self._run(effect)
            case Exit(reason):
                self._finish(reason)

    def _run(self, effect: StartResource | StopResource | TurnResource | AbandonAll) -> None:
        match effect:
            case StartResource(launch):
                self.engine.start(launch)
            case StopResource(resource):
                self.engine.stop(resource)
            case TurnResource(resource, state):
                self.engine.turn(resource, state)
            case AbandonAll(reason):
                self.world.story.tell("{} stops everything: {}", self.name, reason)
                self.engine.abandon()

    def _say(self, message: GroupMessage) -> None:
        network, place = self.world.network, self.node.place
        is_join = isinstance(message, Heartbeat) and message.member_epoch == JOIN_EPOCH
        if is_join or (isinstance(message, JoinGroup) and not self.engine.tasks):
            self.world.exclusivity.own(self.name)
        if isinstance(message, ClassicCall):
            self._calls[message.number] = message
            self.world.rounds.check_call(self.name, message)
        line, only = (self.node.number, Way.TO_GROUP), None
        hear = partial(network.send, self._answers, self.node.hear)
        if self.foreign is not None:
            hear = partial(network.send, self._answers, self._hear_as_foreign, message)
            only, message = place.generation, self.foreign.says(message)
        network.send(line, place.submit, only, hear, message)

    def _hear_as_foreign(self, asked: object, reply: object) -> None:
        if self.foreign is not None:
            self.hear(self.foreign.hears(asked, reply))

    def _tell_supervisor(self, message: SupervisorMessage) -> None:
        match message:
            case WorkerGone(_, error):
                self._finish(error)
            case AssignorHangs(pid):
                self.node.replace_assignor(pid)
            case _:
                pass

    def _finish(self, error: str) -> None:
        """End for good; another process replaces one that failed."""
        self.world.story.tell("{} ends: {}", self.name, error or "it has left")
        self.die()
        if error:
            self.node.comes_back(self.rng.randint(100, 8_000))
