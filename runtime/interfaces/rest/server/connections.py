"""The connections of the REST process: time limits for requests and handshakes, and who is there.

uvicorn has no time limit for a request whose first byte has come. The limit here runs from the
first byte, so that a client that sends byte by byte (slowloris) gains nothing. A TLS handshake has
the same limit. Each connection takes the certificate that is valid when it begins
(`runtime/security/tls.py`).

What is known of the other end is in the scope of each request, below `extensions`: `tls` as ASGI's
TLS extension has it, with the subject of a client's certificate as `client_cert_name`, and its end
as `client_cert_not_after`; `unix` with the `uid` and the `pid` of a caller of a Unix socket, as the
kernel says; and `fairlead.listener`.
"""

import asyncio
import logging
import socket
import ssl
import struct
import time
from collections.abc import Callable, MutableMapping
from email.utils import formatdate
from functools import lru_cache, partial
from http import HTTPStatus
from typing import Any, Final, cast

import h11
from starlette.requests import Request
from starlette.types import ASGIApp, Receive, Scope, Send
from uvicorn.protocols.http.h11_impl import H11Protocol

from ....security.tls import ServerTls, end_of, subject_of
from .errors import JSON, error_reply

LOGGER = logging.getLogger(__name__)
HEAD_SECONDS = 10.0
"""The limit from the connection, or the first byte of a later request, to the last header."""
BODY_SECONDS = 30.0
"""The limit from the last header to the end of the body."""
MOST_CONNECTIONS = 512
"""The maximum number of open connections; beyond it the one that waits longest is closed."""
MOST_HANDSHAKES = 128
"""The maximum number of TLS handshakes; beyond it the oldest one is ended."""
LINGER_SECONDS = 1.0
"""The delay between an error response and the close: unread input would reset the connection."""

SECONDS: dict[object, float] = {h11.IDLE: HEAD_SECONDS, h11.SEND_BODY: BODY_SECONDS}
_CREDENTIALS: Final = struct.Struct("3i")
"""Linux's `struct ucred`: the process, user and group ids of the peer."""
_TWO_ENDS: Final = {b"content-length", b"transfer-encoding"}
_TLS_VERSIONS: Final = {"TLSv1.2": 0x0303, "TLSv1.3": 0x0304}

CONNECTION: Final = "fairlead.connection"

Extensions = MutableMapping[str, dict[str, Any]]


def abort_of(request: Request) -> Callable[[], object]:
    """Return the function that ends the connection of a request at once."""
    extensions: Extensions = request.scope.get("extensions") or {}
    abort: Callable[[], object] = extensions.get(CONNECTION, {}).get("abort", bool)
    return abort


@lru_cache(maxsize=1)
def _date_at(second: int) -> tuple[bytes, bytes]:
    return (b"date", formatdate(second, usegmt=True).encode())


async def _extended(
    app: ASGIApp, extensions: Extensions, scope: Scope, receive: Receive, send: Send
) -> None:
    """Run an application with what is known of the connection in its scope.

    A body whose end can be read in two ways is refused: a proxy in front may read the other one,
    and what follows would be the request of somebody else (RFC 9112, section 6.1).
    """
    scope["extensions"] = extensions
    if {name for name, _ in scope.get("headers", ())} >= _TWO_ENDS:
        told = "a request has Content-Length or Transfer-Encoding, not both; nothing was done"
        refused = error_reply(HTTPStatus.BAD_REQUEST, told)
        refused.headers["Connection"] = "close"
        await refused(scope, receive, send)
        return
    await app(scope, receive, send)


def _peer_of(transport: asyncio.Transport) -> Extensions:
    """Return what is known of the other end of a connection."""
    if (tls := cast("ssl.SSLObject | None", transport.get_extra_info("ssl_object"))) is not None:
        return {"tls": _describe_tls(tls)}
    end: socket.socket = transport.get_extra_info("socket")
    if end.family == socket.AF_UNIX:
        told = end.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
        pid, uid, _ = _CREDENTIALS.unpack(told)
        return {"unix": {"pid": pid, "uid": uid}}
    return {}


def _describe_tls(tls: ssl.SSLObject) -> dict[str, Any]:
    own = tls.getpeercert(binary_form=True)
    return {
        "server_cert": None,
        "client_cert_chain": [ssl.DER_cert_to_PEM_cert(own)] if own else [],
        "client_cert_name": subject_of(own) if own else None,
        "client_cert_not_after": end_of(own) if own else None,
        "client_cert_error": None,
        "tls_version": _TLS_VERSIONS.get(tls.version() or ""),
        "cipher_suite": None,
    }


