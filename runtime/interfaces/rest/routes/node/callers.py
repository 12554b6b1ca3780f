"""The route that says who one is."""

from typing import Annotated

from msgspec import Meta
from starlette.requests import Request

from .....security.rights import Right
from ....replies.node import CallerDescription, CallerGrant
from ...server.permissions import Reach, RouteRights
from ...server.principals import Principal
from ...server.routing import Routes

routes = Routes("this process")


@routes.add("GET /whoami", RouteRights(Right.VIEW, Reach.NEUTRAL))
def describe_caller(
    request: Request,
    connector: Annotated[
        str, Meta(description="The name of a connector; there need be none.")
    ] = "",
) -> CallerDescription:
    """Return who the caller is taken for, and their rights: all, and those to a connector."""
    principal: Principal = request.state.principal
    access = principal.access
    return CallerDescription(
        principal.name,
        principal.authentication,
        principal.address,
        [
            CallerGrant([each.value for each in Right if each in one.rights], [*one.connectors])
            for one in access.grants
        ],
        [each.value for each in Right if access.has_everywhere(each)],
        [each.value for each in Right if access.has(each, connector)] if connector else [],
    )
