"""One simulated cluster: a group, its nodes, and whatever its schedule has in store for them.

A supervisor sees workers end and tells the group: at once or late, once or twice, rightly or not.
"""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

from ...actors.assignors.built_in import balanced, by_name, deferred
from ...actors.group.state.settings import GroupSettings
from ...actors.messages.commands import GroupCommand, Reply
from ...actors.messages.orders import EndMember
from ...actors.messages.work import PutConnector
from ...actors.worker.instructions import Identity, Timing
from ...actors.worker.membership import Membership
from ...events.group import Group
from ...events.model import ClientAssignor
from ..cluster.messages import AssignorAt
from .assignor import SimulatedAssignor
from .clock import SimulatedClock, Story, stream
from .durable_state import GROUP_ID, DurableState
from .exclusivity import Exclusivity
from .group_process import GroupProcess
from .network import Network
from .schedule import Schedule
from .worker import SimulatedWorker

SOON_MS: Final = (1, 20, 500)
LATE_MS: Final = (4_000, 15_000, 40_000)
MISTAKE_EVERY_MS: Final = 20_000
"""How often, on the mean, a member that lives is reported, where that happens at all."""


class SimulatedSupervisor:
    """The supervisor of all nodes in one world.

    It names exactly the process that it means. What a living worker runs after a wrong report
    the group may give to others at once; its commits are refused by then, so it does not count
    as running anything until it joins again.
    """

    def __init__(self, world: "World") -> None:
        self._world = world
        self._rng = stream(world.schedule.seed, "supervisor")
        if world.schedule.traits.mistakes:
            self._schedule_mistake()

    def sees_end(self, worker: str) -> None:
        """Take note of a worker's end, and tell the group of it unless it goes unseen."""
        if self._rng.random() >= self._world.schedule.traits.seen:
            return
        is_late = self._rng.random() < 1 / 3 and not self._world.is_calm
        self._report_after(self._rng.choice(LATE_MS if is_late else SOON_MS), worker)
        if self._rng.random() < 1 / 3:
            self._report_after(self._rng.choice(LATE_MS), worker)

    def _report_after(self, delay_ms: int, worker: str) -> None:
        self._world.clock.after(self._rng.randint(1, delay_ms), self._report, worker)

    def _report(self, worker: str) -> None:
        ended_ms = self._world.clock.wall_ms
        self._world.command(EndMember(GROUP_ID, worker, worker, ended_ms))

    def _schedule_mistake(self) -> None:
        delay_ms = self._rng.randint(1, 2 * MISTAKE_EVERY_MS)
        self._world.clock.after(delay_ms, self._mistake)

    def _mistake(self) -> None:
        if self._world.is_calm:
            return
        living = [each.name for each in self._world.workers() if each.foreign is None]
        if living and not self._world.process.is_down:
            worker = self._rng.choice(living)
            self._world.exclusivity.disown(worker)
            self._report(worker)
        self._schedule_mistake()


PATTERN: Final = 3
"""What is not the same at all nodes alternates in a pattern of so many."""
SERVED: Final = (deferred.UNIFORM, by_name.RANGE)
ECHO_MS: Final = 300
"""How long after a group's process is there what was sent to an earlier one may arrive."""
ASSIGNOR_DOWN_MS: Final = 2_000
"""How long it takes at most until a new assignor process is there."""
SPARE_NODES: Final = 3
"""So many more workers may come than there were to begin with."""


