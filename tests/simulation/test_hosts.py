"""The parts of a simulation of several hosts: wires, store, and what is checked of them."""

from collections.abc import Sequence

import pytest

from fairlead.events.entries.codec import encode
from fairlead.events.group import Group
from fairlead.events.log.frame import Entry
from fairlead.events.records import OwnerBegan
from fairlead.events.stores.port import Claimant
from fairlead.runtime.node.door.delivery import LogEnds
from fairlead.runtime.simulation.environment.clock import SimulatedClock, Story, Violation
from fairlead.runtime.simulation.faults import schedule_faults
from fairlead.runtime.simulation.group.durable_state import DurableState, MemoryLog
from fairlead.runtime.simulation.hosts.store import CONTROL, OFFSETS, SimulatedStore, StoreAnswer
from fairlead.runtime.simulation.hosts.wires import GOOD_WIRES, Wires
from fairlead.runtime.simulation.invariants.hosts import (
    CopyInvariants,
    HostInvariants,
    SimulatedSink,
)
from fairlead.runtime.simulation.invariants.running import Exclusivity, LifecycleInvariants
from fairlead.runtime.simulation.schedule import Crew, Size, draw
from fairlead.runtime.simulation.world import World

A, B = Claimant("n0", "n0", "n0.0"), Claimant("n1", "n1", "n1.0")
BEGAN = [encode(OwnerBegan(1, "n0"))]


def wires_of(clock: SimulatedClock) -> Wires:
    return Wires(clock, Story(clock, is_told=False), 1, GOOD_WIRES)


def test_a_wire_loses_and_delays_single_messages_and_all_of_them_while_it_is_cut() -> None:
    clock, seen = SimulatedClock(), list[tuple[int, str]]()
    wires = wires_of(clock)
    wires.spoil(("a", "b"), 5_000)
    wires.spoil(("a", "b"), None)
    for name in ("late", "lost", "third"):
        wires.send("a", "b", lambda each: seen.append((clock.now_ms // 1_000, each)), name)
    clock.run(6_000)
    wires.cut([("a", "b")], 1_000)
    wires.send("a", "b", seen.append, "cut")
    wires.send("b", "a", lambda: seen.append((clock.now_ms // 1_000, "back")))
    clock.run(9_000)
    assert seen == [(0, "third"), (5, "late"), (6, "back")]


class Stored:
    """A store, and what it answered."""

    def __init__(self) -> None:
        self.clock = SimulatedClock()
        story = Story(self.clock, is_told=False)
        self.durable = DurableState(
            self.clock, story, 1, None, LifecycleInvariants(Exclusivity(story))
        )
        sink, checks = SimulatedSink(), HostInvariants()
        self.store = SimulatedStore(self.clock, story, self.durable, checks, sink, 1)
        self.answers: list[object] = []

    def claim(self, claimant: Claimant, silence_seconds: float = 0.0, log: str = CONTROL) -> object:
        self.store.claim(log, claimant, silence_seconds, 1, self.answers.append)
        return self.answers.pop()

    def append(self, epoch: int, base: int) -> object:
        live = Group("connect", end=1, ownership=OwnerBegan(1, "n0"))
        self.store.append(CONTROL, epoch, base, BEGAN, live, self.answers.append)
        return self.answers.pop()

    def beat(self, epoch: int) -> object:
        self.store.beat(epoch, self.answers.append)
        return self.answers.pop()


def test_what_an_earlier_owner_writes_or_asks_counts_for_nobody() -> None:
    it = Stored()
    assert (it.claim(A), it.claim(B)) == (1, 2)
    assert (it.append(1, 0), it.beat(1), it.beat(2)) == (None, False, True)
    assert it.append(2, 0) == it.durable.control.entries
    assert it.append(2, 0) is None, "it does not start at the end"


def test_a_claim_counts_once_the_owner_has_been_silent_and_at_once_for_its_own_folder() -> None:
    it = Stored()
    assert it.claim(A) == 1
    it.clock.run(2_999)
    assert it.claim(B, 3.0) is None
    assert it.claim(A, 3.0) == 2
    it.clock.run(5_000)
    it.beat(2)
    it.clock.run(7_999)
    assert it.claim(B, 3.0) is None
    it.clock.run(8_000)
    assert it.claim(B, 3.0) == 3
    assert it.claim(B, log=OFFSETS) == 1, "each log has claims of its own"


def test_a_read_waits_for_what_comes_and_says_whether_that_is_all() -> None:
    it = Stored()
    it.claim(A)
    answers: list[StoreAnswer] = []
    it.store.read(LogEnds(), 500, answers.append)
    it.clock.run(100)
    assert answers == []
    it.append(1, 0)
    it.clock.run(101)
    it.store.read(LogEnds(1, 0), 500, answers.append)
    it.clock.run(700)
    it.store.read(LogEnds(1, 0), 0, answers.append)
    entries = it.durable.control.entries
    assert [(each.control, each.is_whole) for each in answers] == [
        (entries, True),
        ([], True),
        ([], True),
    ]


def entries_of(count: int, shade: str = "") -> Sequence[Entry]:
    log = MemoryLog()
    return log.append([encode(OwnerBegan(1, f"n{shade}{each}")) for each in range(count)], 0)


def test_a_copy_is_a_prefix_of_what_counts() -> None:
    stored, copy = MemoryLog(), MemoryLog()
    checks = CopyInvariants("n0", stored, copy)
    for entry in entries_of(3):
        stored.copy(entry)
    for entry in entries_of(2):
        copy.copy(entry)
        checks.check()
    copy.copy(entries_of(3, "x")[2])
    with pytest.raises(Violation, match="12: the copy of n0 is another log"):
        checks.check()
    for entry in entries_of(2):
        copy.copy(entry)
    with pytest.raises(Violation, match="12: the copy of n0 has 5 of 3 entries"):
        checks.check()


def test_an_answer_rests_on_what_counts_and_on_no_less_than_was_told_before() -> None:
    checks = HostInvariants()
    checks.tell(LogEnds(3, 2), stored=LogEnds(3, 2), before=LogEnds())
    assert checks.told == LogEnds(3, 2)
    with pytest.raises(Violation, match="11: "):
        checks.tell(LogEnds(4, 2), stored=LogEnds(3, 2), before=LogEnds())
    with pytest.raises(Violation, match="14: "):
        checks.tell(LogEnds(3, 1), stored=LogEnds(3, 2), before=checks.told)
    checks.write("control", 2)
    with pytest.raises(Violation, match="13: owner 1 writes after owner 2"):
        checks.write("control", 1)


def test_whatever_befalls_hosts_somebody_owns_the_group_and_publishes() -> None:
    world = World(draw(3, Size(crew=Crew.HOSTS)))
    schedule_faults(world)
    world.clock.run(world.schedule.end_ms)
    assert world.hosts is not None
    assert world.hosts.checks.owners >= 5
    assert world.hosts.sink.published >= 20
    assert world.exclusivity.moves >= 5
