"""Who sends a request, and what they may do.

A caller is named by the address, and on this machine by the user whose process it is. The kernel
knows whose the other end of a local connection is, so that nobody can say so wrongly. Requests
through a proxy on this machine are the proxy's. Where authentication is asked for, a caller is who
they have proved to be (`admission`). Each route says which right it needs (`permissions`).
"""

import pwd
import socket
import struct
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from ipaddress import ip_address
from typing import Final

from starlette.requests import Request

from ....security.rights import FULL, Access
from ....security.settings import Authentication

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


@dataclass(frozen=True)
class Principal:
    """Who sends a request: how that is known, and what they may do."""

    client: Address | None
    """The end of the caller; None if the server does not tell it."""
    server: Address
    """The end that took the request: other connections may have the client's port, too."""
    access: Access = FULL
    authentication: Authentication = Authentication.NONE
    proven: str = ""
    """Who they have proved to be: `ann`, `ann (token ci)`; empty: nobody in particular."""
    uid: int | None = None
    """The user whose process is at the other end of a Unix socket; None: it is none."""

    @cached_property
    def name(self) -> str:
        """Who they have proved to be, or else `rest 127.0.0.1 (ann)`: for the log.

        The caller of a Unix socket is `rest unix (ann)`. Without a user where nobody here is known.
        The kernel is asked when somebody wants to know.
        """
        if self.proven:
            return self.proven
        if self.uid is not None:
            return f"rest unix ({_name_of(self.uid)})"
        if self.client is None:
            return "rest"
        user = _user_of(self.client, self.server)
        return f"rest {self.client[0]} ({user})" if user else f"rest {self.client[0]}"

    @property
    def address(self) -> str:
        """Where they call from; "" if that is not known."""
        return self.client[0] if self.client else ""


Identify = Callable[[Request], Awaitable[Principal]]
"""Says who sends a request; raises `ApiError` if that is to be proved and is not."""


def principal_at_ends(request: Request) -> Principal:
    """Return the caller of a connection, who has proved nothing and may do everything."""
    server: Address = request.scope.get("server") or ("", 0)
    extensions: dict[str, dict[str, int]] = request.scope.get("extensions") or {}
    peer = extensions.get("unix", {})
    client = request.client and (request.client.host, request.client.port)
    return Principal(client, server, uid=peer.get("uid"))


async def identify(request: Request) -> Principal:
    """Return the caller of an interface that asks nobody for a proof."""
    return principal_at_ends(request)


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
