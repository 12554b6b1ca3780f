"""Reading of files that a config names: secrets, certificates, keys, stores.

Whoever writes a config chooses the path. So no such file may hold or fill the process that opens
it: it is opened without waiting, must be a plain file, and is read up to a maximum. On a mount
whose server is gone even that waits for ever: then the thread that reads is left behind, and the
path is not tried again until that thread has an answer, or after a while, which doubles each time.
"""

import os
import time
from concurrent.futures import Future, wait
from errno import EACCES, EFBIG, EINVAL, ETIMEDOUT
from pathlib import Path
from stat import S_ISDIR, S_ISREG
from threading import Thread
from typing import Final, NamedTuple

LARGEST: Final = 1 << 20
"""The default maximum, in bytes: a store of all public authorities has 300 KiB."""
_OPEN: Final = os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
"""A pipe without a writer, and a terminal that is away, are opened at once."""
_PIECE: Final = 1 << 16
LONGEST_S: Final = 5.0
"""How long a file system may take to answer."""
_PAUSE_S: Final = 60.0
"""How long a path is not tried again after that, at first."""


class _Left(NamedTuple):
    """A thread that was left behind: each more would be one more."""

    content: Future[bytes]
    until: float
    """The monotonic time from which its path is tried again, although it has no answer."""
    pause_s: float


_left: Final[dict[str, _Left]] = {}
"""The last thread that was left behind for a path."""


def read_plain_file(path: str | Path, most: int = LARGEST, apart_from: str = "") -> bytes:
    """Return the content of a plain file; links are followed, but not into a folder `apart_from`.

    Raises `OSError` whose `strerror` says why not, also for a pipe, a device, a folder, and more
    than `most` bytes.
    """
    if "\0" in str(path):
        raise OSError(EINVAL, "no path has a NUL", "")
    silent = OSError(ETIMEDOUT, "its file system does not answer", str(path))
    left = _left.get(str(path))
    left = None if left is None or left.content.done() else left
    if left is not None and left.until > time.monotonic():
        raise silent
    content: Future[bytes] = Future()
    Thread(
        target=_try, args=(content, path, most, apart_from), daemon=True, name="plain-file"
    ).start()
    _, waiting = wait([content], LONGEST_S)
    if waiting:
        pause_s = _PAUSE_S if left is None else 2 * left.pause_s
        _left[str(path)] = _Left(content, time.monotonic() + pause_s, pause_s)
        raise silent
    _left.pop(str(path), None)
    return content.result()


def _try(content: "Future[bytes]", path: str | Path, most: int, apart_from: str) -> None:
    try:
        content.set_result(_read_now(path, most, apart_from))
    except Exception as error:  # noqa: BLE001  # the caller's thread raises it
        content.set_exception(error)


def _read_now(path: str | Path, most: int, apart_from: str) -> bytes:
    if apart_from and Path(os.path.realpath(path)).is_relative_to(os.path.realpath(apart_from)):
        raise OSError(EACCES, "it lies in the node's own folder", str(path))
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


def flaw_in_kind(mode: int) -> str:
    """Return why something with a mode (`st_mode`) is not read; empty for a plain file."""
    if S_ISREG(mode):
        return ""
    kind = "a folder" if S_ISDIR(mode) else "a pipe, a socket or a device"
    return f"is {kind}, and only plain files are read"


def _refuse_other(path: str | Path, mode: int) -> None:
    if flaw := flaw_in_kind(mode):
        raise OSError(EINVAL, f"it {flaw}", str(path))


def _read(descriptor: int, path: str | Path, most: int) -> bytes:
    pieces: list[bytes] = []
    left = most + 1
    while left and (piece := os.read(descriptor, min(left, _PIECE))):
        pieces.append(piece)
        left -= len(piece)
    if not left:
        raise OSError(EFBIG, f"it has more than {most:,} bytes", str(path))
    return b"".join(pieces)
