"""A live worker: a real member, and an engine whose tasks take their time to stop.

It is put together as the real worker is, out of the real parts: membership, computing, news
and launches. Only the engine is made up.
"""

from functools import partial
from typing import TYPE_CHECKING, Final

from ...actors.messages.assignors import Assigned
from ...actors.messages.commands import GroupCommand
from ...actors.messages.computing import InstallReply, PrepareReply
from ...actors.messages.errors import SUCCESS
from ...actors.messages.heartbeat import JOIN_EPOCH, HeartbeatReply
from ...actors.messages.work import CommitOffsets, CommitReply
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
from ...events.model import Resources
from ...projections.launches import launches
from ..tasks.reports import Ending, Stopped, TaskConfigsChanged
from ..worker.computing import Computing
from ..worker.status_reporter import StatusReporter
from .clock import stream
from .engine import SimulatedEngine, SimulatedTask
from .network import ForeignClient, Way

if TYPE_CHECKING:
    from .world import Node, World

TICK_MS: Final = 50
"""As often as the real worker lets time pass for all its parts."""
CANCEL_MS: Final = 700
"""How long it takes at most to cancel what does not hang."""
NEVER: Final = 1 << 60


class SimulatedWorker:
    """One process: it lives on a node, and another one takes its place when it has died."""

    def __init__(self, world: "World", node: "Node", name: str) -> None:
        self.world = world
        self.node = node
        self.name = name
        self.is_alive, self.is_frozen = True, False
        self.rng = stream(world.schedule.seed, name)
        self.foreign = ForeignClient() if node.is_foreign else None
        self.member = world.membership(node, name)
        self.engine = SimulatedEngine(world, self, self.rng)
        self._clock, self._durable_state = world.clock, world.durable_state
        self._computing = Computing(
            self.member.identity.group_id, name, world.schedule.traits.rebalance_timeout_ms
        )
        self._reporter = StatusReporter(self.member.identity.group_id, name)
        self._seen_end = -1
        self._inbox: list[object] = []
        self._tick_at_ms = NEVER
        self._phase_ms = self.rng.randrange(TICK_MS)
        self._answers = (node.number, Way.TO_WORKER)

    @property
    def member_id(self) -> str:
        """What the group calls it; nothing if it is to be given a name and has none yet."""
        return self.name if self.foreign is None else self.foreign.member_id

    @property
    def is_awake(self) -> bool:
        """Whether it does anything that others can see."""
        return self.is_alive and not self.is_frozen

    def begin(self) -> None:
        """Ask for a seat."""
        self._obey(self.member.join(self._clock.now_ms))
        self._go_on()
        self._clock.after(self.world.schedule.traits.commit_every_ms, self._commit)

    # -- what befalls it

    def freeze(self, span_ms: int, *, ticks_first: bool) -> None:
        """Do nothing for a while; what arrives meanwhile waits."""
        if self.is_awake:
            self.is_frozen = True
            self._clock.after(span_ms, self._wake, ticks_first)

    def die(self) -> None:
        """End at once, with all that runs here."""
        if self.is_alive:
            self.is_alive = False
            self.engine.die()
            self.world.supervisor.sees_end(self.name)

    def leave(self, *, temporary: bool = False) -> None:
        """Give everything up in good order, then say goodbye; who is static may come again."""
        if self.is_awake:
            is_static = self.node.instance_id is not None
            now_ms = self._clock.now_ms
            self._obey(self.member.leave(now_ms, temporary=temporary and is_static))
            self._go_on()

    def call_for_rebalance(self) -> None:
        """Have the assignor ask for a rebalance."""
        if self.is_awake and self.node.server_assignor is None:
            changed = self.world.assignors(reason=3 + self.rng.randrange(2))
            self._obey(self.member.changed(changed, self._clock.now_ms))
            self._go_on()

    def hears_of_group(self) -> None:
        """Say everything anew: the group has a new process."""
        if self.is_frozen:
            self._inbox.append(self)
        elif self.is_alive:
            number = self.world.process.coordinator_epoch
            self._computing.drop()
            self._obey(self.member.reconnected(self._clock.now_ms, number))
            self._go_on()

    def split(self, tasks: int, shade: int) -> None:
        """Have a connector that runs here split its work anew."""
        running = [each for each in sorted(self.engine.tasks) if not each.is_task]
        if self.is_awake and running:
            connector = self.engine.tasks[running[shade % len(running)]]
            self._split(connector, tasks, shade)
            self._go_on()

    def _split(self, connector: SimulatedTask, tasks: int, shade: int) -> None:
        configs = tuple(
            {"n": str(number), "v": str(shade % (number + 2))} for number in range(tasks)
        )
        name = connector.resource.connector
        self._reporter.split(TaskConfigsChanged(name, connector.token, configs))

    def _wake(self, ticks_first: bool) -> None:  # noqa: FBT001
        if not self.is_alive:
            return
        self.is_frozen = False
        inbox, self._inbox = self._inbox, []
        if ticks_first:
            self._pass_time()
        for message in inbox:
            if message is self:
                self.hears_of_group()
            else:
                self.hear(message)
        self._pass_time()
        for resource in sorted(self.engine.tasks):
            self.world.exclusivity.look(resource)

    # -- what comes in

    def hear(self, message: object) -> None:
        """Take an answer; one that finds nobody alive is lost."""
        if self.is_frozen:
            self._inbox.append(message)
        elif self.is_alive:
            self._heed(message, self._clock.now_ms)
            self._go_on()

    def _heed(self, message: object, now_ms: int) -> None:
        match message:
            case HeartbeatReply():
                is_mine = message.member_id == self.member.identity.member_id
                if is_mine and message.member_epoch < JOIN_EPOCH and message.error in SUCCESS:
                    self._durable_state.checks.gone.add(self.member_id)
                self._obey(self.member.answered(message, now_ms))
            case CommitReply():
                self.engine.settle(message, now_ms)
            case PrepareReply():
                asked = self._computing.prepared(message, now_ms)
                if asked is not None:
                    self.node.assignor.compute(asked, self.hear)
            case Assigned():
                self._say(self._computing.assigned(message, self.member.member_epoch, now_ms))
            case InstallReply():
                self._computing.installed(message, now_ms)
            case _:
                pass

    # -- what it does by itself

    def _tick(self, due_ms: int) -> None:
        if due_ms == self._tick_at_ms:
            self._tick_at_ms = NEVER
            if self.is_awake:
                self._pass_time()

    def _pass_time(self) -> None:
        now_ms = self._clock.now_ms
        self._obey(self.member.tick(now_ms))
        self._say(self._computing.tick(self.member.member_epoch, now_ms))
        self._go_on()

    def _go_on(self) -> None:
        """Do what follows from what just happened, and see when time matters next."""
        if not self.is_alive:
            return
        now_ms = self._clock.now_ms
        if self.engine.rests or self._durable_state.group.end != self._seen_end:
            self._align(now_ms)
        self.member.computing = self._computing.is_busy
        self._tell_reports()
        self._schedule_tick(now_ms)

    def _tell_reports(self) -> None:
        self._reporter.member_id = self.member_id
        for message in self._reporter.unsaid(self._durable_state.group, self._clock.now_ms):
            self._say(message)

    def _schedule_tick(self, now_ms: int) -> None:
        due_ms = self.member.next_tick_ms()
        if self._computing.is_busy or self.engine.rests:
            due_ms = now_ms + TICK_MS
        elif due_ms is None:
            return
        due_ms = max(due_ms, now_ms + 1)
        due_ms += (self._phase_ms - due_ms) % TICK_MS
        if due_ms < self._tick_at_ms:
            self._tick_at_ms = due_ms
            self._clock.after(due_ms - now_ms, self._tick, due_ms)

    def _align(self, now_ms: int) -> None:
        """Have run what the log grants."""
        group = self._durable_state.group
        self._seen_end = group.end
        granted = launches(group, self.member_id, self.engine.allowed)
        for task in self.engine.launch(granted, now_ms):
            if not task.resource.is_task and not granted[task.resource].split:
                self._split(task, self.world.schedule.traits.tasks, 0)

    def _commit(self) -> None:
        if not self.is_alive:
            return
        self._clock.after(self.world.schedule.traits.commit_every_ms, self._commit)
        if self.is_awake:
            self._say(self.engine.commit(self._clock.now_ms))

    # -- what the engine reports

    def ended(self, task: SimulatedTask, ending: Ending) -> None:
        """Tell who has to know that a task has ended."""
        now_ms, resource = self._clock.now_ms, task.resource
        self._reporter.stopped(Stopped(resource, task.token, ending), self._clock.wall_ms)
        self._tell_reports()  # first: the group takes no word from who has left
        if resource not in self.engine.allowed:
            self._obey(self.member.stopped([resource], now_ms))
        self._go_on()

    def give_up(self, why: str) -> None:
        """End oneself: something that was to stop does not."""
        self._finish(Kill(why))

    # -- what the membership wants

    def _say(self, message: GroupCommand | CommitOffsets | None) -> None:
        if message is None:
            return
        network, process = self.world.network, self.world.process
        line, only = (self.node.number, Way.TO_GROUP), None
        hear = partial(network.send, self._answers, self.node.hear)
        if self.foreign is not None:
            hear = partial(network.send, self._answers, self._hear_as_foreign, message)
            only, message = process.generation, self.foreign.says(message)
        network.send(line, process.take, only, hear, message)

    def _hear_as_foreign(self, asked: object, reply: object) -> None:
        if self.foreign is not None:
            self.hear(self.foreign.hears(asked, reply))

    def _obey(self, instructions: list[Instruction]) -> None:
        waiting = list(instructions)
        while waiting and self.is_alive:
            waiting += self._carry_out(waiting.pop(0))

    def _carry_out(self, instruction: Instruction) -> list[Instruction]:
        match instruction:
            case Send(request):
                if request.member_epoch == JOIN_EPOCH:
                    self.world.exclusivity.own(self.name)
                self._say(request)
            case Start(resources):
                self.engine.allowed |= resources
                self._seen_end = -1
            case Stop(resources):
                return self._stop(resources, self.world.schedule.traits.slowest_stop_ms)
            case Fence(reason):
                self.world.story.tell("{} stops everything: {}", self.name, reason)
                return self._stop(self.member.owned, CANCEL_MS)
            case Compute(epoch):
                self._say(self._computing.begin(epoch, self._clock.now_ms))
            case Kill() | Gone():
                self._finish(instruction)
            case _:
                pass
        return []

    def _finish(self, last: Kill | Gone) -> None:
        self.world.story.tell("{} ends: {}", self.name, last)
        self.die()
        if isinstance(last, Kill) or last.error:
            self.node.comes_back(self.rng.randint(100, 8_000))

    def _stop(self, resources: Resources, longest_ms: int) -> list[Instruction]:
        idle = self.engine.stop(resources, longest_ms)
        return self.member.stopped(idle, self._clock.now_ms)
