"""Who sends a request, and what they may do.

A caller is named by the address, and on this machine by the user whose process it is. The kernel
knows whose the other end of a local connection is, so that nobody can say so wrongly. Requests
through a proxy on this machine are the proxy's. Nobody proves who they are: interfaces listen on
loopback alone, and every caller has all rights. Each route says which right it needs.
"""

import pwd
import socket
import struct
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from enum import Enum
from functools import cached_property
from ipaddress import ip_address
from typing import Final

from starlette.requests import Request

_SOCK_DIAG: Final = 4
"""The netlink family that tells of sockets, sock_diag(7); a table of all takes milliseconds."""
_BY_FAMILY: Final = 20
_REQUEST: Final = 1
_HEADER: Final = struct.Struct("=IHHII")
_QUESTION: Final = struct.Struct("=BBBxI")
_ENDS: Final = struct.Struct("!HH16s16s")
_ANY: Final = struct.pack("=III", 0, 0xFFFFFFFF, 0xFFFFFFFF)
"""Any interface, any cookie."""
_ANSWER: Final = struct.Struct("=BBxx48xIIIII")
"""Of `inet_diag_msg`: family, state, the ends, timers and queues, user, and inode."""
_ANSWER_BYTES: Final = 4_096
_ANSWER_SECONDS: Final = 0.5
Address = tuple[str, int]


class Right(Enum):
    """A right that a route needs of its caller; none includes another."""

    VIEW = "view"
    """To read what there is, and to compute what would be."""
    OPERATE = "operate"
    """To have what is configured run, pause, restart, move to other workers."""
    ADMINISTER = "administer"
    """To change what is configured: connectors, their offsets, groups, log levels."""


class Authentication(Enum):
    """How a caller has proved who they are."""

    NONE = "none"
    """By nothing but the address that they call from."""


@dataclass(frozen=True)
class Principal:
    """Who sends a request: how that is known, and their rights."""

    client: Address | None
    """The end of the caller; None if the server does not tell it."""
    server: Address
    """The end that took the request: other connections may have the client's port, too."""
    rights: frozenset[Right] = frozenset(Right)
    authentication: Authentication = Authentication.NONE

    @cached_property
    def name(self) -> str:
        """`rest 127.0.0.1 (ann)`, or without a user where nobody here is known: for the log.

        The kernel is asked when somebody wants to know.
        """
        if self.client is None:
            return "rest"
        user = _user_of(self.client, self.server)
        return f"rest {self.client[0]} ({user})" if user else f"rest {self.client[0]}"


Identify = Callable[[Request], Principal]
"""Says who sends a request."""


def identify(request: Request) -> Principal:
    """Return the caller of a listener on loopback, who may do everything."""
    server: Address = request.scope.get("server") or ("", 0)
    return Principal(request.client and (request.client.host, request.client.port), server)


def _user_of(client: Address, server: Address) -> str:
    """Return the user whose end of a local connection this is; "" if that is not known."""
    with suppress(ValueError, OSError, struct.error):
        if ip_address(client[0]).is_loopback:
            family = socket.AF_INET6 if ":" in client[0] else socket.AF_INET
            return _ask_kernel(family, client, server)
    return ""


def _ask_kernel(family: socket.AddressFamily, own: Address, other: Address) -> str:
    """Return the user of the socket with these ends; "" if its process has closed it."""
    addresses = (socket.inet_pton(family, host).ljust(16, b"\0") for host, _ in (own, other))
    ends = _ENDS.pack(own[1], other[1], *addresses) + _ANY
    asked = _QUESTION.pack(family, socket.IPPROTO_TCP, 0, 0xFFFFFFFF) + ends
    header = _HEADER.pack(_HEADER.size + len(asked), _BY_FAMILY, _REQUEST, 0, 0)
    with socket.socket(socket.AF_NETLINK, socket.SOCK_DGRAM, _SOCK_DIAG) as kernel:
        kernel.settimeout(_ANSWER_SECONDS)  # requests of others wait meanwhile
        kernel.send(header + asked)
        told = kernel.recv(_ANSWER_BYTES)
    if _HEADER.unpack_from(told)[1] != _BY_FAMILY:  # it knows none
        return ""
    *_, user, inode = _ANSWER.unpack_from(told, _HEADER.size)
    return _name_of(user) if inode else ""


def _name_of(uid: int) -> str:
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return str(uid)
