"""A log's files, handled as files: data file, mark, and copies of them (LOG.md §5, §12).

LMDB trusts its data file: it dies by SIGBUS on one that was cut short and by SIGABRT on a bad
page. The functions here only read that file, so they may be run on any bytes.

LMDB keeps no checksum of its root pages either: a few flipped bits, or an old copy put in the
place of the data file, make it show an older log that is sound in itself. So the mark says, outside
of it, how far a log was acknowledged. It is written after every commit, without a flush of its
own, so it is never ahead of a log that kept its word: a log that ends before its mark has lost
what was acknowledged.
"""

import os
import shutil
import struct
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path
from typing import Final, NamedTuple, cast
from zlib import crc32

from lmdb import verify

from .errors import BackupError, CorruptLogError
from .frame import CHAIN_BYTES, FIRST_CHAIN, LogCommit

DATA_NAME: Final = "data.mdb"
PAGE_BYTES_MIN: Final = 512
PAGE_BYTES_MAX: Final = 64 << 10

# A meta page: its header, magic, version, two words, page size and 92 bytes more of the two root
# databases, then the last page's number and the transaction's.
_META: Final = struct.Struct("=16xII16xI92xQQ")
_MAGIC: Final = 0xBEEFC0DE
_HEAD: Final = struct.Struct("=Q2xHI")  # page number, flags, pages of an overflow extent
_OVERFLOW: Final = 0x04

MARK_NAME: Final = "end.mark"
_FIELDS = struct.Struct(f">Q{CHAIN_BYTES}s")
_CHECKSUM = struct.Struct(">I")


def find_problems(path: Path) -> list[str]:
    """Return the flaws in the pages of the log at `path`; writing to it is not safe then."""
    found: Iterable[object]
    try:
        found = cast("list[object]", verify.verify(str(path), subdir=True))  # type: ignore[no-untyped-call]
    except (verify.VerifyError, OSError, ValueError, struct.error) as error:
        found = [error]
    return [str(problem) for problem in found]


def data_bytes(path: Path) -> int:
    """Return the size of the data file, 0 if there is none."""
    try:
        return (path / DATA_NAME).stat().st_size
    except OSError:
        return 0


def check_not_cut(path: Path) -> None:
    """Raise `CorruptLogError` if the data file ends before the last page that it speaks of."""
    data = path / DATA_NAME
    size = data_bytes(path)
    if size == 0 or size >= _claimed_bytes(data):
        return
    # A last page that was taken and given back within one transaction is never written: a short
    # file may be sound, and only a walk over its pages can tell.
    found = _broken_extents(data) or find_problems(path)
    if found:
        raise CorruptLogError(
            f"{data} was cut short to {size} bytes ({found[0]}): nothing was changed; restore the"
            " newest backup and keep this file aside"
        )


def _claimed_bytes(data: Path) -> int:
    with data.open("rb") as file:
        head = file.read(PAGE_BYTES_MAX + _META.size)
    newest, claimed = -1, 0
    for start in (0, _page_bytes(head)):
        if len(head) < start + _META.size:
            continue
        magic, _, page_bytes, last_page, transaction = _META.unpack_from(head, start)
        if magic == _MAGIC and transaction > newest:
            newest, claimed = transaction, (last_page + 1) * page_bytes
    return claimed


def _broken_extents(data: Path) -> list[str]:
    """Return the values of several pages that begin in the file and end behind it.

    They are written in one piece, so one such proves a cut; `lmdb.verify` sees first pages only.
    """
    with data.open("rb") as file:
        page_bytes = _page_bytes(file.read(_META.size))
        pages = data.stat().st_size // page_bytes
        for page in range(pages - 1, 1, -1):
            file.seek(page * page_bytes)
            number, flags, length = _HEAD.unpack(file.read(_HEAD.size))
            if number == page and flags == _OVERFLOW and page + length > pages:
                return [f"the {length} pages from {page} on go beyond its end"]
    return []


