"""A live worker: a real member, and tasks that take their time to stop, or never do.

It is put together as the real worker is, out of the real parts: membership, computing, news
and launches. Only the engine is made up.
"""

from collections.abc import Iterable
from functools import partial
from typing import TYPE_CHECKING, Final

from ...actors.assignor_actor import Assigned
from ...actors.messages import (
    CommitOffsets,
    CommitReply,
    GroupCommand,
    HeartbeatReply,
    InstallReply,
    PrepareReply,
)
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
from ...events.model import NOTHING, Resource, Resources, Token
from ...projections.launches import Launch, launches
from ..tasks.reports import Ending, Stopped, TaskConfigsChanged
from ..worker.computing import Computing
from ..worker.news import News
from .chance import stream
from .network import Way
from .tasks import Carrier, Task, begun

if TYPE_CHECKING:
    from .world import Place, World

TICK_MS: Final = 50
"""As often as the real worker lets time pass for all its parts."""
CANCEL_MS: Final = 700
"""How long it takes at most to cancel what does not hang."""
HUNG_MS: Final = 30_000
"""How long a stop may take at most: longer than any revocation's deadline here."""
REST_MS: Final = 1_000
"""How long a task rests that ended though it may run."""
NEVER: Final = 1 << 60


class Worker:
    """One process: it lives at a place, and another one takes its place when it has died."""

    def __init__(self, world: "World", place: "Place", name: str) -> None:
        self.world = world
        self.place = place
        self.name = name
        self.is_alive, self.is_frozen = True, False
        self.hangs = False
        self.tasks: dict[Resource, Task] = {}
        self.dice = stream(world.plan.seed, name)
        self.generation = world.process.generation
        self.member = world.membership(place, name)
        self._clock, self._floor, self._books = world.clock, world.floor, world.books
        self._computing = Computing(
            self.member.identity.group_id, name, world.plan.traits.rebalance_timeout_ms
        )
        self._news = News(self.member.identity.group_id, name)
        self._carrier = Carrier(name)
        self._allowed: Resources = NOTHING
        self._rests: dict[Resource, int] = {}
        self._seen_end = -1
        self._inbox: list[object] = []
        self._tick_at_ms = NEVER
        self._phase_ms = self.dice.randrange(TICK_MS)
        self._hear_group = partial(world.network.send, (place.number, Way.TO_WORKER), self.hear)

    @property
    def is_awake(self) -> bool:
        """Whether it does anything that others can see."""
        return self.is_alive and not self.is_frozen

    def begin(self) -> None:
        """Ask for a seat."""
        self._obey(self.member.join(self._clock.now_ms))
        self._go_on()
        self._clock.after(self.world.plan.traits.commit_every_ms, self._commit)

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
            for resource in sorted(self.tasks):
                self._floor.end(self, resource)
            self.tasks.clear()

    def leave(self, *, temporary: bool = False) -> None:
        """Give everything up in good order, then say goodbye; who is static may come again."""
        if self.is_awake:
            is_static = self.place.instance_id is not None
            now_ms = self._clock.now_ms
            self._obey(self.member.leave(now_ms, temporary=temporary and is_static))
            self._go_on()

    def call_for_rebalance(self) -> None:
        """Have the assignor ask for a rebalance."""
        if self.is_awake and self.place.server_assignor is None:
            changed = self.world.assignors(reason=3 + self.dice.randrange(2))
            self._obey(self.member.changed(changed, self._clock.now_ms))
            self._go_on()

    def hears_of_group(self) -> None:
        """Say everything anew: the group has a new process."""
        if self.is_frozen:
            self._inbox.append(self)
        elif self.is_alive:
            self.generation = self.world.process.generation
            self._computing.drop()
            self._obey(self.member.reconnected(self._clock.now_ms))
            self._go_on()

    def split(self, tasks: int, shade: int) -> None:
        """Have a connector that runs here split its work anew."""
        running = [each for each in sorted(self.tasks) if not each.is_task]
        if self.is_awake and running:
            self._split(self.tasks[running[shade % len(running)]], tasks, shade)
            self._go_on()

    def _split(self, connector: Task, tasks: int, shade: int) -> None:
        configs = tuple(
            {"n": str(number), "v": str(shade % (number + 2))} for number in range(tasks)
        )
        name = connector.resource.connector
        self._news.split(TaskConfigsChanged(name, connector.token, configs))

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
        for resource in sorted(self.tasks):
            self._floor.look(resource)

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
                self._obey(self.member.answered(message, now_ms))
            case CommitReply():
                self._end_fenced(self._carrier.settle(message))
            case PrepareReply():
                asked = self._computing.prepared(message, now_ms)
                if asked is not None:
                    self.place.assignor.compute(asked, self.hear)
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
        if self._rests or self._books.durable.end != self._seen_end:
            self._align(now_ms)
        self.member.computing = self._computing.is_busy
        for message in self._news.unsaid(self._books.durable, now_ms):
            self._say(message)
        self._plan_tick(now_ms)

    def _plan_tick(self, now_ms: int) -> None:
        due_ms = self.member.next_tick_ms()
        if self._computing.is_busy or self._rests:
            due_ms = now_ms + TICK_MS
        elif due_ms is None:
            return
        due_ms = max(due_ms, now_ms + 1)
        due_ms += (self._phase_ms - due_ms) % TICK_MS
        if due_ms < self._tick_at_ms:
            self._tick_at_ms = due_ms
            self._clock.after(due_ms - now_ms, self._tick, due_ms)

    def _align(self, now_ms: int) -> None:
        """Have run what the log grants, under the token that it names."""
        group = self._books.durable
        self._seen_end = group.end
        for resource in [each for each, at_ms in self._rests.items() if now_ms >= at_ms]:
            del self._rests[resource]
        granted = launches(group, self.name, self._allowed)
        for resource in sorted(granted):
            if resource not in self._rests:
                self._launch(granted[resource])

    def _launch(self, launch: Launch) -> None:
        resource, token = launch.resource, launch.token
        running = self.tasks.get(resource)
        if running is not None and running.token == token:
            return
        task = self.tasks[resource] = begun(self._books.offsets, resource, token)
        if running is None:
            self._floor.begin(self, resource)
        if not resource.is_task and not launch.split:
            self._split(task, self.world.plan.traits.tasks, 0)

    def _commit(self) -> None:
        if not self.is_alive:
            return
        self._clock.after(self.world.plan.traits.commit_every_ms, self._commit)
        if self.is_awake and self.tasks:
            tasks = [self.tasks[each] for each in sorted(self.tasks) if each.is_task]
            self._say(self._carrier.carry(tasks, self._clock.now_ms))

    def _end_fenced(self, fenced: Iterable[Task]) -> None:
        """End what may not commit any more; what may run all the same begins anew."""
        for task in fenced:
            if self.tasks.get(task.resource) is task:
                self._rests[task.resource] = self._clock.now_ms + REST_MS
                self._end(task, Ending.FENCED)

    # -- what the membership wants

    def _say(self, message: GroupCommand | CommitOffsets | None) -> None:
        if message is not None:
            world = self.world
            line = (self.place.number, Way.TO_GROUP)
            world.network.send(line, world.process.take, self.generation, self._hear_group, message)

    def _obey(self, instructions: list[Instruction]) -> None:
        waiting = list(instructions)
        while waiting and self.is_alive:
            waiting += self._carry_out(waiting.pop(0))

    def _carry_out(self, instruction: Instruction) -> list[Instruction]:
        match instruction:
            case Send(request):
                self._say(request)
            case Start(resources):
                self._allowed |= resources
                self._seen_end = -1
            case Stop(resources):
                return self._stop(resources, self.world.plan.traits.slowest_stop_ms)
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
            self.place.comes_back(self.dice.randint(100, 8_000))

    def _stop(self, resources: Resources, longest_ms: int) -> list[Instruction]:
        self._allowed -= resources
        for resource in sorted(resources & self.tasks.keys()):
            task = self.tasks[resource]
            if self.hangs and not self.world.is_calm:
                self.hangs = False
                self.world.story.tell("{} does not get {} to stop", self.name, resource)
                self._clock.after(HUNG_MS, self._is_hung, task)
            else:
                self._clock.after(self.dice.randint(1, longest_ms), self._ended, task)
        return self.member.stopped(resources - self.tasks.keys(), self._clock.now_ms)

    def _is_hung(self, task: Task) -> None:
        """End oneself, as the real worker does, because of what does not stop though cancelled."""
        if self._is_stopping(task):
            self._finish(Kill(f"{task.resource} does not stop"))

    def _ended(self, task: Task) -> None:
        if self.is_frozen:
            self._clock.after(TICK_MS, self._ended, task)
        elif self._is_stopping(task):
            self._end(task, Ending.STOPPED)
            self._go_on()

    def _is_stopping(self, task: Task) -> bool:
        is_current = self.is_alive and self.tasks.get(task.resource) is task
        return is_current and task.resource not in self._allowed

    def _end(self, task: Task, ending: Ending) -> None:
        resource = task.resource
        del self.tasks[resource]
        self._floor.end(self, resource)
        self._news.stopped(Stopped(resource, task.token, ending), self._clock.wall_ms)
        if resource not in self._allowed:
            self._rests.pop(resource, None)
            self._obey(self.member.stopped([resource], self._clock.now_ms))

    def token_of(self, resource: Resource) -> Token | None:
        """Return the token that a resource runs under here, None if it does not."""
        task = self.tasks.get(resource)
        return task.token if task else None
