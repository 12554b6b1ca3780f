"""A whole group in virtual time: the real coordinator, real members, and a bad network.

Messages are lost, doubled, and late by up to nine seconds; workers freeze, die, hang in a stop;
the group's actor freezes and dies at any moment. What runs where is checked at every start.
"""

import heapq
import itertools
import random
from collections.abc import Callable
from functools import partial

from fairlead.actors.assignor_actor import Assigned
from fairlead.actors.assignors.cooperative import assign
from fairlead.actors.group.coordinator import Answer, Coordinator, Now
from fairlead.actors.group.desk import Settings
from fairlead.actors.messages import (
    GroupCommand,
    HeartbeatReply,
    InstallReply,
    PrepareReply,
)
from fairlead.actors.worker.instructions import (
    Compute,
    Fence,
    Gone,
    Identity,
    Instruction,
    Kill,
    Send,
    Start,
    Stop,
    Timing,
)
from fairlead.actors.worker.membership import Membership
from fairlead.events.log.frame import Entry
from fairlead.events.model import NOTHING, Assignor, Resource, Resources
from fairlead.events.restore import restore
from fairlead.events.tokens import token_of
from fairlead.runtime.worker.computing import Computing

TIMING = Timing(3_000, 10_000, 20_000, 1_000)
TICK_MS, GROUP_TICK_MS = 50, 100
WALL_MS = 1_700_000_000_000
GROUP = "connect"


class NoOffsets:
    """An offset log in which nothing was ever committed."""

    def has_unpublished(self, _: str) -> bool:
        return False


class World:
    """The clock, the network, the group's log, and everybody in it."""

    def __init__(self, seed: int) -> None:
        self.chance = random.Random(seed)
        self.now_ms = 1_000_000
        self.is_rough = True
        self.log: list[Entry] = []
        self.workers: list[Worker] = []
        self.doubled: list[str] = []
        self.generation = 0
        self.is_down = self.is_frozen = False
        self._inbox: list[tuple[GroupCommand, Worker]] = []
        self._agenda: list[tuple[int, int, Callable[[], None]]] = []
        self._order = itertools.count()
        delay_ms = self.chance.choice([0, 5_000, 30_000])
        self._settings = Settings(max_delay_ms=delay_ms)
        self.coordinator = self._open()
        self.after(0, self._tick)

    def after(self, delay_ms: int, deed: Callable[[], None]) -> None:
        heapq.heappush(self._agenda, (self.now_ms + max(0, delay_ms), next(self._order), deed))

    def run(self, milliseconds: int) -> None:
        until_ms = self.now_ms + milliseconds
        while self._agenda and self._agenda[0][0] <= until_ms:
            self.now_ms, _, deed = heapq.heappop(self._agenda)
            deed()
        self.now_ms = until_ms

    def carry(self, deed: Callable[[], None]) -> None:
        """Deliver something: late, twice, or never."""
        copies = 1
        if self.is_rough:
            copies = self.chance.choices([0, 1, 2], [2, 96, 2])[0]
        for _ in range(copies):
            self.after(self._delay_ms(), deed)

    def to_group(self, sender: "Worker", message: GroupCommand) -> None:
        generation = sender.generation

        def arrive() -> None:
            if generation == self.generation and not self.is_down:
                self._inbox.append((message, sender))
                self._flush()

        self.carry(arrive)

    def command(self, command: GroupCommand) -> None:
        """Have the group do something, as the REST interface would."""
        if not self.is_down and not self.is_frozen:
            self.coordinator.take(command, None, self._now())
            self._speak()

    def kill_group(self) -> None:
        if not self.is_down:
            self.is_down, self.is_frozen = True, False
            self.after(self.chance.randint(50, 4_000), self._reopen)

    def freeze_group(self) -> None:
        if self.is_down or self.is_frozen:
            return
        self.is_frozen, generation = True, self.generation

        def thaw() -> None:
            if generation == self.generation and not self.is_down:
                self.is_frozen = False
                self._flush(is_tick=self.chance.random() < 0.5)

        self.after(self.chance.randint(100, 15_000), thaw)

    def see(self, worker: "Worker", resource: Resource) -> None:
        """Note if anybody else who is awake runs the same."""
        self.doubled += [
            f"{self.now_ms}: {resource} at {worker.name} and {other.name}"
            for other in self.workers
            if other is not worker and other.is_awake and resource in other.running
        ]

    def _delay_ms(self) -> int:
        if not self.is_rough:
            return self.chance.randint(0, 5)
        longest = self.chance.choices([30, 2_000, 9_000], [90, 8, 2])[0]
        return self.chance.randint(0, longest)

    def _now(self) -> Now:
        return Now(WALL_MS + self.now_ms, self.now_ms)

    def _open(self) -> Coordinator:
        latest = {(entry.type, entry.key): entry for entry in self.log}
        entries = sorted(latest.values(), key=lambda entry: entry.offset)
        group = restore(GROUP, entries, len(self.log))
        offsets: object = NoOffsets()
        return Coordinator(group, self._settings, offsets, self.now_ms)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]

    def _reopen(self) -> None:
        self.coordinator = self._open()
        self.generation += 1
        self.is_down = False
        self._inbox.clear()
        for worker in self.workers:
            self.after(self.chance.randint(0, 300), worker.hears_of_group)

    def _tick(self) -> None:
        self._flush(is_tick=True)
        self.after(GROUP_TICK_MS, self._tick)

    def _flush(self, *, is_tick: bool = False) -> None:
        if self.is_down or self.is_frozen:
            return
        inbox, self._inbox = self._inbox, []
        for message, sender in inbox:
            self.coordinator.take(message, sender, self._now())
        if is_tick:
            self.coordinator.pass_time(self._now())
        self._speak()

    def _speak(self) -> None:
        self.coordinator.settle(self._now())
        for new in self.coordinator.entries:
            at = len(self.log)
            self.log.append(Entry(at, new.type, new.version, new.key, 0, new.value))
        self.coordinator.entries.clear()
        outbox, self.coordinator.outbox = self.coordinator.outbox, []
        for answer in outbox:
            if isinstance(answer.to, Worker):
                self.carry(answer.to.listens_to(answer))


