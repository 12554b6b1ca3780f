"""Bodies of requests: their type, their size, and strict JSON."""

import json
import re
from http import HTTPMethod, HTTPStatus

from msgspec import UNSET
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.types import Message, Receive, Scope

from .errors import JSON, ApiError, bare_error

_MEDIA_TYPE = re.compile(r"[^\s/,]+/[^\s/,]+")
_ANY_JSON = frozenset({"", JSON, "application/*", "*/*"})
_TAKES_JSON = ("/connectors", "/connector-plugins", "/admin/")
"""The paths at which another Content-Type is refused even for a request without a body."""
MOST_BYTES = 1 << 20
"""The largest body."""
MOST_BYTES_OF_OFFSETS = 64 << 20
"""The same for the offsets of a connector: there may be one for each file of a large folder."""
MOST_BYTES_OF_CONFIGS = 16 << 20
"""The same for the configs of many connectors."""


class Numeral(float):
    """A JSON number that is not an integer, with its text in the document."""

    text: str

    def __new__(cls, text: str) -> "Numeral":
        """Parse the text of a number."""
        number = super().__new__(cls, text)
        number.text = text
        return number


async def read_json(request: Request) -> object:
    """Decode a strict JSON body (RFC 8259: no NaN or infinities); UNSET if it is empty.

    A number that is not an integer is a `Numeral`. Raises `ApiError`.
    """
    body = await request.body()
    if len(body) > MOST_BYTES:  # the loop goes on serving other requests
        return await run_in_threadpool(_parse, body)
    return _parse(body) if body else UNSET


def _parse(body: bytes) -> object:
    try:
        return json.loads(body, parse_float=Numeral, parse_constant=_refuse_constant)
    except json.JSONDecodeError as error:
        what = f"body: no valid JSON, from character {error.pos} on ({error.msg})"
        message = f"the request is malformed: {what}"
    except (ValueError, RecursionError):  # no UTF-8, too many digits, or too deep
        message = "There was an error parsing the body"
    raise ApiError(HTTPStatus.BAD_REQUEST, message)


def _refuse_constant(text: str) -> object:
    raise json.JSONDecodeError(f"{text} is no number", text, 0)


def limited(scope: Scope, receive: Receive, largest: int = 0) -> Receive:
    """Wrap an ASGI `receive`: it raises once the body of this request is too large.

    That depends on its path; `largest` is for any, 0 is none.
    """
    most_bytes = _most_bytes(scope["method"], scope["path"])
    most_bytes = min(most_bytes, largest or most_bytes)
    size = 0

    async def receive_counted() -> Message:
        nonlocal size
        message = await receive()
        size += len(message.get("body", b""))
        if size > most_bytes:
            raise HTTPException(
                HTTPStatus.REQUEST_ENTITY_TOO_LARGE, f"a body may have {most_bytes} bytes at most"
            )
        return message

    return receive_counted


def _most_bytes(method: str, path: str) -> int:
    if method == HTTPMethod.PATCH and path.endswith("/offsets"):
        return MOST_BYTES_OF_OFFSETS
    return MOST_BYTES_OF_CONFIGS if path == "/apply" else MOST_BYTES


def negotiate(request: Request, *, is_read: bool) -> None:
    """Refuse a body that is not declared as JSON, and a client that does not accept JSON.

    A web page can send forms to another site without a CORS preflight, but neither JSON nor a range
    of types: so the type is required even if the body is not read (`is_read`). As in Connect, a
    body that is not read may have no type at all; a page would name its site in `Origin`.
    """
    headers = request.headers
    kind = headers.get("content-type", "").partition(";")[0].strip().lower()
    if "content-type" in headers and not _MEDIA_TYPE.fullmatch(kind):
        raise bare_error(HTTPStatus.BAD_REQUEST)
    has_body = headers.get("content-length", "0") != "0" or "transfer-encoding" in headers
    if request.method == HTTPMethod.GET:
        is_refused = kind not in _ANY_JSON and request.scope["path"].startswith(_TAKES_JSON)
    else:
        needs_type = bool(kind) or is_read or "origin" in headers
        is_refused = kind != JSON if has_body and needs_type else kind not in _ANY_JSON
    if is_refused:
        raise bare_error(HTTPStatus.UNSUPPORTED_MEDIA_TYPE)
    if not _takes_json(",".join(headers.getlist("accept"))):
        raise bare_error(HTTPStatus.NOT_ACCEPTABLE)


def _takes_json(accept: str) -> bool:
    """Return whether an Accept header includes JSON with any quality; an empty one does."""
    kinds = {each.partition(";")[0].strip() for each in accept.lower().split(",")}
    return not accept.strip() or not kinds.isdisjoint({JSON, "application/*", "*/*", "*"})
