"""The check of a request's host and origin: what a page of another site may have sent is refused.

A browser sends the host name of the URL in `Host` and the site of the page in `Origin`. So `Host`
reveals DNS rebinding (a foreign name that resolves to this address), `Origin` a page of another
site. curl, Prometheus and the command line send a correct Host and no Origin. An address that a
request names and that took it is correct: behind an address there is no other site.

`access.control.allow.origin` lets pages of other origins in, as in Connect: to change something
only where the setting names them.
"""

import re
from collections.abc import Collection, Iterable
from http import HTTPStatus
from ipaddress import ip_address
from typing import Any, Final, NamedTuple
from urllib.parse import urlsplit

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Scope, Send

from .....actors.transport.ports import HostPort
from ..server.errors import ApiError, error_reply

SETTING: Final = "rest.allowed.hosts"
LOOPBACK_NAMES: Final = ("localhost", "127.0.0.1", "::1")
READING: Final = {"GET", "HEAD", "OPTIONS"}
_USUAL_PORTS: Final = {"http": 80, "https": 443}

Place = tuple[str, int | None]
"""A host name in lower case, and a port; None is any port."""


class AllowedPages(NamedTuple):
    """The pages of other sites that are let in."""

    pattern: "re.Pattern[str]"
    """Matches their origins."""
    any_may_read: bool = False
    """Whether those of all sites may send what changes nothing."""


NO_PAGES: Final = AllowedPages(re.compile(r"(?!)"))


class OriginCheck:
    """ASGI middleware that refuses requests for another host or from a page of another site."""

    def __init__(
        self,
        app: ASGIApp,
        listeners: Iterable[HostPort],
        allowed: Iterable[str],
        pages: AllowedPages = NO_PAGES,
        public: Collection[str] = (),
    ) -> None:
        """Allow the listeners' addresses, and further hosts as `HOST` or `HOST:PORT`.

        `pages` are those of other sites that are let in. The `public` paths are for any host: a
        probe names the address that it knows.
        """
        self._app = app
        self._pages = pages
        self._public = public
        self._places = {place for text in allowed for place in _places(text)}
        """The allowed hosts and ports."""
        for listener in listeners:
            names = (listener.host.lower(), *LOOPBACK_NAMES)
            self._places |= {(name, listener.port) for name in names}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle a request, or answer 403."""
        if scope["type"] == "http" and scope["path"] not in self._public:
            try:
                self._check(scope)
            except ApiError as error:
                await error_reply(error.status, error.message)(scope, receive, send)
                return
        await self._app(scope, receive, send)

    def _check(self, scope: Scope) -> None:
        headers = Headers(scope=scope)
        own = _places_of(scope)
        host = headers.get("host", "")
        if not self._is_here(f"{scope.get('scheme', 'http')}://{host}", own):
            raise _foreign(f"the request is for host {host!r}")
        for origin in headers.getlist("origin"):
            may_read = self._pages.any_may_read and scope["method"] in READING
            is_let_in = may_read or self._pages.pattern.fullmatch(origin)
            if not (is_let_in or self._is_here(origin, own)):
                raise _foreign(f"the request comes from a page of {origin!r}", of_page=True)

    def _is_here(self, url: str, own: set[Place]) -> bool:
        try:
            parts = urlsplit(url)
            place = (parts.hostname or "", parts.port or _USUAL_PORTS[parts.scheme])
        except (ValueError, KeyError):
            return False
        bare = parts.scheme + "://" + parts.netloc == url and "@" not in url
        return bare and not {place, (place[0], None)}.isdisjoint(self._places | own)


def _places_of(scope: Scope) -> set[Place]:
    """Return the places that the connection of a request shows: its address, or of a Unix socket.

    What connects to a Unix socket names a host since HTTP has to: this one, without a port.
    """
    extensions: dict[str, Any] = scope.get("extensions") or {}
    if "unix" in extensions:
        return {(name, port) for name in LOOPBACK_NAMES for port in _USUAL_PORTS.values()}
    host, port = scope.get("server") or ("", None)
    try:
        return {(str(ip_address(host)), port)}
    except ValueError:
        return set()


def _places(text: str) -> Iterable[Place]:
    parts = urlsplit("//" + text)
    if parts.hostname:
        yield parts.hostname, parts.port


def _foreign(what: str, *, of_page: bool = False) -> ApiError:
    more = ", or that origin to access.control.allow.origin," if of_page else ""
    return ApiError(
        HTTPStatus.FORBIDDEN,
        f"{what}, which is not where this interface listens; nothing was done. If it should be"
        f" let in, add its host to the setting {SETTING}{more} and start the node again",
    )
