"""The run folder of a node: its lock, its address, and the key of its cluster.

All files are readable by their owner only. The key decrypts the secrets in the logs and
identifies the cluster to its sinks, so no new key is made where there are logs already, and no
other one is taken: the data folder has the public id of the cluster that its logs are of. The lock
is a POSIX record lock: the system releases it when its process ends, and forks do not inherit it.
"""

import fcntl
import os
import secrets
import shutil
from dataclasses import asdict
from pathlib import Path
from typing import Final

from ...actors.transport.ports import KEY_BYTES, SystemAddress
from ...events.log.files import make_directory
from ...events.log.process import process_of
from .identity import KEY, NODE_ID, cluster_id, folder_number, identity_of
from .node_files import (
    ASSIGNORS,
    ENGINES,
    NODE,
    OWNER_ONLY,
    PLUGINS,
    NodeFile,
    read_node,
    write_json,
    write_private,
)

OTHERS: Final = 0o077
"""The mode bits of all users but the owner."""
CLUSTER: Final = "cluster.id"
_TAKES: Final = (
    "`fairlead up --new-key` {}: then secrets in the configs of connectors have to be set again,"
    " and sinks adopted"
)


class KeyRefusedError(Exception):
    """The cluster's key is missing or unusable; the message has the file and what to do."""


def read_key(path: Path) -> bytes:
    """Return the cluster's key; raises `KeyRefusedError` if it is unsafe, invalid or another's."""
    key = _valid_key(path)
    known = _known_cluster(path)
    if known not in {"", cluster_id(key)} and _logs_beside(path):
        raise KeyRefusedError(
            f"the key {path} is of cluster {cluster_id(key)}, and the logs beside it are of cluster"
            f" {known}: it opens none of their secrets, and their sinks do not know it. Put the"
            " key of the logs back from a backup. If they came here together with this key, or"
            f" theirs is lost, {_TAKES.format('takes it')}"
        )
    return key


def _known_cluster(path: Path) -> str:
    """Return the id of the cluster that used the data folder of a key last; "" before any did."""
    try:
        return (path.parent.parent / CLUSTER).read_text()
    except FileNotFoundError:
        return ""


def _logs_beside(path: Path) -> list[Path]:
    """Return the folders of the logs in the data folder of a key."""
    groups = path.parent.parent / "groups"
    return sorted(each.parent for each in groups.glob("*/*/data.mdb"))


def _valid_key(path: Path) -> bytes:
    try:
        mode, key = path.stat().st_mode & 0o777, path.read_bytes()
    except OSError as error:
        raise KeyRefusedError(
            f"the cluster's key cannot be read from {path} ({error.strerror}): `fairlead up`"
            " makes it when the node is first started"
        ) from None
    if mode & OTHERS:
        raise KeyRefusedError(
            f"the cluster's key {path} is open to others than its owner (mode {mode:04o}), who"
            f" could act as the node and decrypt its secrets: chmod 600 {path}, and treat the key"
            " as compromised"
        )
    _check_length(key, path)
    return key


def _check_length(key: bytes, path: Path) -> None:
    if len(key) != KEY_BYTES:
        raise KeyRefusedError(
            f"{path} holds {len(key)} bytes, a cluster's key has {KEY_BYTES}: put the key back"
            " from a backup"
        )


def check_new_key(path: Path) -> None:
    """Raise `KeyRefusedError` if there are logs that need the former key."""
    if logs := _logs_beside(path):
        raise KeyRefusedError(
            f"the cluster's key {path} is gone, and there are logs that it belongs to"
            f" ({logs[0]}{f' and {len(logs) - 1} more' if len(logs) > 1 else ''}): put the key back"
            f" from a backup. Where there is none, {_TAKES.format('makes a new one')}"
        )


