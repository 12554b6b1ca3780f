"""What a simulation is made of: time, messages, exclusivity, and deaths at every border."""

from dataclasses import dataclass

import pytest

from fairlead.actors.messages.assignors import DescribeAssignors, Worker
from fairlead.events.commits import CommitId, Offset, TaskProgress
from fairlead.events.evolve import evolve
from fairlead.events.group import Group
from fairlead.events.log.frame import NewEntry
from fairlead.events.model import Cause, Resource, Token, Why
from fairlead.events.records import (
    ConnectorsTasksMetadata,
    GroupMetadata,
    MemberMetadata,
    Record,
    TargetAssignment,
    Tombstone,
)
from fairlead.runtime.simulation.campaign import CampaignResult, PlayResult, Shrinker, play
from fairlead.runtime.simulation.environment.assignor import SimulatedAssignor
from fairlead.runtime.simulation.environment.clock import (
    WALL_MS,
    SimulatedClock,
    Story,
    Violation,
    random_stream,
)
from fairlead.runtime.simulation.environment.kinds import Fault
from fairlead.runtime.simulation.environment.network import MessageFault, Network, Way
from fairlead.runtime.simulation.group.durable_state import MemoryLog
from fairlead.runtime.simulation.group.group_process import Border
from fairlead.runtime.simulation.invariants.group import CommitInvariants, consistent, see_covered
from fairlead.runtime.simulation.invariants.running import Exclusivity
from fairlead.runtime.simulation.schedule import ClusterTraits, Schedule, ScheduledFault, Size, draw
from fairlead_tests.decider import resources

LINE = (0, Way.TO_GROUP)


@dataclass
class Sleeper:
    """Somebody who runs things, awake or not."""

    name: str
    is_awake: bool = True


def test_what_is_due_happens_by_time_and_then_as_it_was_asked_for() -> None:
    clock, seen = SimulatedClock(), list[tuple[int, str]]()

    def see(name: str) -> None:
        seen.append((clock.now_ms, name))

    for delay_ms, name in ((5, "a"), (3, "b"), (5, "c"), (9, "late")):
        clock.after(delay_ms, see, name)
    clock.run(8)
    assert (seen, clock.now_ms) == ([(3, "b"), (5, "a"), (5, "c")], 8)


def test_what_is_asked_of_an_assignor_process_that_has_ended_reaches_no_other() -> None:
    clock, heard = SimulatedClock(), list[object]()
    assignor = SimulatedAssignor(clock, random_stream(1), ("balanced",))
    assignor.end()
    for assignor.is_starting in (True, False):
        assignor.ask(DescribeAssignors("W1", Worker("w1"), 1), heard.append)
        clock.run(clock.now_ms + 1_000)
        assert len(heard) == 1 - assignor.is_starting


def test_the_wall_clock_jumps_and_the_steady_one_does_not() -> None:
    clock = SimulatedClock()
    clock.run(1_000)
    clock.set_wall(-5_000)
    assert (clock.now().steady_ms, clock.now().wall_ms) == (1_000, WALL_MS - 4_000)


def delivered(strike: MessageFault | None, span_ms: int = 0) -> list[str]:
    """Return what arrives of two messages, in order, after the first was struck."""
    clock, seen = SimulatedClock(), list[str]()
    network = Network(clock, Story(clock, is_told=False), 1, jitter_ms=1)
    if strike is not None:
        network.strike(LINE, strike, span_ms, 1)
    for message in ("first", "second"):
        network.send(LINE, seen.append, message)
        clock.run(clock.now_ms + 10)
    clock.run(20_000)
    return seen


@pytest.mark.parametrize(
    ("fault", "arrive"),
    [
        (None, ["first", "second"]),
        (MessageFault.LOSE, ["second"]),
        (MessageFault.DOUBLE, ["first", "second", "first"]),
        (MessageFault.DELAY, ["second", "first"]),
    ],
)
def test_a_fault_befalls_the_next_message_only(
    fault: MessageFault | None, arrive: list[str]
) -> None:
    assert delivered(fault, span_ms=9_000) == arrive


def test_a_cut_loses_everything_for_a_while() -> None:
    clock, seen = SimulatedClock(), list[int]()
    network = Network(clock, Story(clock, is_told=False), 1, jitter_ms=1)
    network.cut(LINE, 1_000)
    for at_ms in (0, 999, 1_000):
        clock.run(at_ms)
        network.send(LINE, seen.append, at_ms)
    clock.run(2_000)
    assert seen == [1_000]


def test_nobody_runs_what_another_runs_who_is_awake() -> None:
    exclusivity = Exclusivity(Story(SimulatedClock(), is_told=False))
    frozen, awake = Sleeper("w1", is_awake=False), Sleeper("w2")
    exclusivity.begin(frozen, Resource("c", 0))
    exclusivity.begin(awake, Resource("c", 0))
    frozen.is_awake = True
    with pytest.raises(Violation, match="1: c-0 runs at w1 and at w2"):
        exclusivity.look(Resource("c", 0))


