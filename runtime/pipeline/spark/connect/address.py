"""The address of a Spark Connect server: where it is, and what opens it.

    sc://HOST:PORT/;use_ssl=true;token=SECRET

That is PySpark's own way to write it. What stands behind the port is never told: a token is a
secret, and so may be what other parameters hand to a proxy. Nothing of PySpark is loaded here.
"""

import ipaddress
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib.util import find_spec
from typing import Final
from urllib.parse import quote, unquote, urlsplit

from ..settings import CONNECT

DEFAULT_PORT: Final = 15_002
_LOCAL: Final = "localhost"
_OWN: Final = {
    "session_id": "each worker has a session of its own",
    "user_agent": "the workers say what they are",
}
"""Parameters that are not the user's to give."""
_PLAIN: Final = ("use_ssl", "user_id", "grpc_keepalive_")
"""How parameters begin whose values are no secrets."""
_NEEDED: Final = ("grpc", "grpc_status", "google.rpc", "pandas", "zstandard")
"""What PySpark's client imports."""
_WAYS_OUT: Final = {
    "authentication token": (
        "token=… of spark.master is not the one that it was started with, its own"
        " SPARK_CONNECT_AUTHENTICATE_TOKEN"
    ),
    "local issuer|self.signed": (
        "its certificate is of no authority that this node knows: in the environment of fairlead up"
        " GRPC_DEFAULT_SSL_ROOTS_FILE_PATH names a file of those that are trusted"
    ),
    "has expired": "its certificate has expired: have it renewed",
    "Hostname Verification": "its certificate is for another name: write that into spark.master",
    "WRONG_VERSION_NUMBER": "it speaks no TLS there: name another port, or take use_ssl=true away",
    "Socket closed": "if it speaks TLS there, add use_ssl=true to spark.master",
}
"""What to do about what gRPC, or a server, says when it refuses a worker; by patterns of that."""


@dataclass(frozen=True, slots=True)
class ConnectAddress:
    """Where a server is, and how it is spoken to; raises `ValueError` as it is parsed."""

    host: str
    port: int
    parameters: Mapping[str, str] = field(repr=False)

    @staticmethod
    def parse(text: str) -> "ConnectAddress":
        """Read an address; what is wrong is told without its parameters."""
        place, _, rest = text.partition("/;")
        parts = urlsplit(place)
        if parts.scheme != "sc" or not parts.hostname or parts.path.strip("/") or parts.query:
            raise ValueError("it is no sc://HOST:PORT/;NAME=VALUE;…")
        if parts.username is not None or parts.fragment or any(map(str.isspace, place)):
            raise ValueError("nothing may stand around the host and the port")
        pairs = [each.partition("=") for each in rest.split(";") if each]
        if not all(name and value for name, _, value in pairs):
            raise ValueError("a parameter has no name or no value")
        for name, _, _ in pairs:
            if reason := _OWN.get(name):
                raise ValueError(f"{name} cannot be given: {reason}")
        parameters = {name: unquote(value) for name, _, value in pairs}
        if parameters.get("use_ssl", "true") not in {"true", "false"}:
            raise ValueError("use_ssl is true or false")
        return ConnectAddress(parts.hostname, parts.port or DEFAULT_PORT, parameters)

    def __str__(self) -> str:
        """Return where it is, without its parameters."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{CONNECT}{host}:{self.port}"

    @property
    def secrets(self) -> list[str]:
        """What is to be hidden: the values of all parameters but those of PySpark that are none."""
        return [each for name, each in self.parameters.items() if not name.startswith(_PLAIN)]

    @property
    def token(self) -> str:
        """What the server asks for; empty: nothing."""
        return self.parameters.get("token", "")

    @property
    def has_tls(self) -> bool:
        """Whether what is said is encrypted, and the server shows who it is."""
        return self.parameters.get("use_ssl") == "true"

    @property
    def is_loopback(self) -> bool:
        """Whether nothing leaves this machine."""
        try:
            return ipaddress.ip_address(self.host).is_loopback
        except ValueError:
            return self.host == _LOCAL

    def flaw(self) -> str:
        """Return why it is not safe to speak to, nothing if it is."""
        if self.has_tls or self.is_loopback:
            return ""
        if self.token:
            return "sends a token, which anybody on the way could read: add use_ssl=true"
        if "use_ssl" not in self.parameters:
            return (
                "would send rows and queries as they are, to a server that does not show who it is:"
                " add use_ssl=true, or use_ssl=false if that network is yours alone"
            )
        return ""

    def url(self, session_id: str) -> str:
        """Return the address as PySpark takes it, with a session; it may hold a secret."""
        # PySpark hands a token without TLS to a server on this machine by that name alone.
        is_plain = bool(self.token) and not self.has_tls
        place = f"{CONNECT}{_LOCAL}:{self.port}" if is_plain else str(self)
        told = {**self.parameters, "session_id": session_id, "user_agent": "fairlead"}
        return f"{place}/;" + ";".join(f"{name}={quote(each)}" for name, each in told.items())


def with_way_out(told: str) -> str:
    """Return why there is no session on a server, with what to do where that is known."""
    ways = [way for pattern, way in _WAYS_OUT.items() if re.search(pattern, told)]
    return f"{ways[0]} ({told})" if ways else told


def missing_packages() -> list[str]:
    """Return what the extra `connect` would install and is not there."""
    return [name for name in _NEEDED if not _is_there(name)]


def _is_there(name: str) -> bool:
    try:
        return find_spec(name) is not None
    except ModuleNotFoundError:  # nor is what it lies in
        return False
