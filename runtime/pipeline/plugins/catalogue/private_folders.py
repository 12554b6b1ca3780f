"""Checks that nobody but the node's own user can change a plugin: its code runs as the node."""

import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Final

_ROOT: Final = 0
_OTHERS_WRITE: Final = stat.S_IWGRP | stat.S_IWOTH


def flaw_in_ownership(location: Path) -> str:
    """Return who else could change a plugin or the folder that it lies in; empty: nobody.

    Links are followed, as Connect follows them. Raises `OSError`.
    """
    flaws = (flaw for each in _all_below(location) if (flaw := _flaw(each)))
    return next(flaws, "")


def _all_below(location: Path) -> Iterator[Path]:
    """Yield a folder or a file, what is below it, and the folders that hold any of these."""
    yield location.parent
    yield location
    for folder, _, files in os.walk(location):
        yield Path(folder)
        for name in files:
            path = Path(folder, name)
            yield path
            if path.is_symlink():
                yield path.resolve().parent


def _flaw(path: Path) -> str:
    try:
        status = path.stat()
    except FileNotFoundError:  # a link to nothing, or removed meanwhile: no code comes from it
        return ""
    if status.st_uid not in {_ROOT, os.geteuid()}:
        return (
            f"{path} belongs to another user (uid {status.st_uid}), whose code would run as this"
            f" node: chown {os.geteuid()} {path}"
        )
    if status.st_mode & _OTHERS_WRITE:
        mode = f"{stat.S_IMODE(status.st_mode):03o}"
        return (
            f"other users may change {path} (mode {mode}), and what it holds runs as this node:"
            f" chmod go-w {path}"
        )
    return ""
