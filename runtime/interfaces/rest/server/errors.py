"""Error responses, always in Connect's format `{"error_code": ..., "message": ...}`."""

import logging
from http import HTTPMethod, HTTPStatus
from typing import Final

import msgspec
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Match

from .....events.entries.codec import CodecError
from .....events.log.errors import (
    CorruptLogError,
    LogError,
    LowSpaceError,
    NoLogError,
    ReadersFullError,
)
from ...replies.node import ErrorMessage

LOGGER = logging.getLogger(__name__)
JSON = "application/json"
PASSING = (NoLogError, LowSpaceError, ReadersFullError)
"""Temporary errors: a retry may succeed, perhaps after disk space was freed."""
MENDING = (
    "`fairlead log verify` checks the logs. Stop the node, put the newest backup in the place of"
    " the group's folder, and start the node again: `fairlead docs backup`"
)
"""What to do about a damaged log."""


class ApiError(Exception):
    """A request is refused, with this HTTP status and message."""

    def __init__(self, status: HTTPStatus, message: str) -> None:
        super().__init__(message)
        self.status = status
        self.message = message


class Unanswered(Exception):  # noqa: N818  # says what happened
    """A command was not answered in time; the message says whether it may have been executed."""


def not_found(message: str) -> ApiError:
    """Return the 404 error for an unknown object."""
    return ApiError(HTTPStatus.NOT_FOUND, message)


def bare_error(status: HTTPStatus) -> ApiError:
    """Return an HTTP error with Connect's message for its status."""
    return ApiError(status, f"HTTP {status.value} {status.phrase}")


def error_reply(status: int, message: str) -> Response:
    """Return an error response."""
    told = message.encode(errors="backslashreplace").decode()  # it may quote a lone surrogate
    body = msgspec.json.encode(ErrorMessage(int(status), told))
    return Response(body, status, media_type=JSON)


async def _refused(_: Request, error: Exception) -> Response:
    if not isinstance(error, ApiError):
        raise error
    return error_reply(error.status, error.message)


async def _unanswered(_: Request, error: Exception) -> Response:
    return error_reply(HTTPStatus.SERVICE_UNAVAILABLE, str(error))


async def _unreadable(_: Request, error: Exception) -> Response:
    if not isinstance(error, PASSING):
        LOGGER.error("a log cannot be read", exc_info=error)
    return error_reply(HTTPStatus.SERVICE_UNAVAILABLE, describe_log_error(error))


def describe_log_error(error: Exception) -> str:
    """Return why a log cannot be read, and what to do."""
    if isinstance(error, CorruptLogError):
        return f"{error}. {MENDING}"
    return str(error)


async def _http_error(request: Request, error: Exception) -> Response:
    if not isinstance(error, HTTPException):
        raise error
    status, detail = HTTPStatus(error.status_code), str(error.detail)
    if detail == status.phrase:  # the default text
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
    """Return the allowed methods of a path; Starlette has only those of its first route."""
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


async def _failed(request: Request, error: Exception) -> Response:
    LOGGER.error("%s %s failed", request.method, request.url.path, exc_info=error)
    text = f"{type(error).__name__} in {request.method} {request.url.path}"
    return error_reply(
        HTTPStatus.INTERNAL_SERVER_ERROR,
        f"fairlead made a mistake ({text}): nothing more is known here, logs/rest.log of the"
        " data folder says where",
    )


HANDLERS: Final = {
    ApiError: _refused,
    Unanswered: _unanswered,
    LogError: _unreadable,
    CodecError: _unreadable,
    HTTPException: _http_error,
    Exception: _failed,
}
"""Answers every error in Connect's format, without a traceback."""
