"""A log whose data file is made smaller is the same log, at each step of it."""

from multiprocessing.connection import Connection
from pathlib import Path

import pytest
from log.conftest import Fork

from fairlead.events.log import environment
from fairlead.events.log.errors import BackupError, NoLogError, OwnedError
from fairlead.events.log.files import DATA_NAME, data_bytes
from fairlead.events.log.reader import LogReader
from fairlead.events.log.space import LMDB_LOCK_NAME
from fairlead.events.log.writer import COPY_NAME, GroupLog, shrink_log
from fairlead_tests.log.samples import TIME_MS, member
from fairlead_tests.power_cuts import PowerCuts


def fill(path: Path, entries: int = 400) -> None:
    """Leave a log of one key whose file is mostly free pages."""
    with GroupLog.open_writer(path, "flights") as log:
        for _ in range(4):
            news = [member("W1", "x" * 300) for _ in range(entries // 4)]
            log.append(log.end, news, TIME_MS)
        while log.low() < log.end - 1:
            log.trim(log.end - 1)


def content(path: Path) -> tuple[object, ...]:
    with LogReader.open(path, "flights") as log:
        return log.load(), log.verify()


def test_a_smaller_file_has_the_same_log(path: Path) -> None:
    fill(path)
    before = content(path)
    shrunk = shrink_log(path)
    assert (shrunk.after, content(path)) == (data_bytes(path), before)
    assert shrunk.after < shrunk.before / 4
    assert shrink_log(path) == (shrunk.after, shrunk.after)
    assert sorted(each.name for each in path.iterdir()) == [
        DATA_NAME,
        "end.mark",
        LMDB_LOCK_NAME,
        "owner.lock",
    ]
    with GroupLog.open_writer(path, "flights") as log:
        assert log.epoch == 2
        log.append(log.end, [member("W2", 1)], TIME_MS)
        log.verify()


def _read(line: Connection, path: Path) -> None:
    with LogReader.open(path) as log:
        line.send(log.end())
        line.recv()


def test_a_file_that_somebody_reads_stays_as_it_is(path: Path, fork: Fork) -> None:
    fill(path)
    before = data_bytes(path)
    reader = fork(_read, path)
    reader.hear()
    with pytest.raises(OwnedError, match="is being read by another process"):
        shrink_log(path)
    assert data_bytes(path) == before
    reader.kill()
    assert shrink_log(path).after < before


def test_a_file_with_an_owner_stays_as_it_is(path: Path) -> None:
    fill(path)
    before = data_bytes(path)
    with GroupLog.open_writer(path, "flights"), pytest.raises(OwnedError):
        shrink_log(path)
    assert data_bytes(path) == before


def test_a_reader_that_waited_for_the_swap_opens_the_log_again(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(path)
    opened: list[object] = []
    real = environment._open  # pyright: ignore[reportPrivateUsage]

    def open_late(at: Path, map_bytes: int, *, readonly: bool, metasync: bool) -> object:
        opened.append(env := real(at, map_bytes, readonly=readonly, metasync=metasync))
        if len(opened) == 1:
            (path / LMDB_LOCK_NAME).unlink()  # as a swap does between the two looks
        return env

    monkeypatch.setattr(environment, "_open", open_late)
    assert len(content(path)) == 2
    assert len(opened) == 2


def test_no_log_is_made_where_there_is_none(path: Path) -> None:
    with pytest.raises(NoLogError):
        shrink_log(path)
    assert not path.exists()


def test_a_copy_that_fails_leaves_the_log_as_it_was(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(path)
    before, size = content(path), data_bytes(path)

    def fail(*_: object) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(LogReader, "_copy", fail)
        with pytest.raises(BackupError, match=r"could not be made smaller.*No space left"):
            shrink_log(path)
    assert (content(path), data_bytes(path)) == (before, size)
    assert not (path / COPY_NAME).exists()


def test_a_power_cut_leaves_the_log_as_before_or_as_after(tmp_path: Path) -> None:
    path = tmp_path / "log"
    fill(path, 40)
    before = content(path)
    with PowerCuts(tmp_path, False) as cuts:
        shrink_log(path)
        cuts.promise(True)
    states = 0
    for _ in cuts.replayed():
        assert content(path) == before
        shrink_log(path)
        assert content(path) == before
        states += 1
    assert states > 4
