"""A request's path and method as Connect's server takes them.

A path is matched as it was sent, its segments percent-encoded; a name in it is decoded only once
its route is found. So a name may hold a slash (`%2F`). As in Connect, one slash at the end counts
for nothing, what follows a semicolon in a segment is dropped, and a path is refused that servers
could read in more than one way: with an empty segment, `.` or `..` percent-encoded, control
characters, a `%` that encodes nothing, or bytes that are no UTF-8. Of a parameter that a query
gives twice the first counts. HEAD is GET without the body.
"""

import re
from http import HTTPStatus
from typing import Final
from urllib.parse import quote, unquote, unquote_to_bytes

from starlette.convertors import Convertor, register_url_convertor
from starlette.types import ASGIApp, Receive, Scope, Send

from .errors import ApiError, bare_error, error_reply

_PARAMETERS: Final = re.compile(r"\{(\w+)(:path)?\}")
_CONTROLS: Final = re.compile(r"[\x00-\x1f\x7f]")
_NO_ENCODING: Final = re.compile(r"%(?![0-9A-Fa-f]{2})")


class NameConvertor(Convertor[str]):
    """A segment of a path as the name that it encodes."""

    regex = "[^/]+"

    def convert(self, value: str) -> str:
        """Decode a segment; it is known to be UTF-8."""
        return unquote(value)

    def to_string(self, value: str) -> str:
        """Encode a name."""
        return quote(value, safe="")


class NamesConvertor(NameConvertor):
    """A name that may hold slashes, encoded or not."""

    regex = ".+"


register_url_convertor("name", NameConvertor())
register_url_convertor("names", NamesConvertor())


def template(path: str) -> str:
    """Return a route's path such as `/groups/{group}` as one that is matched encoded."""
    return _PARAMETERS.sub(lambda told: f"{{{told[1]}:name{'s' if told[2] else ''}}}", path)


class ConnectPaths:
    """Has requests matched by their encoded path, HEAD as GET; pure ASGI."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, or answer 400."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        try:
            path = encoded(scope["raw_path"].partition(b"?")[0].partition(b"#")[0])
        except ApiError as error:
            await error_reply(error.status, error.message)(scope, receive, send)
            return
        method = "GET" if scope["method"] == "HEAD" else scope["method"]
        # The framework takes the last value of a parameter.
        query = b"&".join(reversed(scope["query_string"].split(b"&")))
        inner = {**scope, "path": path, "method": method, "query_string": query}
        try:
            await self._app(inner, receive, send)  # the server leaves the body of HEAD out
        finally:
            scope["route"] = inner.get("route")


def encoded(raw_path: bytes) -> str:
    """Return a path with each segment percent-encoded in one way; raises `ApiError`."""
    first, *segments = raw_path.decode("latin-1").split("/")
    named = [segment.partition(";")[0] for segment in segments]
    if len(named) > 1 and not named[-1]:
        named.pop()
    if first or ("" in named and len(segments) > 1):
        raise _refused("Ambiguous URI empty segment")
    return "".join(f"/{_encoded_segment(each)}" for each in named)


def _encoded_segment(raw: str) -> str:
    if _NO_ENCODING.search(raw):
        raise bare_error(HTTPStatus.BAD_REQUEST)
    try:
        name = unquote_to_bytes(raw.encode("latin-1")).decode()
    except UnicodeDecodeError:
        raise _refused("Bad UTF-8 encoding") from None
    if name in {".", ".."} and name != raw:
        raise _refused("Ambiguous URI path segment")
    if _CONTROLS.search(name):
        raise _refused("Suspicious Path Character")
    return quote(name, safe="")


def _refused(what: str) -> ApiError:
    """Return the error for a path, in the words of Connect's server."""
    return ApiError(HTTPStatus.BAD_REQUEST, what)
