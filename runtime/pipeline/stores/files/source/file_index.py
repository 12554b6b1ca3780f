"""An index of the input files of a folder, shared by all tasks that read it.

A folder's modification time shows that names were added or removed, so a refresh costs one `stat`
for each folder, and a listing of those that changed. A write to an existing file does not change
the folder's time: so all files are checked regularly, at a cost of at most 0.1 % of a core.
"""

import os
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from threading import Lock
from typing import Final, NamedTuple
from weakref import WeakMethod

from ....spi.context import Context
from .arrivals import Arrivals, has_own_times, is_open_for_writing, unchanged_s
from .listing import Entries, Skip, SourceFile, read_folder, stat_file

_REST: Final = 1_000
"""The pause after a check of all files, as a multiple of its duration."""

_OPEN_LONG_S: Final = 10.0
_GROWS_LONG_S: Final = 60.0
"""How long a file may be open for writing without a change, or may change, before a remark: writing
a large file takes a while."""

_RACY_NS: Final = 50_000_000
_COARSE_NS: Final = 3_000_000_000
"""How long after a folder's modification time another change may get the same time; the second is
for file systems with times in whole seconds."""


class NewFiles(NamedTuple):
    """The files that changed since a version; None: the file was removed.

    `is_all`: `files` is the complete list, and other files were removed.
    """

    version: int
    files: Mapping[str, SourceFile | None]
    is_all: bool


@dataclass(slots=True)
class _Folder:
    stamp: tuple[int, int]
    """Its inode and its modification time, in ns, when it was read."""
    read_ns: int
    """The time of the read, by the wall clock."""
    entries: Entries

    def is_unchanged(self, stamp: tuple[int, int]) -> bool:
        """Tell by the current stamp whether no name was added or removed."""
        _, changed_ns = stamp
        window = _RACY_NS if changed_ns % 1_000_000_000 else _COARSE_NS
        return self.stamp == stamp and self.read_ns - changed_ns > window


class FileIndex:
    """The files under one root that match a glob; thread-safe."""

    def __init__(
        self,
        root: Path,
        glob: str,
        arrivals: Arrivals | None = None,
        *,
        is_confined: bool = False,
    ) -> None:
        """`is_confined`: files with a second name are skipped."""
        self._root, self._glob = root, glob
        self._is_confined = is_confined
        self._arrivals = arrivals or Arrivals()
        self._watches: dict[str, int] = {}
        """The watch descriptors by the folder's path; the root's path is empty."""
        self._lock = Lock()
        """Guards the fields below."""
        self._folders: dict[str, _Folder] = {}
        """All folders by path; the root's path is empty."""
        self._files: dict[str, SourceFile] = {}
        """All files by path."""
        self._log: list[str] = []
        """The paths that were added, removed or changed, in order, from version `_base` on."""
        self._base = 0
        """The version at which the log of changes begins."""
        self._all_at = 0.0
        """The monotonic time of the next check of all files."""
        self._wakes: list[WeakMethod[Callable[[], None]]] = []
        """The methods to call when a file is moved in."""
        self.skipped: Mapping[str, Skip] = {}
        """The paths that look like input but are skipped."""

    def wake_on_arrival(self, wake: Callable[[], None]) -> None:
        """Call a method when a file is moved in, as long as the method's object lives."""
        self._wakes = [*(each for each in self._wakes if each() is not None), WeakMethod(wake)]

    def wake(self) -> None:
        """Call the registered methods."""
        for wake in filter(None, [each() for each in self._wakes]):
            wake()

    def refresh(self) -> None:
        """Update the index; raises `NotReady` without a root, `OSError` if a folder is closed."""
        self._arrivals.read_events()
        with self._lock:
            is_due = time.monotonic() >= self._all_at
            begun = time.thread_time()
            self._look(everything=is_due)
            if is_due:
                self._all_at = time.monotonic() + _REST * (time.thread_time() - begun)

    def is_empty(self) -> bool:
        """Return whether the last refresh found neither a file nor a path that is skipped."""
        with self._lock:
            is_empty = not any(each.entries.empty for each in self._folders.values())
            return is_empty and not self._files and not self.skipped

    def was_moved_in(self, path: str) -> bool:
        """Return whether a file was moved in, and so is complete."""
        folder, slash, name = path.rpartition("/")
        return self._arrivals.was_moved_in(self._watches.get(folder + slash, -1), name)

    def since(self, version: int) -> NewFiles:
        """Return the changes since a version; 0: all files."""
        with self._lock:
            now = self._base + len(self._log)
            if version < self._base or version == 0:
                return NewFiles(now, dict(self._files), is_all=True)
            paths = self._log[version - self._base :]
            return NewFiles(now, {path: self._files.get(path) for path in paths}, is_all=False)

    def _look(self, *, everything: bool) -> None:
        listed: dict[str, _Folder] = {}
        waiting = [""]
        while waiting:
            path = waiting.pop()
            try:
                folder = self._folder(path, everything=everything)
            except (FileNotFoundError, NotADirectoryError):
                continue  # removed meanwhile
            # At once: if another folder cannot be read, this one need not be read again.
            listed[path] = self._folders[path] = folder
            waiting.extend(folder.entries.folders)
        for path in self._folders.keys() - listed.keys():
            self._note(self._folders.pop(path).entries.files, {})
            self._watches.pop(path, None)
        self.skipped = {
            path: why for each in listed.values() for path, why in each.entries.skipped.items()
        }
        if len(self._log) > 1_000 + 2 * len(self._files):
            self._base += len(self._log)
            self._log.clear()

    def _folder(self, path: str, *, everything: bool) -> _Folder:
        """Return a folder, read again if it has changed; record the changes."""
        indexed = self._folders.get(path)
        read_ns = time.time_ns()
        stamp = self._stamp(path)
        if indexed is None or everything or not indexed.is_unchanged(stamp):
            before = indexed.entries.files if indexed else {}
            self._watches[path] = watch = self._arrivals.watch(self._root / path)
            self._arrivals.wake_on_arrival(watch, self.wake)
            entries = read_folder(
                self._root,
                path,
                self._glob,
                None if everything else before,
                is_confined=self._is_confined,
            )
            indexed = _Folder(stamp, read_ns, entries)
            self._note(before, entries.files)
        self._fill(indexed.entries)
        return indexed

    def _stamp(self, path: str) -> tuple[int, int]:
        try:
            # The most of what waiting for files costs: a `Path` takes three times as long.
            status = os.stat(f"{self._root}/{path}", follow_symlinks=not path)  # noqa: PTH116
        except PermissionError:
            return (0, 0)  # reading the folder reports the error
        except (FileNotFoundError, NotADirectoryError):
            if path:
                raise
            return (0, 0)
        return (status.st_ino, status.st_mtime_ns)

    def _fill(self, entries: Entries) -> None:
        """Add files that were empty and now have content."""
        seen = [
            stat_file(self._root, path, is_confined=self._is_confined) for path in entries.empty
        ]
        found = [each for each in seen if each and each.size]
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


