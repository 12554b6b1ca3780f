"""Whether a port can be listened on, and which program has it if not."""

import errno
import ipaddress
import socket
from collections.abc import Iterator
from contextlib import suppress
from typing import Final

import psutil

UNSEEN: Final = "a program that cannot be seen from here, of another user or container"


class PortTakenError(Exception):
    """A port cannot be listened on; the text says why, and which process has it."""


def check_free(host: str, port: int) -> None:
    """Raise `PortTakenError` unless one could listen on this port of this host now."""
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
    """Return the name and pid of the program that has a port, or that it cannot be seen."""
    sockets = sorted(_sockets(host, port), key=lambda each: each[0] != psutil.CONN_LISTEN)
    for _, pid in sockets:
        with suppress(psutil.Error):
            if pid is not None:
                return f"{psutil.Process(pid).name().strip()} (pid {pid})"
    return UNSEEN


def _sockets(host: str, port: int) -> Iterator[tuple[str, int | None]]:
    """Yield state and pid of each socket at a port whose address overlaps with a host's."""
    with suppress(psutil.Error, OSError):
        for each in psutil.net_connections("tcp"):
            if each.laddr and each.laddr.port == port and _overlap(host, each.laddr.ip):
                yield each.status, each.pid


def _overlap(host: str, bound: str) -> bool:
    """Tell whether nobody can listen at `host` while somebody does at the address `bound`."""
    try:
        ours, theirs = ipaddress.ip_address(host), ipaddress.ip_address(bound.partition("%")[0])
    except ValueError:
        return True  # a host name: whatever has the port may be in its way
    if isinstance(theirs, ipaddress.IPv6Address) and theirs.ipv4_mapped is not None:
        theirs = theirs.ipv4_mapped
    either_is_any = ours.is_unspecified or theirs.is_unspecified
    return ours == theirs or either_is_any
