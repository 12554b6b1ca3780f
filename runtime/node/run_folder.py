"""The run folder of a node: who runs it, where it is reached, and the key of its cluster.

All files are for their owner only. The lock is a POSIX record lock: it ends with the process
that took it, however that ends, and is not inherited by what it forks.
"""

import fcntl
import json
import os
import secrets
from dataclasses import asdict, dataclass
from pathlib import Path

import psutil

from ...actors.actor import KEY_BYTES, Door

OWNER_ONLY = 0o600
ASSIGNORS = "assignors.json"
"""What tells of the node's assignors; see `assignor_file`."""


class NodeRunsError(Exception):
    """Another process runs a node on this data folder."""


class NoNodeError(Exception):
    """No node runs on this data folder."""


@dataclass(frozen=True, slots=True)
class NodeFile:
    """A running node: its first process, the port of its actors, and its REST interface."""

    pid: int
    process_started: float
    host: str
    port: int
    rest: str
    group: str

    def is_alive(self) -> bool:
        """Tell whether that very process still runs."""
        try:
            process = psutil.Process(self.pid)
            return (
                process.create_time() == self.process_started
                and process.status() != psutil.STATUS_ZOMBIE
            )
        except psutil.Error:
            return False


class RunFolder:
    """`<data.dir>/run`."""

    def __init__(self, data_dir: Path) -> None:
        self.path = data_dir / "run"
        self._lock = -1

    def claim(self) -> None:
        """Make the folder, and take the node for this process; raises `NodeRunsError`."""
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

    def release(self) -> None:
        """Let go of the node, and remove what tells of it."""
        for told in (self._file, self.path / ASSIGNORS):
            told.unlink(missing_ok=True)
        os.close(self._lock)

    def key(self) -> bytes:
        """Return the cluster's key; it is made when there is none yet."""
        return self._made_once("key", secrets.token_bytes(KEY_BYTES))

    def node_id(self) -> str:
        """Return what the workers of this node are known by; made when there is none yet."""
        return self._made_once("node.id", secrets.token_hex(8).encode()).decode()

    def _made_once(self, name: str, content: bytes) -> bytes:
        """Return what a file holds; one that is not there yet is made with this content."""
        path = self.path / name
        if not path.exists():
            made = path.with_suffix(".new")
            made.unlink(missing_ok=True)
            descriptor = os.open(made, os.O_WRONLY | os.O_CREAT | os.O_EXCL, OWNER_ONLY)
            with os.fdopen(descriptor, "wb") as file:
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
            made.rename(path)
        return path.read_bytes()

    def announce(self, node: NodeFile) -> None:
        """Tell other processes where the node is reached."""
        made = self._file.with_suffix(".new")
        descriptor = os.open(made, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, OWNER_ONLY)
        with os.fdopen(descriptor, "w") as file:
            json.dump(asdict(node), file)
        made.rename(self._file)

    def node(self) -> NodeFile:
        """Return the node that runs here; raises `NoNodeError`."""
        try:
            node = NodeFile(**json.loads(self._file.read_text()))
        except (OSError, ValueError, TypeError):
            node = None
        if node is None or not node.is_alive():
            raise NoNodeError(
                f"no node runs on {self.path.parent}: start one with `fairlead up`, "
                "or name its data.dir"
            )
        return node

    def door(self) -> Door:
        """Return the door to the node that runs here; raises `NoNodeError`."""
        node = self.node()
        return Door(node.host, node.port, self.key())

    @property
    def _file(self) -> Path:
        return self.path / "node.json"
