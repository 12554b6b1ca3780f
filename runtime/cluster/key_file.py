"""The file with a cluster's key: for its owner only, and never made anew beside logs.

The key opens what is sealed in the logs and names the cluster, also to its sinks: a new one beside
logs would make all of that somebody else's, without a word.
"""

import os
from pathlib import Path
from typing import Final

from ...actors.door.actor import KEY_BYTES

OTHERS: Final = 0o077  # whatever a group or everybody may do


class KeyRefusedError(Exception):
    """The key is missing, or not fit to be used: says which file, and what to do."""


def read_key(path: Path) -> bytes:
    """Return the key; raises `KeyRefusedError`."""
    try:
        mode, key = path.stat().st_mode & 0o777, path.read_bytes()
    except OSError as error:
        raise KeyRefusedError(
            f"the cluster's key can not be read from {path} ({error.strerror}): it is made when"
            " the node is first started, by `fairlead up`"
        ) from None
    if mode & OTHERS:
        raise KeyRefusedError(
            f"the cluster's key {path} is open to others than its owner (mode {mode:04o}), who"
            f" could speak as the node and open its secrets: chmod 600 {path}, and think of the"
            " key as known to them"
        )
    if len(key) != KEY_BYTES:
        raise KeyRefusedError(
            f"{path} holds {len(key)} bytes, a cluster's key has {KEY_BYTES}: put the key back"
            " from a backup"
        )
    return key


def check_new_key(path: Path) -> None:
    """Raise `KeyRefusedError` if there are logs beside a key that is to be made."""
    groups = path.parent.parent / "groups"
    logs = sorted(each.parent for each in groups.glob("*/*/data.mdb"))
    if logs:
        raise KeyRefusedError(
            f"the cluster's key {path} is gone, and there are logs that it belongs to"
            f" ({logs[0]}{f' and {len(logs) - 1} more' if len(logs) > 1 else ''}): put the key back"
            " from a backup. Where there is none, `fairlead up --new-key` makes a new one: then"
            " secrets in the configs of connectors have to be set again, and sinks adopted"
        )


def open_folders(data_dir: Path) -> list[str]:
    """Return a warning for each folder of a node that others than its owner can look into."""
    return [
        f"warning: {path} is open to others than its owner (mode {mode:04o}); it holds logs and"
        f" the cluster's key: chmod 700 {path}"
        for path in (data_dir, data_dir / "run", data_dir / "groups", data_dir / "logs")
        if path.is_dir() and (mode := os.stat(path).st_mode & 0o777) & OTHERS  # noqa: PTH116
    ]