def _page_bytes(head: bytes) -> int:
    if len(head) < _META.size:
        return PAGE_BYTES_MAX
    page_bytes = int(_META.unpack_from(head)[2])
    return page_bytes if PAGE_BYTES_MIN <= page_bytes <= PAGE_BYTES_MAX else 4096


class Mark(NamedTuple):
    """The end of a log and the chain of its last commit."""

    end: int
    chain: bytes


def mark_of(commit: LogCommit | None) -> Mark:
    """Return the end and chain of a log by its newest commit."""
    return Mark(0, FIRST_CHAIN) if commit is None else Mark(commit.end, commit.chain)


def read_mark(path: Path) -> Mark | None:
    """Return the mark of the log at `path`; None if there is none, or a torn one."""
    try:
        packed = (path / MARK_NAME).read_bytes()
    except OSError:
        return None
    fields, checksum = packed[: _FIELDS.size], packed[_FIELDS.size :]
    if len(fields) != _FIELDS.size or checksum != _CHECKSUM.pack(crc32(fields)):
        return None
    return Mark(*_FIELDS.unpack(fields))


def check_mark(path: Path, mark: Mark | None, log: Mark) -> None:
    """Raise `CorruptLogError` if the log ends before its mark, or differently."""
    if mark is None or mark.end < log.end or mark == log:
        return
    raise CorruptLogError(
        f"{path} was acknowledged up to offset {mark.end}, but ends at {log.end}"
        f"{' with another history' if mark.end == log.end else ''}: its data file is damaged or"
        f" an older one. Restore the newest backup; to go on with this file as it is and lose the"
        f" rest, remove {MARK_NAME}"
    )


class MarkWriter:
    """The open mark of one log."""

    def __init__(self, path: Path) -> None:
        self._descriptor = os.open(path / MARK_NAME, os.O_RDWR | os.O_CREAT, 0o600)

    def write(self, mark: Mark) -> None:
        """Write the mark, unflushed; it may fail, for one that lags only proves less."""
        fields = _FIELDS.pack(*mark)
        with suppress(OSError):
            os.pwrite(self._descriptor, fields + _CHECKSUM.pack(crc32(fields)), 0)

    def close(self) -> None:
        """Release the file."""
        os.close(self._descriptor)


def write_backup(source: Path, target: Path, copy: Callable[[Path], None]) -> None:
    """Write the log's data file by `copy` into a new directory, and make it the backup `target`.

    The backup is a log of its own: to restore it, put it in the place of the log. Raises
    `BackupError`, and leaves nothing behind, if `target` exists, the disk is full or the copy is
    not sound.
    """
    if target.exists():
        raise BackupError(f"{target} exists already; a backup never overwrites, choose a new name")
    part = target.with_name(f".{target.name}.part")
    try:
        make_directory(target.parent, mode=0o777)
        shutil.rmtree(part, ignore_errors=True)
        part.mkdir(mode=0o700)
        copy(part)
        if found := find_problems(part):
            raise BackupError(f"the copy of {source} is not sound: {found[0]}; check the log")
        sync_path(part / DATA_NAME)
        sync_path(part)
        part.rename(target)
        sync_path(target.parent)
    except OSError as error:
        raise BackupError(
            f"no backup at {target}: {error} (the log has {data_bytes(source)} bytes); the log is"
            " untouched"
        ) from error
    finally:
        shutil.rmtree(part, ignore_errors=True)


def make_directory(path: Path, mode: int = 0o700) -> None:
    """Make a directory and those above it, so that they outlive a power cut."""
    if path.is_dir():
        return
    make_directory(path.parent, mode)
    path.mkdir(mode, exist_ok=True)
    sync_path(path.parent)


def sync_path(path: Path) -> None:
    """Flush a file or a directory to the disk; a new file's name is only safe with the latter."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    except OSError as error:
        error.filename = str(path)
        raise
    finally:
        os.close(descriptor)
