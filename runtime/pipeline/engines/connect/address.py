"""The address of a Spark Connect server, with its parameters.

    sc://HOST:PORT/;use_ssl=true;token=SECRET

This is PySpark's format. The parameters are never shown: a token is a secret, and other parameters
may be secrets for a proxy. This module does not import PySpark.
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
_RESERVED: Final = {
    "session_id": "each worker has a session of its own",
    "user_agent": "each worker sets it itself",
}
"""Parameters that a user must not give, each with the reason."""
_NOT_SECRET: Final = ("use_ssl", "user_id", "grpc_keepalive_")
"""The prefixes of parameters whose values are not secret."""
_NEEDED: Final = ("grpc", "grpc_status", "google.rpc", "pandas", "zstandard")
"""The packages that PySpark's client imports."""
_REMEDIES: Final = {
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
"""The remedies for errors of gRPC or of a server, by a pattern of the error."""


@dataclass(frozen=True, slots=True)
class ConnectAddress:
    """The host, the port and the parameters of a server."""

    host: str
    port: int
    parameters: Mapping[str, str] = field(repr=False)

    @staticmethod
    def parse(text: str) -> "ConnectAddress":
        """Parse an address; raises `ValueError`, without the values of parameters in its text."""
        place, _, rest = text.partition("/;")
        parts = urlsplit(place)
        if parts.scheme != "sc" or not parts.hostname or parts.path.strip("/") or parts.query:
            raise ValueError("it is no sc://HOST:PORT/;NAME=VALUE;…")
        if parts.username is not None or parts.fragment or any(map(str.isspace, place)):
            raise ValueError("only a host and a port may stand between sc:// and /;")
        pairs = [each.partition("=") for each in rest.split(";") if each]
        if not all(name and value for name, _, value in pairs):
            raise ValueError("a parameter has no name or no value")
        for name, _, _ in pairs:
            if reason := _RESERVED.get(name):
                raise ValueError(f"{name} cannot be given: {reason}")
        parameters = {name: unquote(value) for name, _, value in pairs}
        if parameters.get("use_ssl", "true") not in {"true", "false"}:
            raise ValueError("use_ssl is true or false")
        return ConnectAddress(parts.hostname, parts.port or DEFAULT_PORT, parameters)

    def __str__(self) -> str:
        """Return the address without its parameters."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{CONNECT}{host}:{self.port}"

    @property
    def secrets(self) -> list[str]:
        """The values to mask: those of all parameters except known ones that are not secret."""
        return [each for name, each in self.parameters.items() if not name.startswith(_NOT_SECRET)]

    @property
    def token(self) -> str:
        """The token for the server; empty: none."""
        return self.parameters.get("token", "")

    @property
    def has_tls(self) -> bool:
        """Whether the connection is encrypted and the server is authenticated."""
        return self.parameters.get("use_ssl") == "true"

    @property
    def is_loopback(self) -> bool:
        """Whether the server is on this machine."""
        try:
            return ipaddress.ip_address(self.host).is_loopback
        except ValueError:
            return self.host == _LOCAL

    def flaw(self) -> str:
        """Return why a connection would not be safe; empty: it is safe."""
        if self.has_tls or self.is_loopback:
            return ""
        if self.token:
            return "would send the token unencrypted: add use_ssl=true"
        if "use_ssl" not in self.parameters:
            return (
                "would send rows and queries unencrypted, to a server that is not authenticated:"
                " add use_ssl=true, or use_ssl=false if that network is yours alone"
            )
        return ""

    def url(self, session_id: str) -> str:
        """Return the address for PySpark, with a session id; it may contain a secret."""
        # Without TLS PySpark sends a token only to the host name `localhost`.
        is_plain = bool(self.token) and not self.has_tls
        place = f"{CONNECT}{_LOCAL}:{self.port}" if is_plain else str(self)
        parameters = {**self.parameters, "session_id": session_id, "user_agent": "fairlead"}
        return f"{place}/;" + ";".join(f"{name}={quote(each)}" for name, each in parameters.items())


def with_remedy(error: str) -> str:
    """Return an error of a server, with the remedy in front if it is known."""
    remedies = [remedy for pattern, remedy in _REMEDIES.items() if re.search(pattern, error)]
    return f"{remedies[0]} ({error})" if remedies else error


def missing_packages() -> list[str]:
    """Return the packages of the extra `connect` that are not installed."""
    return [name for name in _NEEDED if not _is_installed(name)]


def _is_installed(name: str) -> bool:
    try:
        return find_spec(name) is not None
    except ModuleNotFoundError:  # its parent package is missing as well
        return False
