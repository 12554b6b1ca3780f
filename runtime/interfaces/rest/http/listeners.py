"""Where the REST process listens: sockets that are bound before anything else is done."""

import socket
from collections.abc import Sequence
from contextlib import ExitStack
from typing import NamedTuple
from urllib.parse import urlsplit

DEFAULT = "http://127.0.0.1:8083"
LOOPBACK = "127.0.0.1"
BACKLOG = 128


class CannotListen(Exception):  # noqa: N818  # says what happened
    """A listener is malformed, or its port cannot be had."""


class RestListener(NamedTuple):
    """One address to listen at; port 0 takes any that is free."""

    host: str
    port: int

    def __str__(self) -> str:
        """Return its URL."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"http://{host}:{self.port}"


def parse(text: str) -> RestListener:
    """Return the listener that `http://host:port` means; raises `CannotListen`.

    Without a host it is this machine's loopback: other machines have to be let in by name.
    """
    try:
        parts = urlsplit(text.strip())
        host, port = parts.hostname, parts.port
    except ValueError:
        parts, host, port = urlsplit(""), None, None
    if parts.scheme != "http" or port is None or parts.path not in {"", "/"}:
        raise CannotListen(f"{text!r} is no listener: write http://HOST:PORT, as {DEFAULT}")
    return RestListener(host or LOOPBACK, port)


def listen(listeners: Sequence[RestListener]) -> list[socket.socket]:
    """Return a listening socket for each; raises `CannotListen` and then leaves none open."""
    with ExitStack() as undo:
        sockets = [undo.enter_context(_listen(listener)) for listener in listeners]
        undo.pop_all()
    return sockets


def where(bound: socket.socket) -> RestListener:
    """Return where a socket listens."""
    host, port = bound.getsockname()[:2]
    return RestListener(host, port)


def _listen(listener: RestListener) -> socket.socket:
    family = socket.AF_INET6 if ":" in listener.host else socket.AF_INET
    # Only where the protocol is named does asyncio switch off Nagle's delay, 40 ms an answer.
    bound = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        bound.bind(tuple(listener))
        bound.listen(BACKLOG)
    except OSError as error:
        bound.close()
        raise CannotListen(
            f"cannot listen at {listener}: {error.strerror or error}; free the port, or choose"
            " another with `listeners`"
        ) from None
    return bound
