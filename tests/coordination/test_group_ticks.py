"""When a group's actor has itself woken, and what counts as late."""

import pytest

from fairlead.actors.group import actor as actor_module
from fairlead.actors.group.actor import GroupActor, Tick
from fairlead.actors.group.shard import Now


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

    monkeypatch.setattr(actor_module.GroupActor, "wake_after", wake_after)
    GroupActor()._wake_in_time(Due(due_ms), Now(0, 5_000))  # type: ignore[arg-type]
    assert asked == [expected]
