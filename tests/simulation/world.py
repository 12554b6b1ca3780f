"""One group in virtual time: its coordinator, its workers, and all that befalls them."""

from dataclasses import replace
from random import Random

from simulation.clock import Clock
from simulation.network import Network
from simulation.shell import Shell
from simulation.worker import Habits, Worker

from fairlead.actors.group.desk import Settings
from fairlead.actors.messages import (
    DeleteConnector,
    FinishDeletion,
    PutConnector,
    PutTaskConfigs,
)
from fairlead.events.group import Group
from fairlead.events.model import GroupState, Resource
from fairlead.events.tokens import token_of

CONNECTORS = "ABCD"
FOUL_MS = 80_000
"""How long it goes on storming."""

CALM_MS = 90_000
"""Until when a group that is left alone has long come to rest: deadlines and back-offs passed."""


class World:
    """Everything there is, from one seed."""

    def __init__(self, seed: int) -> None:
        self.dice = Random(seed)
        self.clock = Clock()
        self.network = Network(self.clock, self.dice)
        delay_ms = self.dice.choice([0, 8_000, 30_000])
        self.shell = Shell(self.clock, Settings(max_delay_ms=delay_ms))
        self.workers: list[Worker] = []
        self.runs: dict[Resource, str] = {}
        self.is_calm = False
        self.slowest_stop_ms = self.dice.choice([200, 4_000, 9_000])
        self.hangs = self.dice.choice([0.0, 0.0, 0.12])
        self.blunders = self.dice.choice([0.0, 0.2])
        self.slowest_computation_ms = self.dice.choice([50, 50, 2_000, 15_000])
        self.rebalance_timeout_ms = self.dice.choice([10_000, 12_000, 20_000])

    @property
    def group(self) -> Group:
        """The group as its coordinator has it."""
        return self.shell.coordinator.group

    def storm(self) -> None:
        """Let everything happen to the group that may."""
        for name in self.dice.sample(CONNECTORS, 2):
            self._put(name)
        for number in range(self.dice.randint(2, 4)):
            self._hire(f"http://n{number}")
        befalls = (
            self._kill,
            self._dismiss,
            self._newcomer,
            self._newcomer,
            self._change_connectors,
            self._split,
            self._split,
            self._split,
            self._restart_coordinator,
        )
        at_ms = self.dice.randint(1, 2_000)
        while at_ms < FOUL_MS:
            self.clock.after(at_ms, self.dice.choice(befalls))
            at_ms += self.dice.randint(1, 4_000)
        self.clock.run(FOUL_MS)

    def rest(self) -> None:
        """Leave the group alone until it has come to rest, and see that it writes no more."""
        self.is_calm = True
        self.network.calm()
        for worker in self.workers:
            worker.habits = Habits()
        if not any(worker.alive and not worker.leaving for worker in self.workers):
            self._hire("http://last")
        self.clock.run(FOUL_MS + CALM_MS)
        end = self.group.end
        assert self.group.state is GroupState.STABLE, self.group.state
        self.clock.run(FOUL_MS + CALM_MS + 20_000)
        assert self.group.end == end, "a group at rest writes"
        placed = {resource for share in self.group.shares.values() for resource in share}
        assert placed == self.group.configured, "not all is placed"
        assert self.runs == self.group.holders, "what runs is not what is held"
        self.shell.coordinator.witness.compacted(self.group)

    # Where it is seen who runs what.

    def starts(self, worker: str, resource: Resource) -> None:
        """Hold a start against the safety property."""
        self._note(f"{worker} starts {resource}")
        other = self.runs.get(resource)
        assert other is None, f"{resource} starts at {worker}, and runs at {other}"
        self.runs[resource] = worker

    def stops(self, worker: str, resource: Resource) -> None:
        """Note a stop."""
        self._note(f"{worker} stops {resource}")
        assert self.runs.pop(resource) == worker

    def _note(self, line: str) -> None:
        self.shell.story.append(f"{self.clock.now_ms} {line}")

    # What befalls.

    def _hire(self, url: str) -> None:
        hangs = 0.0 if self.is_calm else self.hangs
        habits = Habits(self.slowest_stop_ms, hangs, self.blunders, self.slowest_computation_ms)
        worker = Worker(
            f"W{len(self.workers) + 1}",
            url,
            self.rebalance_timeout_ms,
            self.clock,
            self.network,
            self.shell,
            self,
            self.dice,
            Habits() if self.is_calm else replace(habits),
        )
        self.workers.append(worker)
        self._note(f"{worker.member_id} comes to {url}")
        worker.start()

    def _alive(self) -> list[Worker]:
        return [worker for worker in self.workers if worker.alive and not worker.leaving]

    def _kill(self) -> None:
        if alive := self._alive():
            worker = self.dice.choice(alive)
            self._note(f"{worker.member_id} is killed")
            worker.die()
            if self.dice.random() < 0.6:
                self.clock.after(self.dice.randint(1, 20_000), lambda: self._hire(worker.url))

    def _dismiss(self) -> None:
        if alive := self._alive():
            worker = self.dice.choice(alive)
            self._note(f"{worker.member_id} leaves")
            worker.leave()

    def _newcomer(self) -> None:
        if len(self._alive()) < 5:
            self._hire(f"http://m{len(self.workers)}")

    def _restart_coordinator(self) -> None:
        if not self.shell.is_down:
            self.network.severed += 1
            self.shell.die(self.dice.choice([100, 3_000]))

    def _change_connectors(self) -> None:
        if not self.shell.is_down:
            name = self.dice.choice(CONNECTORS)
            if name in self.group.connectors and self.dice.random() < 0.5:
                self.shell.carry_out(DeleteConnector("connect", name))
            else:
                self._put(name)

    def _put(self, name: str) -> None:
        config = {"n": str(self.dice.randint(0, 3))}
        self.shell.carry_out(PutConnector("connect", name, config))

    def _split(self) -> None:
        """Let a connector split its work where it is held, and end what is deleted."""
        if self.shell.is_down:
            return
        for name in sorted(self.group.connectors):
            self.shell.carry_out(FinishDeletion(name))
            holder = self.group.holders.get(Resource(name))
            token = holder and token_of(self.group, holder, Resource(name))
            if holder and token:
                count = self.dice.randint(0, 5)
                configs = tuple({"n": str(self.dice.randint(0, 2))} for _ in range(count))
                split = PutTaskConfigs("connect", holder, name, token, configs)
                self.shell.carry_out(split)
