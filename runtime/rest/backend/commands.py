"""What a group's answer to a command means in HTTP, and what is said before and after it."""

from http import HTTPStatus

from starlette.requests import Request

from ....actors.messages.commands import CommandReply
from ....actors.messages.errors import Error
from ....events.group import Group
from ..http.errors import ApiError, not_found
from .service import Service

_STATUS = {
    Error.ALREADY_EXISTS: HTTPStatus.CONFLICT,
    Error.NON_EMPTY_GROUP: HTTPStatus.CONFLICT,
    Error.UNKNOWN_CONNECTOR: HTTPStatus.NOT_FOUND,
    Error.UNKNOWN_MEMBER_ID: HTTPStatus.NOT_FOUND,
    Error.GROUP_ID_NOT_FOUND: HTTPStatus.NOT_FOUND,
    Error.INVALID_CONFIG: HTTPStatus.BAD_REQUEST,
    Error.INVALID_REQUEST: HTTPStatus.BAD_REQUEST,
    Error.COORDINATOR_NOT_AVAILABLE: HTTPStatus.SERVICE_UNAVAILABLE,
}


def refuse(reply: CommandReply) -> None:
    """Raise `ApiError` unless the command was carried out."""
    if reply.error is not Error.NONE:
        status = _STATUS.get(reply.error, HTTPStatus.INTERNAL_SERVER_ERROR)
        raise ApiError(status, reply.message or f"the group answered {reply.error.value}")


def written(group: Group, reply: CommandReply) -> None:
    """Raise `ApiError` if the log does not yet hold here what the command led to."""
    if group.end < reply.log_offset:
        raise ApiError(
            HTTPStatus.SERVICE_UNAVAILABLE,
            f"the command was carried out, but the log here ends at {group.end}, not yet at"
            f" {reply.log_offset}: read again what it was about",
        )


def principal(request: Request) -> str:
    """Return who asks, for the log."""
    return f"rest {request.client.host}" if request.client else "rest"


def known(service: Service, group_id: str) -> None:
    """Raise `ApiError` if no group of that id has a log on this node."""
    if group_id not in service.logs.group_ids():
        raise not_found(f"there is no group {group_id}")
