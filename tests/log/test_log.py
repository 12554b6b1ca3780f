"""Appending, reading, and the view of the latest values."""

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from multiprocessing.connection import Connection
from pathlib import Path

import pytest
from log.conftest import Fork

from fairlead.events.log.errors import (
    AlreadyOpenError,
    ForkedError,
    InvalidEntryError,
    LogError,
    NoLogError,
    OffsetConflictError,
    TrimmedError,
    WrongLogError,
)
from fairlead.events.log.frame import Entry, NewEntry
from fairlead.events.log.owner import require_log
from fairlead.events.log.reader import LogReader
from fairlead.events.log.writer import GroupLog
from fairlead_tests.log.samples import MEMBER, TASK, TIME_MS, fold, gone, member, packed, read_back

HISTORY = [member("W1", 1), member("W2", 1), member("W1", 2), gone("W2"), member("W3", 1)]


def test_entries_come_back_in_order_with_their_offsets(log: GroupLog) -> None:
    assert log.append(0, HISTORY[:3], TIME_MS) == 3
    assert log.append(3, HISTORY[3:], TIME_MS) == 5
    assert log.end == 5
    expected = [read_back(offset, entry) for offset, entry in enumerate(HISTORY)]
    assert log.read(0) == (expected, 5)
    assert log.read(1, 2) == (expected[1:3], 5)
    assert log.read(5) == ([], 5)
    assert log.read(9) == ([], 5)


def test_the_view_holds_the_latest_of_each_key_in_offset_order(log: GroupLog) -> None:
    log.append(0, HISTORY, TIME_MS)
    expected = [read_back(offset, HISTORY[offset]) for offset in (2, 3, 4)]
    assert log.load() == (expected, 5)
    assert fold(log.load().entries) == fold(log.read(0).entries)


def test_get_and_scan_leave_deleted_keys_out(log: GroupLog) -> None:
    log.append(0, HISTORY, TIME_MS)
    assert log.get(MEMBER, b"W1") == read_back(2, HISTORY[2])
    assert log.get(MEMBER, b"W2") is None
    assert log.get(MEMBER, b"W9") is None
    assert log.scan(MEMBER, b"W") == [read_back(2, HISTORY[2]), read_back(4, HISTORY[4])]
    assert log.scan(MEMBER, b"W3") == [read_back(4, HISTORY[4])]
    assert log.scan(MEMBER, b"X") == []


def test_types_with_equal_keys_do_not_collide(log: GroupLog) -> None:
    task = NewEntry(TASK, 1, b"W1", packed("task"))
    log.append(0, [member("W1", "member"), task], TIME_MS)
    assert log.get(MEMBER, b"W1") == read_back(0, member("W1", "member"))
    assert log.get(TASK, b"W1") == read_back(1, task)
    assert log.scan(TASK) == [read_back(1, task)]


def test_one_append_may_write_a_key_twice(log: GroupLog) -> None:
    log.append(0, [member("W1", 1), member("W1", 2)], TIME_MS)
    assert len(log.read(0).entries) == 2
    assert log.get(MEMBER, b"W1") == read_back(1, member("W1", 2))


def test_an_empty_append_writes_nothing(log: GroupLog, path: Path) -> None:
    log.append(0, HISTORY, TIME_MS)
    before = (path / "data.mdb").read_bytes()
    assert log.append(5, [], TIME_MS) == 5
    assert (path / "data.mdb").read_bytes() == before


def test_an_append_at_another_offset_is_refused(log: GroupLog) -> None:
    log.append(0, HISTORY, TIME_MS)
    for offset in (4, 6):
        with pytest.raises(OffsetConflictError, match=r"ends at 5.*nothing was written; reload"):
            log.append(offset, HISTORY, TIME_MS)
    assert log.append(5, HISTORY, TIME_MS) == 10


def test_one_bad_entry_keeps_the_whole_append_out(log: GroupLog) -> None:
    with pytest.raises(InvalidEntryError):
        log.append(0, [member("W1", 1), NewEntry(1, 1, b"k", b"\x00\x00")], TIME_MS)
    assert log.read(0) == ([], 0)
    assert log.append(0, HISTORY, TIME_MS) == 5


def test_a_log_outlives_its_owner(path: Path) -> None:
    with GroupLog.open_writer(path, "flights") as log:
        log.append(0, HISTORY, TIME_MS)
        first_epoch = log.epoch
    with GroupLog.open_writer(path, "flights") as log:
        assert (log.end, log.epoch) == (5, first_epoch + 1)
        assert log.append(5, HISTORY, TIME_MS) == 10
        assert log.verify() == (0, 10, 10, 2, 3)


def test_a_map_too_small_grows(path: Path) -> None:
    big = member("W1", "x" * 100_000)
    with GroupLog.open_writer(path, "flights", map_bytes=1 << 18) as log:
        for offset in range(20):
            log.append(offset, [big], TIME_MS)
        assert len(log.read(0).entries) == 20


def test_a_log_larger_than_one_batch_is_tailed_in_several(path: Path) -> None:
    with GroupLog.open_writer(path, "flights") as log:
        log.append(0, [member(f"W{number}", number) for number in range(2500)], TIME_MS)
    with LogReader.open(path) as reader:
        batches = list(reader.tail(100))
        assert [len(batch) for batch in batches] == [1000, 1000, 400]
        assert [entry for batch in batches for entry in batch] == reader.read(100).entries
        assert list(reader.tail(2500)) == []


