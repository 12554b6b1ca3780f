"""Forgetting the past, copying the log, and checking both."""

import stat
from pathlib import Path

import pytest

from fairlead.events.log.check import Report
from fairlead.events.log.errors import BackupError, LogError, TrimmedError
from fairlead.events.log.probe import probe
from fairlead.events.log.reader import LogReader
from fairlead.events.log.writer import GroupLog
from fairlead_tests.log.samples import MEMBER, TIME_MS, fold, gone, member, read_back

HISTORY = [member("W1", 1), member("W2", 1), gone("W1"), member("W2", 2), gone("W2")]


def test_a_trim_keeps_the_latest_values_and_drops_old_tombstones(log: GroupLog) -> None:
    log.append(0, HISTORY[:2], TIME_MS)
    log.append(2, HISTORY[2:4], TIME_MS)
    log.append(4, [member("W3", 1)], TIME_MS)
    assert log.trim(3) == 3
    assert log.read(3).entries == [read_back(3, HISTORY[3]), read_back(4, member("W3", 1))]
    assert log.load() == (log.read(3).entries, 5)
    assert log.verify() == Report(low=3, end=5, entries=2, commits=2, keys=2)
    assert log.trim(4) == 4
    assert log.get(MEMBER, b"W2") == read_back(3, HISTORY[3])
    assert log.verify() == Report(low=4, end=5, entries=1, commits=1, keys=2)


def test_a_key_that_was_written_again_outlives_its_trimmed_tombstone(log: GroupLog) -> None:
    log.append(0, [member("W1", 1), gone("W1"), member("W1", 2)], TIME_MS)
    log.trim(2)
    assert log.load() == ([read_back(2, member("W1", 2))], 3)


def test_a_trim_goes_in_chunks_and_never_beyond_the_end(log: GroupLog) -> None:
    log.append(0, [member(f"W{number}", 1) for number in range(10)], TIME_MS)
    assert [log.trim(99, 4), log.trim(99, 4), log.trim(99, 4), log.trim(99, 4)] == [4, 8, 10, 10]
    assert log.trim(3) == 10
    assert log.read(10) == ([], 10)
    assert len(log.load().entries) == 10
    assert log.verify() == Report(low=10, end=10, entries=0, commits=1, keys=10)
    assert log.append(10, HISTORY, TIME_MS) == 15


def test_a_log_trimmed_to_nothing_opens_and_goes_on(path: Path) -> None:
    with GroupLog.open_writer(path, "flights") as log:
        log.append(0, HISTORY, TIME_MS)
        log.trim(5)
        assert log.load() == ([], 5)
    with GroupLog.open_writer(path, "flights") as log:
        assert log.append(5, HISTORY, TIME_MS) == 10
        assert log.verify() == Report(low=5, end=10, entries=5, commits=2, keys=2)


def test_every_cut_of_the_same_history_folds_to_the_same_state(tmp_path: Path) -> None:
    history = [member(f"W{n % 7}", n) if n % 5 else gone(f"W{n % 6}") for n in range(60)]
    states: list[dict[tuple[int, bytes], bytes]] = []
    for low in range(0, 61, 7):
        with GroupLog.open_writer(tmp_path / str(low), "flights") as log:
            for offset in range(0, 60, 6):
                log.append(offset, history[offset : offset + 6], TIME_MS)
            log.trim(low)
            log.verify()
            states.append(fold(log.load().entries))
    assert states == [states[0]] * len(states)


def test_a_tailer_overtaken_by_a_trim_is_told_where_to_go_on(path: Path) -> None:
    with GroupLog.open_writer(path, "flights") as log:
        log.append(0, HISTORY, TIME_MS)
        log.trim(2)
    with LogReader.open(path) as reader:
        with pytest.raises(TrimmedError, match="bootstrap by load"):
            next(reader.tail(1))
        assert [entry.offset for batch in reader.tail(reader.low()) for entry in batch] == [2, 3, 4]


def test_a_backup_is_a_log_of_its_own(log: GroupLog, tmp_path: Path) -> None:
    log.append(0, HISTORY, TIME_MS)
    target = tmp_path / "backups" / "monday"
    log.backup(target)
    assert stat.S_IMODE(target.stat().st_mode) == 0o700
    log.append(5, HISTORY, TIME_MS)
    with LogReader.open(target, "flights") as copy:
        assert copy.read(0) == (log.read(0).entries[:5], 5)
    with GroupLog.open_writer(target, "flights") as restored:
        assert restored.append(5, [member("W9", 1)], TIME_MS) == 6
    assert probe(target, "flights") == Report(low=0, end=6, entries=6, commits=2, keys=3)
    assert log.end == 10


def test_a_reader_can_make_the_backup(path: Path, tmp_path: Path) -> None:
    with GroupLog.open_writer(path, "flights") as log:
        log.append(0, HISTORY, TIME_MS)
    with LogReader.open(path) as reader:
        reader.backup(tmp_path / "copy")
    assert probe(tmp_path / "copy") == probe(path)


def test_a_backup_overwrites_nothing_and_leaves_nothing_half_made(
    log: GroupLog, tmp_path: Path
) -> None:
    target = tmp_path / "backups" / "monday"
    target.mkdir(parents=True)
    with pytest.raises(BackupError, match="exists already"):
        log.backup(target)
    (tmp_path / "file").touch()
    with pytest.raises(BackupError, match="the log is untouched"):
        log.backup(tmp_path / "file" / "monday")
    assert list(target.parent.iterdir()) == [target]
    assert log.append(0, HISTORY, TIME_MS) == 5


def test_a_probe_of_nothing_says_so(tmp_path: Path) -> None:
    with pytest.raises(LogError, match="there is no log at"):
        probe(tmp_path / "nowhere")
