"""The channel between a worker and the process that owns the node's JVM: lines of JSON.

It is a Unix socket in the node's private folder, between processes of one user. The secret of the
JVM's gateway is sent through it, so that it is in no command line, and in no file once the JVM
runs. When the process at one end dies, the other end sees the channel close.
"""

import json
import os
import socket
import struct
import sys
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from threading import Lock
from typing import Any, Final, cast

from ....processes.socket_names import short_socket_name

LONGEST_LINE: Final = 16 << 20
"""In bytes; a message may have all secrets of a worker's configs."""
BACKLOG: Final = 64
OWNER_ONLY: Final = 0o600
_CREDENTIALS: Final = struct.Struct("3i")
"""Linux's `struct ucred`: the process, user and group ids of the peer."""


class PeerRefused(OSError):  # noqa: N818  # what happened to it
    """The process at the other end belongs to another user."""


class LineChannel:
    """One connection; any thread may send, and one thread receives."""

    def __init__(self, connection: socket.socket) -> None:
        """Use a connection; closes it and raises `PeerRefused` if its peer is another user."""
        if (user := _user_of(connection)) != os.getuid():
            connection.close()
            raise PeerRefused(f"the process at the other end belongs to user {user}")
        self._connection = connection
        self._lines = connection.makefile("rb")
        self._sending = Lock()

    def send(self, message: Mapping[str, object]) -> None:
        """Send a message; raises `OSError` if the channel is closed."""
        line = json.dumps(message).encode() + b"\n"
        with self._sending:
            self._connection.sendall(line)

    def receive(self) -> dict[str, Any] | None:
        """Wait for a message; None: the channel is closed, or the peer sent no valid message."""
        try:
            line = self._lines.readline(LONGEST_LINE)
            message: object = json.loads(line) if line.endswith(b"\n") else None
        except (OSError, ValueError):
            return None
        return cast("dict[str, Any]", message) if isinstance(message, dict) else None

    def close(self) -> None:
        """Close both directions, which also ends a blocked `receive`."""
        with suppress(OSError):
            self._connection.shutdown(socket.SHUT_RDWR)
        self._connection.close()


def connect(path: Path) -> LineChannel:
    """Return a channel to the process that listens at a path; raises `OSError`."""
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        with short_socket_name(path) as name:
            connection.connect(name)
    except OSError:
        connection.close()
        raise
    return LineChannel(connection)


def listen(path: Path) -> socket.socket:
    """Return a listening socket for channels; raises `OSError`.

    The socket file of an earlier process at this path is removed.
    """
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    path.unlink(missing_ok=True)
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        with short_socket_name(path) as name:
            listener.bind(name)
        path.chmod(OWNER_ONLY)
        listener.listen(BACKLOG)
    except OSError:
        listener.close()
        raise
    return listener


def _user_of(connection: socket.socket) -> int:
    """Return the user of the peer; except on Linux the folder's mode guarantees that it is us."""
    if sys.platform != "linux":
        return os.getuid()
    credentials = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
    return int(_CREDENTIALS.unpack(credentials)[1])
