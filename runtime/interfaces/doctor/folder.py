"""Checks of a node's data folder: its disk, its owner and modes, its key, and who uses it now."""

import os
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from shlex import quote
from typing import Final

from ....events.log.space import RESERVE_BYTES
from ...cluster.identity import KEY
from ...cluster.lease import REMOTE, file_system_of
from ...cluster.run_folder import (
    OTHERS,
    KeyRefusedError,
    NoNodeError,
    RunFolder,
    check_new_key,
    read_key,
)
from .findings import Finding, fail, ok, warn

GIB: Final = 1 << 30
MIB: Final = 1 << 20
FEW_INODES: Final = 10_000
CLOCK_SLACK_SECONDS: Final = 60.0
IN_MEMORY: Final = {"tmpfs", "ramfs"}
LAYERS: Final = {"overlay", "aufs"}


@dataclass(frozen=True, slots=True)
class Disk:
    """The file system of a folder; sizes in bytes."""

    kind: str
    """As the kernel calls it, such as ext4; "" if it is not known."""
    free: int
    inodes: int | None
    """How many files can be made; None: the file system has no limit."""
    is_read_only: bool = False


def read_disk(folder: Path, mounts: str) -> Disk:
    """Return the file system of a folder that exists; `mounts` is the text of /proc/mounts."""
    disk = os.statvfs(folder)
    return Disk(
        file_system_of(folder.resolve(), mounts),
        disk.f_bavail * disk.f_frsize,
        disk.f_favail if disk.f_files else None,
        bool(disk.f_flag & os.ST_RDONLY),
    )


def nearest_folder(path: Path) -> Path:
    """Return the path itself, or the nearest one above it that exists."""
    return next(each for each in (path, *path.parents) if _is_there(each))


def _is_there(path: Path) -> bool:
    """Return whether a path exists and can be reached."""
    try:
        return path.exists()
    except OSError:
        return False


def check_disk(folder: Path, disk: Disk) -> Iterator[Finding]:
    """Yield what the file system of a data folder means for its logs."""
    move, kind = "fairlead up --data-dir /var/lib/fairlead", disk.kind or "an unknown file system"
    if REMOTE.fullmatch(disk.kind):
        text = f"{folder} is on {kind}, of another host: locks and memory maps of logs are not safe"
        yield fail("disk", f"{text} there, and two nodes could write one log", move)
    elif disk.kind in IN_MEMORY:
        text = f"{folder} is in memory ({kind}): logs, offsets and the key are gone after a restart"
        yield warn("disk", f"{text} of the machine", move)
    elif disk.kind in LAYERS:
        text = f"{folder} is in the container's own layer ({kind}): it is gone with the container"
        yield warn("disk", text, f"podman run -v fairlead-data:{folder} …")
    else:
        yield ok("disk", f"{folder} is on {kind}")
    if disk.is_read_only:
        yield fail("disk", f"{folder} is mounted read-only", f"mount -o remount,rw {folder}")
    yield _check_space(folder, disk)


def _check_space(folder: Path, disk: Disk) -> Finding:
    show = f"du -xh --max-depth=2 {quote(str(folder))}"
    text = f"{disk.free // MIB:,} MiB are free at {folder}"
    if disk.free < RESERVE_BYTES:
        return fail("space", f"{text}: less than {RESERVE_BYTES // MIB} MiB, nothing commits", show)
    if disk.inodes is not None and disk.inodes < FEW_INODES:
        return warn("space", f"{disk.inodes} more files can be made at {folder} (inodes)", show)
    if disk.free < GIB:
        return warn("space", f"{text}: a log and what is staged may fill that", show)
    return ok("space", text)


def check_access(folder: Path, user: int) -> Iterator[Finding]:
    """Yield whether this user can use a data folder, and others cannot."""
    if not _is_there(folder):
        above = nearest_folder(folder)
        if os.access(above, os.W_OK | os.X_OK):
            yield ok("folder", f"{folder} does not exist yet: `fairlead up` makes it")
        else:
            mend = f"install -d -m 700 -o {user} {quote(str(folder))}"
            yield fail("folder", f"{folder} cannot be made: {above} is not writable here", mend)
        return
    if not folder.is_dir():
        place = quote(str(folder))
        yield fail("folder", f"{folder} is a file, and no folder", f"mv {place} {place}.old")
        return
    if not os.access(folder, os.R_OK | os.W_OK | os.X_OK):
        mend = f"chown -R {user} {quote(str(folder))}"
        yield fail("folder", f"{folder} cannot be read and written by this user ({user})", mend)
        return
    yield from _check_modes(folder, user)
    yield from check_key(folder)


def _check_modes(folder: Path, user: int) -> Iterator[Finding]:
    is_well = True
    for each in (folder, *(folder / name for name in ("run", "groups", "logs"))):
        with suppress(OSError):
            status = each.stat()
            if mode := status.st_mode & OTHERS:
                is_well = False
                text = (
                    f"{each} is open to other users (mode …{mode:02o}): it holds logs and the key"
                )
                yield warn("folder", text, f"chmod 700 {quote(str(each))}")
            if user and status.st_uid != user:
                is_well = False
                text = f"{each} belongs to user {status.st_uid}, and this is user {user}"
                yield warn("folder", text, f"chown -R {user} {quote(str(folder))}")
    if is_well:
        yield ok("folder", f"{folder} is its owner's alone")


def check_key(folder: Path) -> Iterator[Finding]:
    """Yield whether the cluster's key is there, right, and its owner's alone."""
    path = folder / "run" / KEY
    try:
        if not path.exists():
            check_new_key(path)
            yield ok("key", "there is no cluster's key yet: `fairlead up` makes it")
        else:
            read_key(path)
            yield ok("key", f"the cluster's key {path} is its owner's alone")
    except KeyRefusedError as error:
        text = str(error)
        is_open = "open to others" in text
        place = quote(str(path))
        mend = f"chmod 600 {place}" if is_open else f"cp BACKUP/run/{KEY} {place}"
        yield fail("key", text, mend)


def check_node(folder: Path) -> Finding:
    """Return whether a node runs on this data folder now."""
    try:
        node = RunFolder(folder).node()
    except NoNodeError:
        return ok("node", f"no node runs on {folder}")
    return ok("node", f"a node of group {node.group} runs on {folder} (pid {node.pid})")


def check_times(folder: Path, now: float) -> Iterator[Finding]:
    """Yield a finding if logs were written later than now: the clock was set back."""
    newest = max((_mtime(each) for each in folder.glob("groups/*/*/data.mdb")), default=0.0)
    if newest > now + CLOCK_SLACK_SECONDS:
        text = f"the logs were last written {newest - now:.0f} s after now: the clock is behind, or"
        yield warn("clock", f"{text} it was ahead", "timedatectl status")


def _mtime(path: Path) -> float:
    try:
        return path.stat().st_mtime
    except OSError:
        return 0.0
