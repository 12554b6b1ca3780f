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
_LOCAL, _USER = 1, 7
"""The columns of a connection's own end, and of the user that it belongs to."""


def principal_of(host: str, port: int) -> str:
    """Return `rest 127.0.0.1 (ann)`, or without a user where nobody here is known."""
    user = _user_of(host, port)
    return f"rest {host} ({user})" if user else f"rest {host}"


def _user_of(host: str, port: int) -> str:
    """Return the user whose end of a local connection this is; "" if that is not known."""
    with suppress(ValueError, OSError):
        if ip_address(host).is_loopback:
            family = socket.AF_INET6 if ":" in host else socket.AF_INET
            end = _spelled(family, host, port)
            with _TABLES[family].open() as lines:
                columns = (line.split() for line in lines)
                uid = next((int(each[_USER]) for each in columns if each[_LOCAL] == end), None)
            return "" if uid is None else _name_of(uid)
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