class ReceiveTimeoutProtocol(H11Protocol):
    """uvicorn's HTTP/1.1 connection with a time limit for receiving a request."""

    extensions: Extensions | None = None
    """What the scope of each request says of its connection; set before it begins."""
    _receives: type | None = None  # the state of the client in h11
    _limit: asyncio.TimerHandle | None = None  # the running time limit
    _began_at = 0.0  # when it was started, on the loop's clock
    _heard_at = 0.0  # when the last input came
    _refused = False  # whether the request was refused: further input is dropped

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Start the time limit for the first request."""
        super().connection_made(transport)
        end = {CONNECTION: {"abort": transport.abort}}
        known = {**(self.extensions or {}), **_peer_of(transport), **end}
        self.app = cast("Any", partial(_extended, cast("ASGIApp", self.app), known))
        self._watch()
        if len(self.connections) > MOST_CONNECTIONS:
            waiting = (
                each for each in self.connections if isinstance(each, ReceiveTimeoutProtocol)
            )
            min(waiting, key=ReceiveTimeoutProtocol.waits_since).transport.abort()

    def data_received(self, data: bytes) -> None:
        """Handle input, and update the time limit."""
        if self._refused:
            return
        self._heard_at = self.loop.time()
        date = _date_at(int(time.time()))
        self.server_state.default_headers = [date, *self.config.encoded_headers]
        super().data_received(data)
        self._watch()

    def connection_lost(self, exc: Exception | None) -> None:
        """Cancel the time limit."""
        self._stop_watching()
        super().connection_lost(exc)

    def waits_since(self) -> float:
        """Return since when a request is incomplete, or else when the last one came.

        So streams that go on and on make room as well, and no number of them keeps others out.
        """
        is_incomplete = self._limit is not None and not self._limit.cancelled()
        return self._began_at if is_incomplete else self._heard_at

    def _watch(self) -> None:
        state = self.conn.their_state
        if state is self._receives:
            return
        self._stop_watching()
        self._receives = state
        if seconds := SECONDS.get(state):
            self._began_at = self.loop.time()
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
            if self.transport.can_write_eof():  # not with TLS
                self.transport.write_eof()
            self._refused = True
            self._limit = self.loop.call_later(LINGER_SECONDS, self.transport.close)
        else:
            self.transport.close()


class Encryption:
    """The TLS of this process: its certificate, the handshakes under way, and how many failed."""

    def __init__(self, tls: ServerTls | None = None) -> None:
        """`tls` is None if no listener is encrypted."""
        self.tls = tls
        self.failed_handshakes = 0
        """How many failed since the process began."""
        self._waiting: dict[TlsHandshake, None] = {}
        """Those under way, the oldest first."""

    def begin(self, handshake: "TlsHandshake") -> None:
        """Add a handshake; beyond the maximum the oldest is ended."""
        if len(self._waiting) >= MOST_HANDSHAKES:
            oldest = next(iter(self._waiting))
            del self._waiting[oldest]
            oldest.abort()
        self._waiting[handshake] = None

    def end(self, handshake: "TlsHandshake", error: Exception | None) -> None:
        """Remove a handshake, and count it if it failed."""
        self._waiting.pop(handshake, None)
        if error is not None:
            self.failed_handshakes += 1
            LOGGER.debug("a TLS handshake failed: %s", error)

    def end_all(self) -> None:
        """End those under way."""
        for each in [*self._waiting]:
            each.abort()


class TlsHandshake(asyncio.Protocol):
    """A connection until it is encrypted; then it is that of HTTP."""

    def __init__(
        self, http: ReceiveTimeoutProtocol, tls: ServerTls, encryption: Encryption
    ) -> None:
        """Prepare the handshake of a connection of `http`."""
        self._http = http
        self._tls = tls
        self._encryption = encryption
        self._early = b""
        """What came with the end of the handshake."""
        self._lost: tuple[Exception | None] | None = None
        """Why the connection ended meanwhile; None: it has not."""
        self._task: asyncio.Task[None] | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Begin the handshake; nothing is read before."""
        self._transport = cast("asyncio.Transport", transport)
        self._transport.pause_reading()
        self._encryption.begin(self)
        self._task = asyncio.get_running_loop().create_task(self._secure())

    def data_received(self, data: bytes) -> None:
        """Keep a request that comes before HTTP has the connection."""
        self._early += data

    def connection_lost(self, exc: Exception | None) -> None:
        """Remember that the connection is gone."""
        self._lost = (exc,)

    def abort(self) -> None:
        """End it at once."""
        self._transport.abort()

    async def _secure(self) -> None:
        try:
            secured = await asyncio.get_running_loop().start_tls(
                self._transport,
                self,
                self._tls.context(),
                server_side=True,
                ssl_handshake_timeout=SECONDS[h11.IDLE],
            )
        except OSError as error:  # also those of TLS, and that it took too long
            self._encryption.end(self, error)
            return
        if secured is None:
            self._encryption.end(self, ConnectionResetError("the client has gone"))
            return
        self._encryption.end(self, None)
        secured.set_protocol(self._http)
        self._http.connection_made(secured)
        if self._early:
            self._http.data_received(self._early)
        if self._lost is not None:
            self._http.connection_lost(self._lost[0])
