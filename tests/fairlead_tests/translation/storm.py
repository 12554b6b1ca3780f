"""Whole groups of members of both protocols under faults, each from a seed: what holds in all.

Each worker runs what its answers gave it, and stops what they took from it, as Connect's do. The
group's own invariants are held by the driver at each write; here it is held what workers see.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

from fairlead.actors.assignors.classic.protocol import VERSIONS
from fairlead.actors.classic.bytes.connect import decode_assignment, decode_metadata
from fairlead.actors.messages.classic import (
    ClassicHeartbeat,
    ClassicHeartbeatReply,
    JoinGroup,
    JoinGroupReply,
    Leaver,
    SyncGroup,
    SyncGroupReply,
)
from fairlead.actors.messages.errors import SUCCESS, Error
from fairlead.actors.messages.members import Heartbeat, HeartbeatReply
from fairlead.actors.messages.orders import ConfigureGroup
from fairlead.events.group import token_of
from fairlead.events.model import GroupState, GroupType, Resource, Resources, Token
from fairlead_tests.classic.workers import told
from fairlead_tests.decider import resources
from fairlead_tests.translation.driver import MixedDriver

WORK = "A A-0 A-1 A-2 B B-0 B-1"
LOST = {Error.UNKNOWN_MEMBER_ID, Error.FENCED_INSTANCE_ID}


@dataclass
class Classic:
    """A worker of the classic protocol, as far as its answers reach it."""

    name: str
    mode: str
    instance_id: str | None = None
    member_id: str = ""
    generation: int = -1
    protocol: str = ""
    calls_for: str = "join"
    waits_for: int = 0
    runs: set[Resource] = field(default_factory=set[Resource])
    leads: tuple[JoinGroupReply, ...] = ()

    def stop(self) -> None:
        """End its process: nothing of it runs any more."""
        self.member_id, self.calls_for, self.waits_for, self.protocol = "", "join", 0, ""
        self.runs, self.leads = set(), ()


@dataclass
class Modern:
    """A worker of the connect protocol; each process has an id of its own."""

    name: str
    number: int = 0
    epoch: int = 0
    is_in: bool = False
    runs: set[Resource] = field(default_factory=set[Resource])
    full: bool = True

    @property
    def member_id(self) -> str:
        return f"{self.name}.{self.number}"

    def stop(self) -> None:
        self.number, self.epoch, self.is_in, self.runs = self.number + 1, 0, False, set()


class Storm:
    """A group, its workers, and what befalls them."""

    def __init__(self, seed: int, folder: Path) -> None:
        self.rng = Random(seed)
        found = self.open(folder)
        assert isinstance(found, MixedDriver)
        self.driver = found
        self.configure()
        modes = self.rng.choices(("sessioned", "compatible", "eager"), (4, 2, 1), k=3)
        statics = self.rng.randrange(3)
        self.classics = [
            Classic(f"c{n}", mode, f"i{n}" if n < statics else None) for n, mode in enumerate(modes)
        ]
        self.moderns = [Modern(f"m{n}") for n in range(2)]
        self.leaders: dict[int, str] = {}
        self.tokens: dict[Resource, Token] = {}
        self.types: list[GroupType] = []

    def open(self, folder: Path) -> object:
        """Return the driver of the group."""
        return MixedDriver.at(folder)

    def configure(self) -> None:
        """Say what is to run, for the first time."""
        self.driver.configure(WORK)

    @property
    def configured(self) -> Resources:
        """All that is to run in the end."""
        return resources(WORK)

    def deeds(self) -> list[Callable[[], None]]:
        """Return what may happen, each as often as its share is."""
        deeds = [self.classic_step] * 14 + [self.modern_step] * 8
        return [
            *(*deeds, self.lose, self.restart, self.kill),
            *(self.leave, self.policy, self.retreat),
        ]

    def run(self, steps: int) -> None:
        """Let so many things happen."""
        deeds = self.deeds()
        for _ in range(steps):
            self.rng.choice(deeds)()
            self.driver.passes(self.rng.choice((0, 50, 400)))
            self.hold()

    # -- workers of the classic protocol

    def classic_step(self) -> None:
        worker = self.rng.choice(self.classics)
        if worker.waits_for in self.driver.said:
            self.hear(worker)
        elif not worker.waits_for:
            self.say(worker)

    def say(self, worker: Classic) -> None:
        at = "connect", worker.member_id, worker.generation, worker.instance_id
        if worker.calls_for == "join":
            worker.waits_for = self.driver.call(self.join_call(worker))
        elif worker.calls_for == "sync":
            given = self.assignments(worker) if worker.leads else {}
            worker.waits_for = self.driver.call(SyncGroup(*at, assignments=given))
        else:
            worker.waits_for = self.driver.call(ClassicHeartbeat(*at))

    def join_call(self, worker: Classic) -> JoinGroup:
        if VERSIONS.get(worker.protocol, 0) == 0:
            worker.runs = set()  # it stops everything before it joins
        return self.driver.join_call(
            worker.member_id,
            " ".join(map(str, sorted(worker.runs))),
            worker.mode,
            worker.instance_id,
            url=f"http://{worker.name}/",
            asks_for_id=self.rng.random() < 0.5,
        )

    def assignments(self, leader: Classic) -> dict[str, bytes]:
        """Deal all work anew: what moves is taken first, and given in a later round."""
        (reply,) = leader.leads
        version = VERSIONS[reply.protocol or ""]
        mode = {0: "eager", 1: "compatible", 2: "sessioned"}[version]
        ids = sorted(each.member_id for each in reply.members)
        group = self.driver.group
        deal: dict[str, set[Resource]] = {each: set() for each in ids}
        for number, resource in enumerate(sorted(group.configured)):
            deal[ids[number % len(ids)]].add(resource)
        if version == 0:
            return {each: told(map(str, sorted(deal[each])), mode=mode) for each in ids}
        runs: dict[str, set[Resource]] = {}
        for each in reply.members:
            allocation = decode_metadata(each.metadata, version).allocation
            runs[each.member_id] = set(allocation.assigned) if allocation else set()
        busy = set[Resource]().union(*runs.values())
        return {
            each: told(
                map(str, sorted(deal[each] - busy)),
                map(str, sorted(runs[each] - deal[each])),
                mode=mode,
            )
            for each in ids
        }

    def hear(self, worker: Classic) -> None:
        reply = self.driver.said[worker.waits_for]
        worker.waits_for, was = 0, worker.calls_for
        if isinstance(reply, JoinGroupReply) and reply.error is Error.MEMBER_ID_REQUIRED:
            worker.member_id = reply.member_id
        elif isinstance(reply, JoinGroupReply) and reply.error is Error.NONE:
            worker.member_id, worker.generation = reply.member_id, reply.generation
            worker.protocol = reply.protocol or ""
            worker.leads = (reply,) if reply.members and not reply.skips_assignment else ()
            worker.calls_for = "sync"
        elif isinstance(reply, SyncGroupReply) and reply.error is Error.NONE:
            self.follow(worker, reply)
        elif reply.error in LOST:
            worker.member_id, worker.calls_for = "", "join"
            worker.runs = set()
        elif reply.error is not Error.NONE or not isinstance(reply, ClassicHeartbeatReply):
            assert was != "beat" or reply.error is not Error.NONE
            worker.calls_for = "join"

    def follow(self, worker: Classic, reply: SyncGroupReply) -> None:
        """Stop and start what an assignment says."""
        worker.calls_for = "beat"
        if not reply.assignment:
            return
        version = VERSIONS[worker.protocol]
        assigned = decode_assignment(reply.assignment, version)
        if version == 0:
            worker.runs = set(assigned.assigned)
            return
        worker.runs = (worker.runs - set(assigned.revoked or ())) | set(assigned.assigned)
        if assigned.revoked:
            worker.calls_for = "join"  # by itself: others wait for what it has stopped

    # -- workers of the connect protocol

    def modern_step(self) -> None:
        self.modern_turn(self.rng.choice(self.moderns))

    def modern_turn(self, worker: Modern) -> None:
        driver, member_id = self.driver, worker.member_id
        if (reply := driver.beaten.pop(member_id, None)) is not None:
            self.modern_hears(worker, reply)
            member_id = worker.member_id
        if not worker.is_in:
            request = driver.joining(member_id, url=f"http://{worker.name}/")
        else:
            owned = tuple(sorted(worker.runs))
            extra = (
                {"server_assignor": "uniform", "rebalance_timeout_ms": 60_000}
                if worker.full
                else {}
            )
            request = driver.request(member_id, worker.epoch, owned=owned, **extra)
        request = self.complete(request)
        driver.beaten.pop(member_id, None)  # a request is out: what comes later is its answer
        worker.full = False
        driver.asks(request)

    def complete(self, request: Heartbeat) -> Heartbeat:
        """Return a heartbeat with what else its worker says."""
        return request

    def modern_hears(self, worker: Modern, reply: HeartbeatReply) -> None:
        if reply.error in SUCCESS:
            worker.is_in, worker.epoch = True, reply.member_epoch
            if reply.assignment is not None:
                worker.runs = set(reply.assignment)
        elif reply.error is Error.NOT_COORDINATOR:
            worker.full = True
        else:
            worker.is_in, worker.epoch, worker.runs = False, 0, set()

    @property
    def workers(self) -> list[Classic | Modern]:
        """All of them."""
        return [*self.classics, *self.moderns]

    # -- faults

    def lose(self) -> None:
        """An answer is lost: its worker begins anew with what it runs."""
        worker = self.rng.choice(self.classics)
        if worker.waits_for:
            worker.waits_for, worker.calls_for = 0, "join"

    def restart(self) -> None:
        self.driver.reopen_from_log()
        for worker in self.classics:
            if worker.waits_for not in self.driver.said:
                worker.waits_for = 0
        for modern in self.moderns:
            modern.full = True

    def kill(self) -> None:
        """End a process without a word; its member is there until its session ends."""
        self.rng.choice(self.workers).stop()

    def leave(self) -> None:
        worker = self.rng.choice(self.workers)
        if isinstance(worker, Classic) and worker.member_id:
            self.driver.leaves(Leaver(worker.member_id, worker.instance_id))
        elif isinstance(worker, Modern) and worker.is_in:
            self.driver.asks(self.driver.request(worker.member_id, -1))
        worker.stop()

    def retreat(self) -> None:
        """All workers of the connect protocol leave."""
        for worker in self.moderns:
            if worker.is_in:
                self.driver.asks(self.driver.request(worker.member_id, -1))
            worker.stop()

    def policy(self) -> None:
        names = ("bidirectional", "bidirectional", "upgrade", "downgrade", "disabled")
        told = {"group.migration.policy": self.rng.choice(names)}
        self.driver.send(ConfigureGroup("connect", told))

    # -- what must hold

    def hold(self) -> None:
        """Hold the group, and all that was said, against what must be."""
        group = self.driver.group
        if not self.types or self.types[-1] is not group.type:
            self.types.append(group.type)
        assert not group.members.keys() & group.classic_members.keys(), "in both protocols"
        assert group.translated <= group.members.keys()
        for reply in self.driver.said.values():
            if isinstance(reply, JoinGroupReply) and reply.members and not reply.skips_assignment:
                leader = self.leaders.setdefault(reply.generation, reply.leader)
                assert leader == reply.leader == reply.member_id, "two lead one generation"
        for resource, member_id in group.owner.items():
            token = token_of(group, member_id, resource)
            last = self.tokens.get(resource)
            if token is not None:
                assert last is None or token >= last, f"the token of {resource} went back"
                self.tokens[resource] = token

    def settle(self) -> None:
        """Let all work on: each resource comes to run at one worker, and that is its holder's."""
        driver = self.driver
        driver.send(ConfigureGroup("connect", {"group.migration.policy": "bidirectional"}))
        for _ in range(140):
            for worker in self.classics:
                if worker.waits_for in driver.said:
                    self.hear(worker)
                if not worker.waits_for:
                    self.say(worker)
            for modern in self.moderns:
                self.modern_turn(modern)
            driver.passes(200)
            self.hold()
        group = driver.group
        assert (group.type, group.state) == (GroupType.CONNECT, GroupState.STABLE)
        assert group.owner.keys() == self.configured
        running = [(each, worker.member_id) for worker in self.workers for each in worker.runs]
        assert sorted(running) == sorted(group.owner.items())
