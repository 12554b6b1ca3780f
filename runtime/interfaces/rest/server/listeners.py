"""The listening sockets of the REST process, and its server.

Sockets are bound before all other startup work. A Unix socket is its owner's alone (mode 0600). The
file that a killed process left at its path is removed, but not one at which somebody still listens.

uvicorn's server wakes ten times a second, to look whether it is to end and what the date is; the
one here is woken by signals, and tells the date where it is asked (`connections.py`).
"""

import asyncio
import os
import socket
import stat
from collections.abc import Callable, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import FrameType
from typing import Final, Self

import uvicorn

from .....actors.transport.ports import LOOPBACK
from ....processes.socket_names import short_socket_name
from ....security.rest_listeners import REST_PORT, RestListener, parse_listener
from .connections import Encryption, ReceiveTimeoutProtocol, TlsHandshake

DEFAULT: Final = f"http://{LOOPBACK}:{REST_PORT}"
BACKLOG: Final = 128
_OWNER_ONLY: Final = 0o177
"""The umask for sockets."""


class CannotListen(Exception):  # noqa: N818  # says what happened
    """The URL of a listener is malformed, or its port cannot be bound."""


def parse(text: str) -> RestListener:
    """Parse `http://host:port`, `https://host:port`, `unix:///path`; raises `CannotListen`.

    The default host is loopback: other machines can connect only if a host is given.
    """
    try:
        return parse_listener(text)
    except ValueError as error:
        why = f"{text!r} is no listener: {error}; write http://HOST:PORT, as {DEFAULT}"
        raise CannotListen(why) from None


@dataclass(frozen=True, slots=True)
class OpenListener:
    """A listening socket, its address, and what is served there."""

    listener: RestListener
    """Its address, with the port that it has."""
    socket: socket.socket
    serves_admin: bool = True
    """Whether /admin is served."""
    serves_others: bool = True
    """Whether everything else is."""
    is_own: bool = False
    """Whether it is the node's own socket, at which the node's user need prove nothing."""

    def __enter__(self) -> Self:
        """Return it."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close it."""
        self.close()

    def close(self) -> None:
        """Close the socket, and remove its file if it has one."""
        self.socket.close()
        if self.listener.is_unix:
            Path(self.listener.path).unlink(missing_ok=True)


def listen(listeners: Sequence[RestListener]) -> list[OpenListener]:
    """Return a listening socket for each listener; raises `CannotListen` and closes all."""
    with ExitStack() as undo:
        opened = [undo.enter_context(_open(listener)) for listener in listeners]
        undo.pop_all()
    return opened


def listen_apart(
    listeners: Sequence[RestListener], admin: Sequence[RestListener] | None
) -> list[OpenListener]:
    """Return sockets for listeners, and for those of /admin, which may be among the others.

    Without any of the latter (None) each serves all. Raises `CannotListen` and closes all.
    """
    if admin is None:
        return listen(listeners)
    ports = [*listeners, *(each for each in admin if each not in listeners)]
    return [
        OpenListener(opened.listener, opened.socket, asked in admin, asked in listeners)
        for asked, opened in zip(ports, listen(ports), strict=True)
    ]


def _open(listener: RestListener) -> OpenListener:
    kind = socket.AF_INET6 if ":" in listener.host else socket.AF_INET
    protocol = socket.IPPROTO_TCP
    if listener.is_unix:
        kind, protocol = socket.AF_UNIX, 0
    # asyncio sets TCP_NODELAY only if the protocol is given; else a response takes 40 ms longer.
    bound = socket.socket(kind, socket.SOCK_STREAM, protocol)
    try:
        if listener.is_unix:
            _bind_path(bound, Path(listener.path))
        else:
            bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            bound.bind(tuple(listener.address))
            listener = listener._replace(port=bound.getsockname()[1])
        bound.listen(BACKLOG)
    except OSError as error:
        bound.close()
        mend = "choose another path" if listener.is_unix else "free the port, or choose another"
        raise CannotListen(
            f"cannot listen at {listener.url}: {error.strerror or error}; {mend} with `listeners`"
        ) from None
    return OpenListener(listener, bound)


def _bind_path(bound: socket.socket, path: Path) -> None:
    """Bind a socket to a path, for its owner only; raises `OSError`."""
    with short_socket_name(path) as name:
        with suppress(FileNotFoundError):
            if stat.S_ISSOCK(path.stat(follow_symlinks=False).st_mode) and not _has_listener(name):
                path.unlink(missing_ok=True)
        before = os.umask(_OWNER_ONLY)
        try:
            bound.bind(name)
        finally:
            os.umask(before)


def _has_listener(name: str) -> bool:
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        try:
            probe.connect(name)
        except ConnectionRefusedError:
            return False
        except OSError:
            return True  # it is not known
    return True


class RestServer(uvicorn.Server):
    """uvicorn's server, which does nothing while no request and no signal comes."""

    def __init__(
        self,
        config: uvicorn.Config,
        listeners: Sequence[OpenListener],
        encryption: Encryption,
        before_end: Callable[[], None] = lambda: None,
    ) -> None:
        """Serve at these sockets; `before_end` ends the answers that would go on for ever."""
        super().__init__(config)
        self._before_end = before_end
        self._listeners = listeners
        self._encryption = encryption
        self._has_to_end = asyncio.Event()
        self._loop: asyncio.AbstractEventLoop | None = None  # none before the server has started

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Begin to accept connections, of each listener with a protocol of its own."""
        await super().startup(sockets or [])
        loop = asyncio.get_running_loop()
        for each in self._listeners:
            connect = partial(self._connect, each)
            server = await loop.create_server(connect, sock=each.socket, backlog=BACKLOG)
            self.servers.append(server)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """End all connections; the files of Unix sockets are removed."""
        self._encryption.end_all()
        self._before_end()
        await super().shutdown(sockets)
        for each in self._listeners:
            each.close()

    async def main_loop(self) -> None:
        """Wait until a signal asks for an end."""
        self._loop = asyncio.get_running_loop()
        if not self.should_exit:
            await self._has_to_end.wait()

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Handle a signal that asks for an end."""
        super().handle_exit(sig, frame)
        if self._loop is not None:
            with suppress(RuntimeError):  # the loop is closed: the server has ended
                self._loop.call_soon_threadsafe(self._has_to_end.set)

    def _connect(self, opened: OpenListener) -> asyncio.Protocol:
        """Return the protocol of a new connection."""
        served = {
            "admin": opened.serves_admin,
            "others": opened.serves_others,
            "own": opened.is_own,
        }
        http = ReceiveTimeoutProtocol(self.config, self.server_state, self.lifespan.state)
        http.extensions = {"fairlead.listener": {"url": opened.listener.url, **served}}
        if not opened.listener.is_encrypted:
            return http
        if (tls := self._encryption.tls) is None:
            raise AssertionError(f"{opened.listener.url} has no certificate")
        return TlsHandshake(http, tls, self._encryption)
