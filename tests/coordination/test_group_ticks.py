"""When a group's actor has itself woken, and what counts as late."""

import pytest

from fairlead.actors.group.host import MOST_GRANTED_MS, LatenessBudget
from fairlead.actors.shards.host_actor import GroupActor, Tick
from fairlead.actors.timing import Now


class Due:
    """A shard that has been due since a moment."""

    def __init__(self, due_ms: int) -> None:
        self.due_ms = due_ms

    def next_tick_ms(self, _: Now) -> int:
        """Return when it was due."""
        return self.due_ms


@pytest.mark.parametrize(
    ("due_ms", "expected"), [(100, (0.0, 5_000)), (5_000, (0.0, 5_000)), (5_250, (0.25, 5_250))]
)
def test_a_tick_is_never_asked_for_a_time_that_is_over(
    monkeypatch: pytest.MonkeyPatch, due_ms: int, expected: tuple[float, int]
) -> None:
    asked: list[tuple[float, int]] = []

    def wake_after(_: GroupActor, seconds: float, payload: object = None) -> None:
        assert isinstance(payload, Tick)
        asked.append((seconds, payload.at_ms))

    monkeypatch.setattr(GroupActor, "wake_after", wake_after)
    GroupActor()._wake_in_time(Due(due_ms), Now(0, 5_000))  # type: ignore[arg-type]
    assert asked == [expected]


def test_a_process_that_stood_still_once_excuses_all_of_it() -> None:
    assert LatenessBudget().grant(14_000, 100_000) == 14_000


def test_a_process_that_is_always_late_excuses_half_of_the_time_in_the_long_run() -> None:
    budget, granted_ms = LatenessBudget(), 0
    for now_ms in range(0, 1_000_000, 1_000):
        granted_ms += budget.grant(900, now_ms)
    assert granted_ms <= MOST_GRANTED_MS + 1_000_000 // 2


def test_a_calm_time_earns_what_was_excused_anew() -> None:
    budget = LatenessBudget()
    assert budget.grant(MOST_GRANTED_MS, 0) == MOST_GRANTED_MS
    assert budget.grant(1_000, 0) == 0
    assert budget.grant(1_000, 10_000) == 1_000
