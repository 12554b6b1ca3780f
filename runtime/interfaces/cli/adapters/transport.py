"""One HTTP connection to a cluster: a request, and its whole answer.

It is `http.client` since a verb takes longer to import a client with more than to do its work. A
proxy from the environment is never used: it cannot reach this machine's loopback address.
"""

import http.client
import socket
import time
from base64 import b64encode
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Final, NamedTuple
from urllib.parse import unquote, urlsplit

from ....processes.socket_names import short_socket_name
from .tls import (
    NO_FILES,
    TlsFiles,
    TlsFilesRefusedError,
    client_context,
    describe_tls_error,
)

CONNECT_SECONDS: Final = 5.0
REUSED_SECONDS: Final = 1.0
"""How long an idle connection is used again: servers close theirs after some seconds."""
FIRST_ERROR: Final = 300


class NotConnectedError(Exception):
    """Nobody listens there, which needs no message, or it says why; nothing was sent."""


class TlsFailedError(NotConnectedError):
    """The two did not agree on TLS, and the message says why; nothing was done."""


class LostError(Exception):
    """There was no answer to a request that may have been sent."""


class ClusterAnswer(NamedTuple):
    """The response of a cluster."""

    status: int
    headers: Mapping[str, str]
    content: bytes

    @property
    def is_success(self) -> bool:
        """Whether the request was carried out."""
        return self.status < FIRST_ERROR

    def header(self, name: str) -> str:
        """Return a header, in upper or lower case; "" if there is none."""
        return next((v for key, v in self.headers.items() if key.lower() == name.lower()), "")

    @property
    def text(self) -> str:
        """Its content as text."""
        return self.content.decode(errors="replace")


def basic_authorization(user: str, password: str) -> str:
    """Return the header that says who asks, by a user and a password."""
    return f"Basic {b64encode(f'{user}:{password}'.encode()).decode()}"


class _SocketConnection(http.client.HTTPConnection):
    """A connection to a Unix socket."""

    def __init__(self, path: str, seconds: float) -> None:
        super().__init__("localhost", timeout=seconds)
        self._path = Path(path)

    def connect(self) -> None:
        """Connect; raises `OSError`."""
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(self.timeout)
        try:
            with short_socket_name(self._path) as name:
                self.sock.connect(name)
        except OSError:
            self.close()
            raise


class ClusterConnection:
    """A connection to the server of a URL, whose user and password it sends.

    It is one of http, of https, or of a Unix socket (`unix:///path`).
    """

    def __init__(
        self, url: str, authorization: str = "", files: TlsFiles = NO_FILES, socket: str = ""
    ) -> None:
        """Raise `ValueError` for a URL with a port that is none.

        The header `authorization` comes before a user in the URL. `files` are those of https.
        `socket` is the path of a Unix socket of the same server, which is used if it is there.
        """
        parts = urlsplit(url)
        self._socket = unquote(parts.path) if parts.scheme == "unix" else ""
        if socket and Path(socket).exists():
            self._socket = socket
        self._is_encrypted = parts.scheme == "https" and not self._socket
        self._files = files
        self._host, self._port, self._before = parts.hostname or "", parts.port, parts.path
        if self._socket:
            self._before = ""
        self._headers = {"Accept": "application/json", "User-Agent": "fairlead"}
        if parts.username is not None and not authorization:
            user, password = unquote(parts.username), unquote(parts.password or "")
            authorization = basic_authorization(user, password)
        if authorization:
            self._headers["Authorization"] = authorization
        self._open: http.client.HTTPConnection | None = None
        self._used_at = 0.0
        self._tagged: dict[str, ClusterAnswer] = {}
        """The last answers that have an entity tag, by path: they are not sent again unchanged."""

    def ask(self, method: str, path: str, content: bytes | None, seconds: float) -> ClusterAnswer:
        """Send a request; `seconds` is how long each part of the answer may take.

        Raises `LostError`, `NotConnectedError`.
        """
        headers = dict(self._headers)
        if content is not None:
            headers["Content-Type"] = "application/json"
        before = self._tagged.get(path) if method == "GET" else None
        if before is not None:
            headers["If-None-Match"] = before.header("ETag")
        connection = self._connected(seconds)
        try:
            connection.request(method, f"{self._before}{path}", content, headers)
            answer = connection.getresponse()
            whole = ClusterAnswer(answer.status, dict(answer.headers), answer.read())
        except (OSError, http.client.HTTPException, ValueError) as error:
            self.close()
            raise self._explain_loss(error) from None
        self._used_at = time.monotonic()
        if before is not None and whole.status == http.HTTPStatus.NOT_MODIFIED:
            return ClusterAnswer(before.status, whole.headers, before.content)
        if method == "GET" and whole.is_success and whole.header("ETag"):
            self._tagged[path] = whole
        return whole

    def close(self) -> None:
        """Close it; the next request opens another one."""
        if self._open is not None:
            with suppress(OSError):
                self._open.close()
        self._open = None

    def __del__(self) -> None:
        """Close it: a verb that has its answer lets go of it."""
        if hasattr(self, "_open"):  # not if its URL was none
            self.close()

    def _connected(self, seconds: float) -> http.client.HTTPConnection:
        is_idle = time.monotonic() - self._used_at > REUSED_SECONDS
        if self._open is None or self._open.sock is None or is_idle:
            self.close()
            opened = self._new_connection(min(CONNECT_SECONDS, seconds))
            try:
                opened.connect()
            except ConnectionRefusedError:
                raise NotConnectedError from None
            except (OSError, http.client.HTTPException, ValueError) as error:
                raise self._explain_refusal(error) from None
            self._open = opened
        self._open.sock.settimeout(seconds)
        return self._open

    def _new_connection(self, seconds: float) -> http.client.HTTPConnection:
        if self._socket:
            return _SocketConnection(self._socket, seconds)
        if not self._is_encrypted:
            return http.client.HTTPConnection(self._host, self._port, timeout=seconds)
        try:
            context = client_context(self._files)
        except TlsFilesRefusedError as error:
            raise TlsFailedError(str(error)) from None
        return http.client.HTTPSConnection(self._host, self._port, timeout=seconds, context=context)

    def _explain_refusal(self, error: Exception) -> NotConnectedError:
        """Return why there is no connection."""
        if self._is_encrypted and (told := _describe_tls(error)):
            return TlsFailedError(told)
        if self._socket and isinstance(error, FileNotFoundError):
            return NotConnectedError()
        if self._socket and isinstance(error, PermissionError):
            return NotConnectedError("only the user whose node it is may connect")
        return NotConnectedError(str(error))

    def _explain_loss(self, error: Exception) -> Exception:
        """Return why there is no answer; with TLS the server may refuse only now who asks."""
        if self._is_encrypted and (told := _describe_tls(error)):
            return TlsFailedError(told)
        text = f"{type(error).__name__} {error}".rstrip()
        if isinstance(error, ConnectionError) and not (self._socket or self._used_at):
            if not self._is_encrypted:
                text = f"{text} (does it speak https?)"
            elif not self._files.cert:
                text = f"{text} (does it want a client's certificate, --cert FILE?)"
        return LostError(text)


def _describe_tls(error: Exception) -> str:
    """Return what went wrong in TLS; "" for another error."""
    import ssl  # noqa: PLC0415  # http needs none

    return describe_tls_error(error) if isinstance(error, ssl.SSLError) else ""
