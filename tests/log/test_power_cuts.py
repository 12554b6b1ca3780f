"""Whatever a power cut leaves of a log, what was acknowledged is there, and so is a backup."""

from functools import partial
from pathlib import Path
from typing import Any

import pytest

from fairlead.events.log import owner
from fairlead.events.log.environment import open_environment
from fairlead.events.log.files import DATA_NAME
from fairlead.events.log.reader import LogReader
from fairlead.events.log.writer import GroupLog
from fairlead.runtime.interfaces.cli.logs import folder as logs
from fairlead_tests.log.samples import TIME_MS, member
from fairlead_tests.power_cuts import PowerCuts

FLUSHED = (DATA_NAME,)
"""LMDB flushes its file itself, in the commit."""


@pytest.mark.parametrize("left", ["", "log"], ids=["nothing", "a folder by a killed owner"])
def test_a_log_that_acknowledged_entries_is_there_with_them_after_a_power_cut(
    tmp_path: Path, left: str
) -> None:
    path = tmp_path / (left or "deep/data/log")
    with PowerCuts(tmp_path, 0, FLUSHED) as cuts:
        if left:
            path.mkdir()  # without a flush
        for number in range(3):
            with GroupLog.open_writer(path, "flights") as log:
                cuts.promise(log.append(number, [member("W1", number)], TIME_MS))
    for end in cuts.replayed():
        with GroupLog.open_writer(path, "flights") as log:
            assert log.end >= end
            assert len(log.read(0).entries) == log.end
            log.append(log.end, [member("W2", 1)], TIME_MS)
            assert log.verify().end == log.end


def test_nothing_of_a_log_is_read_before_what_a_killed_owner_left_is_on_the_disk(
    path: Path,
) -> None:
    with GroupLog.open_writer(path, "flights") as log:
        log.append(0, [member("W1", 1)], TIME_MS)
    env = open_environment(path, map_bytes=1 << 20, readonly=False)
    told: list[tuple[str, object]] = []

    class Watched:
        """An environment whose flushes and transactions are noted."""

        def __getattr__(self, name: str) -> Any:
            return getattr(env, name)

        def sync(self, force: bool = False) -> None:
            told.append(("sync", force))
            env.sync(force)

        def begin(self, **named: Any) -> Any:
            told.append(("begin", named))
            return env.begin(**named)

    claim = owner.claim_log(path, Watched(), "flights", None)  # type: ignore[arg-type]
    env.close()
    assert claim.last is not None
    assert told == [("sync", True), ("begin", {"write": True})]


def test_a_backup_that_was_made_is_whole_after_a_power_cut(tmp_path: Path) -> None:
    path, target = tmp_path / "log", tmp_path / "deep" / "backup"
    with GroupLog.open_writer(path, "flights") as log:
        log.append(0, [member("W1", 1)], TIME_MS)
        with PowerCuts(tmp_path, False) as cuts:
            log.backup(target)
            cuts.promise(True)
    for is_made in cuts.replayed():
        if is_made or target.exists():
            with LogReader.open(target) as copy:
                assert (copy.end(), copy.verify().entries) == (1, 1)


def test_a_backup_of_several_logs_that_was_made_has_all_of_them_after_a_power_cut(
    tmp_path: Path,
) -> None:
    names, target = ("0/offsets", "0/control", "12/control"), tmp_path / "backup"
    for name in names:
        with GroupLog.open_writer(tmp_path / name, name) as log:
            log.append(0, [member("W1", 1)], TIME_MS)
    with PowerCuts(tmp_path, False) as cuts:
        logs._copy(target, [(each, partial(LogReader.open, tmp_path / each)) for each in names])
        cuts.promise(True)
    for is_made in cuts.replayed():
        for name in names if is_made or target.exists() else ():
            with LogReader.open(target / name, name) as copy:
                assert (copy.end(), copy.verify().entries) == (1, 1)
