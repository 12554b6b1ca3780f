"""Workers that have their configs elsewhere, in groups under faults.

Their leader assigns as Connect's does: it remembers what it assigned last, and leaves for later
what it finds lost since.
"""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from random import Random

from fairlead.actors.assignors.classic.protocol import VERSIONS
from fairlead.actors.classic.bytes.connect import decode_assignment, decode_metadata
from fairlead.actors.group.kind import GroupKind
from fairlead.actors.messages.classic import JoinGroup, JoinGroupReply, SyncGroupReply
from fairlead.actors.messages.members import Heartbeat, ReadConfigs
from fairlead.actors.shards.hosting import CONNECTORS
from fairlead.events.model import GroupState, Resource, Resources
from fairlead_tests.classic.workers import as_worker, told
from fairlead_tests.decider import resources
from fairlead_tests.translation.driver import MixedDriver
from fairlead_tests.translation.storm import WORK, Classic, Storm

CONNECTORS_OF_USERS = {name: resources(f"{name} {name}-0 {name}-1") for name in "ABCD"}
DELAY_MS = 1_000


@dataclass
class OutsideDriver(MixedDriver):
    """The process of a group of such workers."""

    kind: GroupKind = CONNECTORS


@dataclass
class Memory:
    """What a worker of Connect knows beside its work."""

    read: int = 0
    """How far it has read its configs."""
    previous: set[Resource] = field(default_factory=set[Resource])
    """What it assigned last, as a leader."""
    led: int = -1
    """In which generation that was."""
    completed: int = -1
    """The last generation of which it got an assignment."""


class OutsideStorm(Storm):
    """Such a group, its workers, its users, and what befalls them."""

    def __init__(self, seed: int, folder: Path) -> None:
        self._users = Random(seed)
        self._configs: dict[int, Resources] = {1: resources(WORK)}
        """What is to run, by the offset of the config that says so."""
        self._memories: dict[str, Memory] = {}
        """By the name of the worker's process."""
        self._tells = True
        """Whether members of the connect protocol say what is to run."""
        super().__init__(seed, folder)

    def open(self, folder: Path) -> object:
        """Return the driver of the group."""
        return OutsideDriver.at(folder)

    def configure(self) -> None:
        """Say nothing: the workers do."""

    @property
    def configured(self) -> Resources:
        """All that is to run in the end."""
        return self._configs[self._end]

    @property
    def _end(self) -> int:
        return max(self._configs)

    def deeds(self) -> list[Callable[[], None]]:
        """Return what may happen: users change configs, and workers read them."""
        return [*super().deeds(), *([self.change] * 2), *([self.read] * 6)]

    def change(self) -> None:
        """Let users add, change or delete connectors."""
        names = self._users.sample(sorted(CONNECTORS_OF_USERS), self._users.randint(1, 4))
        offset = self._end + self._users.randint(1, 3)
        self._configs[offset] = frozenset().union(*(CONNECTORS_OF_USERS[each] for each in names))

    def read(self) -> None:
        """Let a worker read its configs to their end; if there is news, it rejoins."""
        self._read(self.rng.choice(self.classics))

    def _read(self, worker: Classic) -> None:
        memory = self._memory(worker)
        if memory.read < self._end:
            memory.read = self._end
            worker.calls_for = "join" if worker.calls_for == "beat" else worker.calls_for

    def _memory(self, worker: Classic) -> Memory:
        if not worker.member_id:  # another process
            self._memories[worker.name] = Memory(self.rng.choice(sorted(self._configs)))
        return self._memories[worker.name]

    # -- workers of the classic protocol

    def join_call(self, worker: Classic) -> JoinGroup:
        """Return its JoinGroup, which says how far it has read."""
        memory = self._memory(worker)
        call = super().join_call(worker)
        runs = map(str, sorted(worker.runs))
        said = as_worker(
            f"http://{worker.name}/", *runs, mode=worker.mode, config_offset=memory.read
        )
        return replace(call, protocols=said["protocols"])  # type: ignore[arg-type]

    def assignments(self, leader: Classic) -> dict[str, bytes]:
        """Assign as Connect's leader does."""
        (reply,) = leader.leads
        memory, version = self._memories[leader.name], VERSIONS[reply.protocol or ""]
        mode = {0: "eager", 1: "compatible", 2: "sessioned"}[version]
        runs = _runs_of(reply, version)
        furthest = max(
            decode_metadata(each.metadata, version).config_offset for each in reply.members
        )
        if furthest > memory.read:  # it is behind its members
            return {each: told((), (), mode=mode, config_offset=furthest, error=1) for each in runs}
        configured = max(item for item in self._configs.items() if item[0] <= memory.read)[1]
        previous = memory.previous if memory.led == memory.completed else set[Resource]()
        active = set[Resource]().union(*runs.values())
        lost = (previous & configured) - active if version else set[Resource]()
        deleted = previous - configured
        shares: dict[str, set[Resource]] = {each: runs[each] - deleted for each in runs}
        if version == 0:
            shares = {each: set() for each in runs}
        for new in sorted(configured - active - lost):
            shares[min(sorted(shares), key=lambda each: len(shares[each]))].add(new)
        memory.previous = set[Resource]().union(*shares.values(), lost)
        memory.led = reply.generation
        delay_ms = DELAY_MS if lost else 0
        more = {"config_offset": memory.read, "delay_ms": delay_ms}
        return {
            each: told(
                map(str, sorted(shares[each] - (runs[each] if version else set()))),
                map(str, sorted(runs[each] - shares[each])),
                mode=mode,
                **more,
            )
            for each in runs
        }

    def follow(self, worker: Classic, reply: SyncGroupReply) -> None:
        """Take an assignment, and remember which generation it is of."""
        memory = self._memories[worker.name]
        memory.completed = worker.generation
        super().follow(worker, reply)
        if not reply.assignment:
            return
        assigned = decode_assignment(reply.assignment, VERSIONS[worker.protocol])
        if assigned.error or assigned.delay_ms or assigned.config_offset > memory.read:
            memory.read = max(memory.read, min(assigned.config_offset, self._end))
            worker.calls_for = "join"

    # -- workers of the connect protocol

    def complete(self, request: Heartbeat) -> Heartbeat:
        """Say what is to run, now and then."""
        if not self._tells or self.rng.random() < 0.8:
            return request
        offset = self.rng.choice(sorted(self._configs))
        return replace(request, configs=ReadConfigs(self._configs[offset], offset))

    # -- what must hold

    def hold(self) -> None:
        """Hold what is to run against what somebody has said."""
        super().hold()
        group = self.driver.group
        said = self._configs.get(group.config_offset)
        if group.config_offset >= 0 and group.state is not GroupState.DEAD:
            assert said is not None, "nobody has read so far"
            assert group.configured == said

    def settle(self) -> None:
        """Let classic workers alone say what is to run in the end."""
        self._tells = False
        self.change()
        for worker in self.classics:
            if worker.member_id:
                self._read(worker)
        super().settle()


def _runs_of(reply: JoinGroupReply, version: int) -> dict[str, set[Resource]]:
    """Return what each member says that it runs."""
    runs: dict[str, set[Resource]] = {}
    for each in reply.members:
        allocation = decode_metadata(each.metadata, version).allocation
        runs[each.member_id] = set(allocation.assigned) if allocation else set()
    return runs
