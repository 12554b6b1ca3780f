"""The progress of tasks is read again only where it has changed, and tells since when one lags."""

from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

import pytest

from fairlead.events.commits import CommitId, Lag, TaskProgress
from fairlead.events.entries.codec import OFFSETS, encode
from fairlead.events.log.reader import LogReader
from fairlead.events.log.writer import GroupLog
from fairlead.events.model import Token
from fairlead.projections import progress
from fairlead.projections.progress import ProgressFollower, TasksProgress

NOW_MS = 1_000_000
NAMES = ["A", "B"]


class OffsetLog:
    """An offset log that is opened for each use: a process has it open but once."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def commit(self, task: str, batches: int, time_ms: int, lag: Lag | None) -> None:
        """Append the progress of a task."""
        connector, _, number = task.partition("-")
        last = CommitId(connector, int(number), Token(1, 1), batches)
        done = TaskProgress(last, batches, 10 * batches, 0, 0, time_ms, lag)
        with closing(GroupLog.open_writer(self.path, "g", OFFSETS)) as log:
            log.append(log.end, [encode(done)], time_ms)

    def trim(self) -> None:
        """Drop all entries that are not the latest."""
        with closing(GroupLog.open_writer(self.path, "g", OFFSETS)) as log:
            log.trim(log.end - 1)

    def read(
        self, follower: ProgressFollower, names: Sequence[str] = NAMES, now_ms: int = NOW_MS
    ) -> TasksProgress:
        """Return what a follower reads."""
        with closing(LogReader.open(self.path, "g", OFFSETS)) as reader:
            return follower.catch_up(reader, names, now_ms)


@pytest.fixture
def log(tmp_path: Path) -> OffsetLog:
    return OffsetLog(tmp_path / "offsets")


def test_only_what_has_changed_is_read_again(log: OffsetLog) -> None:
    follower = ProgressFollower()
    for task in ("A-0", "A-1", "B-0"):
        log.commit(task, 1, 10, Lag(0, 0))
    first = log.read(follower)
    assert {name: [*tasks] for name, tasks in first.items()} == {"A": [0, 1], "B": [0]}
    log.commit("A-1", 2, 20, Lag(0, 0))
    second = log.read(follower)
    assert second["A"][1].rows_in == 20
    assert second["B"] is first["B"]
    third = log.read(follower, ["A"])
    assert third == {"A": second["A"]}
    assert third["A"] is second["A"]


def test_after_many_entries_or_a_trim_all_is_read_again(
    log: OffsetLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    follower = ProgressFollower()
    log.commit("A-0", 1, 10, Lag(0, 0))
    first = log.read(follower)
    for batch in range(2, 5):
        log.commit("B-0", batch, 10 * batch, Lag(0, 0))
    log.trim()
    second = log.read(follower)
    assert second["B"][0].batches == 4
    assert second["A"] == first["A"]
    assert second["A"] is not first["A"]
    monkeypatch.setattr(progress, "MOST_FOLLOWED", 0)
    log.commit("B-0", 5, 50, Lag(0, 0))
    assert log.read(follower)["A"] is not second["A"]


def test_a_task_lags_since_it_had_last_read_all_there_was(log: OffsetLog) -> None:
    follower = ProgressFollower()
    assert follower.caught_up_ms("A") is None
    log.commit("A-0", 1, 100, Lag(0, 0))
    log.commit("A-1", 1, 150, Lag(2, 20))
    log.read(follower)
    assert follower.caught_up_ms("A") == NOW_MS, "what was behind at first counts from then on"
    log.commit("A-1", 2, 200, Lag(0, 0))
    log.commit("A-1", 3, 300, Lag(1, 10))
    log.commit("A-1", 4, 400, Lag(1, 10))
    log.read(follower)
    assert follower.caught_up_ms("A") == 200, "although that was between two looks"
    log.commit("A-1", 5, 500, Lag(0, 0))
    log.read(follower)
    assert follower.caught_up_ms("A") == 100, "nobody knows of more: the oldest look counts"


def test_a_connector_that_was_deleted_says_nothing_of_the_next_one_of_its_name(
    log: OffsetLog,
) -> None:
    follower = ProgressFollower()
    log.commit("A-0", 1, 100, Lag(0, 0))
    log.read(follower)
    log.read(follower, ["B"])
    log.commit("A-0", 2, 300, Lag(1, 10))
    log.read(follower, now_ms=2 * NOW_MS)
    assert follower.caught_up_ms("A") == 2 * NOW_MS


def test_a_task_whose_source_cannot_tell_never_counts_as_caught_up(log: OffsetLog) -> None:
    follower = ProgressFollower()
    log.commit("A-0", 1, 100, None)
    log.read(follower)
    log.commit("A-0", 2, 200, None)
    log.read(follower, now_ms=2 * NOW_MS)
    assert follower.caught_up_ms("A") == NOW_MS
