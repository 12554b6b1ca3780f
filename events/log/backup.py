"""A copy of a log, taken while it is written to, checked, and put in place by one rename."""

import os
import shutil
from collections.abc import Callable
from pathlib import Path

from .errors import BackupError
from .structure import DATA_NAME, data_bytes, problems


def write_backup(source: Path, target: Path, copy: Callable[[Path], None]) -> None:
    """Have `copy` write the log's data file into a new directory, and make it the backup `target`.

    The backup is a log of its own: to restore it, put it in the place of the log. Raises
    `BackupError`, and leaves nothing behind, if `target` exists, the disk is full or the copy is
    not sound.
    """
    if target.exists():
        raise BackupError(f"{target} exists already; a backup never overwrites, choose a new name")
    part = target.with_name(f".{target.name}.part")
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.rmtree(part, ignore_errors=True)
        part.mkdir(mode=0o700)
        copy(part)
        if found := problems(part):
            raise BackupError(f"the copy of {source} is not sound: {found[0]}; check the log")
        sync_path(part / DATA_NAME)
        sync_path(part)
        part.rename(target)
        sync_path(target.parent)
    except OSError as error:
        raise BackupError(
            f"no backup at {target}: {error} (the log has {data_bytes(source)} bytes); the log is"
            " untouched"
        ) from error
    finally:
        shutil.rmtree(part, ignore_errors=True)


def sync_path(path: Path) -> None:
    """Flush a file or a directory to the disk; a new file's name is only safe with the latter."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
