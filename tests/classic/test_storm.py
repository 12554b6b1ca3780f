"""Whole groups of classic members under faults, each from a seed: what must hold in all of them."""

from dataclasses import dataclass, field, replace
from random import Random

import pytest

from fairlead.actors.messages.classic import (
    ClassicHeartbeat,
    JoinGroupReply,
    SyncGroupReply,
)
from fairlead.actors.messages.errors import Error
from fairlead.events.model import ClassicProtocol
from fairlead_tests.classic.driver import AT_ONCE, SESSION_MS, ClassicDriver, offers

LONG_MS = 400_000
"""By then all that waits has come to an end: a newcomer waits for five minutes at most."""


@dataclass
class Actor:
    """A client that joins, syncs and beats, as far as its answers reach it."""

    name: str
    instance_id: str | None = None
    member_id: str = ""
    generation: int = -1
    waits_for: int = 0
    """The number of what it has asked and is not answered; 0: nothing."""
    calls_for: str = "join"
    """What it says next."""
    synced: dict[int, bytes] = field(default_factory=dict[int, bytes])


class Storm:
    """A group, its clients, and what befalls them."""

    def __init__(self, seed: int) -> None:
        self.rng = Random(seed)
        delay_ms = self.rng.choice((0, 0, 500, 3_000))
        self.driver = ClassicDriver(settings=replace(AT_ONCE, initial_delay_ms=delay_ms))
        static = self.rng.randrange(3)
        self.actors = [Actor(f"c{n}", f"i{n}" if n < static else None) for n in range(5)]
        self.leaders: dict[int, str] = {}
        self.newest = 0
        self.asked_before: set[int] = set()
        """The numbers that an earlier process of the group has forgotten."""

    def run(self, steps: int) -> None:
        """Let so many things happen."""
        deeds = [self.step] * 20 + [self.lose, self.restart, self.leave, self.pause, self.garbage]
        for _ in range(steps):
            self.rng.choice(deeds)()
            self.driver.passes(self.rng.choice((0, 1, 50, 700)))
            self.hold()

    def step(self) -> None:
        """Let a client hear its answer, or say what is next."""
        actor = self.rng.choice(self.actors)
        if actor.waits_for in self.driver.said:
            self.hear(actor)
        elif not actor.waits_for or self.rng.random() < 0.05:
            self.say(actor)

    def say(self, actor: Actor) -> None:
        driver = self.driver
        if actor.calls_for == "join":
            told = offers("chess", *self.rng.sample(["go", "risk"], self.rng.randrange(3)))
            call = driver.joining(
                actor.member_id,
                actor.instance_id,
                protocols=told,
                rebalance_timeout_ms=self.rng.choice((1_000, 8_000)),
                session_timeout_ms=SESSION_MS,
                client_id=actor.name,
                asks_for_id=self.rng.random() < 0.8,
            )
            actor.waits_for = driver.ask(call)
        elif actor.calls_for == "sync":
            given = (
                {each.member_id: f"{actor.generation}".encode() for each in self.actors}
                if self.leaders.get(actor.generation) == actor.member_id
                else {}
            )
            actor.waits_for = driver.ask(
                replace(
                    driver.syncing(actor.member_id, given, actor.generation),
                    instance_id=actor.instance_id,
                )
            )
        else:
            beat = ClassicHeartbeat("g", actor.member_id, actor.generation, actor.instance_id)
            actor.waits_for = driver.ask(beat)

    def hear(self, actor: Actor) -> None:
        reply = self.driver.said[actor.waits_for]
        actor.waits_for, was = 0, actor.calls_for
        if isinstance(reply, JoinGroupReply) and reply.error is Error.MEMBER_ID_REQUIRED:
            actor.member_id = reply.member_id
        elif isinstance(reply, JoinGroupReply) and reply.error is Error.NONE:
            actor.member_id, actor.generation = reply.member_id, reply.generation
            actor.calls_for = "beat" if reply.skips_assignment else "sync"
        elif isinstance(reply, SyncGroupReply) and reply.error is Error.NONE:
            assert reply.assignment in {b"", str(actor.generation).encode()}
            actor.calls_for = "beat"
        elif reply.error is not Error.NONE or was != "beat":
            actor.calls_for = "join"
            lost = {Error.UNKNOWN_MEMBER_ID, Error.FENCED_INSTANCE_ID}
            actor.member_id = "" if reply.error in lost else actor.member_id

    def lose(self) -> None:
        """An answer is lost, or its client has given up: it begins anew."""
        actor = self.rng.choice(self.actors)
        actor.waits_for = 0
        if self.rng.random() < 0.3:
            actor.member_id, actor.calls_for = "", "join"

    def restart(self) -> None:
        self.asked_before = set(range(next(self.driver.numbers) + 1))
        self.driver.open()
        for actor in self.actors:
            if actor.waits_for not in self.driver.said:
                actor.waits_for = 0

    def leave(self) -> None:
        actor = self.rng.choice(self.actors)
        self.driver.leaves(actor.member_id, actor.instance_id)
        actor.waits_for, actor.calls_for, actor.member_id = 0, "join", ""

    def pause(self) -> None:
        self.driver.passes(self.rng.choice((900, SESSION_MS)))

    def garbage(self) -> None:
        bad = (ClassicProtocol("chess", b"\0\0\xff"),)
        told = self.driver.joining("", self.rng.choice((None, "i0")), protocols=bad)
        reply = self.driver.asks(replace(told, protocol_type="consumer"))
        assert reply is not None
        assert reply.error is Error.INCONSISTENT_GROUP_PROTOCOL

    def hold(self) -> None:
        """Hold all that was said, and the group, against what must be."""
        assert self.driver.generation >= self.newest
        self.newest = self.driver.generation
        for reply in self.driver.said.values():
            if isinstance(reply, JoinGroupReply) and reply.error is Error.NONE:
                self._hold_join(reply)

    def _hold_join(self, reply: JoinGroupReply) -> None:
        assert 0 < reply.generation <= self.newest
        assert reply.members == () or reply.leader == reply.member_id
        if reply.members and not reply.skips_assignment:
            leader = self.leaders.setdefault(reply.generation, reply.leader)
            assert leader == reply.leader, "two lead one generation"

    def settle(self) -> None:
        """Let time pass in which nothing is asked: all that waits is answered."""
        self.driver.passes(LONG_MS)
        asked = set(range(1, next(self.driver.numbers))) - self.asked_before
        assert asked - self.driver.said.keys() == set()

    def recover(self) -> None:
        """Let all join once more: they come to a generation in which each has its assignment."""
        for actor in self.actors:
            actor.member_id, actor.calls_for, actor.waits_for = "", "join", 0
        for _ in range(60):
            for actor in self.actors:
                if actor.waits_for in self.driver.said:
                    self.hear(actor)
                if not actor.waits_for:
                    self.say(actor)
            self.driver.passes(500)
            self.hold()
        assert {each.calls_for for each in self.actors} == {"beat"}
        assert {each.generation for each in self.actors} == {self.driver.generation}


@pytest.mark.parametrize("seed", range(15))
def test_a_group_holds_through_faults_and_comes_to_rest(seed: int) -> None:
    storm = Storm(seed)
    storm.run(250)
    storm.settle()
    storm.recover()


@pytest.mark.soak
def test_many_groups_hold_through_faults() -> None:
    for seed in range(1_000, 3_000):
        storm = Storm(seed)
        storm.run(600)
        storm.settle()
        storm.recover()
