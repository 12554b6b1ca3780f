"""The two logs of a process that hosts groups: one is not made anew beside the other."""

import shutil
from pathlib import Path

import pytest

from fairlead.actors.shards.hosted_logs import HostedLogs, open_logs
from fairlead.events.entries.codec import CONTROL, OFFSETS
from fairlead.events.log.errors import NoLogError
from fairlead.events.log.frame import NewEntry


def opened(folder: Path) -> HostedLogs:
    return HostedLogs(open_logs(folder, "connect", (CONTROL, OFFSETS), had_logs=False))


@pytest.mark.parametrize("gone", ["control", "offsets"])
def test_a_log_that_is_gone_is_not_replaced_by_an_empty_one(tmp_path: Path, gone: str) -> None:
    logs = opened(tmp_path)
    logs.control.append(0, [NewEntry(1, 1, b"key", b"\x90")], 0)
    logs.close()
    shutil.rmtree(tmp_path / gone)
    with pytest.raises(NoLogError, match=f"{gone} was there and is gone: no new one was made"):
        opened(tmp_path)
    assert not (tmp_path / gone).exists()


def test_a_first_start_that_was_cut_short_is_made_up_for(tmp_path: Path) -> None:
    opened(tmp_path).close()
    shutil.rmtree(tmp_path / "offsets")
    logs = opened(tmp_path)
    assert (logs.control.end, logs.offsets.end) == (0, 0)
    logs.close()
