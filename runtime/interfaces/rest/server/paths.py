"""Matches the paths and methods of requests as Connect's server (Jetty, Jersey) does.

A path is matched in its percent-encoded form, and a name in it is decoded only after its route is
found: so a name may contain a slash (`%2F`). As in Connect, a slash at the end is ignored, and the
part of a segment after a semicolon is dropped. Ambiguous paths are refused: those with an empty
segment, percent-encoded `.` or `..`, control characters, an invalid `%` or invalid UTF-8. If a
query has a parameter twice, the first one is used. HEAD is GET without the body.
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
    """A path segment that is a percent-encoded name."""

    regex = "[^/]+"

    def convert(self, value: str) -> str:
        """Decode a segment, which is valid UTF-8."""
        return unquote(value)

    def to_string(self, value: str) -> str:
        """Encode a name."""
        return quote(value, safe="")


class NamesConvertor(NameConvertor):
    """A path part that is a name, which may contain slashes, encoded or not."""

    regex = ".+"


register_url_convertor("name", NameConvertor())
register_url_convertor("names", NamesConvertor())


def template(path: str) -> str:
    """Return a route's path such as `/groups/{group}` with converters for encoded names."""
    return _PARAMETERS.sub(lambda told: f"{{{told[1]}:name{'s' if told[2] else ''}}}", path)


class ConnectPaths:
    """ASGI middleware: requests are matched by their encoded path, and HEAD as GET."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle a request, or answer 400."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        try:
            path = encoded(scope["raw_path"].partition(b"?")[0].partition(b"#")[0])
        except ApiError as error:
            await error_reply(error.status, error.message)(scope, receive, send)
            return
        method = "GET" if scope["method"] == "HEAD" else scope["method"]
        inner = {**scope, "path": path, "method": method}
        try:
            await self._app(inner, receive, send)  # uvicorn omits the body of HEAD
        finally:
            scope["route"] = inner.get("route")


def encoded(raw_path: bytes) -> str:
    """Return a path with normalised percent-encoding; raises `ApiError`."""
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
    """Return the error for a path, with the message of Connect's server."""
    return ApiError(HTTPStatus.BAD_REQUEST, what)
