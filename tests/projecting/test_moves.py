"""What moved and for how long nobody ran it, from the statuses of the log alone."""

from pathlib import Path

import pytest
from projecting.test_log_projections import write

from fairlead.events.log.reader import LogReader
from fairlead.events.model import Cause, Resource, RunState, Token, Why
from fairlead.events.records import GroupMetadata, Record, TargetAssignment, TaskStatus
from fairlead.projections import moves as moves_module
from fairlead.projections.moves import LATEST, Downtime, Downtimes, Measured, Move, Moves

A0, B0 = Resource("A", 0), Resource("B", 0)
STOP, RUN = RunState.UNASSIGNED, RunState.RUNNING
BATCHES = "batches run"


def status(
    resource: Resource,
    state: RunState,
    worker: str,
    epoch: int,
    time_ms: int,
    reason: str = "",
) -> TaskStatus:
    return TaskStatus(resource, state, worker, Token(epoch, 1), time_ms, reason)


def measured(*statuses: TaskStatus) -> Measured:
    downtimes = Downtimes()
    for each in statuses:
        downtimes.take(each)
    return downtimes.measured()


def took(**milliseconds: int) -> Measured:
    """One hand-over each of these connectors."""
    found = {name: Downtime(each, each, 1) for name, each in milliseconds.items()}
    return Measured(found, Downtime.of(milliseconds.values()))


def test_a_hand_over_takes_from_the_stop_to_the_first_batch_elsewhere() -> None:
    assert measured(
        status(A0, RUN, "w1", 1, 0, BATCHES),
        status(A0, STOP, "w1", 1, 1_000),
        status(A0, RUN, "w2", 2, 1_100),
        status(A0, RUN, "w2", 2, 1_700, BATCHES),
        status(A0, RUN, "w2", 2, 9_000, BATCHES),
    ) == took(A=700)


def test_without_a_batch_it_takes_to_the_word_that_it_runs() -> None:
    assert measured(
        status(A0, STOP, "w1", 1, 1_000),
        status(A0, RUN, "w2", 2, 1_100),
        status(B0, STOP, "w1", 1, 1_000),
        status(B0, RUN, "w2", 2, 1_200),
        status(B0, STOP, "w2", 2, 5_000),
    ) == took(A=100, B=200)


def test_who_stops_and_goes_on_hands_nothing_over() -> None:
    assert measured(
        status(A0, STOP, "w1", 1, 1_000),
        status(A0, RUN, "w1", 2, 1_100, BATCHES),
    ) == Measured({}, None)


def test_of_a_worker_that_was_killed_nothing_is_measured() -> None:
    assert measured(
        status(A0, RUN, "w1", 1, 0, BATCHES),
        status(A0, RUN, "w2", 2, 60_000, BATCHES),
    ) == Measured({}, None)


def test_clocks_that_differ_make_no_time_less_than_none() -> None:
    assert measured(
        status(A0, STOP, "w1", 1, 1_000),
        status(A0, RUN, "w2", 2, 900, BATCHES),
    ) == took(A=0)


def test_the_figures_are_the_middle_and_the_99th_of_a_hundred() -> None:
    assert Downtime.of(range(100, 0, -1)) == Downtime(50, 99, 100)
    assert Downtime.of((3, 1)) == Downtime(1, 3, 2)
    assert Downtime.of(()) is None


def test_only_the_latest_hand_overs_count() -> None:
    downtimes = Downtimes()
    for turn in range(LATEST + 1):
        giver, taker = f"w{turn}", f"w{turn + 1}"
        took_ms = 1_000_000 if turn == 0 else 10
        downtimes.take(status(A0, STOP, giver, turn, 0))
        downtimes.take(status(A0, RUN, taker, turn + 1, took_ms, BATCHES))
    assert downtimes.measured().by_connector == {"A": Downtime(10, 10, LATEST)}


def test_of_a_long_log_only_the_last_entries_are_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(moves_module, "RECENT", 2)
    long_ago = (status(B0, STOP, "w1", 1, 0), status(B0, RUN, "w2", 2, 7, BATCHES))
    of_late = (status(A0, STOP, "w1", 1, 0), status(A0, RUN, "w2", 2, 9, BATCHES))
    write(tmp_path, [*long_ago, *of_late])
    downtimes = Downtimes()
    with LogReader.open(tmp_path, "connect") as log:
        downtimes.catch_up(log)
    assert downtimes.measured() == took(A=9)


def moved(*records: Record) -> tuple[list[Move], list[Move]]:
    """Return the moves that are at their end after these records, and those that are not."""
    moves = Moves()
    closed = [move for record in records for move in moves.take(record)]
    return closed, list(moves.open.values())


def test_a_move_tells_the_causes_that_its_target_answers_however_often_that_failed() -> None:
    joined, left = Cause(Why.MEMBER_JOINED, "w2"), Cause(Why.MEMBER_LEFT, "w3")
    a_move = Move(A0, Token(3, 1), "w1", "w2", (joined, left), stopped_ms=5, running_ms=7)
    assert moved(
        status(A0, RUN, "w1", 1, 0, BATCHES),
        GroupMetadata(2, joined, 1),
        TargetAssignment(2, {}, "balanced", error="it failed"),
        GroupMetadata(3, left, 2),
        TargetAssignment(3, {}, "balanced"),
        status(A0, STOP, "w1", 1, 5),
        status(A0, RUN, "w2", 3, 7),
    ) == ([], [a_move])


def test_a_worker_that_was_killed_gives_its_work_away_without_a_word() -> None:
    first = Move(A0, Token(2, 1), "w1", "w2", running_ms=9, first_batch_ms=9)
    assert moved(status(A0, RUN, "w1", 1, 0), status(A0, RUN, "w2", 2, 9, BATCHES)) == ([first], [])


def test_the_word_of_a_giver_counts_also_where_it_comes_after_the_takers() -> None:
    late = Move(A0, Token(2, 1), "w1", "w2", stopped_ms=5, running_ms=9)
    assert moved(
        status(A0, RUN, "w1", 1, 0),
        status(A0, RUN, "w2", 2, 9),
        status(A0, STOP, "w1", 1, 5),
    ) == ([], [late])


def test_a_move_ends_where_the_next_begins() -> None:
    first = Move(A0, Token(2, 1), "w1", "w2", stopped_ms=1, running_ms=2)
    second = Move(A0, Token(3, 1), "w2", "w3", running_ms=4)
    assert moved(
        status(A0, STOP, "w1", 1, 1),
        status(A0, RUN, "w2", 2, 2),
        status(A0, RUN, "w3", 3, 4),
    ) == ([first], [second])