def test_large_entries_are_tailed_in_small_batches(path: Path) -> None:
    with GroupLog.open_writer(path, "flights") as log:
        log.append(0, [member("W1", "x" * (3 << 20))] * 3, TIME_MS)
    with LogReader.open(path) as reader:
        assert [len(batch) for batch in reader.tail(0)] == [2, 1]


def _follow(line: Connection, path: Path) -> None:
    (start,) = line.recv()
    with LogReader.open(path, "flights") as reader:
        while True:
            batches: list[list[Entry]] = list(reader.tail(start))
            line.send((batches, reader.end(), reader.low(), reader.get(MEMBER, b"W1")))
            (start,) = line.recv()


def test_a_reader_in_another_process_sees_each_commit(path: Path, fork: Fork) -> None:
    reader = fork(_follow, path)
    with GroupLog.open_writer(path, "flights") as log:
        assert reader.ask(0) == ([], 0, 0, None)
        for number in range(3):
            entry = member("W1", number)
            log.append(number, [entry], TIME_MS)
            seen = read_back(number, entry)
            assert reader.ask(number) == ([[seen]], number + 1, 0, seen)


def test_a_reader_opens_once_there_is_a_log(path: Path) -> None:
    with pytest.raises(NoLogError, match="try again"):
        LogReader.open(path)
    path.mkdir(parents=True)
    with pytest.raises(NoLogError, match="try again"):
        LogReader.open(path)
    (path / "data.mdb").touch()
    with pytest.raises(NoLogError, match="try again"):
        LogReader.open(path)
    with GroupLog.open_writer(path, "flights") as log:
        log.append(0, HISTORY, TIME_MS)
        with pytest.raises(AlreadyOpenError, match="this process"):
            LogReader.open(path)
        assert log.end == 5
    with LogReader.open(path) as reader:
        assert (reader.log_id, reader.end()) == ("flights", 5)


def test_a_log_of_another_group_is_refused_and_left_alone(path: Path) -> None:
    GroupLog.open_writer(path, "flights").close()
    before = (path / "data.mdb").read_bytes()
    with pytest.raises(WrongLogError, match="'flights', not 'trains'"):
        GroupLog.open_writer(path, "trains")
    with pytest.raises(WrongLogError, match="'flights', not 'trains'"):
        LogReader.open(path, "trains")
    assert (path / "data.mdb").read_bytes() == before


def test_a_closed_log_says_so(path: Path) -> None:
    log = GroupLog.open_writer(path, "flights")
    log.close()
    log.close()
    with pytest.raises(LogError, match="was closed"):
        log.read(0)
    with pytest.raises(LogError, match="was closed"):
        log.append(0, HISTORY, TIME_MS)


def _use_inherited(line: Connection, log: GroupLog) -> None:
    said: list[str] = []
    uses: list[Callable[[], object]] = [
        lambda: log.read(0),
        lambda: log.append(0, HISTORY, TIME_MS),
        lambda: log.trim(1),
    ]
    for use in uses:
        try:
            use()
        except ForkedError as error:
            said.append(str(error))
    log.close()
    line.send((os.getppid(), said))
    line.recv()


def test_a_forked_child_may_not_use_the_log_and_does_not_keep_it(path: Path, fork: Fork) -> None:
    log = GroupLog.open_writer(path, "flights")
    child = fork(_use_inherited, log)
    parent, said = child.hear()
    assert len(said) == 3
    assert all(f"opened by process {parent}" in text for text in said)
    assert log.append(0, HISTORY, TIME_MS) == 5
    log.close()
    GroupLog.open_writer(path, "flights").close()  # the child still lives


def test_an_offset_that_was_trimmed_is_refused(log: GroupLog) -> None:
    log.append(0, HISTORY, TIME_MS)
    assert log.trim(2) == 2
    with pytest.raises(TrimmedError, match="bootstrap by load") as refused:
        log.read(1)
    assert refused.value.low == log.low() == 2


def test_several_threads_read_one_log_and_whoever_comes_after_its_end_is_told(
    tmp_path: Path,
) -> None:
    with GroupLog.open_writer(tmp_path / "log", "connect", reserve_bytes=0) as log:
        for _ in range(100):
            log.append(log.end, HISTORY, TIME_MS)
        written = log.read(0).entries
    reader = LogReader.open(tmp_path / "log")
    with ThreadPoolExecutor(4) as threads:
        found = list(threads.map(one_by_one, [reader] * 8))
    assert found == [written] * 8
    reader.close()
    with pytest.raises(LogError, match="was closed"):
        reader.end()


def one_by_one(reader: LogReader) -> list[Entry]:
    """Return all entries of a log, each read in a turn of its own."""
    return [entry for start in range(reader.end()) for entry in reader.read(start, 1).entries]


def test_a_log_that_was_there_and_is_gone_is_not_made_anew(tmp_path: Path) -> None:
    path = tmp_path / "group" / "control"
    with pytest.raises(NoLogError, match=f"the log {path} was there and is gone"):
        require_log(path)
    assert list(tmp_path.iterdir()) == []
    GroupLog.open_writer(path, "flights").close()
    require_log(path)
