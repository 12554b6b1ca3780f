"""A worker that lives: its member keeps epoch and owned, its resources take time to start and stop.

Written from PROTOCOL §8 and §9 alone: it fences itself by the clock, reports before it counts
on anything, and rejoins with nothing.
"""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from random import Random
from typing import Protocol

from coordinator import COOPERATIVE
from simulation.clock import Clock
from simulation.network import Network

from fairlead.actors.assignors.cooperative import assign
from fairlead.actors.messages import (
    SUCCESS,
    Assignment,
    Error,
    GroupCommand,
    Heartbeat,
    HeartbeatReply,
    Install,
    InstallReply,
    Prepare,
    PrepareReply,
    Reply,
    Snapshot,
)
from fairlead.events.model import NOTHING, Resource, Resources

HEARTBEAT_MS = 3_000
REQUEST_TIMEOUT_MS = HEARTBEAT_MS + 1_500
SESSION_MS = 10_000
FENCE_MARGIN_MS = 1_000
NEVER = 1 << 60


class Coordinates(Protocol):
    """The coordinator's shell, as a worker reaches it."""

    def receive(self, command: GroupCommand, answer: Callable[[Reply], None]) -> None: ...


class Stage(Protocol):
    """Where it is seen who runs what."""

    def starts(self, worker: str, resource: Resource) -> None: ...
    def stops(self, worker: str, resource: Resource) -> None: ...


@dataclass
class Habits:
    """How a worker is, by the dice."""

    slowest_stop_ms: int = 1_500
    hangs: float = 0.0
    """The share of stops that never end by themselves."""
    blunders: float = 0.0
    """The share of computations that fail, or are wrong."""
    slowest_computation_ms: int = 1_000


