"""Who may speak with the REST interface: nobody whom a web page of another site has sent.

A browser tells in `Host` which name it was given, and in `Origin` which site the page is from. A
name of a stranger that leads to this address (DNS rebinding) is therefore seen in the first, a
foreign page in the second. curl, Prometheus and the command line send a true Host and no Origin.
"""

from collections.abc import Iterable
from http import HTTPStatus
from urllib.parse import urlsplit

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Scope, Send

from .errors import JSON, ApiError, error_reply, sent_otherwise
from .listeners import RestListener

SETTING = "rest.allowed.hosts"
LOOPBACK_NAMES = ("localhost", "127.0.0.1", "::1")
READING = {"GET", "HEAD", "OPTIONS"}
_USUAL_PORTS = {"http": 80, "https": 443}

Place = tuple[str, int | None]
"""A host's name in lower case, and a port; None stands for any."""


class OriginCheck:
    """Refuses requests that name another host, come from another site's page, or are forms."""

    def __init__(
        self, app: ASGIApp, listeners: Iterable[RestListener], allowed: Iterable[str]
    ) -> None:
        """Take where the interface listens, and further names as `HOST` or `HOST:PORT`."""
        self._app = app
        #: The hosts and ports under which the interface is known.
        self._places = {place for text in allowed for place in _places(text)}
        for listener in listeners:
            names = (listener.host.lower(), *LOOPBACK_NAMES)
            self._places |= {(name, listener.port) for name in names}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, or answer 403 or 415."""
        if scope["type"] == "http":
            try:
                self._check(scope["method"], Headers(scope=scope))
            except ApiError as error:
                await error_reply(error.status, error.message)(scope, receive, send)
                return
        await self._app(scope, receive, send)

    def _check(self, method: str, headers: Headers) -> None:
        if not self._is_here("http://" + headers.get("host", "")):
            raise _foreign(f"the request is for host {headers.get('host', '')!r}")
        for origin in headers.getlist("origin"):
            if not self._is_here(origin):
                raise _foreign(f"the request comes from a page of {origin!r}")
        if method not in READING:
            _check_body(headers)

    def _is_here(self, url: str) -> bool:
        try:
            parts = urlsplit(url)
            place = (parts.hostname or "", parts.port or _USUAL_PORTS[parts.scheme])
        except (ValueError, KeyError):
            return False
        bare = parts.scheme + "://" + parts.netloc == url and "@" not in url
        return bare and not {place, (place[0], None)}.isdisjoint(self._places)


def _places(text: str) -> Iterable[Place]:
    parts = urlsplit("//" + text)
    if parts.hostname:
        yield parts.hostname, parts.port


def _foreign(what: str) -> ApiError:
    return ApiError(
        HTTPStatus.FORBIDDEN,
        f"{what}, which is not where this interface listens; nothing was done. If it should be"
        f" let in, add its host to the setting {SETTING} and start the node again",
    )


def _check_body(headers: Headers) -> None:
    """Refuse a form: it is all that a page can send to another site without asking first."""
    kind = headers.get("content-type", "").partition(";")[0].strip().lower()
    has_body = headers.get("content-length", "0") != "0" or "transfer-encoding" in headers
    if kind != JSON and (has_body or "content-type" in headers):
        raise sent_otherwise(kind)
