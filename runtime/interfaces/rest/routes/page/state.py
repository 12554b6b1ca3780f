"""The route of all that a page shows at first."""

from http import HTTPStatus

from starlette.requests import Request
from starlette.responses import Response

from .....security.rights import Right
from ....replies.live.state import PageState
from ...commands.service import CallerAccess, Served
from ...server.errors import ApiError
from ...server.permissions import Reach, RouteRights
from ...server.routing import Routes

routes = Routes("page")
ERRORS = (HTTPStatus.SERVICE_UNAVAILABLE,)
UNREAD = ApiError(
    HTTPStatus.SERVICE_UNAVAILABLE,
    "the group of this node was not read yet, or cannot be: /health says why; try again",
)


@routes.add(
    "GET /state",
    RouteRights(Right.VIEW, Reach.VISIBLE),
    also={HTTPStatus.OK: PageState},
    errors=ERRORS,
)
def get_state(service: Served, access: CallerAccess, request: Request) -> Response:
    """Return all that a page shows of the node's group, of one moment.

    `/events` tells what changes from there on. With `If-None-Match` and the `ETag` of the last
    answer it is 304 if nothing has changed.
    """
    page = service.page.encoded(access)
    if page is None:
        raise UNREAD
    return page.answer(request)
