"""kill -9 at any moment: nothing acknowledged is lost, and nothing is there by half."""

import random
import time
from multiprocessing.connection import Connection
from pathlib import Path

import pytest
from log.conftest import Fork

from fairlead.events.log.frame import Entry, NewEntry
from fairlead.events.log.reader import LogReader
from fairlead.events.log.writer import GroupLog
from fairlead_tests.log.samples import TIME_MS, fold, gone, member, unpacked

KEYS = 40


def _append_forever(line: Connection, path: Path, seed: int, keep: int | None) -> None:
    """Append batches whose entries say how many they are, and acknowledge each."""
    rng = random.Random(seed)
    with GroupLog.open_writer(path, "flights") as log:
        while True:
            size = rng.choice((1, 1, 2, 7, 30))
            log.append(log.end, [_entry(rng, size, index) for index in range(size)], TIME_MS)
            line.send(log.end)
            if keep is not None and rng.random() < 0.7:
                log.trim(log.end - keep, 50)


def _entry(rng: random.Random, size: int, index: int) -> NewEntry:
    name = f"W{rng.randrange(KEYS)}"
    if rng.random() < 0.2:
        return gone(name)._replace(version=size * 100 + index)
    value = [size, index, "x" * rng.choice((0, 10, 3000))]
    return member(name, value)._replace(version=size * 100 + index)


def _whole_batches(entries: list[Entry]) -> bool:
    """Tell whether the entries are batches of which none begins or ends in the middle."""
    position = 0
    while position < len(entries):
        size = entries[position].version // 100
        batch = [entry.version for entry in entries[position : position + size]]
        if batch != [size * 100 + index for index in range(size)]:
            return False
        position += size
    return True


@pytest.mark.parametrize("kills", [24, pytest.param(400, marks=pytest.mark.soak)])
def test_no_acknowledged_entry_is_lost_by_kill_9(path: Path, fork: Fork, kills: int) -> None:
    rng = random.Random(7)
    acknowledged = checked = 0
    history: list[Entry] = []
    for kill in range(kills):
        owner = fork(_append_forever, path, kill, None)
        if kill % 2:  # else the kill may come before the log is open
            owner.line.poll(60)
        time.sleep(rng.uniform(0, 0.03))
        owner.kill()
        acknowledged = max([acknowledged, *owner.last_words()])
        with GroupLog.open_writer(path, "flights") as log:
            fresh, end = log.read(checked)
            assert end >= acknowledged
            assert [entry.offset for entry in fresh] == list(range(checked, end))
            assert _whole_batches(fresh)
            history += fresh
            assert fold(log.load().entries) == fold(history)
            acknowledged = checked = end
    with GroupLog.open_writer(path, "flights") as log:
        assert log.read(0) == (history, checked)
        assert log.verify()[:3] == (0, checked, checked)
    assert checked >= kills // 2
    assert all(unpacked(entry.value) for entry in history if entry.value is not None)


@pytest.mark.parametrize("kills", [8, pytest.param(100, marks=pytest.mark.soak)])
def test_a_log_that_is_trimmed_all_the_time_survives_kill_9(
    path: Path, fork: Fork, kills: int
) -> None:
    rng = random.Random(8)
    acknowledged = low = 0
    for kill in range(kills):
        owner = fork(_append_forever, path, kill, 10)
        owner.line.poll(60)
        time.sleep(rng.uniform(0, 0.05))
        owner.kill()
        acknowledged = max([acknowledged, *owner.last_words()])
        with GroupLog.open_writer(path, "flights") as log:
            report = log.verify()
            assert report.end >= acknowledged
            low = report.low
            kept = log.read(low).entries
            viewed = log.load().entries
            assert fold([*viewed, *kept]) == fold(viewed)
    assert low > 0


@pytest.mark.parametrize("lost", ["owner.lock", "lock.mdb", "end.mark"])
def test_a_log_opens_without_each_of_its_side_files(path: Path, lost: str) -> None:
    with GroupLog.open_writer(path, "flights") as log:
        log.append(0, [member("W1", 1)], TIME_MS)
    (path / lost).unlink()
    with GroupLog.open_writer(path, "flights") as log:
        assert log.verify() == (0, 1, 1, 1, 1)


def _die_reading(line: Connection, path: Path) -> None:
    with LogReader.open(path) as log, log._snapshot():  # pyright: ignore[reportPrivateUsage]
        line.send("reading")
        line.recv()


def test_a_reader_that_died_amid_a_read_is_swept(path: Path, fork: Fork) -> None:
    GroupLog.open_writer(path, "flights").close()
    reader = fork(_die_reading, path)
    assert reader.hear() == "reading"
    with GroupLog.open_writer(path, "flights") as log:
        assert log.check_readers() == 0
        reader.kill()
        assert log.check_readers() == 1
        assert log.check_readers() == 0
