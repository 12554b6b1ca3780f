"""The listeners of the REST interface: URLs of ports, with TLS or without, and Unix sockets."""

from typing import Final, NamedTuple
from urllib.parse import quote, unquote, urlsplit

from ...actors.transport.ports import LOOPBACK, HostPort, bracketed
from ...events.placement import split_list

REST_PORT: Final = 8083
UNIX: Final = "unix"
SCHEMES: Final = ("http", "https", UNIX)
SOCKET_BYTES: Final = 107
"""The most bytes of the name of a Unix socket: what Linux has room for."""


class RestListener(NamedTuple):
    """One listener: a host and a port, or the path of a Unix socket."""

    scheme: str
    host: str = ""
    port: int = 0
    path: str = ""

    @property
    def url(self) -> str:
        """Its URL."""
        if self.is_unix:
            return f"{UNIX}://{quote(self.path)}"
        return f"{self.scheme}://{bracketed(self.host)}:{self.port}"

    @property
    def is_unix(self) -> bool:
        """Whether it is a Unix socket."""
        return self.scheme == UNIX

    @property
    def is_encrypted(self) -> bool:
        """Whether connections are encrypted."""
        return self.scheme == "https"

    @property
    def address(self) -> HostPort:
        """Its host and port."""
        return HostPort(self.host, self.port)

    @property
    def is_local(self) -> bool:
        """Whether only this machine can connect to it."""
        return self.is_unix or self.address.is_loopback


def parse_listener(text: str) -> RestListener:
    """Parse the URL of a listener; raises `ValueError` with the reason.

    As in Kafka Connect the host may be omitted, but the default is loopback, not all interfaces.
    """
    parts = urlsplit(text.strip())
    if parts.scheme not in SCHEMES:
        raise ValueError("only http, https and unix are supported")
    if parts.query or parts.fragment or "@" in parts.netloc:
        raise ValueError("the URL may only have a host and a port")
    if parts.scheme == UNIX:
        return _unix(unquote(parts.path), parts.netloc)
    if parts.path not in {"", "/"}:
        raise ValueError("the URL may only have a host and a port")
    port = REST_PORT if parts.port is None else parts.port
    return RestListener(parts.scheme, parts.hostname or LOOPBACK, port)


def _unix(path: str, host: str) -> RestListener:
    if host or not path.startswith("/") or path.endswith("/"):
        raise ValueError("a Unix socket is written with three slashes, as unix:///run/rest.sock")
    if not path.isprintable() or len(path.encode()) > SOCKET_BYTES:
        raise ValueError(
            f"the path of a Unix socket has at most {SOCKET_BYTES} bytes, and this one has"
            f" {len(path.encode())}"
        )
    return RestListener(UNIX, path=path)


def parse_listeners(text: str) -> tuple[RestListener, ...]:
    """Parse URLs with commas between them; raises `ValueError`, also for one that comes twice."""
    listeners = tuple(map(parse_listener, split_list(text)))
    fixed = [each for each in listeners if each.is_unix or each.port]
    if len({(each.host, each.port, each.path) for each in fixed}) < len(fixed):
        raise ValueError("a listener occurs twice")
    return listeners
