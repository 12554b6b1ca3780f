"""How far a log was acknowledged, written down outside of it.

LMDB keeps no checksum of its root pages: a few flipped bits, or an old copy put in the place of
the data file, make it show an older log that is sound in itself. The mark is written after every
commit, without a flush of its own, so it is never ahead of a log that kept its word: a log that
ends before its mark has lost what was acknowledged.
"""

import os
import struct
from contextlib import suppress
from pathlib import Path
from typing import Final, NamedTuple
from zlib import crc32

from .errors import CorruptLogError
from .frame import CHAIN_BYTES

MARK_NAME: Final = "end.mark"
_FIELDS = struct.Struct(f">Q{CHAIN_BYTES}s")
_CHECKSUM = struct.Struct(">I")


class Mark(NamedTuple):
    """The end of a log and the chain of its last commit."""

    end: int
    chain: bytes


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
        """Let go of the file."""
        os.close(self._descriptor)
