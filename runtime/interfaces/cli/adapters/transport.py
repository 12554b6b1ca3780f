"""One HTTP connection to a cluster: a request, and its whole answer.

It is `http.client` since a verb takes longer to import a client with more than to do its work. A
proxy from the environment is never used: it cannot reach this machine's loopback address.
"""

import http.client
import time
from base64 import b64encode
from collections.abc import Mapping
from contextlib import suppress
from typing import Final, NamedTuple
from urllib.parse import unquote, urlsplit

CONNECT_SECONDS: Final = 5.0
REUSED_SECONDS: Final = 1.0
"""How long an idle connection is used again: servers close theirs after some seconds."""
FIRST_ERROR: Final = 300


class NotConnectedError(Exception):
    """Nobody listens there, which needs no message, or it says why; nothing was sent."""


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


class ClusterConnection:
    """A connection to the server of an http or https URL, whose user and password it sends."""

    def __init__(self, url: str) -> None:
        """Raise `ValueError` for a URL with a port that is none."""
        parts = urlsplit(url)
        self._is_encrypted = parts.scheme == "https"
        self._host, self._port, self._before = parts.hostname or "", parts.port, parts.path
        self._headers = {"Accept": "application/json", "User-Agent": "fairlead"}
        if parts.username is not None:
            pair = f"{unquote(parts.username)}:{unquote(parts.password or '')}"
            self._headers["Authorization"] = f"Basic {b64encode(pair.encode()).decode()}"
        self._open: http.client.HTTPConnection | None = None
        self._used_at = 0.0

    def ask(self, method: str, path: str, content: bytes | None, seconds: float) -> ClusterAnswer:
        """Send a request; `seconds` is how long each part of the answer may take.

        Raises `LostError`, `NotConnectedError`.
        """
        typed = {} if content is None else {"Content-Type": "application/json"}
        connection = self._connected(seconds)
        try:
            connection.request(method, f"{self._before}{path}", content, {**self._headers, **typed})
            answer = connection.getresponse()
            whole = ClusterAnswer(answer.status, dict(answer.headers), answer.read())
        except (OSError, http.client.HTTPException, ValueError) as error:
            self.close()
            raise LostError(f"{type(error).__name__} {error}".rstrip()) from None
        self._used_at = time.monotonic()
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
            kind = http.client.HTTPSConnection if self._is_encrypted else http.client.HTTPConnection
            opened = kind(self._host, self._port, timeout=min(CONNECT_SECONDS, seconds))
            try:
                opened.connect()
            except ConnectionRefusedError:
                raise NotConnectedError from None
            except (OSError, http.client.HTTPException, ValueError) as error:
                raise NotConnectedError(str(error)) from None
            self._open = opened
        self._open.sock.settimeout(seconds)
        return self._open
