"""A disk that fills up costs appends, never entries."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from fairlead_tests import TESTS

OWN_MOUNTS = ["unshare", "--user", "--map-root-user", "--mount"]


@pytest.fixture(scope="module")
def _own_mounts(tmp_path_factory: pytest.TempPathFactory) -> None:
    disk = tmp_path_factory.mktemp("disk")
    command = [*OWN_MOUNTS, "mount", "-t", "tmpfs", "tmpfs", str(disk)]
    try:
        subprocess.run(command, check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError) as error:
        pytest.skip(f"a small disk needs a mount namespace, which is not to be had here: {error}")


def play(scenario: str, disk: Path) -> dict[str, Any]:
    command = [
        *OWN_MOUNTS,
        sys.executable,
        "-m",
        "fairlead_tests.log.full_disk",
        str(disk),
        scenario,
    ]
    environment = {**os.environ, "PYTHONPATH": str(TESTS)}
    ran = subprocess.run(command, capture_output=True, env=environment, timeout=60, check=False)
    assert (ran.returncode, ran.stderr) == (0, b"")
    found: dict[str, Any] = json.loads(ran.stdout)
    return found


@pytest.mark.usefixtures("_own_mounts")
def test_nothing_acknowledged_is_lost_when_the_disk_runs_full(tmp_path: Path) -> None:
    assert play("hits_the_wall", tmp_path) == {
        "first": "DiskFullError",
        "then": "LogFailedError",
        "readable": True,
        "reopened when full": "opened",
        "read by another": True,
        "kept": True,
        "with space": "appended",
    }


@pytest.mark.usefixtures("_own_mounts")
def test_the_reserve_is_kept_for_trimming(tmp_path: Path) -> None:
    assert play("refuses_in_time", tmp_path) == {
        "first": "LowSpaceError",
        "then": "LowSpaceError",
        "trimmed": True,
        "kept": True,
        "reserve": True,
        "with space": "appended",
    }


@pytest.mark.usefixtures("_own_mounts")
def test_a_log_does_not_begin_where_there_is_no_room(tmp_path: Path) -> None:
    assert play("has_no_room_to_begin", tmp_path) == {
        "new": "LowSpaceError",
        "restored": "LowSpaceError",
        "read": "LowSpaceError",
        "with space": ["opened", "opened"],
    }


@pytest.mark.usefixtures("_own_mounts")
def test_the_disk_is_looked_at_before_every_append_however_it_was_filled(tmp_path: Path) -> None:
    assert play("is_filled_by_another", tmp_path) == {
        "at first": ["appended"] * 3,
        "low": ["LowSpaceError", "appended"],
        "space": [True, False],
        "opened anew": ["LowSpaceError", "appended"],
        "full": ["LowSpaceError", "LowSpaceError"],
        "out": [True, True],
        "with space": "appended",
        "kept": True,
    }


@pytest.mark.usefixtures("_own_mounts")
def test_a_disk_that_runs_full_amid_compaction_costs_no_history_and_no_state(
    tmp_path: Path,
) -> None:
    found = play("is_full_amid_compaction", tmp_path)
    assert found.pop("unchecked") in {"done", "DiskFullError", "LogFailedError"}
    assert found == {
        "goes on": False,
        "why": True,
        "summed up": True,
        "sound": True,
        "state": True,
        "with space": [3_980, True],
    }


@pytest.mark.usefixtures("_own_mounts")
def test_a_log_file_drops_lines_while_the_disk_is_full_and_says_how_many(tmp_path: Path) -> None:
    found = play("loses_log_lines", tmp_path)
    assert found == {
        "dropped": True,
        "first": "before",
        "last": ["after", found["told"], "later"],
        "told": found["told"],
    }
