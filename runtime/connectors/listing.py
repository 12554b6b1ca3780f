"""Looking at a folder: which files lie in it, and which of them are input.

No library and no Spark: this runs once per poll in the worker.
"""

import os
import stat
from collections.abc import Iterator
from fnmatch import fnmatchcase
from pathlib import Path
from typing import NamedTuple

from .spi import NotReady

_HIDDEN = (".", "_")


class Found(NamedTuple):
    """One file: its path relative to the root (with `/`), size in bytes, and time of change."""

    path: str
    size: int
    modified_ms: int


def walk(root: Path, glob: str) -> Iterator[Found]:
    """Yield the input files under a root, in no order; raises `NotReady` without a root.

    Files and folders whose name begins with a dot or an underscore are left out, and so are
    links to folders, empty files (they have no content yet) and names that are not UTF-8.
    A glob without a slash is held against the file's name, others against its relative path.
    """
    try:
        yield from _walk(root, "", glob)
    except (FileNotFoundError, NotADirectoryError):
        raise NotReady(f"{root} is not a folder (yet)") from None


def look(root: Path, path: str) -> Found | None:
    """Return a file as it is now, or None if it is gone."""
    try:
        status = (root / path).stat()
    except (FileNotFoundError, NotADirectoryError):
        return None
    return _found(path, status)


def fits(path: str, glob: str) -> bool:
    """Tell whether a relative path is one that a glob asks for."""
    return fnmatchcase(path if "/" in glob else path.rpartition("/")[2], glob)


def _walk(root: Path, prefix: str, glob: str) -> Iterator[Found]:
    with os.scandir(root / prefix) as entries:
        folders: list[str] = []
        for entry in entries:
            path = prefix + entry.name
            if entry.name.startswith(_HIDDEN) or not _is_utf8(entry.name):
                continue
            if entry.is_dir(follow_symlinks=False):
                folders.append(path + "/")
            elif fits(path, glob) and (found := _file(path, entry)):
                yield found
    for folder in folders:
        try:
            yield from _walk(root, folder, glob)
        except FileNotFoundError:
            continue  # removed while we were looking


def _file(path: str, entry: "os.DirEntry[str]") -> Found | None:
    try:
        status = entry.stat()
    except FileNotFoundError:
        return None  # removed while we were looking, or a link to nowhere
    return _found(path, status) if stat.S_ISREG(status.st_mode) and status.st_size else None


def _found(path: str, status: os.stat_result) -> Found:
    return Found(path, status.st_size, status.st_mtime_ns // 1_000_000)


def _is_utf8(name: str) -> bool:
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True
