"""Directory listing: the input files in a folder, and the remarks about other files.

It runs in the worker, without Spark. Symbolic links below the folder are not followed: with them,
anyone who may write to the folder could make the worker read any file.
"""

import errno
import json
import os
import stat
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from enum import Enum
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Final, NamedTuple

from ......events.commits import Document
from ....spi.errors import BadInput, NotReady, SourceAway

_HIDDEN = (".", "_")
_BEING_COPIED = "._COPYING_"
"""The suffix of files that Hadoop is writing; Spark always ignores them."""
_LONGEST: Final = 4_000
"""The most bytes of a file's path as JSON: it is a part of the partition, which the log holds."""
_SILENT: Final = frozenset({errno.EIO, errno.ESTALE, errno.ENOTCONN, errno.ETIMEDOUT})
"""The error numbers of a file system that does not answer."""
NAMED: Final = 3
"""How many files, or columns, a remark lists."""
_MOST_SHOWN: Final = 300
"""How many characters of a path a remark has."""
REMEDY: Final = "put the missing rows into a file with another name"


class SourceFile(NamedTuple):
    """A file: its path relative to the root (with `/`), size in bytes, and modification time."""

    path: str
    size: int
    modified_ms: int
    changed_ns: int
    """The ctime, which users cannot set, unlike the modification time."""


class Skip(Enum):
    """The reason why a path that looks like input is skipped, for remarks."""

    LINK = "symbolic links are not followed: move or copy what they lead to here"
    NAME = "names are not UTF-8: rename them"
    SPECIAL = "are neither files nor folders"
    CLOSED = "folders cannot be listed by this node's user: let it read them"
    SHARED = "have another name, which may lie outside paths.allow: copy them"
    LONG = "paths are too long: shorten names, or move them up"


@dataclass(slots=True)
class Entries:
    """The entries of one folder, without those of subfolders; paths are relative to the root."""

    files: dict[str, SourceFile] = field(default_factory=dict[str, SourceFile])
    """The input files."""
    empty: set[str] = field(default_factory=set[str])
    """Empty files, which become input when they have content."""
    folders: list[str] = field(default_factory=list[str])
    """The subfolders, each with a `/` at its end."""
    skipped: dict[str, Skip] = field(default_factory=dict[str, Skip])
    """The paths that look like input but are skipped; bytes that are not UTF-8 are escaped."""

    def add(
        self, root: Path, path: str, entry: "os.DirEntry[str]", glob: str, *, is_confined: bool
    ) -> None:
        """Add one entry, by its kind."""
        if skip := _skip(root, path, entry, glob):
            self.skipped[os.fsencode(path).decode(errors="backslashreplace")] = skip
        elif entry.is_dir(follow_symlinks=False):
            self.folders.append(path + "/")
        elif matches_glob(path, glob) and (status := _status(entry)):
            found = _found(path, status)
            if is_confined and status.st_nlink > 1:
                self.skipped[path] = Skip.SHARED
            elif found.size:
                self.files[path] = found
            else:
                self.empty.add(path)


def walk(root: Path, glob: str, *, is_confined: bool = False) -> Iterator[SourceFile]:
    """Yield the input files under a root, in no order; `is_confined` as in `read_folder`.

    Raises `NotReady` without a root, `SourceAway` if a folder cannot be listed.
    """
    waiting = [""]
    while waiting:
        try:
            entries = read_folder(root, waiting.pop(), glob, is_confined=is_confined)
        except (FileNotFoundError, NotADirectoryError):
            continue  # removed meanwhile
        except OSError as error:
            raise away_of(root, error) from error
        yield from entries.files.values()
        waiting.extend(entries.folders)


def away_of(root: Path, error: OSError) -> SourceAway:
    """Return `SourceAway` for an error of the file system under a root."""
    why = (error.strerror or str(error)).lower()
    return SourceAway(f"{error.filename or root}: {why}")


@contextmanager
def asking_about(file: Path) -> Generator[None]:
    """Raise `SourceAway` for an error that says that a file's file system does not answer."""
    try:
        yield
    except (OSError, BadInput) as error:
        cause = error if isinstance(error, OSError) else error.__cause__
        if isinstance(cause, OSError) and cause.errno in _SILENT:
            raise away_of(file, cause) from cause
        raise


def read_folder(
    root: Path,
    folder: str,
    glob: str,
    checked: Mapping[str, SourceFile] | None = None,
    *,
    is_confined: bool = False,
) -> Entries:
    """List one folder; raises `NotReady` if the root does not exist, else `OSError`.

    Names that begin with a dot or an underscore, files that Hadoop is writing, and empty files are
    ignored. Links, names that are not UTF-8, paths that are too long, special files and closed
    subfolders are skipped with a remark. A glob without a slash is matched with the file's name,
    others with its relative path. Files in `checked` are not checked again. `is_confined`: a file
    with a second name (a hard link) is skipped, too.
    """
    checked = checked or {}
    listed = Entries()
    try:
        with os.scandir(root / folder) as entries:
            for entry in entries:
                path = folder + entry.name
                if path in checked and not entry.is_symlink():
                    listed.files[path] = checked[path]
                elif not (entry.name.startswith(_HIDDEN) or entry.name.endswith(_BEING_COPIED)):
                    listed.add(root, path, entry, glob, is_confined=is_confined)
    except (FileNotFoundError, NotADirectoryError):
        if folder:
            raise
        raise NotReady(f"{root} is not a folder (yet)") from None
    except PermissionError:
        if not folder:
            raise
        return Entries(skipped={folder: Skip.CLOSED})
    return listed