class Node:
    """A node on which one worker lives at a time; its successors have its url."""

    def __init__(self, world: "World", number: int) -> None:
        self.number = number
        self.url = f"http://w{number}"
        traits = world.schedule.traits
        self.instance_id = f"i{number}" if number % PATTERN < traits.statics else None
        self.is_foreign = number % PATTERN < traits.foreign
        is_served = self.is_foreign or number % PATTERN < traits.served
        served = SERVED[number % len(SERVED)] if is_served else None
        self.server_assignor = served
        self.worker: SimulatedWorker | None = None
        self.assignor = SimulatedAssignor(
            world.clock, stream(world.schedule.seed, "assignor", number), world.assignor_names
        )
        self._rng = stream(world.schedule.seed, "assignor process", number)
        self.awaited = 0
        """How many are on their way here."""
        self._world = world
        self._lives = 0

    @property
    def live(self) -> SimulatedWorker | None:
        """The worker that lives here, if any does."""
        return self.worker if self.worker is not None and self.worker.is_alive else None

    def hear(self, message: object) -> None:
        """Have the worker that lives here by now hear a message, meant for it or for another."""
        if self.live is not None:
            self.live.hear(message)

    def comes(self) -> None:
        """Have a worker live here, unless one does."""
        if self.live is None:
            self._lives += 1
            self.worker = SimulatedWorker(self._world, self, f"w{self.number}.{self._lives}")
            self._world.story.tell("{} comes", self.worker.name)
            self.worker.begin()

    def replace_assignor(self, pid: int) -> None:
        """End an assignor process, and start another one, unless that was done already."""
        if pid == self.assignor.pid:
            self._world.story.tell("the assignor process of w{} ends", self.number)
            self.assignor.end()
            delay_ms = self._rng.randint(1, ASSIGNOR_DOWN_MS)
            self._world.clock.after(delay_ms, self._tell_of_assignor)

    def _tell_of_assignor(self) -> None:
        self.hear(AssignorAt(None, self.assignor.pid))

    def comes_back(self, delay_ms: int) -> None:
        """Have a worker live here after a while, unless one does by then."""
        self.awaited += 1
        self._world.clock.after(delay_ms, self._arrives)

    def _arrives(self) -> None:
        self.awaited -= 1
        self.comes()


class World:
    """Everything there is in one simulation."""

    def __init__(
        self, schedule: Schedule, *, is_told: bool = False, folder: Path | None = None
    ) -> None:
        """Make the world of a schedule; in a folder the group's log is a real one."""
        self.schedule = schedule
        self.is_calm = False
        self.clock = SimulatedClock()
        self.story = Story(self.clock, is_told=is_told)
        self.exclusivity = Exclusivity(self.story)
        self.network = Network(self.clock, self.story, schedule.seed, schedule.traits.jitter_ms)
        self.durable_state = DurableState(self.clock, self.story, schedule.seed, folder)
        settings = GroupSettings(max_delay_ms=schedule.traits.max_delay_ms)
        self.process = GroupProcess(self.clock, self.story, settings, self.durable_state)
        self.process.on_reopened(self._tell_of_group)
        self.supervisor = SimulatedSupervisor(self)
        self.echoes: list[Callable[[int], None]] = []
        """What repeats old messages as soon as the group's next process is there."""
        self._rng = stream(schedule.seed, "news")
        liked = dict.fromkeys((schedule.traits.assignor, balanced.NAME))
        self.assignor_names = tuple(liked)
        """The assignors of all workers that have some of their own, the best liked first."""
        self.nodes = [Node(self, number) for number in range(schedule.size.workers + SPARE_NODES)]
        self.network.connected.update(each.number for each in self.nodes if each.is_foreign)
        for node in self.nodes[: schedule.size.workers]:
            node.comes()
        for number in range(schedule.size.connectors):
            self.clock.after(100, self.command, PutConnector(GROUP_ID, f"c{number}", {"v": "0"}))

    @property
    def group(self) -> Group:
        """The group, as its process has it in memory."""
        return self.process.group

    def workers(self) -> Iterator[SimulatedWorker]:
        """Yield who lives, in order of their nodes."""
        return (node.worker for node in self.nodes if node.worker and node.worker.is_alive)

    def command(self, command: GroupCommand) -> None:
        """Have the group do what somebody wants, if its process is there to hear of it."""
        self.story.tell("somebody wants {}", command)
        self.process.take(None, self._told, command)

    def membership(self, node: Node, name: str) -> Membership:
        """Return a new member for a worker at a node."""
        instance_id, served = node.instance_id, node.server_assignor
        identity = Identity(GROUP_ID, name, name, node.url, instance_id=instance_id)
        timing = Timing(rebalance_timeout_ms=self.schedule.traits.rebalance_timeout_ms)
        assignors = () if served else tuple(map(ClientAssignor, self.assignor_names))
        return Membership(identity, timing, assignors, server_assignor=served)

    def _told(self, reply: Reply) -> None:
        self.story.tell("somebody is told {}", reply)

    def _tell_of_group(self) -> None:
        echoes, self.echoes = self.echoes, []
        for repeat in echoes:
            repeat(ECHO_MS)
        for worker in self.workers():
            self.clock.after(self._rng.randint(0, 300), worker.hears_of_group)
