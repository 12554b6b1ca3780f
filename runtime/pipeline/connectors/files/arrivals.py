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
import select
import signal
import struct
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from threading import Lock, Thread
from typing import Final
from weakref import WeakMethod, ref

_MODIFY: Final = 0x2
_MOVED_FROM: Final = 0x40
_MOVED_TO: Final = 0x80
_CREATE: Final = 0x100
_DELETE: Final = 0x200
_OVERFLOW: Final = 0x4000
_IGNORED: Final = 0x8000
_ONLY_FOLDERS: Final = 0x0100_0000
_ASKED: Final = _MODIFY | _MOVED_FROM | _MOVED_TO | _CREATE | _DELETE
_EVENT: Final = struct.Struct("iIII")
"""A watch, a mask, what ties two halves of a move together, and how long the name is."""

_MOST: Final = 100_000
"""How many files are remembered at most, the latest ones."""

_REST_MS: Final = 20
"""How long the kernel is left alone after it told something: each write to a file is told."""

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
        self._wakes: dict[int, list[WeakMethod[Callable[[], None]]]] = {}
        """Whom to tell that something was moved in, by watch."""
        self._end = os.eventfd(0, os.EFD_CLOEXEC)
        """What ends the thread that waits for the kernel."""
        if self._inotify >= 0:
            args = (ref(self), self._inotify, self._end)
            Thread(target=_tell_of_moves, args=args, name="arrivals", daemon=True).start()

    def __del__(self) -> None:
        os.eventfd_write(self._end, 1)
        if self._inotify < 0:
            os.close(self._end)

    def tell(self, watch: int, wake: Callable[[], None]) -> None:
        """Call a method from now on, for as long as its object lives, when a file is moved in."""
        with self._lock:
            known = [each for each in self._wakes.get(watch, []) if each() is not None]
            if WeakMethod(wake) not in known:
                self._wakes[watch] = [*known, WeakMethod(wake)]

    def watch(self, folder: Path) -> int:
        """Begin to listen, unless that was done; return what stands for the folder, -1: nothing."""
        if self._inotify < 0:
            return -1
        path = os.fsencode(folder)
        return int(self._libc.inotify_add_watch(self._inotify, path, _ASKED | _ONLY_FOLDERS))

    def listen(self) -> None:
        """Take up all that the kernel has told since the last time, and wake who waits for it."""
        moved: set[int] = set()
        with self._lock:
            with suppress(BlockingIOError):
                while self._inotify >= 0:
                    moved |= self._take_up(os.read(self._inotify, 1 << 16))
            wakes = [wake() for watch in moved for wake in self._wakes.get(watch, [])]
        for wake in filter(None, wakes):
            wake()

    def is_whole(self, watch: int, name: str) -> bool:
        """Tell whether a file is known to have been moved in, and not to be written to since."""
        with self._lock:
            return (watch, name) in self._whole

    def _take_up(self, events: bytes) -> set[int]:
        """Take up what the kernel tells; return the watches that something was moved in under."""
        moved: set[int] = set()
        at = 0
        while at < len(events):
            watch, mask, _, length = _EVENT.unpack_from(events, at)
            at += _EVENT.size
            name = os.fsdecode(events[at : at + length].rstrip(b"\0"))
            at += length
            self._whole.pop((watch, name), None)
            if mask & _MOVED_TO:
                self._whole[watch, name] = None
                moved.add(watch)
            if mask & _IGNORED:  # the folder is gone
                self._wakes.pop(watch, None)
            if mask & _OVERFLOW:  # nobody knows what was written to meanwhile
                self._whole.clear()
        while len(self._whole) > _MOST:
            del self._whole[next(iter(self._whole))]
        return moved


def _tell_of_moves(arrivals: "ref[Arrivals]", inotify: int, end: int) -> None:
    """Have moves taken up as soon as the kernel tells of them, until nobody asks any more."""
    kernel = select.poll()
    kernel.register(inotify, select.POLLIN)
    kernel.register(end, select.POLLIN)
    asked = select.poll()
    asked.register(end, select.POLLIN)
    while end not in dict(kernel.poll()) and (found := arrivals()) is not None:
        found.listen()
        del found
        asked.poll(_REST_MS)
    os.close(inotify)
    os.close(end)


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
