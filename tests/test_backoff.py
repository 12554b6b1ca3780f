"""The pauses between attempts, whoever waits for whatever."""

from random import Random

import pytest

from fairlead.actors.timing import Attempts, Backoff


@pytest.mark.parametrize(
    ("backoff", "pauses"),
    [
        (Backoff(500, 3_000), [500, 1_000, 2_000, 3_000, 3_000]),
        (Backoff(0.05, 0.3), [0.05, 0.1, 0.2, 0.3, 0.3]),
        (Backoff(1, 100_000, factor=40), [1, 40, 1_600, 64_000, 100_000]),
        (Backoff(10, 5), [5, 5, 5, 5, 5]),
    ],
)
def test_a_pause_grows_by_its_factor_up_to_the_longest(
    backoff: Backoff[int], pauses: list[int]
) -> None:
    assert [backoff.pause(attempt) for attempt in range(1, 6)] == pauses


def test_no_count_of_attempts_is_too_large() -> None:
    assert Backoff(1, 60_000).pause(1 << 40) == 60_000
    assert Backoff(0.1, 2.0).pause(1 << 40) == 2.0


def test_jitter_takes_off_no_more_than_its_part() -> None:
    backoff, rng = Backoff(4.0, 4.0, jitter=0.5), Random(1)
    pauses = [backoff.pause_with_jitter(1, rng) for _ in range(1_000)]
    assert 2.0 <= min(pauses) < 2.1
    assert 3.9 < max(pauses) <= 4.0


def test_attempts_begin_anew_after_a_reset() -> None:
    attempts = Attempts(Backoff(1, 8))
    assert [attempts.next_pause() for _ in range(3)] == [1, 2, 4]
    attempts.reset()
    assert attempts.next_pause() == 1
