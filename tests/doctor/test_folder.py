"""What `doctor` says of a data folder: its disk, its modes, its key, its node, its times."""

import os
import time
from pathlib import Path

import pytest

from fairlead.runtime.cluster.lease import file_system_of
from fairlead.runtime.cluster.run_folder import RunFolder
from fairlead.runtime.interfaces.doctor.findings import Finding, fail, ok, warn
from fairlead.runtime.interfaces.doctor.folder import (
    Disk,
    check_access,
    check_disk,
    check_node,
    check_times,
    read_disk,
)

MOUNTS = """/dev/vda / ext4 rw 0 0
tmpfs /data tmpfs rw 0 0
server:/export /data/far nfs4 rw 0 0
/dev/b /data/two\\040words xfs rw 0 0
overlay / overlay rw 0 0
a line that is none
"""
GIB = 1 << 30
DATA = Path("/data")


@pytest.mark.parametrize(
    ("folder", "kind"),
    [
        ("/home", "overlay"),
        ("/data", "tmpfs"),
        ("/database", "overlay"),
        ("/data/far/x", "nfs4"),
        ("/data/two words/x", "xfs"),
    ],
)
def test_the_nearest_mount_has_the_folder(folder: str, kind: str) -> None:
    assert file_system_of(Path(folder), MOUNTS) == kind


DISKS = {
    "a disk": (Disk("ext4", 9 * GIB, 1 << 20), ["ok disk", "ok space"]),
    "without a count of files": (Disk("btrfs", 9 * GIB, None), ["ok disk", "ok space"]),
    "a share": (Disk("nfs4", 9 * GIB, None), ["fail disk", "ok space"]),
    "a share by FUSE": (Disk("fuse.sshfs", 9 * GIB, None), ["fail disk", "ok space"]),
    "memory": (Disk("tmpfs", 9 * GIB, None), ["warn disk", "ok space"]),
    "a layer": (Disk("overlay", 9 * GIB, None), ["warn disk", "ok space"]),
    "read only": (Disk("ext4", 9 * GIB, None, True), ["ok disk", "fail disk", "ok space"]),
    "nearly full": (Disk("ext4", 99 << 20, None), ["ok disk", "warn space"]),
    "full": (Disk("ext4", 9 << 20, None), ["ok disk", "fail space"]),
    "no inodes": (Disk("ext4", 9 * GIB, 99), ["ok disk", "warn space"]),
}


@pytest.mark.parametrize(("disk", "levels"), DISKS.values(), ids=DISKS)
def test_a_disk_is_told_by_its_kind_and_its_space(disk: Disk, levels: list[str]) -> None:
    findings = [*check_disk(DATA, disk)]
    assert [f"{each.level} {each.check}" for each in findings] == levels
    assert [each for each in findings if each.level.value != "ok" and not each.mend] == []


def test_this_disk_can_be_read(tmp_path: Path) -> None:
    assert read_disk(tmp_path, "x / ext4").free > 0


def used(tmp_path: Path) -> Path:
    """Return a data folder as a node leaves it."""
    folder = tmp_path / "data"
    folder.mkdir(mode=0o700)
    run = RunFolder(folder)
    run.claim()
    run.key()
    run.release()
    return folder


def access(folder: Path) -> list[Finding]:
    return [*check_access(folder, os.getuid())]


def test_a_folder_of_its_owner_alone_is_well(tmp_path: Path) -> None:
    folder = used(tmp_path)
    assert access(folder) == [
        ok("folder", f"{folder} is its owner's alone"),
        ok("key", f"the cluster's key {folder}/run/key is its owner's alone"),
    ]


def test_a_folder_and_a_key_that_others_may_read_are_told(tmp_path: Path) -> None:
    folder = used(tmp_path)
    folder.chmod(0o755)
    (folder / "run" / "key").chmod(0o644)
    first, second = access(folder)
    assert first == warn(
        "folder",
        f"{folder} is open to other users (mode …55): it holds logs and the key",
        f"chmod 700 {folder}",
    )
    assert (second.level.value, second.mend) == ("fail", f"chmod 600 {folder}/run/key")
    assert "treat the key as compromised" in second.text


def test_a_command_is_right_for_any_path(tmp_path: Path) -> None:
    place = tmp_path / "no folder"
    place.touch()
    text, command = f"{place} is a file, and no folder", f"mv '{place}' '{place}'.old"
    assert access(place) == [fail("folder", text, command)]
    place.unlink()
    place.mkdir()
    folder = used(place)
    folder.chmod(0o755)
    assert access(folder)[0].mend == f"chmod 700 '{folder}'"


def test_a_lost_key_of_logs_is_told(tmp_path: Path) -> None:
    folder = used(tmp_path)
    (folder / "run" / "key").unlink()
    assert access(folder)[1] == ok("key", "there is no cluster's key yet: `fairlead up` makes it")
    log = folder / "groups" / "g" / "control"
    log.mkdir(parents=True, mode=0o700)
    (folder / "groups").chmod(0o700)
    (log / "data.mdb").touch()
    key = access(folder)[1]
    assert (key.level.value, key.check) == ("fail", "key")
    assert "put the key back from a backup" in key.text


def test_a_folder_that_is_not_there_yet_is_told(tmp_path: Path) -> None:
    folder = tmp_path / "a" / "b"
    assert access(folder) == [ok("folder", f"{folder} does not exist yet: `fairlead up` makes it")]


def test_the_running_node_is_told(tmp_path: Path) -> None:
    folder = used(tmp_path)
    assert check_node(folder).text == f"no node runs on {folder}"
    run = RunFolder(folder)
    run.claim()
    run.announce(run.system_address_at("127.0.0.1", 1), "http://127.0.0.1:2", "g")
    assert check_node(folder).text == f"a node of group g runs on {folder} (pid {os.getpid()})"
    run.release()


def test_logs_from_the_future_are_told(tmp_path: Path) -> None:
    log = tmp_path / "groups" / "g" / "control"
    log.mkdir(parents=True)
    (log / "data.mdb").touch()
    assert [*check_times(tmp_path, time.time())] == []
    (late,) = check_times(tmp_path, time.time() - 3600)
    assert (late.level.value, late.check, late.mend) == ("warn", "clock", "timedatectl status")
    assert "s after now: the clock is behind, or it was ahead" in late.text
