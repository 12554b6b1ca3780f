"""Addresses: host and port, the key of an actor system, free ports, the owner of a port in use."""

import errno
import ipaddress
import random
import socket
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, NamedTuple

KEY_BYTES: Final = 32
LOOPBACK: Final = "127.0.0.1"
CONNECTIONS: Final = Path("/proc/sys/net/ipv4/ip_local_port_range")
"""The range of ephemeral ports of Linux: the first and the last port."""
FIRST_PORT: Final = 10_000
TRIES: Final = 100
UNSEEN: Final = "a program that cannot be seen from here, of another user or container"


class HostPort(NamedTuple):
    """A host and a port; port 0 to listen at is any free port."""

    host: str
    port: int

    @property
    def url(self) -> str:
        """The base URL of a server there."""
        return f"http://{bracketed(self.host)}:{self.port}"

    @property
    def is_loopback(self) -> bool:
        """Whether only this machine can connect to it."""
        if self.host == "localhost":
            return True
        try:
            return ipaddress.ip_address(self.host).is_loopback
        except ValueError:
            return False


def bracketed(host: str) -> str:
    """Return a host as in a URL: an IPv6 address in brackets."""
    return f"[{host}]" if ":" in host else host


@dataclass(frozen=True, slots=True)
class SystemAddress:
    """The address of an actor system, and the key to connect to it.

    `host` is an IPv4 loopback address, `port` that of the admin, `key` the 32 random bytes of the
    cluster. Raises ValueError for other values. If `node` is not empty, a system of another node
    at this address counts as unreachable.
    """

    host: str
    port: int
    key: bytes = field(repr=False)
    node: str = field(default="", repr=False)

    def __str__(self) -> str:
        return f"port {self.port} of {self.host}"

    def __post_init__(self) -> None:
        if not ipaddress.IPv4Address(self.host).is_loopback:
            raise ValueError(
                f"actors speak on loopback only, and {self.host} is not: use 127.0.0.1"
            )
        if not 0 < self.port < 1 << 16:
            raise ValueError(f"{self.port} is not a port: use one from 1 to 65535")
        if len(self.key) != KEY_BYTES:
            raise ValueError(f"the key of a cluster has {KEY_BYTES} bytes, not {len(self.key)}")


class PortTakenError(Exception):
    """A port cannot be bound; the message says why, and which process has it."""


def free_port() -> int:
    """Return a free loopback port outside the range of ephemeral ports.

    A starting node opens many connections, so one of them could take an ephemeral port before it is
    bound.
    """
    try:
        first_given = int(CONNECTIONS.read_text(encoding="ascii").split()[0])
    except OSError:
        first_given = FIRST_PORT
    own = range(FIRST_PORT, first_given)
    for port in random.sample(own, min(TRIES, len(own))):
        with socket.socket() as probe, suppress(OSError):
            probe.bind((LOOPBACK, port))
            return port
    with socket.socket() as probe:
        probe.bind((LOOPBACK, 0))
        return int(probe.getsockname()[1])


def check_free(host: str, port: int) -> None:
    """Raise `PortTakenError` if this port of this host cannot be bound now."""
    try:
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        with socket.socket(family, socket.SOCK_STREAM) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind((host, port))
            probe.listen(1)
    except OSError as error:
        if error.errno == errno.EADDRINUSE:
            raise PortTakenError(
                f"port {port} of {host} is taken by {holder_of(host, port)}"
            ) from None
        why = error.strerror or str(error)
        raise PortTakenError(f"port {port} of {host} cannot be listened on: {why}") from None


def holder_of(host: str, port: int) -> str:
    """Return the name and pid of the program that has a port, or that it is not visible."""
    import psutil  # noqa: PLC0415  # settings and verbs that ask a cluster do without

    sockets = sorted(_sockets(host, port), key=lambda each: each[0] != psutil.CONN_LISTEN)
    for _, pid in sockets:
        with suppress(psutil.Error):
            if pid is not None:
                return f"{psutil.Process(pid).name().strip()} (pid {pid})"
    return UNSEEN


def _sockets(host: str, port: int) -> Iterator[tuple[str, int | None]]:
    """Yield state and pid of each socket at a port whose address overlaps with a host's."""
    import psutil  # noqa: PLC0415  # settings and verbs that ask a cluster do without

    with suppress(psutil.Error, OSError):
        for each in psutil.net_connections("tcp"):
            if each.laddr and each.laddr.port == port and _overlap(host, each.laddr.ip):
                yield each.status, each.pid


def _overlap(host: str, bound: str) -> bool:
    """Return whether a socket at the address `bound` prevents listening at `host`."""
    try:
        ours, theirs = ipaddress.ip_address(host), ipaddress.ip_address(bound.partition("%")[0])
    except ValueError:
        return True  # a host name: whatever has the port may be in its way
    if isinstance(theirs, ipaddress.IPv6Address) and theirs.ipv4_mapped is not None:
        theirs = theirs.ipv4_mapped
    either_is_any = ours.is_unspecified or theirs.is_unspecified
    return ours == theirs or either_is_any
