"""A log's LMDB environment: opened with every flush in its place, and read in short transactions.

What LMDB, the system and damaged bytes raise gets the log's own names here.
"""

import errno
import struct
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Final

import lmdb

from .errors import (
    AlreadyOpenError,
    CorruptLogError,
    DiskFullError,
    LogError,
    LogFailedError,
    LowSpaceError,
    NoLogError,
    ReadersFullError,
)
from .files import check_mark, check_not_cut, data_bytes, mark_of, read_mark
from .space import LMDB_LOCK_NAME, allocate_lock_file
from .tables import Tables, Transaction

ENGINE: Final = 0  # LMDB 0.9, the file format that every tool reads
MAP_BYTES: Final = 64 << 30  # address space, not disk; the same everywhere, so nobody has to remap
READERS_MAX: Final = 2046
FOREIGN: Final = (lmdb.Error, OSError, MemoryError, OverflowError, ValueError, struct.error)


def open_environment(
    path: Path, *, map_bytes: int, readonly: bool, is_copy: bool = False
) -> lmdb.Environment:
    """Open the environment, with every flush in its place.

    That of a copy flushes once for each commit, and not its root page: a power cut may undo the
    last commit, which is in the store.

    Raises `NoLogError` or `CorruptLogError` before LMDB touches a file that is missing, lost or cut
    short, `LowSpaceError` if there is no room, and LMDB's own errors.
    """
    mark = read_mark(path)
    if data_bytes(path) == 0:
        check_mark(path, mark, mark_of(None))
        if readonly:
            raise NoLogError(f"there is no log at {path} yet: its owner makes it; try again")
    check_not_cut(path)
    while True:
        allocate_lock_file(path)
        before = _number_of(path / LMDB_LOCK_NAME)
        env = _open(path, map_bytes, readonly=readonly, metasync=not is_copy)
        if _number_of(path / LMDB_LOCK_NAME) == before:
            break
        env.close()  # the file was made smaller meanwhile: this is the former one (`writer.py`)
    flags = env.flags()
    is_durable = flags["sync"] and (flags["metasync"] or is_copy)
    if not is_durable or flags["writemap"] or flags["map_async"]:
        env.close()
        raise LogError(f"{path} opened without its flushes: {flags}; nothing would be durable")
    return env


def _number_of(file: Path) -> int:
    """Return the inode of a file, 0 if there is none."""
    try:
        return file.stat().st_ino
    except FileNotFoundError:
        return 0


def _open(path: Path, map_bytes: int, *, readonly: bool, metasync: bool = True) -> lmdb.Environment:
    return lmdb.open(
        str(path),
        map_size=map_bytes,
        max_dbs=len(Tables._fields),
        max_readers=READERS_MAX,
        max_spare_txns=2,
        mode=0o600,
        readonly=readonly,
        create=not readonly,
        sync=True,
        metasync=metasync,
        writemap=False,
        map_async=False,
        lib_version=ENGINE,
    )


class ReadTransaction:
    """A read transaction as a context; errors inside become the log's own."""

    __slots__ = ("_env", "_path", "_txn")

    def __init__(self, env: lmdb.Environment, path: Path) -> None:
        self._env = env
        self._path = path

    def __enter__(self) -> Transaction:
        try:
            self._txn = self._env.begin()
        except lmdb.MapResizedError:
            self._env.set_mapsize(0)  # the owner has grown the map: adopt its size
            self._txn = self._env.begin()
        except lmdb.Error as error:
            raise translate_error(error, self._path) from error
        return self._txn

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._txn.abort()
        if isinstance(error, FOREIGN):
            raise translate_error(error, self._path) from error


@contextmanager
def translated_errors(path: Path) -> Generator[None, None, None]:
    """Translate errors inside into the log's own, about the log at `path`."""
    try:
        yield
    except FOREIGN as error:
        raise translate_error(error, path) from error


def translate_error(error: BaseException, path: Path) -> LogError:
    """Return the log's own error for a foreign one."""
    translated: LogError
    match error:
        case lmdb.ReadersFullError():
            translated = ReadersFullError(f"{path} has no slot for one more reader: close some")
        case lmdb.DiskError():
            translated = DiskFullError(
                f"{path}: the disk is full ({error}). Everything acknowledged is intact; exit,"
                " free space, and open the log again"
            )
        case lmdb.PanicError():
            translated = LogFailedError(
                f"{path}: a write failed before; exit and open the log again"
            )
        case lmdb.MemoryError() | MemoryError():
            translated = LogError(
                f"{path}: there is too little memory for it ({error}); the log is as before. If"
                " memory is plenty, a length in it is damaged: verify it"
            )
        case OSError():
            translated = _translate_system_error(error, path)
        case lmdb.Error() if error.code > 0 and error.code != errno.EINVAL:
            translated = LogError(f"{path} could not be used: {error}; the log is as before")
        case lmdb.Error() if "already open in this process" in str(error):
            translated = AlreadyOpenError(f"{path} is open in this process already; use that one")
        case _:
            translated = CorruptLogError(
                f"{path} is damaged, or not a log ({type(error).__name__}: {error}). Keep the"
                " files and restore the newest backup"
            )
    return translated


def _translate_system_error(error: OSError, path: Path) -> LogError:
    if error.errno == errno.ENOSPC:
        return LowSpaceError(
            f"{path}: the disk is full ({error}). The log is as before; free space and try again"
        )
    return LogError(f"{path} could not be used: {error}; the log is as before")
