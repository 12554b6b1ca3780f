"""The channel between a worker and the process that owns its node's JVM: lines of JSON.

It is a Unix socket in the node's private folder, between processes of one user. The secret of the
JVM's gateway goes through it, and is in no command line, and in no file once the JVM runs. A
channel ends with the process at its other end, however that ends, and so each learns of it.
"""

import json
import os
import socket
import struct
import sys
from collections.abc import Generator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import Lock
from typing import Any, Final, cast

LONGEST_LINE: Final = 16 << 20
"""In bytes; secrets are told through it, and a config may hold some."""
BACKLOG: Final = 64
OWNER_ONLY: Final = 0o600
_CREDENTIALS: Final = struct.Struct("3i")
"""What Linux tells of a peer: its process, its user, its group."""


class StrangerRefused(OSError):  # noqa: N818  # what happened to it
    """The process at the other end is another user's."""


class LineChannel:
    """One connection; any thread may send, one receives."""

    def __init__(self, connection: socket.socket) -> None:
        """Take a connection; raises `StrangerRefused`, having closed it, if it is a stranger's."""
        if (user := _user_of(connection)) != os.getuid():
            connection.close()
            raise StrangerRefused(f"the process at the other end belongs to user {user}")
        self._connection = connection
        self._lines = connection.makefile("rb")
        self._sending = Lock()

    def send(self, message: Mapping[str, object]) -> None:
        """Say something; raises `OSError` if nobody can hear it any more."""
        line = json.dumps(message).encode() + b"\n"
        with self._sending:
            self._connection.sendall(line)

    def receive(self) -> dict[str, Any] | None:
        """Wait for what is said; None: the other end is gone, or speaks another language."""
        try:
            line = self._lines.readline(LONGEST_LINE)
            message: object = json.loads(line) if line.endswith(b"\n") else None
        except (OSError, ValueError):
            return None
        return cast("dict[str, Any]", message) if isinstance(message, dict) else None

    def close(self) -> None:
        """End it for both; a thread that waits to receive hears of it."""
        with suppress(OSError):
            self._connection.shutdown(socket.SHUT_RDWR)
        self._connection.close()


def dial(place: Path) -> LineChannel:
    """Return a channel to whoever listens at a place; raises `OSError`."""
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        with _short(place) as name:
            connection.connect(name)
    except OSError:
        connection.close()
        raise
    return LineChannel(connection)


def listen(place: Path) -> socket.socket:
    """Return a socket that channels can be accepted from; raises `OSError`.

    What an earlier process has left at the place is removed.
    """
    place.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    place.unlink(missing_ok=True)
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        with _short(place) as name:
            listener.bind(name)
        place.chmod(OWNER_ONLY)
        listener.listen(BACKLOG)
    except OSError:
        listener.close()
        raise
    return listener


@contextmanager
def _short(place: Path) -> Generator[str]:
    """Give a name to a place by way of its open folder: one of a socket has 107 bytes at most."""
    if sys.platform != "linux":
        yield str(place)
        return
    folder = os.open(place.parent, os.O_RDONLY | os.O_DIRECTORY)
    try:
        yield f"/proc/self/fd/{folder}/{place.name}"
    finally:
        os.close(folder)


def _user_of(connection: socket.socket) -> int:
    """Return whose process is at the other end; elsewhere than on Linux the folder's mode tells."""
    if sys.platform != "linux":
        return os.getuid()
    told = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
    return int(_CREDENTIALS.unpack(told)[1])
