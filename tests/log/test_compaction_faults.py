"""kill -9 amid compaction: the log tells of the same group, and of its whole history."""

import random
import time
from multiprocessing.connection import Connection
from pathlib import Path

import pytest
from log.conftest import Fork

from fairlead.events.entries.codec import CONTROL, encode, restore
from fairlead.events.entries.compaction import RequestedCompaction
from fairlead.events.entries.history import read_summary
from fairlead.events.entries.retention import Retention
from fairlead.events.log.frame import NewEntry
from fairlead.events.log.reader import LogReader
from fairlead.events.log.writer import GroupLog
from fairlead.events.model import Cause, Why
from fairlead.events.records import GroupMetadata
from fairlead_tests.golden.fixtures import generations, read_lines

EPOCHS, COMMIT = 6_000, 100


def write(path: Path) -> int:
    """Write the life of a group and many epochs more; return how many entries there are."""
    with GroupLog.open_writer(path, "connect", CONTROL) as log:
        for entry in read_lines(generations()[-1] / "moves.control"):
            log.append(
                log.end,
                [NewEntry(entry.type, entry.version, entry.key, entry.value)],
                entry.timestamp_ms,
            )
        for first in range(1_000, 1_000 + EPOCHS, COMMIT):
            epochs = range(first, first + COMMIT)
            records = [GroupMetadata(each, Cause(Why.MEMBER_JOINED), each) for each in epochs]
            log.append(log.end, [encode(each) for each in records], first)
        return log.end


def compact(line: Connection, path: Path) -> None:
    with GroupLog.open_writer(path, "connect", CONTROL) as log:
        compaction = RequestedCompaction(log, Retention(epochs=20))
        line.send("begun")
        while compaction.step(1):
            line.send(compaction.trimmed)
        line.send(compaction.trimmed)


@pytest.mark.parametrize("kills", [4, pytest.param(150, marks=pytest.mark.soak)])
def test_a_compaction_that_is_killed_loses_nothing_and_is_done_by_the_next_one(
    path: Path, fork: Fork, kills: int
) -> None:
    rng, lows = random.Random(kills), list[int]()
    end = most = 0
    for kill in range(kills):
        if not lows or lows[-1] >= end - 2 * COMMIT:  # the last one came to its end
            path = path.parent / f"control-{kill}"
            end = write(path)
            with LogReader.open(path) as log:
                before, lows = restore("connect", *log.load()), [0]
        owner = fork(compact, path)
        assert owner.hear() == "begun"
        while kill % 2 and not owner.hear():  # else the kill may come before the first slice
            pass
        time.sleep(rng.uniform(0, 0.06))
        owner.kill()
        with LogReader.open(path) as log:
            low, packed = log.trimmed()
            summary = read_summary(packed)
            assert (log.end(), log.verify().end) == (end, end)
            assert (summary.entries if summary else 0) == low >= lows[-1]
            assert restore("connect", *log.load()) == before
        lows.append(low)
        most = max(most, low)
    assert most > 0
