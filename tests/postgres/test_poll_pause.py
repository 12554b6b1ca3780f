"""How long a source lets a table rest in which a look found nothing."""

import pytest

from fairlead.runtime.pipeline.stores.postgres import poll_pause
from fairlead.runtime.pipeline.stores.postgres.poll_pause import PollPause


class Clock:
    """A monotonic clock that stands still unless it is set."""

    now = 100.0

    def monotonic(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(poll_pause, "time", clock)
    monkeypatch.setattr(poll_pause, "_REST_SHARE", 9)
    return clock


def look(rest: PollPause, clock: Clock, took: float, *, found: bool = False) -> float:
    """Take a look of some seconds; return how long it is let rest."""
    began = clock.now
    clock.now += took
    rest.after_look(began, found=found)
    ended = clock.now
    while not rest.is_over:
        clock.now += 0.25
    return clock.now - ended


def test_a_table_whose_looks_take_long_keeps_the_server_busy_a_tenth_of_the_time(
    clock: Clock,
) -> None:
    rest = PollPause()
    look(rest, clock, 2.0)
    assert look(rest, clock, 2.0) == look(rest, clock, 4.0) == 18.0


def test_one_look_that_was_held_up_keeps_no_row_waiting(clock: Clock) -> None:
    rest = PollPause()
    assert look(rest, clock, 4.0) == 0.0  # the first one tells nothing of the table yet
    assert look(rest, clock, 0.25) == look(rest, clock, 30.0) == 2.25
    assert look(rest, clock, 0.25) == 2.25


def test_who_found_rows_looks_again_at_once(clock: Clock) -> None:
    rest = PollPause()
    look(rest, clock, 1.0)
    assert look(rest, clock, 1.0, found=True) == 0.0


@pytest.mark.usefixtures("clock")
def test_a_rest_is_ended_by_what_is_known_to_have_come() -> None:
    rest = PollPause()
    rest.wait(5.0)
    assert not rest.is_over
    rest.end()
    assert rest.is_over
