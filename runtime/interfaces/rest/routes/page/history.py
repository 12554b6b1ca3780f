"""The route of the last hour of a connector."""

from http import HTTPStatus
from typing import Annotated

from msgspec import Meta

from .....security.rights import Right
from ....replies.live.state import ConnectorHistory
from ...commands.service import Served
from ...server.errors import not_found
from ...server.routing import Routes
from .state import UNREAD

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
