"""What an owner answers without a record of its own waits for a word of the store."""

from typing import Any

from fairlead.actors.group.host import (
    BEAT_MS,
    CROWD,
    CROWD_BEAT_MS,
    PAUSE_MS,
    UnconfirmedAnswers,
)

A: Any = "a"
B: Any = "b"
C: Any = "c"


def test_an_answer_whose_records_count_leaves_and_with_it_all_that_waited_for_a_word() -> None:
    held = UnconfirmedAnswers()
    assert list(held.take([A], has_written=False)) == []
    assert list(held.take([B], has_written=True)) == [A, B]
    assert held.next_beat_ms() is None


def test_without_a_record_it_leaves_after_a_beat_that_began_after_it_came() -> None:
    held = UnconfirmedAnswers()
    assert list(held.take([A], has_written=False)) == []
    assert held.next_beat_ms() == 0
    held.begin_beat(1_000)
    assert list(held.take([B], has_written=False)) == []
    assert list(held.confirm()) == [A]
    assert held.next_beat_ms() == 1_000 + BEAT_MS
    held.begin_beat(1_000 + BEAT_MS)
    assert list(held.confirm()) == [B]


def test_no_beat_is_due_while_one_is_under_way_or_nothing_waits() -> None:
    held = UnconfirmedAnswers()
    assert held.next_beat_ms() is None
    held.take([A], has_written=False)
    held.begin_beat(0)
    held.take([B], has_written=False)
    assert held.next_beat_ms() is None
    held.confirm()
    assert held.next_beat_ms() == BEAT_MS


def test_an_append_releases_what_a_beat_under_way_was_asked_for_and_it_leaves_once() -> None:
    held = UnconfirmedAnswers()
    held.take([A], has_written=False)
    held.begin_beat(0)
    held.take([B], has_written=False)
    assert list(held.take([C], has_written=True)) == [A, B, C]
    assert list(held.confirm()) == []


def test_what_a_failed_beat_was_asked_for_waits_for_the_next_one_in_its_place() -> None:
    held = UnconfirmedAnswers()
    held.take([A], has_written=False)
    held.begin_beat(0)
    held.take([B], has_written=False)
    held.fail_beat(4_000)
    assert held.next_beat_ms() == 4_000 + PAUSE_MS
    held.begin_beat(4_000 + PAUSE_MS)
    assert list(held.confirm()) == [A, B]


def test_many_answers_wait_for_a_sooner_beat() -> None:
    held = UnconfirmedAnswers()
    held.begin_beat(0)
    held.confirm()
    held.take([A] * (CROWD - 1), has_written=False)
    assert held.next_beat_ms() == BEAT_MS
    held.take([B], has_written=False)
    assert held.next_beat_ms() == CROWD_BEAT_MS
