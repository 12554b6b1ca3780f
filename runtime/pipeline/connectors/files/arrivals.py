"""When a file is complete, so that it may be read: nobody says so, and it is read only once.

    it was moved in as a whole         the kernel tells so: it is, at once
    it has stayed as it is for long    it is believed to be, by this process's own clock
    a process has it open for writing  it is not, however long it has stayed as it is

The last is known of files of this worker's own user, or for a superuser, on file systems of this
machine. Of moves, inotify(7) tells what happens on this machine while it is asked, nothing else:
not what other hosts do on a network file system, nor what came before. So whatever it cannot do
(there is no room for another watch, events were lost) costs time and nothing else.
"""

import ctypes
import fcntl
import os
import signal
import struct
from contextlib import suppress
from pathlib import Path
from threading import Lock
from typing import Final

_MODIFY: Final = 0x2
_MOVED_FROM: Final = 0x40
_MOVED_TO: Final = 0x80
_CREATE: Final = 0x100
_DELETE: Final = 0x200
_OVERFLOW: Final = 0x4000
_ONLY_FOLDERS: Final = 0x0100_0000
_ASKED: Final = _MODIFY | _MOVED_FROM | _MOVED_TO | _CREATE | _DELETE
_EVENT: Final = struct.Struct("iIII")
"""A watch, a mask, what ties two halves of a move together, and how long the name is."""

_MOST: Final = 100_000
"""How many files are remembered at most, the latest ones."""

_SET_SIGNAL: Final = 10
"""fcntl's F_SETSIG, for which Python has no name."""


class Arrivals:
    """What was moved into folders of this process's choice; for any thread."""

    def __init__(self) -> None:
        self._libc = ctypes.CDLL(None)
        self._inotify = int(self._libc.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC))
        """Where the kernel tells it; -1: it does not."""
        self._lock = Lock()
        """Guards what follows."""
        self._whole: dict[tuple[int, str], None] = {}
        """What was moved in and not touched since, by watch and name, in that order."""

    def __del__(self) -> None:
        if self._inotify >= 0:
            os.close(self._inotify)

    def watch(self, folder: Path) -> int:
        """Begin to listen, unless that was done; return what stands for the folder, -1: nothing."""
        if self._inotify < 0:
            return -1
        path = os.fsencode(folder)
        return int(self._libc.inotify_add_watch(self._inotify, path, _ASKED | _ONLY_FOLDERS))

    def listen(self) -> None:
        """Take up all that the kernel has told since the last time."""
        with self._lock, suppress(BlockingIOError):
            while self._inotify >= 0:
                self._take_up(os.read(self._inotify, 1 << 16))

    def is_whole(self, watch: int, name: str) -> bool:
        """Tell whether a file is known to have been moved in, and not to be written to since."""
        with self._lock:
            return (watch, name) in self._whole

    def _take_up(self, events: bytes) -> None:
        at = 0
        while at < len(events):
            watch, mask, _, length = _EVENT.unpack_from(events, at)
            at += _EVENT.size
            name = os.fsdecode(events[at : at + length].rstrip(b"\0"))
            at += length
            self._whole.pop((watch, name), None)
            if mask & _MOVED_TO:
                self._whole[watch, name] = None
            if mask & _OVERFLOW:  # nobody knows what was written to meanwhile
                self._whole.clear()
        while len(self._whole) > _MOST:
            del self._whole[next(iter(self._whole))]


def is_written_to(file: Path) -> bool:
    """Tell whether a process of this machine has a file open for writing; if known, else False.

    The kernel grants a lease for reading on nothing else (fcntl(2)). Should somebody begin to write
    in that very moment, he waits until it is given back, and we are told by a signal: one that
    does nothing.
    """
    try:
        descriptor = os.open(file, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return False  # reading it will say so
    try:
        fcntl.fcntl(descriptor, _SET_SIGNAL, signal.SIGURG)
        fcntl.fcntl(descriptor, fcntl.F_SETLEASE, fcntl.F_RDLCK)
    except BlockingIOError:
        return True
    except OSError:
        return False  # somebody else's file, or a file system without leases
    finally:
        os.close(descriptor)
    return False
