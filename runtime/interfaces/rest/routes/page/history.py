"""The routes of the last hour: of a connector in steps, and of all by the minute."""

from http import HTTPStatus
from typing import Annotated

from msgspec import Meta
from starlette.requests import Request
from starlette.responses import Response

from .....security.rights import Right
from ....replies.live.state import ConnectorHistory, PageHours
from ...commands.service import CallerAccess, Served
from ...server.errors import not_found
from ...server.permissions import Reach, RouteRights
from ...server.routing import Routes
from .state import ERRORS, UNREAD

routes = Routes("page")
Minutes = Annotated[int, Meta(ge=1, le=60, description="How many of the last minutes; up to 60.")]


@routes.add(
    "GET /connectors/{connector}/history",
    Right.VIEW,
    errors=(HTTPStatus.BAD_REQUEST, HTTPStatus.NOT_FOUND, HTTPStatus.SERVICE_UNAVAILABLE),
)
def get_connector_history(
    service: Served, connector: str, minutes: Minutes = 60
) -> ConnectorHistory:
    """Return the last hour of a connector in steps of 15 seconds, with what happened to it.

    It is recorded by the process that answers, since it was started, and kept in its memory.
    """
    view = service.page.view
    if view is None:
        raise UNREAD
    if connector not in view.rows:
        raise not_found(f"Connector {connector} not found")
    marks = tuple(view.marks.get(connector, ()))
    return service.page.history.of_connector(connector, minutes, marks)


@routes.add(
    "GET /state/history",
    RouteRights(Right.VIEW, Reach.VISIBLE),
    also={HTTPStatus.OK: PageHours},
    errors=ERRORS,
)
def get_state_history(service: Served, access: CallerAccess, request: Request) -> Response:
    """Return the rows a second of each connector in the last hour, the average of each minute.

    A page reads it after `/state`: it is larger than that, and nobody waits for it.
    """
    hours = service.page.encoded_hours(access)
    if hours is None:
        raise UNREAD
    return hours.answer(request)
