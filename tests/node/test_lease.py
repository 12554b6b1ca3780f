"""Two hosts do not run nodes on one data folder, also where locks do not reach that far."""

import json
import time
from pathlib import Path

import pytest

from fairlead.runtime.cluster import lease as leases
from fairlead.runtime.cluster.lease import Lease, host_id, require_free
from fairlead.runtime.cluster.run_folder import NodeRunsError


@pytest.fixture
def run_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the run folder of a data folder that other hosts have as well."""
    made = tmp_path / "run"
    made.mkdir()
    mounts = tmp_path / "mounts"
    mounts.write_text(f"/dev/vda / ext4 rw 0 0\nserver:/export {tmp_path} nfs4 rw 0 0\n")
    monkeypatch.setattr(leases, "MOUNTS", mounts)
    return made


def write(run_folder: Path, host: str, count: int) -> None:
    (run_folder / leases.FILE).write_text(json.dumps({"host": host, "count": count}))


def look(data_dir: Path, seconds: float = 0.2) -> list[str]:
    said: list[str] = []
    require_free(data_dir, said.append, seconds)
    return said


def test_a_folder_that_a_node_of_another_host_uses_is_refused(
    tmp_path: Path, run_folder: Path
) -> None:
    write(run_folder, "other/1", 1)
    with pytest.raises(NodeRunsError, match=r"a node on host other runs on .* nothing was changed"):
        require_free(tmp_path, lambda _: write(run_folder, "other/1", 2), 20)
    assert json.loads((run_folder / leases.FILE).read_text()) == {"host": "other/1", "count": 2}


def test_a_lease_that_was_left_over_is_watched_and_then_taken(
    tmp_path: Path, run_folder: Path
) -> None:
    write(run_folder, "other/1", 1)
    assert look(tmp_path) == [
        f"{tmp_path} was used by a node on host other: watching whether that one still runs"
    ]
    Lease(run_folder).renew()
    assert json.loads((run_folder / leases.FILE).read_text()) == {"host": host_id(), "count": 1}


@pytest.mark.parametrize("text", ["", "{", "[]", '{"host": "x"}', "\xff"])
def test_a_lease_that_cannot_be_read_keeps_nobody_out(
    tmp_path: Path, run_folder: Path, text: str
) -> None:
    (run_folder / leases.FILE).write_text(text)
    assert look(tmp_path) == []


def test_the_same_host_does_not_wait_for_its_own(tmp_path: Path, run_folder: Path) -> None:
    lease = Lease(run_folder)
    lease.renew()
    assert look(tmp_path, 60) == []
    lease.release()
    assert not (run_folder / leases.FILE).exists()


def test_on_a_file_system_of_this_host_no_lease_is_written(
    tmp_path: Path, run_folder: Path
) -> None:
    (tmp_path / "mounts").write_text("/dev/vda / ext4 rw 0 0\n")
    lease = Lease(run_folder)
    lease.renew()
    assert [*run_folder.iterdir()] == []
    write(run_folder, "other/1", 1)
    assert look(tmp_path, 60) == [], "the disk was moved here"
    (tmp_path / "mounts").unlink()
    Lease(run_folder).renew()
    assert (run_folder / leases.FILE).exists(), "nobody knows whose file system it is"


def test_a_lease_is_written_anew_at_intervals(
    run_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = [100.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    lease, counts = Lease(run_folder), list[int]()
    for passed in (0.0, 1.0, leases.RENEW_SECONDS, 1.0):
        now[0] += passed
        lease.renew()
        counts.append(json.loads((run_folder / leases.FILE).read_text())["count"])
    assert counts == [1, 1, 2, 2]
    assert leases.RENEW_SECONDS * 3 < leases.WATCH_SECONDS
