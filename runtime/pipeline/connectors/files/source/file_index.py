"""The input files of a folder as they were seen last, one index for all tasks that read it.

A folder's time of change tells that names came or went, so a look costs one `stat` for each folder,
and the names of those that changed. What is written into a file that lies there already shows in
no folder's time: all files are looked at every while, as often as that costs no more than a
thousandth of a core.
"""

import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from threading import Lock
from typing import Final, NamedTuple
from weakref import WeakMethod

from ..arrivals import Arrivals, is_written_to
from .listing import Entries, Skip, SourceFile, look, read_folder

_REST: Final = 1_000
"""How many times longer than a look at all files the pause after it is."""

_OPEN_LONG_S: Final = 10.0
_GROWS_LONG_S: Final = 60.0
"""How long a file may be open for writing while it stays as it is, or change, until that is told:
a large one may take a while to be written."""

_RACY_NS: Final = 50_000_000
_COARSE_NS: Final = 3_000_000_000
"""How long after a folder's time of change another change may have the same one; the second is for
file systems that keep whole seconds."""


class News(NamedTuple):
    """What changed since a version: files as they are now, None for those that are gone.

    `is_all` says that it is everything there is, and that what is not named is gone.
    """

    version: int
    files: Mapping[str, SourceFile | None]
    is_all: bool


@dataclass(slots=True)
class _Folder:
    stamp: tuple[int, int]
    """Its inode and its time of change, in ns, when it was read."""
    read_ns: int
    """When that was, by the wall clock."""
    entries: Entries

    def is_as(self, stamp: tuple[int, int]) -> bool:
        """Tell whether nothing came or went, by its stamp now."""
        _, changed_ns = stamp
        window = _RACY_NS if changed_ns % 1_000_000_000 else _COARSE_NS
        return self.stamp == stamp and self.read_ns - changed_ns > window


class FileIndex:
    """The files under one root that a glob asks for; its methods may be called from any thread."""

    def __init__(self, root: Path, glob: str, arrivals: Arrivals | None = None) -> None:
        self._root, self._glob = root, glob
        self._arrivals = arrivals or Arrivals()
        self._watches: dict[str, int] = {}
        """What stands for a folder there, by the folder's path; the root's is empty."""
        self._lock = Lock()
        """Guards all that follows."""
        self._folders: dict[str, _Folder] = {}
        """All folders by path, the root's is empty."""
        self._files: dict[str, SourceFile] = {}
        self._log: list[str] = []
        """The paths that came, went or changed, in that order, from version `_base` on."""
        self._base = 0
        self._all_at = 0.0
        """When all files are due to be looked at, on the monotonic clock."""
        self._wakes: list[WeakMethod[Callable[[], None]]] = []
        """Whom to tell that a file was moved in."""
        self.skipped: Mapping[str, Skip] = {}
        """What looks like input and is none, by path."""

    def tell(self, wake: Callable[[], None]) -> None:
        """Call a method, for as long as its object lives, when the kernel says a file came."""
        self._wakes = [*(each for each in self._wakes if each() is not None), WeakMethod(wake)]

    def wake(self) -> None:
        """Tell all that are to be told."""
        for wake in filter(None, [each() for each in self._wakes]):
            wake()

    def refresh(self) -> None:
        """Take up what changed; raises `NotReady` without a root, `OSError` for what is closed."""
        self._arrivals.listen()
        with self._lock:
            is_due = time.monotonic() >= self._all_at
            begun = time.thread_time()
            self._look(everything=is_due)
            if is_due:
                self._all_at = time.monotonic() + _REST * (time.thread_time() - begun)

    def is_whole(self, path: str) -> bool:
        """Tell whether a file is known to have been moved in, so that nobody writes to it."""
        folder, slash, name = path.rpartition("/")
        return self._arrivals.is_whole(self._watches.get(folder + slash, -1), name)

    def since(self, version: int) -> News:
        """Return what changed since a version; 0 is the beginning."""
        with self._lock:
            now = self._base + len(self._log)
            if version < self._base or version == 0:
                return News(now, dict(self._files), is_all=True)
            paths = self._log[version - self._base :]
            return News(now, {path: self._files.get(path) for path in paths}, is_all=False)

    def _look(self, *, everything: bool) -> None:
        seen: dict[str, _Folder] = {}
        waiting = [""]
        while waiting:
            path = waiting.pop()
            try:
                folder = self._folder(path, everything=everything)
            except (FileNotFoundError, NotADirectoryError):
                continue  # removed while we were looking
            seen[path] = folder
            waiting.extend(folder.entries.folders)
        for path in self._folders.keys() - seen.keys():
            self._note(self._folders[path].entries.files, {})
            self._watches.pop(path, None)
        self._folders = seen
        self.skipped = {
            path: why for each in seen.values() for path, why in each.entries.skipped.items()
        }
        if len(self._log) > 1_000 + 2 * len(self._files):
            self._base += len(self._log)
            self._log.clear()

    def _folder(self, path: str, *, everything: bool) -> _Folder:
        """Return a folder as it is now, and take note of what changed in it."""
        known = self._folders.get(path)
        read_ns = time.time_ns()
        stamp = self._stamp(path)
        if known is None or everything or not known.is_as(stamp):
            before = known.entries.files if known else {}
            self._watches[path] = watch = self._arrivals.watch(self._root / path)
            self._arrivals.tell(watch, self.wake)
            entries = read_folder(self._root, path, self._glob, None if everything else before)
            known = _Folder(stamp, read_ns, entries)
            self._note(before, entries.files)
        self._fill(known.entries)
        return known

    def _stamp(self, path: str) -> tuple[int, int]:
        try:
            folder = self._root / path
            status = folder.lstat() if path else folder.stat()
        except (FileNotFoundError, NotADirectoryError):
            if path:
                raise
            return (0, 0)  # reading it will say so
        return (status.st_ino, status.st_mtime_ns)

    def _fill(self, entries: Entries) -> None:
        """Look whether what was empty has content by now."""
        found = [each for path in entries.empty if (each := look(self._root, path)) and each.size]
        for each in found:
            entries.empty.discard(each.path)
            entries.files[each.path] = self._files[each.path] = each
            self._log.append(each.path)

    def _note(self, before: Mapping[str, SourceFile], now: Mapping[str, SourceFile]) -> None:
        for path in before.keys() - now.keys():
            self._files.pop(path, None)
            self._log.append(path)
        for path, found in now.items():
            if before.get(path) != found:
                self._files[path] = found
                self._log.append(path)


