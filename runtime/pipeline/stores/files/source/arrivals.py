"""Detects complete input files with inotify and leases, since each file is read only once.

    it was moved into the folder       complete at once (inotify)
    it has not changed for a while     taken for complete: by its ctime on a local file system,
                                       elsewhere by this process's own clock
    a process has it open for writing  not complete, however long it has not changed

The last check works for files of this worker's own user, or for a superuser, on local file systems.
inotify(7) reports only moves on this machine after the watch was added: none by other hosts on a
network file system. If it fails (no more watches, lost events), files are only read later.
"""

import ctypes
import fcntl
import os
import select
import signal
import struct
import time
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
"""struct inotify_event: watch, mask, cookie, length of the name."""

_MOST: Final = 100_000
"""How many moved files are remembered, the latest ones."""

_REST_MS: Final = 20
"""The pause between two reads of events: each write to a file is an event."""

_LIBC: Final = ctypes.CDLL(None)
_LOCAL: Final = frozenset(
    {0xEF53, 0x5846_5342, 0x9123_683E, 0x2FC1_2FC1, 0xF2F5_2010, 0x0102_1994, 0x794C_7630}
)
"""statfs(2)'s types of ext2 to ext4, XFS, Btrfs, ZFS, F2FS, tmpfs and overlayfs."""
_STATFS_BYTES: Final = 512
"""More than a `struct statfs` takes; it begins with the type, a C long."""

_SET_SIGNAL: Final = 10
"""fcntl's F_SETSIG, for which Python has no name."""


class Arrivals:
    """Remembers files that were moved into the watched folders; thread-safe."""

    def __init__(self) -> None:
        self._inotify = int(_LIBC.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC))
        """The inotify descriptor; -1: inotify is not available."""
        self._lock = Lock()
        """Guards the fields below."""
        self._moved_in: dict[tuple[int, str], None] = {}
        """The files that were moved in and not changed since, by watch and name, oldest first."""
        self._wakes: dict[int, list[WeakMethod[Callable[[], None]]]] = {}
        """The methods to call when a file is moved in, by watch."""
        self._end = os.eventfd(0, os.EFD_CLOEXEC)
        """Ends the thread that reads events."""
        if self._inotify >= 0:
            args = (ref(self), self._inotify, self._end)
            Thread(target=_follow_events, args=args, name="arrivals", daemon=True).start()

    def __del__(self) -> None:
        os.eventfd_write(self._end, 1)
        if self._inotify < 0:
            os.close(self._end)

    def wake_on_arrival(self, watch: int, wake: Callable[[], None]) -> None:
        """Call a method when a file is moved in, as long as the method's object lives."""
        with self._lock:
            known = [each for each in self._wakes.get(watch, []) if each() is not None]
            if WeakMethod(wake) not in known:
                self._wakes[watch] = [*known, WeakMethod(wake)]

    def watch(self, folder: Path) -> int:
        """Watch a folder; return the watch descriptor, -1 on failure. It is idempotent."""
        if self._inotify < 0:
            return -1
        path = os.fsencode(folder)
        return int(_LIBC.inotify_add_watch(self._inotify, path, _ASKED | _ONLY_FOLDERS))

    def read_events(self) -> None:
        """Read all pending events, and call the methods of the folders with new files."""
        moved: set[int] = set()
        with self._lock:
            with suppress(BlockingIOError):
                while self._inotify >= 0:
                    moved |= self._apply(os.read(self._inotify, 1 << 16))
            wakes = [wake() for watch in moved for wake in self._wakes.get(watch, [])]
        for wake in filter(None, wakes):
            wake()

    def was_moved_in(self, watch: int, name: str) -> bool:
        """Return whether a file was moved in, and not changed since."""
        with self._lock:
            return (watch, name) in self._moved_in

    def _apply(self, events: bytes) -> set[int]:
        """Process events; return the watches with new files."""
        moved: set[int] = set()
        at = 0
        while at < len(events):
            watch, mask, _, length = _EVENT.unpack_from(events, at)
            at += _EVENT.size
            name = os.fsdecode(events[at : at + length].rstrip(b"\0"))
            at += length
            self._moved_in.pop((watch, name), None)
            if mask & _MOVED_TO:
                self._moved_in[watch, name] = None
                moved.add(watch)
            if mask & _IGNORED:  # the folder is gone
                self._wakes.pop(watch, None)
            if mask & _OVERFLOW:  # writes may have been lost
                self._moved_in.clear()
        while len(self._moved_in) > _MOST:
            del self._moved_in[next(iter(self._moved_in))]
        return moved


def _follow_events(arrivals: "ref[Arrivals]", inotify: int, end: int) -> None:
    """Read events as they come, until the `Arrivals` object is gone; closes both descriptors."""
    kernel = select.poll()
    kernel.register(inotify, select.POLLIN)
    kernel.register(end, select.POLLIN)
    asked = select.poll()
    asked.register(end, select.POLLIN)
    while end not in dict(kernel.poll()) and (found := arrivals()) is not None:
        found.read_events()
        del found
        asked.poll(_REST_MS)
    os.close(inotify)
    os.close(end)


def is_open_for_writing(file: Path) -> bool:
    """Return whether a process of this machine has a file open for writing; False if unknown.

    The kernel grants a read lease only on a file without writers (fcntl(2)). A process that opens
    the file for writing meanwhile is blocked until the lease is released, and this process gets a
    signal, SIGURG, which is ignored.
    """
    try:
        descriptor = os.open(file, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return False  # reading the file reports the error
    try:
        fcntl.fcntl(descriptor, _SET_SIGNAL, signal.SIGURG)
        fcntl.fcntl(descriptor, fcntl.F_SETLEASE, fcntl.F_RDLCK)
    except BlockingIOError:
        return True
    except OSError:
        return False  # a file of another user, or a file system without leases
    finally:
        os.close(descriptor)
    return False


def has_own_times(folder: Path) -> bool:
    """Return whether the ctimes of files in a folder are by this machine's clock, as on a disk."""
    status = ctypes.create_string_buffer(_STATFS_BYTES)
    if _LIBC.statfs(os.fsencode(folder), status):
        return False
    return ctypes.c_long.from_buffer(status).value in _LOCAL


def unchanged_s(changed_ns: int) -> float:
    """Return for how many seconds a file is known to be unchanged, by a ctime of this machine.

    0 for a ctime in whole seconds (ext3), which may be too early, and for one in the future: the
    clock was set back.
    """
    is_coarse = changed_ns % 1_000_000_000 == 0
    return 0.0 if is_coarse else max(0.0, (time.time_ns() - changed_ns) / 1e9)
