"""How soon a computation may follow another."""

from dataclasses import replace

import pytest

from fairlead.actors.group.state.settings import GroupSettings
from fairlead.actors.group.state.soft_state import Computation, SoftState
from fairlead.actors.group.timers import LONGEST_RECOVERY_MS, SLOW_MS, ComputationTimer
from fairlead.actors.messages.commands import EndInterval

FIRST = Computation("a", "balanced", 1, 60_000)
SECOND = replace(FIRST, number=2)


def computed_in(took_ms: int) -> tuple[ComputationTimer, SoftState]:
    """Return a timer that saw one computation, and the soft state when the next has begun."""
    timer = ComputationTimer()
    assert not timer.follow(SoftState(begun=1, computation=FIRST), 0).is_in_interval
    return timer, timer.follow(SoftState(begun=2, computation=SECOND), took_ms)


def test_one_that_was_fast_keeps_the_next_waiting_for_nothing() -> None:
    timer, soft = computed_in(SLOW_MS - 1)
    assert not soft.is_in_interval
    assert [*timer.due(10_000)] == []


@pytest.mark.parametrize(("took_ms", "interval_ms"), [(300, 600), (30_000, LONGEST_RECOVERY_MS)])
def test_while_computations_take_long_one_begins_after_twice_that_time(
    took_ms: int, interval_ms: int
) -> None:
    timer, soft = computed_in(took_ms)
    assert soft.is_in_interval
    assert [*timer.due(took_ms + interval_ms - 1)] == []
    assert [*timer.due(took_ms + interval_ms)] == [EndInterval()]


def test_a_change_that_finds_nothing_under_way_is_computed_at_once() -> None:
    timer = ComputationTimer()
    timer.follow(SoftState(begun=1, computation=FIRST), 0)
    soft = timer.follow(SoftState(begun=1), 300)
    assert not soft.is_in_interval


def test_what_the_coordinator_computes_itself_rests_for_its_interval_whatever_a_member_took() -> (
    None
):
    settings = GroupSettings(assignment_interval_ms=100)
    timer = ComputationTimer()
    timer.follow(SoftState(settings, begun=1, computation=FIRST), 0)
    timer.follow(SoftState(settings, begun=1), 5_000)
    timer.follow(SoftState(settings, begun=2, is_in_interval=True), 5_000)
    assert [*timer.due(5_099)] == []
    assert [*timer.due(5_100)] == [EndInterval()]
