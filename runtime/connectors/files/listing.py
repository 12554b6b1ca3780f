"""Looking at a folder: which files lie in it, and which of them are input.

No library and no Spark: this runs once per poll in the worker. Symbolic links below the folder
are not followed: who may write into it could have any file read that the worker may read.
"""

import os
import stat
from collections.abc import Callable, Iterator
from enum import Enum
from fnmatch import fnmatchcase
from pathlib import Path
from typing import NamedTuple

from ..spi import NotReady

_HIDDEN = (".", "_")


class Found(NamedTuple):
    """One file: its path relative to the root (with `/`), size in bytes, and time of change."""

    path: str
    size: int
    modified_ms: int


class Skip(Enum):
    """Why something that looks like input is none, in words that follow a count."""

    LINK = "symbolic links are not followed: move or copy what they lead to here"
    NAME = "names are not UTF-8: rename them"
    SPECIAL = "are neither files nor folders"


Skipped = Callable[[str, Skip], None]
"""Is told each path that is skipped and why; bytes of it that are not UTF-8 are escaped."""


def walk(root: Path, glob: str, skipped: Skipped | None = None) -> Iterator[Found]:
    """Yield the input files under a root, in no order; raises `NotReady` without a root.

    Files and folders whose name begins with a dot or an underscore are left out, and so are
    empty files (they have no content yet). Links, names that are not UTF-8 and what is no file
    are skipped, and told. A glob without a slash is held against the file's name, others against
    its relative path.
    """
    try:
        yield from _walk(root, "", glob, skipped or _ignore)
    except (FileNotFoundError, NotADirectoryError):
        raise NotReady(f"{root} is not a folder (yet)") from None


def look(root: Path, path: str) -> Found | None:
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


def _walk(root: Path, prefix: str, glob: str, skipped: Skipped) -> Iterator[Found]:
    with os.scandir(root / prefix) as entries:
        folders: list[str] = []
        for entry in entries:
            path = prefix + entry.name
            if entry.name.startswith(_HIDDEN):
                continue
            if skip := _skip(path, entry, glob):
                skipped(os.fsencode(path).decode(errors="backslashreplace"), skip)
            elif entry.is_dir(follow_symlinks=False):
                folders.append(path + "/")
            elif fits(path, glob) and (found := _file(path, entry)):
                yield found
    for folder in folders:
        try:
            yield from _walk(root, folder, glob, skipped)
        except FileNotFoundError:
            continue  # removed while we were looking


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


def _file(path: str, entry: "os.DirEntry[str]") -> Found | None:
    try:
        status = entry.stat(follow_symlinks=False)
    except FileNotFoundError:
        return None  # removed while we were looking
    return _found(path, status) if status.st_size else None


def _found(path: str, status: os.stat_result) -> Found:
    return Found(path, status.st_size, status.st_mtime_ns // 1_000_000)


def _is_utf8(name: str) -> bool:
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True


def _ignore(path: str, why: Skip) -> None:
    del path, why