class Worker:
    """One process: a real member, and resources that take their time to stop."""

    def __init__(self, world: World, url: str) -> None:
        self.world, self.url = world, url
        self.name = f"{url}#{len(world.workers)}"
        self.is_alive, self.is_frozen = True, False
        self.generation = world.generation
        self.running: Resources = NOTHING
        self._allowed: Resources = NOTHING
        self._inbox: list[object] = []
        identity = Identity(GROUP, self.name, self.name, url)
        self.member = Membership(identity, TIMING, (Assignor("cooperative"),))
        self._computing = Computing(GROUP, self.name, TIMING.rebalance_timeout_ms)
        world.workers.append(self)
        self._obey(self.member.join(world.now_ms))
        world.after(TICK_MS, self._tick)

    @property
    def is_awake(self) -> bool:
        return self.is_alive and not self.is_frozen

    def listens_to(self, answer: Answer) -> Callable[[], None]:
        return lambda: self._hear(answer.reply)

    def hears_of_group(self) -> None:
        if not self.is_awake:
            self.world.after(TICK_MS, self.hears_of_group)
            return
        self.generation = self.world.generation
        self._computing.drop()
        self._obey(self.member.reconnected(self.world.now_ms))

    def freeze(self) -> None:
        if self.is_awake:
            self.is_frozen = True
            chance = self.world.chance
            longest = chance.choice([500, 3_000, 8_000, 9_000, 12_000, 25_000])
            self.world.after(longest + chance.randint(0, 900), self._wake)

    def die(self) -> None:
        if self.is_alive:
            self.is_alive, self.running = False, NOTHING
            again = self.world.chance.randint(100, 15_000)
            self.world.after(again, self._begin_anew)

    def _begin_anew(self) -> None:
        Worker(self.world, self.url)

    def _wake(self) -> None:
        if not self.is_alive:
            return
        self.is_frozen = False
        inbox, self._inbox = self._inbox, []
        if self.world.chance.random() < 0.5:
            self._pass_time()
        for message in inbox:
            self._hear(message)
        self._pass_time()
        for resource in sorted(self.running):
            self.world.see(self, resource)

    def _tick(self) -> None:
        if self.is_alive:
            self._pass_time()
            self.world.after(TICK_MS, self._tick)

    def _pass_time(self) -> None:
        if self.is_awake:
            now_ms = self.world.now_ms
            self._obey(self.member.tick(now_ms))
            self._say(self._computing.tick(self.member.member_epoch, now_ms))
            self._go_on()

    def _hear(self, message: object) -> None:
        if not self.is_alive:
            return
        if self.is_frozen:
            self._inbox.append(message)
            return
        now_ms = self.world.now_ms
        match message:
            case HeartbeatReply():
                self._obey(self.member.answered(message, now_ms))
            case PrepareReply():
                asked = self._computing.prepared(message, now_ms)
                if asked is not None:
                    made = Assigned(asked.snapshot.group_epoch, assign(asked.snapshot))
                    takes = self.world.chance.randint(1, 500)
                    self.world.after(takes, lambda: self._hear(made))
            case Assigned():
                self._say(self._computing.assigned(message, self.member.member_epoch, now_ms))
            case InstallReply():
                self._computing.installed(message, now_ms)
            case _:
                pass
        self._go_on()

    def _go_on(self) -> None:
        """Start what may run and is granted by the log, as the real worker does."""
        self.member.computing = self._computing.is_busy
        for resource in sorted(self._allowed - self.running):
            if token_of(self.world.coordinator.group, self.name, resource):
                self.running |= {resource}
                self.world.see(self, resource)

    def _say(self, message: GroupCommand | None) -> None:
        if message is not None:
            self.world.to_group(self, message)

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
            case Stop(resources):
                return self._stop(resources, 5_000)
            case Fence():
                return self._stop(self.member.owned, 700)
            case Kill() | Gone():
                self.die()
            case Compute(epoch):
                self._say(self._computing.begin(epoch, self.world.now_ms))
        return []

    def _stop(self, resources: Resources, longest_ms: int) -> list[Instruction]:
        self._allowed -= resources
        for resource in sorted(resources & self.running):
            hangs = self.world.is_rough and self.world.chance.random() < 0.05
            if not hangs:
                takes = self.world.chance.randint(1, longest_ms)
                self.world.after(takes, partial(self._ended, resource))
        return self.member.stopped(resources - self.running, self.world.now_ms)

    def _ended(self, resource: Resource) -> None:
        if self.is_frozen:
            self.world.after(TICK_MS, lambda: self._ended(resource))
        elif self.is_alive and resource in self.running and resource not in self._allowed:
            self.running -= {resource}
            self._obey(self.member.stopped([resource], self.world.now_ms))
            self._go_on()
