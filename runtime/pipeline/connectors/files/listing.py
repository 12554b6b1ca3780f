"""Looking at a folder: which files lie in it, which of them are input, and for which task.

No library and no Spark: this runs once per poll in the worker. Symbolic links below the folder
are not followed: anybody who may write into it could have any file read that the worker can.

Files are dealt to tasks by fixed buckets. A file's bucket hangs on its relative path alone, so
that another number of tasks moves files between tasks but never their progress, which belongs to
the file.
"""

import os
import stat
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from enum import Enum
from fnmatch import fnmatchcase
from hashlib import blake2b
from pathlib import Path
from typing import NamedTuple

from ..spi import NotReady

_HIDDEN = (".", "_")


class SourceFile(NamedTuple):
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


def walk(root: Path, glob: str, skipped: Skipped | None = None) -> Iterator[SourceFile]:
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


def _walk(root: Path, prefix: str, glob: str, skipped: Skipped) -> Iterator[SourceFile]:
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


def _file(path: str, entry: "os.DirEntry[str]") -> SourceFile | None:
    try:
        status = entry.stat(follow_symlinks=False)
    except FileNotFoundError:
        return None  # removed while we were looking
    return _found(path, status) if status.st_size else None


def _found(path: str, status: os.stat_result) -> SourceFile:
    return SourceFile(path, status.st_size, status.st_mtime_ns // 1_000_000)


def _is_utf8(name: str) -> bool:
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True


def _ignore(path: str, why: Skip) -> None:
    del path, why


BUCKETS = 256
_TOLERANCE = 0.05

Share = frozenset[int]
"""The buckets of one task."""

EVERYTHING: Share = frozenset(range(BUCKETS))


def bucket_of(path: str) -> int:
    """Return a file's bucket, the same on every machine and in every release."""
    return blake2b(path.encode(), digest_size=1).digest()[0]


def deal(paths: Iterable[str], tasks: int) -> Sequence[Share]:
    """Deal all buckets to at most `BUCKETS` tasks, so that each has about as many files.

    Starts from the same deal every time and moves no bucket that need not move: the loads
    differ by 5 % at most where the buckets allow it, and a few more files change little.
    """
    tasks = min(tasks, BUCKETS)
    files = Counter(map(bucket_of, paths))
    shares = [set(range(task, BUCKETS, tasks)) for task in range(tasks)]
    loads = [sum(files[bucket] for bucket in share) for share in shares]
    spread = max(1, int(_TOLERANCE * files.total() / tasks))
    while True:
        full = loads.index(max(loads))
        light = loads.index(min(loads))
        gap = loads[full] - loads[light]
        bucket = _best_move(files, shares[full], gap)
        if gap <= spread or bucket is None:
            return [frozenset(share) for share in shares]
        shares[full].remove(bucket)
        shares[light].add(bucket)
        loads[full] -= files[bucket]
        loads[light] += files[bucket]


def _best_move(files: Counter[int], share: set[int], gap: int) -> int | None:
    movable = [bucket for bucket in share if 0 < files[bucket] < gap]
    return min(movable, key=lambda each: (abs(gap - 2 * files[each]), each), default=None)


def spell(share: Share) -> str:
    """Return a share as text: `0-3,7`."""
    runs: list[list[int]] = []
    for bucket in sorted(share):
        if runs and runs[-1][-1] == bucket - 1:
            runs[-1][-1] = bucket
        else:
            runs.append([bucket, bucket])
    return ",".join(str(a) if a == b else f"{a}-{b}" for a, b in runs)


def read_share(text: str) -> Share:
    """Return the share that a text spells; raises `ValueError`."""
    share: set[int] = set()
    for run in filter(None, text.split(",")):
        first, _, last = run.partition("-")
        share.update(range(int(first), int(last or first) + 1))
    if not share <= set(range(BUCKETS)):
        raise ValueError(f"no such bucket in {text!r}")
    return frozenset(share)