def stat_file(root: Path, path: str, *, is_confined: bool = False) -> SourceFile | None:
    """Return a file's present state; None if it is gone, closed, or its path now has a link.

    `is_confined`: also if it has a second name.
    The root itself may be a link, since the user chose it. Raises `SourceAway`.
    """
    at = root
    try:
        with asking_about(root / path):
            for part in path.split("/")[:-1]:
                at = at / part
                if at.is_symlink():
                    return None
            status = (root / path).lstat()
    except (FileNotFoundError, NotADirectoryError, PermissionError):
        return None
    if not stat.S_ISREG(status.st_mode) or (is_confined and status.st_nlink > 1):
        return None
    return _found(path, status)


def matches_glob(path: str, glob: str) -> bool:
    """Return whether a relative path matches a glob."""
    return fnmatchcase(path if "/" in glob else path.rpartition("/")[2], glob)


def _skip(root: Path, path: str, entry: "os.DirEntry[str]", glob: str) -> Skip | None:
    """Return why an entry is skipped although it looks like input; None: it is not skipped."""
    if entry.is_symlink():
        return Skip.LINK if matches_glob(path, glob) or _leads_to_folder(entry) else None
    is_folder = entry.is_dir(follow_symlinks=False)
    if not is_folder and not matches_glob(path, glob):
        return None
    if not _is_utf8(entry.name):
        return Skip.NAME
    if _is_too_long(f"{root}/{path}"):
        return Skip.LONG
    return None if is_folder or entry.is_file(follow_symlinks=False) else Skip.SPECIAL


def _leads_to_folder(link: "os.DirEntry[str]") -> bool:
    """Return whether a link leads to a folder; one that cannot be followed leads nowhere."""
    with suppress(OSError):
        return link.is_dir()
    return False


def _is_too_long(path: str) -> bool:
    # A character takes six bytes at most.
    return 6 * len(path) > _LONGEST < len(json.dumps(path, ensure_ascii=False).encode())


def _status(entry: "os.DirEntry[str]") -> os.stat_result | None:
    with suppress(FileNotFoundError):  # removed meanwhile
        return entry.stat(follow_symlinks=False)
    return None


def _found(path: str, status: os.stat_result) -> SourceFile:
    modified_ms = status.st_mtime_ns // 1_000_000
    return SourceFile(path, status.st_size, modified_ms, status.st_ctime_ns)


def _is_utf8(name: str) -> bool:
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True


def changed_remarks(changed: Mapping[SourceFile, Document], grown: int) -> Iterator[str]:
    """Yield the remark about files that changed; they have grown by `grown` bytes in all."""
    if changed:
        more = f": they have at least {grown} bytes more now" if grown else ""
        yield (
            f"{len(changed)} of its files changed after they were read, and are not read again "
            f"({list_some([each.path for each in changed])}){more}; {REMEDY}"
        )


def skipped_remarks(skipped: Mapping[str, Skip]) -> Iterator[str]:
    """Yield the remarks about skipped paths."""
    for why in Skip:
        paths = [path for path, reason in skipped.items() if reason is why]
        if paths:
            yield f"skipped {len(paths)}, since {why.value} ({list_some(paths)})"


def incomplete_remarks(paths: Sequence[str]) -> Iterator[str]:
    """Yield the remark about files that are not read, since they are still being written."""
    if paths:
        yield (
            f"waits for {len(paths)} of its files to be complete ({list_some(paths)}): they are "
            "being written to, or a process of this machine has them open for writing. Close them "
            "(lsof shows the process); a file that keeps growing is never read"
        )


def list_some(paths: Sequence[str]) -> str:
    """Return the first few names, long ones cut, and how many more there are."""
    rest = len(paths) - NAMED
    named = ", ".join(map(_cut, sorted(paths)[:NAMED]))
    return f"{named} and {rest} more" if rest > 0 else named


def _cut(path: str) -> str:
    end = _MOST_SHOWN // 2
    return path if len(path) <= _MOST_SHOWN else f"{path[:end]}…{path[-end:]}"


_EMPTIED: Final = (
    "there is no file to be seen in it, and files were read from it before: if nobody removed "
    "them, the file system that they are on is not mounted here; mount it again"
)


class EmptiedFolder:
    """Detects a folder that lists nothing although files were read from it."""

    def __init__(self, root: Path, warn: Callable[[str], None]) -> None:
        self._root, self._warn = root, warn
        self._is_empty = False
        """Whether the folder listed nothing at the last call."""
        self._remark = ""
        """The remark as long as it holds; empty: there is none."""

    def remark(self, *, is_empty: bool, was_read: Callable[[], bool]) -> str:
        """Return the remark, if there is one, and log it when it is new.

        `was_read` may take long: it is only called when the folder becomes empty.
        """
        if is_empty and not self._is_empty and was_read():
            self._remark = _EMPTIED
            self._warn(f"{self._root}: {_EMPTIED}")
        elif not is_empty:
            self._remark = ""
        self._is_empty = is_empty
        return self._remark
