"""The listening sockets of the REST process, its server, and the time limits for a request.

Sockets are bound before all other startup work. uvicorn has no time limit for a request whose first
byte has come. The limit here runs from the first byte, so that a client that sends byte by byte
(slowloris) gains nothing. And uvicorn's server wakes ten times a second, to look whether it is to
end and what the date is; the one here is woken by signals, and tells the date where it is asked.
"""

import asyncio
import math
import socket
import time
from collections.abc import Sequence
from contextlib import ExitStack, suppress
from email.utils import formatdate
from functools import lru_cache
from http import HTTPStatus
from types import FrameType

import h11
import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from .....actors.transport.ports import HostPort
from ....config.kinds import parse_listener
from .errors import JSON, error_reply

DEFAULT = "http://127.0.0.1:8083"
BACKLOG = 128
HEAD_SECONDS = 10.0
"""The limit from the connection, or the first byte of a later request, to the last header."""
BODY_SECONDS = 30.0
"""The limit from the last header to the end of the body."""
MOST_CONNECTIONS = 512
"""The maximum number of open connections; beyond it the longest idle one is closed."""
LINGER_SECONDS = 1.0
"""The delay between an error response and the close: unread input would reset the connection."""

SECONDS: dict[object, float] = {h11.IDLE: HEAD_SECONDS, h11.SEND_BODY: BODY_SECONDS}


class CannotListen(Exception):  # noqa: N818  # says what happened
    """The URL of a listener is malformed, or its port cannot be bound."""


def parse(text: str) -> HostPort:
    """Parse `http://host:port`; raises `CannotListen`.

    The default host is loopback: other machines can connect only if a host is given.
    """
    try:
        return parse_listener(text)
    except ValueError as error:
        why = f"{text!r} is no listener: {error}; write http://HOST:PORT, as {DEFAULT}"
        raise CannotListen(why) from None


def listen(listeners: Sequence[HostPort]) -> list[socket.socket]:
    """Return a listening socket for each listener; raises `CannotListen` and closes all."""
    with ExitStack() as undo:
        sockets = [undo.enter_context(_listen(listener)) for listener in listeners]
        undo.pop_all()
    return sockets


def where(bound: socket.socket) -> HostPort:
    """Return the address of a listening socket."""
    host, port = bound.getsockname()[:2]
    return HostPort(host, port)


def _listen(listener: HostPort) -> socket.socket:
    family = socket.AF_INET6 if ":" in listener.host else socket.AF_INET
    # asyncio sets TCP_NODELAY only if the protocol is given; else a response takes 40 ms longer.
    bound = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        bound.bind(tuple(listener))
        bound.listen(BACKLOG)
    except OSError as error:
        bound.close()
        raise CannotListen(
            f"cannot listen at {listener.url}: {error.strerror or error}; free the port, or choose"
            " another with `listeners`"
        ) from None
    return bound


class RestServer(uvicorn.Server):
    """uvicorn's server, which does nothing while no request and no signal comes."""

    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self._has_to_end = asyncio.Event()
        self._loop: asyncio.AbstractEventLoop | None = None  # none before the server has started

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


@lru_cache(maxsize=1)
def _date_at(second: int) -> tuple[bytes, bytes]:
    return (b"date", formatdate(second, usegmt=True).encode())


class ReceiveTimeoutProtocol(H11Protocol):
    """uvicorn's HTTP/1.1 connection with a time limit for receiving a request."""

    _receives: type | None = None  # the state of the client in h11
    _limit: asyncio.TimerHandle | None = None  # the running time limit
    _refused = False  # whether the request was refused: further input is dropped

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Start the time limit for the first request."""
        super().connection_made(transport)
        self._watch()
        if len(self.connections) > MOST_CONNECTIONS:
            waiting = (
                each for each in self.connections if isinstance(each, ReceiveTimeoutProtocol)
            )
            min(waiting, key=ReceiveTimeoutProtocol.ends_at).transport.abort()

    def data_received(self, data: bytes) -> None:
        """Handle input, and update the time limit."""
        if self._refused:
            return
        date = _date_at(int(time.time()))
        self.server_state.default_headers = [date, *self.config.encoded_headers]
        super().data_received(data)
        self._watch()

    def connection_lost(self, exc: Exception | None) -> None:
        """Cancel the time limit."""
        self._stop_watching()
        super().connection_lost(exc)

    def ends_at(self) -> float:
        """Return the deadline of the request, on the loop's clock."""
        waits = self._limit is not None and not self._limit.cancelled()
        return self._limit.when() if self._limit and waits else math.inf

    def _watch(self) -> None:
        state = self.conn.their_state
        if state is self._receives:
            return
        self._stop_watching()
        self._receives = state
        if seconds := SECONDS.get(state):
            self._limit = self.loop.call_later(seconds, self._give_up)

    def _stop_watching(self) -> None:
        if self._limit is not None:
            self._limit.cancel()

    def _give_up(self) -> None:
        """Close a connection whose request is incomplete at its deadline."""
        if self.conn.our_state in {h11.IDLE, h11.SEND_RESPONSE}:
            status = HTTPStatus.REQUEST_TIMEOUT
            body = error_reply(status, "the request took too long to come; nothing was done").body
            size = str(len(body)).encode()
            head = [(b"content-type", JSON.encode()), (b"content-length", size)]
            head.append((b"connection", b"close"))
            told = h11.Response(status_code=status, headers=head, reason=status.phrase.encode())
            events = (told, h11.Data(data=bytes(body)), h11.EndOfMessage())
            self.transport.write(b"".join(self.conn.send(each) or b"" for each in events))
            self.transport.write_eof()
            self._refused = True
            self._limit = self.loop.call_later(LINGER_SECONDS, self.transport.close)
        else:
            self.transport.close()
