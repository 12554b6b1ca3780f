"""The run folder of a node: who runs it, where it is reached, and the key of its cluster.

All files are for their owner only. The key opens what is sealed in the logs and names the
cluster, also to its sinks: a new one beside logs would make all of that somebody else's, so it is
never made anew beside them. The lock is a POSIX record lock: it ends with the process
that took it, however that ends, and is not inherited by what it forks.
"""

import fcntl
import os
import secrets
import shutil
from dataclasses import asdict
from pathlib import Path
from typing import Final

from ...actors.door.ports import KEY_BYTES, Door
from ...events.log.process import process_of
from .identity import KEY, NODE_ID, folder_number, identity_of
from .node_files import (
    ASSIGNORS,
    ENGINE,
    NODE,
    OWNER_ONLY,
    NodeFile,
    read_node,
    write_json,
    write_private,
)

OTHERS: Final = 0o077  # whatever a group or everybody may do


class KeyRefusedError(Exception):
    """The key is missing, or not fit to be used: says which file, and what to do."""


def read_key(path: Path) -> bytes:
    """Return the key; raises `KeyRefusedError`."""
    try:
        mode, key = path.stat().st_mode & 0o777, path.read_bytes()
    except OSError as error:
        raise KeyRefusedError(
            f"the cluster's key cannot be read from {path} ({error.strerror}): it is made when"
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


class NodeRunsError(Exception):
    """Another process runs a node on this data folder."""


class NoNodeError(Exception):
    """No node runs on this data folder."""


class RunFolder:
    """`<data.dir>/run`."""

    def __init__(self, data_dir: Path) -> None:
        self.path = data_dir / "run"
        self._lock = -1
        """The descriptor whose lock is this node's claim; -1: not claimed."""

    @property
    def metrics(self) -> Path:
        """The folder in which the node's workers keep what they measure."""
        return self.path / "metrics"

    @property
    def engine(self) -> Path:
        """The socket at which the owner of the JVM listens that the node's workers share."""
        return self.path / "engine.sock"

    def claim(self) -> None:
        """Make the folder, and take the node for this process; raises `NodeRunsError`.

        What its former life left of figures of workers, and of their JVM, is removed.
        """
        self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        self.path.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._lock = os.open(self.path / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, OWNER_ONLY)
        try:
            fcntl.lockf(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(self._lock)
            raise NodeRunsError(
                f"a node runs on {self.path.parent} already: stop it with `fairlead down`, "
                "or choose another data.dir"
            ) from None
        (self.path / ENGINE).unlink(missing_ok=True)
        shutil.rmtree(self.metrics, ignore_errors=True)

    def release(self) -> None:
        """Let go of the node, and remove what tells of it."""
        for told in (NODE, ASSIGNORS, ENGINE):
            (self.path / told).unlink(missing_ok=True)
        os.close(self._lock)

    def key(self, *, may_replace: bool = False) -> bytes:
        """Return the cluster's key; it is made for a data folder without logs, or where told to.

        Raises `KeyRefusedError`.
        """
        path = self.path / KEY
        if not path.exists():
            if not may_replace:
                check_new_key(path)
            self._made_once(KEY, secrets.token_bytes(KEY_BYTES))
        return read_key(path)

    def node_id(self) -> str:
        """Return what the workers of this node are known by; made when there is none yet."""
        return self._made_once(NODE_ID, secrets.token_hex(8).encode()).decode()

    def _made_once(self, name: str, content: bytes) -> bytes:
        """Return what a file holds; one that is not there yet is made with this content."""
        path = self.path / name
        if not path.exists():
            write_private(path, content, is_durable=True)
        return path.read_bytes()

    def announce(self, door: Door, rest: str, group: str) -> None:
        """Tell other processes that this one runs the node, and where it is reached."""
        pid, started = process_of(os.getpid())
        folder = folder_number(self.path)
        node = NodeFile(pid, started, door.host, door.port, rest, group, folder)
        write_json(self.path / NODE, asdict(node))

    def node(self) -> NodeFile:
        """Return the node that runs here; raises `NoNodeError`."""
        node = read_node(self.path)
        if node is None or node.folder != folder_number(self.path) or not node.is_alive():
            raise NoNodeError(
                f"no node runs on {self.path.parent}: start one with `fairlead up`, "
                "or name its data.dir"
            )
        return node

    def door(self) -> Door:
        """Return the door to the node that runs here; raises `NoNodeError`."""
        node = self.node()
        return self.door_at(node.host, node.port)

    def door_at(self, host: str, port: int) -> Door:
        """Return the door that a node of this folder has at a port."""
        return Door(host, port, self.key(), identity_of(self.path))