def folder_mode_warnings(data_dir: Path) -> list[str]:
    """Return a warning for each folder of a node that other users can access."""
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
    """The folder `<data.dir>/run`, and its lock once this process has claimed it."""

    def __init__(self, data_dir: Path) -> None:
        self.path = data_dir / "run"
        self._lock = -1
        """The descriptor of the locked file; -1 if not claimed."""

    @property
    def metrics(self) -> Path:
        """The folder of the workers' metrics files."""
        return self.path / "metrics"

    @property
    def engine(self) -> Path:
        """The Unix socket of the engine process, which owns the JVM that the workers share."""
        return self.path / "engine.sock"

    @property
    def lone_batches(self) -> Path:
        """The lock file for tasks that may have crashed the engine: they run one at a time."""
        return self.path / "engine.lock"

    def claim(self) -> None:
        """Create the folder and lock it for this process; raises `NodeRunsError`.

        Removes the metrics and the engine state of the node's former run.
        """
        make_directory(self.path.parent.parent, mode=0o777)
        make_directory(self.path)
        self._lock = os.open(self.path / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, OWNER_ONLY)
        try:
            fcntl.lockf(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(self._lock)
            raise NodeRunsError(
                f"a node already runs on {self.path.parent}: stop it with `fairlead down`, "
                "or choose another data.dir"
            ) from None
        self._forget_engines()
        shutil.rmtree(self.metrics, ignore_errors=True)

    def release(self) -> None:
        """Remove the files of the running node, and unlock the folder."""
        for name in (NODE, ASSIGNORS):
            (self.path / name).unlink(missing_ok=True)
        self._forget_engines()
        os.close(self._lock)

    def _forget_engines(self) -> None:
        for each in (*self.path.glob(ENGINES), *self.path.glob(PLUGINS)):
            each.unlink(missing_ok=True)

    def key(self, *, may_replace: bool = False) -> bytes:
        """Return the cluster's key; a missing one is made if there are no logs, or `may_replace`.

        The same goes for a key that is not that of the logs. Raises `KeyRefusedError`.
        """
        path = self.path / KEY
        if not path.exists():
            if not may_replace:
                check_new_key(path)
            self._read_or_create(KEY, secrets.token_bytes(KEY_BYTES))
            may_replace = True
        known = _known_cluster(path)
        if may_replace or not known or not _logs_beside(path):
            cluster = cluster_id(_valid_key(path))
            if cluster != known:
                write_private(path.parent.parent / CLUSTER, cluster.encode(), is_durable=True)
        return read_key(path)

    def copy_key(self, key: bytes, source: Path, *, may_replace: bool = False) -> None:
        """Copy the key that all nodes of the cluster have from the content of its file.

        One that is here already has to be the same, unless `may_replace`, and so has one that logs
        here belong to. Raises `KeyRefusedError`.
        """
        _check_length(key, source)
        path = self.path / KEY
        if path.exists() and not may_replace:
            if _valid_key(path) != key:
                raise KeyRefusedError(
                    f"cluster.key.file = {source} is another key than {path}: this folder is of"
                    f" another cluster. Name that key's file, or another data.dir;"
                    f" {_TAKES.format('takes it')}"
                )
            return
        if not may_replace and cluster_id(key) != _known_cluster(path):
            check_new_key(path)
        write_private(path, key, is_durable=True)

    def node_id(self) -> str:
        """Return the id of this node, which its workers have in common; created at first use."""
        return self._read_or_create(NODE_ID, secrets.token_hex(8).encode()).decode()

    def _read_or_create(self, name: str, content: bytes) -> bytes:
        """Return the content of a file, which is created with `content` if it is missing."""
        path = self.path / name
        if not path.exists():
            write_private(path, content, is_durable=True)
        return path.read_bytes()

    def announce(
        self, address: SystemAddress, rest: str, group: str, socket: str = "", version: str = ""
    ) -> None:
        """Write `node.json`: this process runs the node, at this address.

        `rest` is the URL of its REST interface, `socket` the path of its Unix socket.
        """
        pid, started = process_of(os.getpid())
        at = address.host, address.port, rest, group, folder_number(self.path)
        node = NodeFile(pid, started, *at, socket, version)
        write_json(self.path / NODE, asdict(node))

    def node(self) -> NodeFile:
        """Return the running node of this folder; raises `NoNodeError`."""
        node = read_node(self.path)
        if node is None or node.folder != folder_number(self.path) or not node.is_alive():
            raise NoNodeError(
                f"no node runs on {self.path.parent}: start one with `fairlead up`, "
                "or name its data.dir"
            )
        return node

    def system_address(self) -> SystemAddress:
        """Return the address of the running node of this folder; raises `NoNodeError`."""
        node = self.node()
        return self.system_address_at(node.host, node.port)

    def system_address_at(self, host: str, port: int) -> SystemAddress:
        """Return the address of a node of this folder that listens at this address."""
        return SystemAddress(host, port, self.key(), identity_of(self.path))
