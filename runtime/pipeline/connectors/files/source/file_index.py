"""The input files of a folder as they were seen last, one index for all tasks that read it.

A folder's time of change tells that names came or went, so a look costs one `stat` for each folder,
and the names of those that changed. What is written into a file that lies there already shows in
no folder's time: all files are looked at every while, as often as that costs no more than one
percent of a core.
"""

import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from threading import Lock
from typing import Final, NamedTuple

from .listing import Entries, Skip, SourceFile, look, read_folder

_REST: Final = 100
"""How many times longer than a look at all files the pause after it is."""

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

    def __init__(self, root: Path, glob: str) -> None:
        self._root, self._glob = root, glob
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
        self.skipped: Mapping[str, Skip] = {}
        """What looks like input and is none, by path."""

    def refresh(self) -> None:
        """Take up what changed; raises `NotReady` without a root, `OSError` for what is closed."""
        with self._lock:
            is_due = time.monotonic() >= self._all_at
            begun = time.thread_time()
            self._look(everything=is_due)
            if is_due:
                self._all_at = time.monotonic() + _REST * (time.thread_time() - begun)

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
