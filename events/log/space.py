"""Room on the disk: a log refuses before the disk is full, and never dies of it.

LMDB answers a full disk with an error while it writes the data file, but with SIGBUS while it
touches a page of its lock file that has no block yet. So the lock file gets all its blocks before
LMDB sees it, and appends are refused while the reserve is still there for trimming.
"""

import os
from contextlib import suppress
from pathlib import Path
from typing import Final

from .errors import LowSpaceError

LMDB_LOCK_NAME: Final = "lock.mdb"
LMDB_LOCK_BYTES: Final = 40 << 10  # a slot per reader of 64 bytes, 510 of them, and the header
RESERVE_BYTES: Final = 16 << 20
COMMITS_PER_LOOK: Final = 32
BYTES_PER_LOOK: Final = 1 << 20


def free_bytes(path: Path) -> int:
    """Return how many bytes a process without privileges may still write at `path`."""
    disk = os.statvfs(path)
    return disk.f_bavail * disk.f_frsize


def allocate_lock_file(path: Path) -> None:
    """Make LMDB's lock file with all its blocks, unless it is there.

    One that is there is not even opened: closing it would drop the locks that this process
    holds on it. Raises `LowSpaceError` if there is no room.
    """
    file = path / LMDB_LOCK_NAME
    try:
        descriptor = os.open(file, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError:
        return
    try:
        os.posix_fallocate(descriptor, 0, LMDB_LOCK_BYTES)
    except OSError as error:
        with suppress(OSError):
            file.unlink()
        raise LowSpaceError(
            f"no room for {file} ({error.strerror}): the log itself is intact; free space and"
            " open it again"
        ) from error
    finally:
        os.close(descriptor)


class SpaceWatch:
    """Looks at the free space now and then, and at every append once it is low."""

    def __init__(self, path: Path, reserve_bytes: int) -> None:
        self._path = path
        self._reserve_bytes = reserve_bytes
        self._commits_left = 0
        self._bytes_left = 0

    def require(self, size: int) -> None:
        """Raise `LowSpaceError` if `size` more bytes would eat into the reserve."""
        self._commits_left -= 1
        self._bytes_left -= size
        if self._commits_left >= 0 and self._bytes_left >= 0:
            return
        free = free_bytes(self._path)
        if free < self._reserve_bytes + size:
            raise LowSpaceError(
                f"{free} bytes are free at {self._path}, {self._reserve_bytes} are kept in"
                " reserve: nothing was written, all entries are intact; free space or trim the"
                " log, then append again"
            )
        self._commits_left, self._bytes_left = COMMITS_PER_LOOK, BYTES_PER_LOOK