def shared_index(root: Path, glob: str, context: Context) -> FileIndex:
    """Return the index of a folder that all tasks of this process share."""
    arrivals = context.shared.get(Arrivals, Arrivals)
    is_confined = bool(context.reach.paths)
    return context.shared.get(
        (FileIndex, root, glob), lambda: FileIndex(root, glob, arrivals, is_confined=is_confined)
    )


class QuietPeriod:
    """Decides which unread files are complete, so that they may be read."""

    def __init__(self, root: Path, min_age_ms: int, was_moved_in: Callable[[str], bool]) -> None:
        self._root = root
        self._min_age_s = min_age_ms / 1000
        self._was_moved_in = was_moved_in
        self._seen: dict[str, tuple[SourceFile, float]] = {}
        """Unread files by path, with the monotonic time of their last change."""
        self._report_at: dict[str, float] = {}
        """The files that are being written, or open for writing, and when to report that."""

    def look(self, unread: Collection[SourceFile]) -> tuple[list[SourceFile], list[SourceFile]]:
        """Return the present state of unread files: of all, and of those that are complete.

        Its modification time tells nothing of a file's age: users set it. Changes are noticed from
        the first look on, those before it only on local file systems.
        """
        if not self._min_age_s:
            return list(unread), list(unread)
        now, before = time.monotonic(), self._seen
        self._seen = {}

        @cache
        def is_timed(folder: str) -> bool:
            return has_own_times(self._root / folder)

        there = {each.path for each in unread}
        self._report_at = {path: due for path, due in self._report_at.items() if path in there}
        for each in unread:
            state = stat_file(self._root, each.path)
            if state is None or not state.size:
                continue
            whole = now - self._min_age_s if self._was_moved_in(each.path) else now
            earlier, since = before.get(each.path) or (state, now - self._age_s(state, is_timed))
            self._seen[each.path] = (state, min(since, whole) if earlier == state else now)
            if earlier != state:
                self._report_at.setdefault(each.path, now + _GROWS_LONG_S)
        aged = now - self._min_age_s
        every = [state for state, _ in self._seen.values()]
        return every, [state for state, since in self._seen.values() if since <= aged]

    def _age_s(self, found: SourceFile, is_timed: Callable[[str], bool]) -> float:
        """Return for how long a file is known to be unchanged, at most the minimum age."""
        folder, _, _ = found.path.rpartition("/")
        return min(self._min_age_s, unchanged_s(found.changed_ns)) if is_timed(folder) else 0.0

    def is_complete(self, planned: SourceFile, present: SourceFile) -> bool:
        """Return whether a planned file is still complete in its present state."""
        if not self._min_age_s:
            return True
        if present != planned:
            return False
        if is_open_for_writing(self._root / present.path):
            due = time.monotonic() + _OPEN_LONG_S
            self._report_at[present.path] = min(due, self._report_at.get(present.path, due))
            return False
        self._report_at.pop(present.path, None)
        return True

    @property
    def incomplete(self) -> Sequence[str]:
        """The files that have been written to, or open for writing, for a long time."""
        now = time.monotonic()
        return [path for path, due in self._report_at.items() if due <= now]
