"""What is remembered of moves that were made, and for how long."""

import pytest

from fairlead.actors.assignors.built_in.incremental import NOTHING_SPENT, SpentMoves, read_spent

NOW_MS, INTERVAL_MS = 1_000_000, 1_000


def test_what_was_spent_counts_for_an_interval() -> None:
    metadata = SpentMoves(7, NOW_MS).to_metadata()
    assert read_spent(metadata, NOW_MS + INTERVAL_MS - 1, INTERVAL_MS) == SpentMoves(7, NOW_MS)
    assert read_spent(metadata, NOW_MS + INTERVAL_MS, INTERVAL_MS) == NOTHING_SPENT


def test_of_nothing_spent_nothing_is_written() -> None:
    assert NOTHING_SPENT.to_metadata() == b""
    assert read_spent(b"", NOW_MS, INTERVAL_MS) == NOTHING_SPENT


def test_a_clock_that_was_set_back_a_little_makes_it_no_older_than_now() -> None:
    metadata = SpentMoves(7, NOW_MS + INTERVAL_MS - 1).to_metadata()
    assert read_spent(metadata, NOW_MS, INTERVAL_MS) == SpentMoves(7, NOW_MS)


def test_nothing_waits_for_a_time_to_come_again() -> None:
    metadata = SpentMoves(7, NOW_MS + INTERVAL_MS).to_metadata()
    assert read_spent(metadata, NOW_MS, INTERVAL_MS) == NOTHING_SPENT


@pytest.mark.parametrize(
    "metadata",
    [
        b"\xff",
        b"{",
        b"[" * 100_000,
        b"7",
        b"[]",
        b"{}",
        b'{"moves":7}',
        b'{"at_ms":1000000}',
        b'{"moves":true,"at_ms":1000000}',
        b'{"moves":"7","at_ms":1000000}',
        b'{"moves":7,"at_ms":1e6}',
        b'{"moves":-7,"at_ms":1000000}',
    ],
)
def test_metadata_that_is_no_such_thing_says_that_nothing_was_spent(metadata: bytes) -> None:
    assert read_spent(metadata, NOW_MS, INTERVAL_MS) == NOTHING_SPENT
