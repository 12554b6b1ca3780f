"""What is counted in real logs."""

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

from fairlead.events.catalogue import commit_key
from fairlead.events.commits import Commit, CommitId, Committed, Lag, Manifest, Offset, TaskProgress
from fairlead.events.entries.codec import encode
from fairlead.events.log.reader import LogReader
from fairlead.events.log.writer import GroupLog
from fairlead.events.model import Cause, Token, Why
from fairlead.events.records import ClassicGroup, GroupMetadata, Record, Tombstone
from fairlead.projections.follow.rebalances import Rebalances
from fairlead.projections.views import (
    NO_LAG,
    Progress,
    connector_progress,
    read_topics,
    task_progress,
)

TOKEN = Token(1, 1)


def write(path: Path, records: Iterable[Record], trim: int = 0) -> None:
    with GroupLog.open_writer(path, "connect") as log:
        log.append(log.end, [encode(record) for record in records], 0)
        log.trim(trim)


def bumps(*causes: Why) -> list[Record]:
    return [GroupMetadata(epoch, Cause(why), 0) for epoch, why in enumerate(causes, 1)]


def test_rebalances_are_counted_from_the_beginning_and_on(tmp_path: Path) -> None:
    counted = Rebalances()
    write(tmp_path / "log", bumps(Why.MEMBER_JOINED, Why.MEMBER_JOINED, Why.OPERATOR))
    with LogReader.open(tmp_path / "log") as log:
        counted.catch_up(log)
        counted.catch_up(log)
    assert counted.by_cause == {Why.MEMBER_JOINED: 2, Why.OPERATOR: 1}
    write(tmp_path / "log", [*bumps(Why.MEMBER_LEFT), Tombstone(GroupMetadata, ())])
    with LogReader.open(tmp_path / "log") as log:
        counted.catch_up(log)
    assert counted.by_cause == {Why.MEMBER_JOINED: 2, Why.OPERATOR: 1, Why.MEMBER_LEFT: 1}


def test_a_generation_is_counted_once_though_it_is_told_again(tmp_path: Path) -> None:
    first = ClassicGroup(1, Cause(Why.MEMBER_JOINED, "a"), 0, leader="a")
    second = replace(first, generation=2, cause=Cause(Why.SESSION_EXPIRED, "b"))
    synced = [replace(each, is_synced=True) for each in (first, second)]
    write(tmp_path / "log", [first, synced[0], second, synced[1]])
    counted = Rebalances()
    with LogReader.open(tmp_path / "log") as log:
        counted.catch_up(log)
    assert counted.by_cause == {Why.MEMBER_JOINED: 1, Why.SESSION_EXPIRED: 1}


def test_of_a_trimmed_log_the_rest_is_counted(tmp_path: Path) -> None:
    write(tmp_path / "log", bumps(Why.MEMBER_JOINED, Why.OPERATOR, Why.OPERATOR), trim=2)
    counted = Rebalances()
    with LogReader.open(tmp_path / "log") as log:
        counted.catch_up(log)
    assert counted.by_cause == {Why.OPERATOR: 1}


def test_the_topics_of_a_connector_are_those_that_it_has_offsets_of(tmp_path: Path) -> None:
    read = [("a", "y", 0), ("a", "y", 1), ("a", "x", 0), ("ab", "z", 0)]
    offsets = [
        Offset(name, {"kafka_topic": topic, "kafka_partition": number}, {"kafka_offset": 1})
        for name, topic, number in read
    ]
    write(tmp_path / "log", [*offsets, Offset("a", {"path": "a.csv"}, {"row": 1})])
    with LogReader.open(tmp_path / "log") as log:
        assert (read_topics(log, "a"), read_topics(log, "b")) == (["x", "y"], [])


def test_the_progress_of_a_connector_is_that_of_its_tasks(tmp_path: Path) -> None:
    first = TaskProgress(CommitId("a", 0, TOKEN, 4), 5, 50, 40, 400, 1_000, Lag(3, 300))
    second = TaskProgress(CommitId("a", 10, TOKEN, 0), 1, 10, 10, 100, 2_000)
    alien = TaskProgress(CommitId("ab", 0, TOKEN, 0), 1, 1, 1, 1, 3_000)
    manifest = Manifest("/sink", "staging", 1, 1, 1)
    waiting = [
        Committed(Commit(CommitId("a", task, TOKEN, 0), (), manifest, 1), 0) for task in (0, 10)
    ]
    published = Tombstone(Committed, commit_key(waiting[0].commit.commit_id))
    write(tmp_path / "log", [first, second, alien, *waiting, published])
    with LogReader.open(tmp_path / "log") as log:
        assert connector_progress(task_progress(log, "a"), range(11)) == Progress(
            6, 60, 50, 500, 2_000, 1, None, oldest_commit_ms=1_000, uncommitted=9
        )
        assert connector_progress(task_progress(log, "b"), range(1)) == Progress(uncommitted=1)
        assert task_progress(log, "a") == {
            0: Progress(5, 50, 40, 400, 1_000, 0, Lag(3, 300), oldest_commit_ms=1_000),
            10: Progress(1, 10, 10, 100, 2_000, 1, None),
        }


def test_a_task_with_nothing_left_to_read_is_none_that_waits_for_longest(tmp_path: Path) -> None:
    left = {"idle": (NO_LAG, NO_LAG), "mixed": (NO_LAG, Lag(2, 20)), "dark": (None, None)}
    write(
        tmp_path / "log",
        [
            TaskProgress(CommitId(name, number, TOKEN, 0), 1, 1, 1, 1, 10 + number, lag)
            for name, lags in left.items()
            for number, lag in enumerate(lags)
        ],
    )
    with LogReader.open(tmp_path / "log") as log:
        totals = {name: connector_progress(task_progress(log, name), range(2)) for name in left}
    oldest = {name: each.oldest_commit_ms for name, each in totals.items()}
    assert oldest == {"idle": 0, "mixed": 11, "dark": 0}
    assert {each.last_commit_ms for each in totals.values()} == {11}


def test_a_task_that_a_connector_no_longer_has_has_nothing_left_to_read(tmp_path: Path) -> None:
    tasks = [
        TaskProgress(CommitId("a", number, TOKEN, 0), 1, 1, 1, 1, 1, Lag(2, 20))
        for number in range(3)
    ]
    write(tmp_path / "log", tasks)
    with LogReader.open(tmp_path / "log") as log:
        assert connector_progress(task_progress(log, "a"), range(2)) == Progress(
            3, 3, 3, 3, 1, 0, Lag(4, 40), oldest_commit_ms=1
        )
