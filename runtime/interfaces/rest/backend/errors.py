"""How a request fails: always in Connect's shape, `{"error_code": ..., "message": ...}`."""

import logging
from http import HTTPMethod, HTTPStatus

import msgspec
from fastapi import FastAPI
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Match

from .....events.entries.codec import CodecError
from .....events.log.errors import LogError, LowSpaceError, NoLogError, ReadersFullError
from ...replies.node import ErrorMessage

LOGGER = logging.getLogger(__name__)
JSON = "application/json"
_PASSING = (NoLogError, LowSpaceError, ReadersFullError)
"""What goes away by itself, or once somebody makes room: worth another try."""


class ApiError(Exception):
    """A request that is refused, with its HTTP status and what to tell."""

    def __init__(self, status: HTTPStatus, message: str) -> None:
        super().__init__(message)
        self.status = status
        self.message = message


class Unanswered(Exception):  # noqa: N818  # says what happened
    """Nobody answered for a command in time; the text says what may have become of it."""


def not_found(message: str) -> ApiError:
    """Return the error for what is not there."""
    return ApiError(HTTPStatus.NOT_FOUND, message)


def bare_error(status: HTTPStatus) -> ApiError:
    """Return an error in the words that Connect has for those of HTTP itself."""
    return ApiError(status, f"HTTP {status.value} {status.phrase}")


def error_reply(status: int, message: str) -> Response:
    """Return an error in its one shape."""
    told = message.encode(errors="backslashreplace").decode()  # it may quote a lone surrogate
    body = msgspec.json.encode(ErrorMessage(int(status), told))
    return Response(body, status, media_type=JSON)


def handle_errors(app: FastAPI) -> None:
    """Have every error answered in the one shape, without a traceback."""
    app.exception_handler(ApiError)(_refused)
    app.exception_handler(Unanswered)(_unanswered)
    app.exception_handler(LogError)(_unreadable)
    app.exception_handler(CodecError)(_unreadable)
    app.exception_handler(HTTPException)(_http_error)
    app.exception_handler(RequestValidationError)(_malformed)
    app.exception_handler(Exception)(_failed)


async def _refused(_: Request, error: Exception) -> Response:
    if not isinstance(error, ApiError):
        raise error
    return error_reply(error.status, error.message)


async def _unanswered(_: Request, error: Exception) -> Response:
    return error_reply(HTTPStatus.SERVICE_UNAVAILABLE, str(error))


async def _unreadable(_: Request, error: Exception) -> Response:
    if isinstance(error, _PASSING):
        return error_reply(HTTPStatus.SERVICE_UNAVAILABLE, str(error))
    LOGGER.error("a log cannot be read", exc_info=error)
    return error_reply(HTTPStatus.INTERNAL_SERVER_ERROR, str(error))


async def _http_error(request: Request, error: Exception) -> Response:
    if not isinstance(error, HTTPException):
        raise error
    status, detail = HTTPStatus(error.status_code), str(error.detail)
    if detail == status.phrase:  # nobody had anything to add
        detail = bare_error(status).message
    if status is not HTTPStatus.METHOD_NOT_ALLOWED:
        reply = error_reply(status, detail)
        reply.headers.update(dict(error.headers or {}))
        return reply
    is_asked = request.method == HTTPMethod.OPTIONS
    methods = _methods(request)
    told = Response(", ".join(methods), media_type="text/plain")
    reply = told if is_asked else error_reply(status, detail)
    reply.headers["Allow"] = ",".join(methods)
    return reply


def _methods(request: Request) -> list[str]:
    """Return the methods that a path takes; the framework names those of its first route only."""
    taken = {
        method
        for method in HTTPMethod
        for scope in ({**request.scope, "method": method},)
        if any(each.matches(scope)[0] is Match.FULL for each in request.app.router.routes)
    }
    implied = (
        {HTTPMethod.HEAD, HTTPMethod.OPTIONS} if HTTPMethod.GET in taken else {HTTPMethod.OPTIONS}
    )
    return sorted(taken | implied)


async def _malformed(request: Request, error: Exception) -> Response:
    """Say where a request is malformed; never what was sent, it may be secret."""
    if not isinstance(error, RequestValidationError):
        raise error
    flaws = [
        f"{'.'.join(str(part) for part in each['loc'][1:]) or each['loc'][0]}: {_flaw(each)}"
        for each in error.errors()
    ]
    if any(each["loc"][0] == "path" for each in error.errors()):
        return await _refused(request, bare_error(HTTPStatus.NOT_FOUND))
    return error_reply(HTTPStatus.BAD_REQUEST, f"the request is malformed: {'; '.join(flaws)}")


def _flaw(told: dict[str, object]) -> str:
    context = told.get("ctx")
    if told["type"] == "json_invalid" and isinstance(context, dict):
        return f"no valid JSON ({context.get('error', 'unreadable')})"  # pyright: ignore
    return str(told["msg"]).removeprefix("Value error, ")


async def _failed(request: Request, error: Exception) -> Response:
    LOGGER.error("%s %s failed", request.method, request.url.path, exc_info=error)
    text = f"{type(error).__name__} in {request.method} {request.url.path}"
    return error_reply(
        HTTPStatus.INTERNAL_SERVER_ERROR,
        f"fairlead made a mistake ({text}): nothing more is known here, logs/rest.log of the"
        " data folder says where",
    )