def test_compaction_keeps_the_latest_of_each_key_and_the_tombstones_behind_the_cut() -> None:
    log = MemoryLog()
    log.append([NewEntry(3, 1, b"a", b"\x01"), NewEntry(3, 1, b"a", b"\x02")], 0)
    log.append([NewEntry(3, 1, b"b", None), NewEntry(3, 1, b"c", None)], 0)
    assert [(entry.offset, entry.key) for entry in log.compact(3)] == [(1, b"a"), (3, b"c")]
    assert [entry.offset for entry in log.scan(3)] == [1]
    assert log.get(3, b"b") is None


def progress(token: Token, row: int) -> tuple[Offset, TaskProgress]:
    """Return what a commit of one row leaves in the offset log."""
    last = CommitId("c", 0, token, 0)
    return Offset("c", {"of": "c-0"}, {"row": row}), TaskProgress(last, 1, 1, 1, 1, 0)


def test_no_row_counts_twice_and_none_is_left_out() -> None:
    seen = CommitInvariants()
    seen.see(progress(Token(1, 1), 1))
    for row in (1, 3):
        with pytest.raises(Violation, match=f"up to row {row}, 2 was next"):
            seen.see(progress(Token(1, 1), row))


def test_a_task_never_commits_under_an_older_token() -> None:
    seen = CommitInvariants()
    seen.see(progress(Token(2, 1), 1))
    with pytest.raises(Violation, match="7: c-0 committed under 1-9, after 2-1"):
        seen.see(progress(Token(1, 9), 2))


def test_a_group_agrees_with_its_indexes() -> None:
    group = Group("connect")
    consistent(group)
    group.target_owner[Resource("c", 0)] = "A"
    with pytest.raises(Violation, match="2: the target and its index differ"):
        consistent(group)
    group.owner[Resource("c", 0)] = "A"
    with pytest.raises(Violation, match="1: 0 grants, the index knows 1 holders"):
        consistent(group)


@pytest.mark.parametrize("border", list(Border))
def test_the_group_survives_a_death_at_every_border_of_its_writing(border: Border) -> None:
    size = Size(steps=12, workers=3, connectors=2, pace_ms=1_000)
    deaths = tuple(
        ScheduledFault(number, 300 + 1_000 * number, kind, number, 500, much)
        for number, (kind, much) in enumerate(
            (kind, much)
            for _ in range(4)
            for kind, much in (
                (Fault.KILL_WRITING, list(Border).index(border)),
                (Fault.SPLIT, 3),
                (Fault.JOIN, 0),
            )
        )
    )
    outcome = play(Schedule(1, size, ClusterTraits(commit_every_ms=700), deaths))
    assert outcome.violation == ""
    assert outcome.restarts >= 3


def test_what_nobody_is_to_run_needs_a_target_that_is_due() -> None:
    group, why = Group("connect"), Cause(Why.MEMBER_JOINED)
    told: list[Record] = [
        ConnectorsTasksMetadata(resources("A A-0")),
        MemberMetadata("W1", joined_epoch=1),
        GroupMetadata(1, why, 0),
        TargetAssignment(1, {"W1": resources("A A-0")}),
    ]
    for each in told:
        evolve(group, each, group.end)
    see_covered(group)
    evolve(group, Tombstone(MemberMetadata, ("W1",)), group.end)
    see_covered(group)  # an empty group runs nothing
    evolve(group, MemberMetadata("W2", joined_epoch=2), group.end)
    with pytest.raises(Violation, match="no target is due"):
        see_covered(group)
    evolve(group, GroupMetadata(2, why, 0), group.end)
    see_covered(group)


def test_what_seeds_did_is_added_up_and_the_last_of_them_is_kept() -> None:
    first, last = (
        PlayResult(Schedule(seed, Size(), ClusterTraits(), ()), "", (), *counts)
        for seed, counts in ((1, (1, 2, 3, 4, 5, 6, 7)), (2, (10, 20, 30, 40, 50, 60, 70)))
    )
    found = CampaignResult().and_also(first).and_also(last)
    assert found == CampaignResult(2, 11, 22, 33, 44, 55, 66, 77, last)


def test_a_schedule_is_shrunk_to_the_faults_and_the_size_that_break_the_rule() -> None:
    whole = draw(7, Size(workers=4, connectors=3))
    first, *_, last = needed = [each.number for each in whole.faults][2:-2:3]

    def run(schedule: Schedule) -> PlayResult:
        numbers = {each.number for each in schedule.faults}
        is_broken = {first, last} <= numbers and schedule.size.workers >= 2
        found = "1: it breaks" if is_broken else "2: another rule" if first in numbers else ""
        return PlayResult(schedule, found, (), schedule.end_ms, *[0] * 6)

    assert len(needed) > 2
    shortest = Shrinker(run(whole), run).shrink()
    assert shortest.violation == "1: it breaks"
    assert [each.number for each in shortest.schedule.faults] == [first, last]
    assert shortest.schedule.size == Size(workers=2, connectors=1)