@dataclass
class Worker:
    """One process with one member in it; `url` is the node's, the id dies with the process."""

    member_id: str
    url: str
    rebalance_timeout_ms: int
    clock: Clock
    network: Network
    shell: Coordinates
    stage: Stage
    dice: Random
    habits: Habits
    alive: bool = True
    epoch: int = 0
    sequence: int = 0
    owned: set[Resource] = field(default_factory=set[Resource])
    stopping: set[Resource] = field(default_factory=set[Resource])
    target: Resources = NOTHING
    fencing: bool = False
    leaving: bool = False
    computing: bool = False
    _run: int = 0
    """Counts the fences: what was started before one is forgotten after it."""
    _attempt: int = 0
    _waits: bool = False
    _forgot: bool = True
    _unsaid: bool = False
    _sent_ms: dict[int, int] = field(default_factory=dict[int, int])
    _answered_ms: int = NEVER
    _revoke_by_ms: int = NEVER
    _acks: int = NEVER
    """The first request that reported what was to be revoked as gone."""

    def start(self) -> None:
        """Join, and live."""
        self._beat()
        self._watch()

    def die(self) -> None:
        """Be killed: what ran here is gone at once."""
        self.alive = False
        for resource in sorted(self.owned):
            self.stage.stops(self.member_id, resource)
        self.owned.clear()

    def leave(self) -> None:
        """Stop everything, then say goodbye; what does not stop in time is killed."""
        self.leaving = True
        self._revoke_by_ms = min(self._revoke_by_ms, self.clock.now_ms + self.rebalance_timeout_ms)
        self._revoke(set(self.owned))
        self._pursue()

    # Heartbeats.

    def _beat(self) -> None:
        """Send a heartbeat; one is always under way, or due."""
        if not self.alive or self.fencing:
            return
        self.sequence += 1
        sequence = self.sequence
        full = self._forgot or self._waits or self.epoch == 0
        owned = tuple(sorted(self.owned)) if full or self._unsaid else None
        if owned is not None and self._revoke_by_ms != NEVER and not self.stopping:
            self._acks = min(self._acks, sequence)
        goes = self.leaving and not self.owned
        request = Heartbeat(
            "connect",
            self.member_id,
            -1 if goes else self.epoch,
            incarnation=self.member_id,
            sequence=sequence,
            url=self.url if full else None,
            rebalance_timeout_ms=self.rebalance_timeout_ms if full else -1,
            assignors=COOPERATIVE if full else None,
            owned=() if goes else owned,
        )
        self._unsaid, self._forgot, self._waits = False, False, True
        self._sent_ms[sequence] = self.clock.now_ms
        if self._answered_ms == NEVER:
            self._answered_ms = self.clock.now_ms
        self._ask(request, lambda reply: self._hear(sequence, reply))
        self.clock.after(REQUEST_TIMEOUT_MS, lambda: self._give_up(sequence))

    def _ask(self, command: GroupCommand, hear: Callable[[Reply], None]) -> None:
        def answer(reply: Reply) -> None:
            self.network.send(lambda: hear(reply) if self.alive else None)

        self.network.send(lambda: self.shell.receive(command, answer))

    def _give_up(self, sequence: int) -> None:
        if sequence == self.sequence and self._waits:
            self._forgot = True
            self._beat()

    def _hear(self, sequence: int, reply: Reply) -> None:
        """Take an answer, if it is that to the latest request and no fence has begun."""
        if sequence != self.sequence or not self._waits or self.fencing:
            return
        assert isinstance(reply, HeartbeatReply)
        self._waits = False
        if self.leaving and not self.owned:
            self.alive = reply.error in SUCCESS and reply.member_epoch >= 0
        elif reply.error not in SUCCESS:
            self._fence()
        if self.alive and not self.fencing:
            self._heed(sequence, reply)

    def _heed(self, sequence: int, reply: HeartbeatReply) -> None:
        """Do what a good answer says."""
        before_ms, self._answered_ms = self._answered_ms, self._sent_ms[sequence]
        if sequence >= self._acks and not self.leaving:
            self._revoke_by_ms, self._acks = NEVER, NEVER
        self.epoch = reply.member_epoch
        if reply.assignment is not None:
            self._aim(reply.assignment, before_ms)
        if reply.error is Error.COMPUTE_ASSIGNMENT and not self.computing:
            self._compute()
        self._pursue()
        if not self._waits:
            self.clock.after(HEARTBEAT_MS, lambda: self._beat_if(sequence))

    def _beat_if(self, sequence: int) -> None:
        if sequence == self.sequence:
            self._beat()

    # Resources.

    def _aim(self, assignment: Resources, before_ms: int) -> None:
        self._unsaid |= assignment not in (self.target, self.owned)
        self.target = assignment
        dropped = self.owned - assignment
        if dropped:
            self._revoke_by_ms = min(self._revoke_by_ms, before_ms + self.rebalance_timeout_ms)
            self._acks = NEVER
            self._unsaid = True
        self._revoke(dropped)

    def _revoke(self, dropped: set[Resource]) -> None:
        run = self._run
        for resource in sorted(dropped - self.stopping):
            self.stopping.add(resource)
            if self.dice.random() < self.habits.hangs:
                continue
            delay_ms = self.dice.randint(1, self.habits.slowest_stop_ms)
            self.clock.after(delay_ms, partial(self._stopped, run, resource))

    def _stopped(self, run: int, resource: Resource) -> None:
        if self.alive and run == self._run:
            self.owned.discard(resource)
            self.stopping.discard(resource)
            self.stage.stops(self.member_id, resource)
            self._unsaid = True
            self._pursue()

    def _pursue(self) -> None:
        """Start what was granted once all is stopped that was taken, and say so at once."""
        if self.stopping or self.fencing or not self.alive:
            return
        if not self.leaving:
            for resource in sorted(self.target - self.owned):
                self.owned.add(resource)
                self.stage.starts(self.member_id, resource)
        if self._unsaid or self.leaving:
            self._beat()

    # Fences.

    def _watch(self) -> None:
        """Look at the own deadlines every so often; the margin is for being late."""
        if not self.alive:
            return
        session_ms = self._answered_ms + SESSION_MS
        deadline_ms = min(session_ms, self._revoke_by_ms) - FENCE_MARGIN_MS
        if self.clock.now_ms >= deadline_ms and not self.fencing:
            if self.leaving and not self.owned:
                self.alive = False
                return
            self._fence()
        self.clock.after(100, self._watch)

    def _fence(self) -> None:
        """Cancel everything without grace, then rejoin with nothing."""
        self.fencing = True
        self._run += 1
        self.stopping.clear()
        delay_ms = self.dice.randint(1, FENCE_MARGIN_MS - 200) if self.owned else 0
        self.clock.after(delay_ms, self._fenced)

    def _fenced(self) -> None:
        if not self.alive:
            return
        for resource in sorted(self.owned):
            self.stage.stops(self.member_id, resource)
        self.owned.clear()
        self.target = NOTHING
        self.epoch, self.fencing, self._forgot, self._waits = 0, False, True, False
        self._revoke_by_ms, self._acks = NEVER, NEVER
        self._answered_ms = self.clock.now_ms
        if self.leaving:
            self.alive = False
        else:
            self._beat()

    # Assignments.

    def _compute(self) -> None:
        self.computing = True
        self._attempt += 1
        attempt = self._attempt
        self._ask(Prepare("connect", self.member_id, self.epoch), self._prepared)
        patience_ms = REQUEST_TIMEOUT_MS + self.habits.slowest_computation_ms
        self.clock.after(patience_ms, lambda: self._drop(attempt))

    def _drop(self, attempt: int) -> None:
        if attempt == self._attempt:
            self.computing = False

    def _prepared(self, reply: Reply) -> None:
        assert isinstance(reply, PrepareReply)
        snapshot = reply.snapshot
        if snapshot is None:
            self.computing = False
        else:
            delay_ms = self.dice.randint(1, self.habits.slowest_computation_ms)
            self.clock.after(delay_ms, lambda: self._install(snapshot))

    def _install(self, snapshot: Snapshot) -> None:
        if not self.alive:
            return
        assignment: Assignment | None = assign(snapshot)
        if self.dice.random() < self.habits.blunders:
            wrong = replace(assign(snapshot), members={})
            assignment = self.dice.choice([None, wrong])
        epoch = snapshot.group_epoch
        install = Install("connect", self.member_id, self.epoch, epoch, assignment, "no luck")
        self._ask(install, lambda reply: self._installed(snapshot, reply))

    def _installed(self, snapshot: Snapshot, reply: Reply) -> None:
        assert isinstance(reply, InstallReply)
        if reply.error is Error.FENCED_MEMBER_EPOCH and not self.fencing:
            self._install(snapshot)
        else:
            self.computing = False
            self._unsaid = True
            self._pursue()
