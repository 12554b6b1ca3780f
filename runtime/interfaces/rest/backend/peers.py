"""Who sends a request: the address, and on this machine the user whose process it is.

The kernel knows whose the other end of a local connection is, so that nobody can say so wrongly.
Requests through a proxy on this machine are the proxy's.
"""

import pwd
import socket
import struct
from contextlib import suppress
from ipaddress import ip_address
from pathlib import Path
from typing import Final

_TABLES: Final = {socket.AF_INET: Path("/proc/net/tcp"), socket.AF_INET6: Path("/proc/net/tcp6")}
_ENDS, _USER, _INODE = slice(1, 3), 7, 9
"""The columns of a connection's own and other end, of its user, and of its socket."""
_NO_SOCKET: Final = "0"
"""The socket of a connection that its process has closed: it is listed as root's."""
Address = tuple[str, int]


def principal_of(client: Address, server: Address) -> str:
    """Return `rest 127.0.0.1 (ann)`, or without a user where nobody here is known.

    `server` is the end that took the request: other connections may have the client's port, too.
    """
    host, _ = client
    user = _user_of(client, server)
    return f"rest {host} ({user})" if user else f"rest {host}"


def _user_of(client: Address, server: Address) -> str:
    """Return the user whose end of a local connection this is; "" if that is not known."""
    with suppress(ValueError, OSError):
        if ip_address(client[0]).is_loopback:
            family = socket.AF_INET6 if ":" in client[0] else socket.AF_INET
            ends = [_spelled(family, *each) for each in (client, server)]
            with _TABLES[family].open() as lines:
                columns = (line.split() for line in lines)
                found = next((each for each in columns if each[_ENDS] == ends), None)
            if found is not None and found[_INODE] != _NO_SOCKET:
                return _name_of(int(found[_USER]))
    return ""


def _spelled(family: socket.AddressFamily, host: str, port: int) -> str:
    """Return an end as the kernel's tables have it: words of the host's byte order, in hex."""
    packed = socket.inet_pton(family, host)
    words = struct.unpack(f"={len(packed) // 4}I", packed)
    return "".join(f"{word:08X}" for word in words) + f":{port:04X}"


def _name_of(uid: int) -> str:
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return str(uid)