class Ripeness:
    """Which unread files under a root may be read; `is_whole` tells which were moved in."""

    def __init__(self, root: Path, min_age_ms: int, is_whole: Callable[[str], bool]) -> None:
        self._root = root
        self._min_age_s = min_age_ms / 1000
        self._is_whole = is_whole
        self._seen: dict[str, tuple[SourceFile, float]] = {}
        """Unread files by path, and since when each is as it is, on the monotonic clock."""
        self._told_at: dict[str, float] = {}
        """Those that somebody writes to, or has open for that, and when that is to be told."""

    def look(self, unread: Collection[SourceFile]) -> tuple[list[SourceFile], list[SourceFile]]:
        """Return unread files as they are now: all of them, and those that are ripe.

        By this process's own clock: what a file's time is worth hangs on whose clock made it,
        and on how finely the file system keeps it.
        """
        if not self._min_age_s:
            return list(unread), list(unread)
        now, before = time.monotonic(), self._seen
        self._seen = {}
        there = {each.path for each in unread}
        self._told_at = {path: due for path, due in self._told_at.items() if path in there}
        for each in unread:
            found = look(self._root, each.path)
            if found is None or not found.size:
                continue
            whole = now - self._min_age_s if self._is_whole(each.path) else now
            known, since = before.get(each.path, (found, whole))
            self._seen[each.path] = (found, min(since, whole) if known == found else now)
            if known != found:
                self._told_at.setdefault(each.path, now + _GROWS_LONG_S)
        aged = now - self._min_age_s
        every = [found for found, _ in self._seen.values()]
        return every, [found for found, since in self._seen.values() if since <= aged]

    def is_ripe(self, planned: SourceFile, found: SourceFile) -> bool:
        """Tell whether a file that was ripe still is, as it is found now."""
        if not self._min_age_s:
            return True
        if found != planned:
            return False
        if is_written_to(self._root / found.path):
            due = time.monotonic() + _OPEN_LONG_S
            self._told_at[found.path] = min(due, self._told_at.get(found.path, due))
            return False
        self._told_at.pop(found.path, None)
        return True

    @property
    def incomplete(self) -> Sequence[str]:
        """The files that somebody has written to, or has had open for that, for long."""
        now = time.monotonic()
        return [path for path, due in self._told_at.items() if due <= now]
