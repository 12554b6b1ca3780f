"""Where a node is, and who asks it, in the words of httpx.

A proxy of the environment is not used, as by the command line: it could not reach this machine's
loopback address.
"""

import ssl
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import KW_ONLY, dataclass
from functools import cached_property
from typing import Any, Final
from urllib.parse import unquote

import httpx

from .errors import NodeUnreachableError
from .requests import NodeRequest

ANSWER_SECONDS: Final = 95.0
"""A node answers within 90 s, if only that it has not done it."""
_NOT_SENT: Final = (
    httpx.ConnectError,
    httpx.ConnectTimeout,
    httpx.UnsupportedProtocol,
    httpx.InvalidURL,
)
"""Errors before anything was sent."""


@dataclass(eq=False, repr=False)
class NodeAccess:
    """Where a node is, and who asks it."""

    url: str = "http://127.0.0.1:8083"
    """Of http, of https, or of a Unix socket (`unix:///path`)."""
    _: KW_ONLY
    token: str = ""
    user: tuple[str, str] | None = None
    """A user and their password."""
    socket: str = ""
    """The path of the node's Unix socket, which is used instead of the URL."""
    ca: str = ""
    """A file with the authorities of the node's certificate, in PEM; empty: those of the system."""
    cert: str = ""
    """A file with the client's certificate and private key, in PEM."""
    timeout: float = ANSWER_SECONDS
    """How many seconds an answer may take."""

    def __repr__(self) -> str:
        """Return it without secrets."""
        return f"{type(self).__name__}({self._where!r})"

    @cached_property
    def _parts(self) -> httpx.URL:
        try:
            return httpx.URL(self.url)
        except httpx.InvalidURL as error:
            _, at, end = self.url.rpartition("@")
            told = f"{self.url!r} is no URL of a node: {error}"
            if at:  # what is before it may be a password, also in what httpx says
                told = f"...@{end} is no URL of a node: percent-encode its user and password"
            raise NodeUnreachableError(told) from None

    @cached_property
    def _path_of_socket(self) -> str:
        is_socket = self._parts.scheme == "unix"
        return self.socket or (unquote(self._parts.path) if is_socket else "")

    @cached_property
    def _where(self) -> str:
        return self._path_of_socket or str(self._parts.copy_with(userinfo=b""))

    def options(self) -> dict[str, Any]:
        """Return the arguments of httpx, but for the transport."""
        user = self.user
        if user is None and self._parts.userinfo:
            user = (self._parts.username, self._parts.password)
        headers = {"Accept": "application/json", "User-Agent": "fairlead-client"}
        if self.token:
            headers["Authorization"] = f"Bearer {self.token}"
        return {
            "base_url": "http://localhost" if self._path_of_socket else self._where,
            "auth": None if self.token else user,
            "headers": headers,
            "timeout": self.timeout,
            "trust_env": False,
        }

    def connection(self) -> dict[str, Any]:
        """Return the arguments of httpx's transport; raises `NodeUnreachableError`."""
        if self._path_of_socket:
            return {"uds": self._path_of_socket}
        try:
            context = ssl.create_default_context(cafile=self.ca or None)
            if self.cert:
                # Without a password OpenSSL would ask the terminal for one.
                context.load_cert_chain(self.cert, password="")
        except OSError as error:
            raise NodeUnreachableError(
                f"ca {self.ca!r} or cert {self.cert!r} cannot be used: {error}; nothing was sent"
            ) from None
        return {"verify": context}

    @contextmanager
    def reaching(self, request: NodeRequest[Any]) -> Generator[None]:
        """Raise `NodeUnreachableError` for the errors of httpx."""
        try:
            yield
        except _NOT_SENT as error:
            raise NodeUnreachableError(
                f"no node answers at {self._where}: {error or type(error).__name__}; nothing was"
                " sent: is it up, and is that its URL?"
            ) from None
        except httpx.RequestError as error:
            is_read = request.method == "GET"
            after = "" if is_read else "; whether it took place is unknown: look, then repeat"
            raise NodeUnreachableError(
                f"{self._where} did not answer {request.method} {request.target}:"
                f" {error or type(error).__name__}{after}"
            ) from None
