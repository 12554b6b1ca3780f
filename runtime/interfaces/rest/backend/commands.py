"""Commands to a group: who asks, what its answer means in HTTP, and what holds afterwards."""

from collections.abc import Callable
from http import HTTPStatus
from typing import TypeVar

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request

from .....actors.messages.commands import CommandReply
from .....actors.messages.errors import Error
from .....events.group import Group
from ..http.errors import ApiError, not_found
from .gateway import Command
from .service import Service

T = TypeVar("T")

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
ORDER_ERRORS = (HTTPStatus.BAD_REQUEST, HTTPStatus.NOT_FOUND, HTTPStatus.SERVICE_UNAVAILABLE)
"""What any command to a group can be refused with."""


async def carry_out(service: Service, command: Command, read: Callable[[Group], T]) -> T:
    """Have a known group carry out a command, and return what is read of it afterwards.

    Raises `ApiError` if the group is not known, refuses, or its log here does not yet hold what
    the command led to; `Unanswered`.
    """
    await run_in_threadpool(require_group, service, command.group_id)
    outcome = await service.commands.carry_out(command)
    refuse(outcome.reply)

    def read_after() -> T:
        with service.logs.reading(command.group_id) as logs:
            require_written(logs.group, outcome.reply)
            return read(logs.group)

    return await run_in_threadpool(read_after)


def refuse(reply: CommandReply) -> None:
    """Raise `ApiError` unless the command was carried out."""
    if reply.error is not Error.NONE:
        status = _STATUS.get(reply.error, HTTPStatus.INTERNAL_SERVER_ERROR)
        raise ApiError(status, reply.message or f"the group answered {reply.error.value}")


def require_written(group: Group, reply: CommandReply) -> None:
    """Raise `ApiError` if the log does not yet hold here what the command led to."""
    if group.end < reply.log_offset:
        raise ApiError(
            HTTPStatus.SERVICE_UNAVAILABLE,
            f"the command was carried out, but the log here ends at {group.end}, not yet at"
            f" {reply.log_offset}: read again what it was about",
        )


def principal_of(request: Request) -> str:
    """Return who asks, for the log."""
    return f"rest {request.client.host}" if request.client else "rest"


def require_group(service: Service, group_id: str) -> None:
    """Raise `ApiError` if no group of that id has a log on this node."""
    if group_id not in service.logs.group_ids():
        raise not_found(f"there is no group {group_id}")
