"""DiskSpace on the disk: a log refuses before the disk is full, and never dies of it (LOG.md §11).

LMDB answers a full disk with an error while it writes the data file, but with SIGBUS while it
touches a page of its lock file that has no block yet. So the lock file gets all its blocks before
LMDB sees it, and the free space is looked at before every append, which takes microseconds.

Of the reserve that is kept the first three quarters are for what keeps a group alive. The last
one is for trimming, and for a batch that was weighed before the disk was as full as it is.
"""

import os
from contextlib import suppress
from pathlib import Path
from typing import Final, NamedTuple

from .errors import LowSpaceError

LMDB_LOCK_NAME: Final = "lock.mdb"
LMDB_LOCK_BYTES: Final = 136 << 10  # a slot per reader of 64 bytes, 2046 of them, and the header
RESERVE_BYTES: Final = 16 << 20
PAGE_BYTES: Final = 4 << 10
PAGES_PER_APPEND: Final = 16
"""What one append may take beside its entries: the pages on the way to them are written anew."""


def free_bytes(path: Path) -> int:
    """Return how many bytes a process without privileges may still write at `path`.

    An open log goes on where it, or a folder above it, was moved, as a rule on the same disk: what
    counts then is the nearest folder that is there.
    """
    try:
        disk = os.statvfs(path)
    except FileNotFoundError:
        if path == path.parent:
            raise
        return free_bytes(path.parent)
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


class NoSpaceError(Exception):
    """A write was refused because the disk is full; nothing was changed."""


class DiskSpace(NamedTuple):
    """The space left on a log's disk, and the reserve kept of it."""

    path: Path
    free_bytes: int
    """The free space of the disk, in bytes."""
    reserve_bytes: int = RESERVE_BYTES

    @property
    def is_low(self) -> bool:
        """Whether only records that keep a group alive may be written."""
        return self.free_bytes < self.reserve_bytes

    @property
    def is_out(self) -> bool:
        """Whether nothing may be written."""
        return self.free_bytes < self.reserve_bytes // 4

    @property
    def why(self) -> str:
        """The error of the full disk, and its remedy; the same however much is left."""
        least = self.reserve_bytes >> 20
        return (
            f"the disk of {self.path} is full but for its reserve of {least} MiB: free space"
            " there, and all goes on by itself"
        )

    def refusal(self) -> str:
        """Return why a command is refused, with how much is free at this moment."""
        return f"nothing was changed: {self.why} ({self.free_bytes} bytes are free)"


def disk_space_at(path: Path, reserve_bytes: int = RESERVE_BYTES) -> DiskSpace:
    """Return the free space on the disk of a path."""
    return DiskSpace(path, free_bytes(path), reserve_bytes)


def require_space(room: DiskSpace, entries: int, frames: int, *, into_reserve: bool) -> None:
    """Raise `LowSpaceError` unless an append of so many entries and bytes leaves the reserve.

    With `into_reserve` it may take all of that: its caller stops deciding in time (see
    `DiskSpace.is_out`), and could not take back what is decided.
    """
    size = frames + (entries + PAGES_PER_APPEND) * PAGE_BYTES
    least = 0 if into_reserve else room.reserve_bytes
    if room.reserve_bytes and room.free_bytes < least + size:
        raise LowSpaceError(
            f"{room.free_bytes} bytes are free at {room.path}, {least} are kept in reserve, and"
            f" {entries} entries take {size}: nothing was written, all entries are intact; free"
            " space or trim the log, then append again"
        )
