"""Simulated workers of the classic protocol in one group, with a log and a virtual clock.

What a worker starts runs at once; what it is to stop has stopped after `stop_ms`. An answer takes
no time, unless the worker is cut off: then nothing that it says arrives.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from fairlead.actors.worker.classic.membership import ClassicMembership
from fairlead.actors.worker.instructions import (
    Fence,
    Gone,
    Identity,
    Instruction,
    Kill,
    SendCall,
    Start,
    Stop,
    Timing,
)
from fairlead.actors.worker.states import State
from fairlead.events.entries.codec import encode
from fairlead.events.evolve import evolve
from fairlead.events.log.frame import Entry
from fairlead.events.model import NOTHING, Resources
from fairlead.events.records import ConnectorsTasksMetadata, Record
from fairlead_tests.classic.driver import BY_GRANTS, WALL_MS, ClassicDriver
from fairlead_tests.decider import resources

TIMING = Timing(rebalance_timeout_ms=20_000)


@dataclass
class Worker:
    """One worker, with its running and stopping resources."""

    membership: ClassicMembership
    runs: Resources = NOTHING
    stopping: dict[int, Resources] = field(default_factory=dict[int, Resources])
    """The stopping resources, by the time when they have stopped."""
    is_cut: bool = False
    sees_log: bool = True
    """Whether it reads new entries of the log."""
    waiting: set[int] = field(default_factory=set[int])
    """The numbers of the calls that wait for an answer, as the group counts them."""
    said: list[str] = field(default_factory=list[str])
    gone: str | None = None


class Crew(ClassicDriver):
    """A group, its configs and its workers."""

    def __post_init__(self) -> None:
        self.settings = BY_GRANTS
        super().__post_init__()
        self.workers: dict[str, Worker] = {}
        self.stop_ms = 0
        self.shown = self.group
        self._asked: dict[int, tuple[str, int]] = {}
        """The sender of each call, and the sender's number for it, by the group's number."""

    def configure(self, names: str) -> None:
        """Configure these resources."""
        self.log(ConnectorsTasksMetadata(resources(names)))
        self.look()

    def log(self, record: Record) -> None:
        """Append a record to the log."""
        made = encode(record)
        entry = Entry(len(self.entries), *made[:3], WALL_MS, made.value)
        self.entries.append(entry)
        evolve(self.group, record, entry.offset)

    def comes(
        self, name: str, mode: str = "sessioned", delay_ms: int = 10_000, static: bool = False
    ) -> Worker:
        """Let a worker join."""
        instance_id = f"i-{name}" if static else None
        identity = Identity(
            "g", name, name, f"http://{name}/", client_id=name, instance_id=instance_id
        )
        worker = Worker(ClassicMembership(identity, TIMING, mode, delay_ms))
        self.workers[name] = worker
        self.see(name)
        self.obey(name, worker.membership.join(self.now_ms))
        self.settle()
        return worker

    def dies(self, name: str) -> None:
        """Kill a worker."""
        del self.workers[name]

    def lets_leave(self, name: str, *, temporary: bool = False) -> None:
        """Let a worker leave gracefully."""
        self.obey(name, self.workers[name].membership.leave(self.now_ms, temporary=temporary))
        self.settle()

    def goes_on(self, milliseconds: int) -> None:
        """Advance the clock for all."""
        end_ms = self.now_ms + milliseconds
        self.settle()
        while (due_ms := self._next_ms()) is not None and due_ms <= end_ms:
            self.now_ms = max(self.now_ms + 1, due_ms)
            self.settle()
        self.now_ms = max(self.now_ms, end_ms)
        self.settle()

    def _next_ms(self) -> int | None:
        times = [self.coordinator.next_ms()]
        for worker in self.workers.values():
            times.append(worker.membership.next_tick_ms())
            times += worker.stopping
        return min((each for each in times if each is not None), default=None)

    def settle(self) -> None:
        """Run all timers that are due."""
        self.run_timers()
        for name, worker in [*self.workers.items()]:
            for at_ms in [each for each in worker.stopping if each <= self.now_ms]:
                gone = worker.stopping.pop(at_ms)
                worker.runs -= gone
                self.obey(name, worker.membership.release(gone, self.now_ms))
            self.obey(name, worker.membership.tick(self.now_ms))
        self.deliver()

    def deliver(self) -> None:
        """Deliver all replies, and let each worker read the log."""
        while ready := [each for each in self._asked if each in self.said]:
            for number in ready:
                name, own = self._asked.pop(number)
                worker = self.workers.get(name)
                if worker is not None and not worker.is_cut and number in worker.waiting:
                    reply = replace(self.said[number], number=own)
                    self.obey(name, worker.membership.handle_reply(reply, self.now_ms))
            self.look()

    def look(self) -> None:
        """Let all workers read the log."""
        for name, worker in [*self.workers.items()]:
            if worker.sees_log:
                self.see(name)

    def see(self, name: str) -> None:
        """Let a worker read the log."""
        membership, group = self.workers[name].membership, self.group
        seen = group.configured, group.configured_offset
        self.obey(name, membership.set_configured(*seen, self.now_ms))

    def obey(self, name: str, instructions: Iterable[Instruction]) -> None:
        """Carry out the instructions of a worker."""
        worker = self.workers[name]
        for each in [*instructions]:
            self._carry_out(name, worker, each)

    def _carry_out(self, name: str, worker: Worker, instruction: Instruction) -> None:
        match instruction:
            case SendCall(call):
                if not worker.is_cut:
                    worker.said.append(type(call).__name__)
                    number = self.ask(call)
                    self._asked[number] = name, call.number
                    worker.waiting.add(number)
            case Start(granted):
                assert not granted & worker.runs
                worker.runs |= granted
            case Stop(given_up):
                self._stop(worker, given_up)
            case Fence():
                self._stop(worker, worker.membership.owned)
            case Kill():
                self.dies(name)
            case Gone(error):
                worker.gone = error
            case _:
                raise AssertionError(instruction)

    def _stop(self, worker: Worker, given_up: Resources) -> None:
        at_ms = self.now_ms + self.stop_ms
        worker.stopping[at_ms] = worker.stopping.get(at_ms, NOTHING) | given_up

    # -- what is seen

    def running(self) -> dict[str, str]:
        """Return the running resources of each worker, as text."""
        return {
            name: " ".join(sorted(map(str, worker.runs))) for name, worker in self.workers.items()
        }

    def leader(self) -> str:
        """Return the name of the worker that leads."""
        led = [name for name, each in self.workers.items() if each.membership.is_leader]
        (name,) = led
        return name

    @property
    def is_settled(self) -> bool:
        """Whether all are at the last generation, and run what the log grants them."""
        held = {
            each.member_id: frozenset(each.current.assigned)
            for each in self.group.classic_members.values()
        }
        return all(
            worker.membership.state is State.STABLE
            and held.get(worker.membership.member_id) == worker.runs
            for worker in self.workers.values()
        )
