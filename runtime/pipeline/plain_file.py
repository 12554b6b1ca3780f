"""Reading of files that a config names: secrets, certificates, keys, stores.

Whoever writes a config chooses the path. So no such file may hold or fill the process that opens
it: it is opened without waiting, must be a plain file, and is read up to a maximum.
"""

import os
from errno import EFBIG, EINVAL
from pathlib import Path
from stat import S_ISDIR, S_ISREG
from typing import Final

LARGEST: Final = 1 << 20
"""The default maximum, in bytes: a store of all public authorities has 300 KiB."""
_OPEN: Final = os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
"""A pipe without a writer, and a terminal that is away, are opened at once."""
_PIECE: Final = 1 << 16


def read_plain_file(path: str | Path, most: int = LARGEST) -> bytes:
    """Return the content of a plain file; links are followed.

    Raises `OSError` whose `strerror` says why not, also for a pipe, a device, a folder, and more
    than `most` bytes.
    """
    if "\0" in str(path):
        raise OSError(EINVAL, "no path has a NUL", "")
    _refuse_other(path, Path(path).stat().st_mode)  # to open a device may have an effect
    descriptor = os.open(path, _OPEN)
    try:
        _refuse_other(path, os.fstat(descriptor).st_mode)
        return _read(descriptor, path, most)
    finally:
        os.close(descriptor)


def flaw_in_plain_file(path: str | Path, most: int = LARGEST) -> str:
    """Return why a file cannot be read by `read_plain_file`; empty if it can."""
    try:
        read_plain_file(path, most)
    except OSError as error:
        return f"{path} cannot be read: {why_not(error)}"
    return ""


def why_not(error: OSError) -> str:
    """Return the reason in an error of `read_plain_file`, without the path."""
    return (error.strerror or str(error)).lower()


def _refuse_other(path: str | Path, mode: int) -> None:
    if not S_ISREG(mode):
        kind = "a folder" if S_ISDIR(mode) else "a pipe, a socket or a device"
        raise OSError(EINVAL, f"it is {kind}, and only plain files are read", str(path))


def _read(descriptor: int, path: str | Path, most: int) -> bytes:
    pieces: list[bytes] = []
    left = most + 1
    while left and (piece := os.read(descriptor, min(left, _PIECE))):
        pieces.append(piece)
        left -= len(piece)
    if not left:
        raise OSError(EFBIG, f"it has more than {most:,} bytes", str(path))
    return b"".join(pieces)
