"""Messages of an attacker to the ports of a JVM: serialised objects of an unknown class."""

import socket
import struct
from contextlib import suppress

import psutil

CLASS = b"EvilStranger"
_UID, _SERIALIZABLE = 1, 2
OBJECT = (
    b"\xac\xed\x00\x05sr"
    + struct.pack(">H", len(CLASS))
    + CLASS
    + struct.pack(">qBH", _UID, _SERIALIZABLE, 0)
    + b"xp"
)
"""An object without fields, as Java serialises it."""

SECONDS = 5.0


def ports(pid: int) -> set[tuple[str, int]]:
    """Return where a process and its children listen; one that has ended meanwhile does not."""
    found: set[tuple[str, int]] = set()
    for process in (psutil.Process(pid), *psutil.Process(pid).children(recursive=True)):
        with suppress(psutil.NoSuchProcess):
            found |= {
                (connection.laddr.ip, connection.laddr.port)
                for connection in process.net_connections("tcp")
                if connection.status == psutil.CONN_LISTEN
            }
    return found


def call(place: tuple[str, int]) -> bytes:
    """Return a call of Spark's RPC to an endpoint that every driver has."""
    name = b"HeartbeatReceiver"
    host = place[0].encode()
    to = b"\1" + struct.pack(">H", len(host)) + host + struct.pack(">I", place[1])
    return b"\0" + to + struct.pack(">H", len(name)) + name + OBJECT


def upload(_: tuple[str, int]) -> bytes:
    """Return a message that leaves a block with a driver, with what is said of the block."""
    texts = (b"app", b"driver", b"test_block", OBJECT, b"")
    return b"\1" + b"".join(struct.pack(">I", len(each)) + each for each in texts)


def heard(place: tuple[str, int], body: bytes) -> bytes:
    """Send a message as Spark frames it and return all that is answered."""
    message = struct.pack(">BqI", 3, 4711, len(body)) + body
    answer = b""
    try:
        with socket.create_connection(place, SECONDS) as connection:
            connection.settimeout(SECONDS)
            connection.sendall(struct.pack(">q", 8 + len(message)) + message)
            connection.shutdown(socket.SHUT_WR)
            while piece := connection.recv(1 << 16):
                answer += piece
    except (ConnectionError, TimeoutError):
        pass
    return answer
