"""The log's own names for what LMDB, the system and damaged bytes raise."""

import errno
import struct
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import lmdb

from .errors import (
    AlreadyOpenError,
    CorruptLogError,
    DiskFullError,
    LogError,
    LogFailedError,
    LowSpaceError,
    ReadersFullError,
)

FOREIGN: Final = (lmdb.Error, OSError, MemoryError, OverflowError, ValueError, struct.error)


@contextmanager
def naming_errors(path: Path) -> Generator[None, None, None]:
    """Raise what goes wrong inside, about the log at `path`, by the log's own names."""
    try:
        yield
    except FOREIGN as error:
        raise named(error, path) from error


def named(error: BaseException, path: Path) -> LogError:
    """Return the log's own error for a foreign one."""
    found: LogError
    match error:
        case lmdb.ReadersFullError():
            found = ReadersFullError(f"{path} has no slot for one more reader: close some")
        case lmdb.DiskError():
            found = DiskFullError(
                f"{path}: the disk is full ({error}). Everything acknowledged is intact; exit,"
                " free space, and open the log again"
            )
        case lmdb.PanicError():
            found = LogFailedError(f"{path}: a write failed before; exit and open the log again")
        case lmdb.MemoryError() | MemoryError():
            found = LogError(
                f"{path}: there is too little memory for it ({error}); the log is as before. If"
                " memory is plenty, a length in it is damaged: verify it"
            )
        case OSError():
            found = _of_the_system(error, path)
        case lmdb.Error() if error.code > 0 and error.code != errno.EINVAL:
            found = LogError(f"{path} could not be used: {error}; the log is as before")
        case lmdb.Error() if "already open in this process" in str(error):
            found = AlreadyOpenError(f"{path} is open in this process already; use that one")
        case _:
            found = CorruptLogError(
                f"{path} is damaged, or not a log ({type(error).__name__}: {error}). Keep the"
                " files and restore the newest backup"
            )
    return found


def _of_the_system(error: OSError, path: Path) -> LogError:
    if error.errno == errno.ENOSPC:
        return LowSpaceError(
            f"{path}: the disk is full ({error}). The log is as before; free space and try again"
        )
    return LogError(f"{path} could not be used: {error}; the log is as before")
