"""Looking at a folder: which files lie in it, and which of them are input.

No library and no Spark: this runs in the worker. Symbolic links below the folder are not followed:
anybody who may write into it could have any file read that the worker can.
"""

import os
import stat
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Final, NamedTuple

from ......events.commits import Document
from ....spi.errors import NotReady

_HIDDEN = (".", "_")
_BEING_COPIED = "._COPYING_"
"""Ends the names that Hadoop writes files under; Spark has no row of them, even if told to."""
NAMED: Final = 3
"""How many files, or columns, a remark names."""
REMEDY: Final = "put what is missing there under another name, which is read as a file of its own"


class SourceFile(NamedTuple):
    """One file: its path relative to the root (with `/`), size in bytes, and time of change."""

    path: str
    size: int
    modified_ms: int
    changed_ns: int
    """When the system last saw it change, which nobody can set as they can the time of change."""


class Skip(Enum):
    """Why something that looks like input is none, in words that follow a count."""

    LINK = "symbolic links are not followed: move or copy what they lead to here"
    NAME = "names are not UTF-8: rename them"
    SPECIAL = "are neither files nor folders"


@dataclass(slots=True)
class Entries:
    """What lies in one folder itself; all paths are relative to the root."""

    files: dict[str, SourceFile] = field(default_factory=dict[str, SourceFile])
    """The input files."""
    empty: set[str] = field(default_factory=set[str])
    """What will be input once it has content."""
    folders: list[str] = field(default_factory=list[str])
    """The folders in it, each with a `/` at its end."""
    skipped: dict[str, Skip] = field(default_factory=dict[str, Skip])
    """What looks like input and is none; bytes that are not UTF-8 are escaped."""

    def add(self, path: str, entry: "os.DirEntry[str]", glob: str) -> None:
        """Take up one entry, by what it is."""
        if skip := _skip(path, entry, glob):
            self.skipped[os.fsencode(path).decode(errors="backslashreplace")] = skip
        elif entry.is_dir(follow_symlinks=False):
            self.folders.append(path + "/")
        elif fits(path, glob) and (found := _file(path, entry)):
            if found.size:
                self.files[path] = found
            else:
                self.empty.add(path)


def walk(root: Path, glob: str) -> Iterator[SourceFile]:
    """Yield the input files under a root, in no order; raises `NotReady` without a root."""
    waiting = [""]
    while waiting:
        try:
            entries = read_folder(root, waiting.pop(), glob)
        except (FileNotFoundError, NotADirectoryError):
            continue  # removed while we were looking
        yield from entries.files.values()
        waiting.extend(entries.folders)


def read_folder(
    root: Path, folder: str, glob: str, known: Mapping[str, SourceFile] | None = None
) -> Entries:
    """Read one folder; raises `NotReady` if it is the root and is not there, else `OSError`.

    Files and folders whose name begins with a dot or an underscore are left out, and so are those
    that are being copied here, and empty files (they have no content yet). Links, names that are
    not UTF-8 and what is no file are skipped. A glob without a slash is held against the file's
    name, others against its relative path. Files that are known are not looked at again: it is
    enough that they are there.
    """
    known = known or {}
    found = Entries()
    try:
        with os.scandir(root / folder) as entries:
            for entry in entries:
                path = folder + entry.name
                if path in known and not entry.is_symlink():
                    found.files[path] = known[path]
                elif not (entry.name.startswith(_HIDDEN) or entry.name.endswith(_BEING_COPIED)):
                    found.add(path, entry, glob)
    except (FileNotFoundError, NotADirectoryError):
        if folder:
            raise
        raise NotReady(f"{root} is not a folder (yet)") from None
    return found


def look(root: Path, path: str) -> SourceFile | None:
    """Return a file as it is now, or None if it is gone, or a link has taken a place in its path.

    The root itself may be a link: it is the user's word.
    """
    at = root
    try:
        for part in path.split("/")[:-1]:
            at = at / part
            if at.is_symlink():
                return None
        status = (root / path).lstat()
    except (FileNotFoundError, NotADirectoryError):
        return None
    return _found(path, status) if stat.S_ISREG(status.st_mode) else None


def fits(path: str, glob: str) -> bool:
    """Tell whether a relative path is one that a glob asks for."""
    return fnmatchcase(path if "/" in glob else path.rpartition("/")[2], glob)


def _skip(path: str, entry: "os.DirEntry[str]", glob: str) -> Skip | None:
    """Return why an entry is skipped, if it would be input otherwise."""
    if entry.is_symlink():
        return Skip.LINK if fits(path, glob) or entry.is_dir() else None
    is_folder = entry.is_dir(follow_symlinks=False)
    if not is_folder and not fits(path, glob):
        return None
    if not _is_utf8(entry.name):
        return Skip.NAME
    return None if is_folder or entry.is_file(follow_symlinks=False) else Skip.SPECIAL


def _file(path: str, entry: "os.DirEntry[str]") -> SourceFile | None:
    try:
        status = entry.stat(follow_symlinks=False)
    except FileNotFoundError:
        return None  # removed while we were looking
    return _found(path, status)


def _found(path: str, status: os.stat_result) -> SourceFile:
    modified_ms = status.st_mtime_ns // 1_000_000
    return SourceFile(path, status.st_size, modified_ms, status.st_ctime_ns)


def _is_utf8(name: str) -> bool:
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True


def told_of_changed(changed: Mapping[SourceFile, Document], grown: int) -> Iterator[str]:
    """Yield what is told of files that changed; `grown` is by how many bytes in all."""
    if changed:
        more = f": they have at least {grown} bytes more than then" if grown else ""
        yield (
            f"{len(changed)} of its files changed after they were read, and are not read again "
            f"({some([each.path for each in changed])}){more}; {REMEDY}"
        )


def told_of_skipped(skipped: Mapping[str, Skip]) -> Iterator[str]:
    """Yield what is told of paths that look like input and are none."""
    for why in Skip:
        paths = [path for path, reason in skipped.items() if reason is why]
        if paths:
            yield f"skipped {len(paths)}, since {why.value} ({some(paths)})"


def told_of_incomplete(paths: Sequence[str]) -> Iterator[str]:
    """Yield what is told of files that are not read, since somebody may still write to them."""
    if paths:
        yield (
            f"waits for {len(paths)} of its files to be complete ({some(paths)}): somebody writes "
            "to them, or a process of this machine has them open for writing. Close them there "
            "(lsof tells what has them open); a file that goes on growing is never read"
        )


def some(paths: Sequence[str]) -> str:
    """Name the first few of some files, or columns."""
    rest = len(paths) - NAMED
    named = ", ".join(sorted(paths)[:NAMED])
    return f"{named} and {rest} more" if rest > 0 else named
