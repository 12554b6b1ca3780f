"""The limits of a caller: the right that a route needs, and the connectors that a role is for.

A role may be limited to connectors whose names match patterns. What it does not cover is not even
named: the answer about such a connector is the same whether there is one or not. So each route says
what its requests and answers are about (`Reach`). One that says nothing is about the whole node,
and refuses a caller who is limited.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from enum import Enum
from http import HTTPStatus

from starlette.requests import Request
from starlette.types import Scope

from ....security.rights import Access, Right
from .errors import ApiError, not_found
from .principals import Principal

CONNECTOR = "connector"
"""The parameter of a path that is the name of a connector."""


class Reach(Enum):
    """The subject of the requests and the answers of a route."""

    NODE = "node"
    """All connectors, or the node: nothing for a caller who is limited to some connectors."""
    CONNECTOR = "connector"
    """The connector that the path names: one that the caller does not see is unknown."""
    NEW_CONNECTOR = "new connector"
    """The same, but the connector may be a new one: a name that the caller has not is refused."""
    BODY = "body"
    """The connectors that the body names: the handler asks `RequireNames`."""
    VISIBLE = "visible"
    """The connectors that the caller sees: the handler leaves out others (`CallerAccess`)."""
    NEUTRAL = "neutral"
    """No connector at all."""


@dataclass(frozen=True, slots=True)
class RouteRights:
    """The right that a route asks of its caller, and what it is about."""

    needs: Right | None
    """None: nothing, not even who it is."""
    reach: Reach


ANYBODY = RouteRights(None, Reach.NEUTRAL)
"""Asks nothing of a caller."""


def rights_of(request: str, needs: Right) -> RouteRights:
    """Complete a right: it is to the connector of the path, or else to the whole node."""
    is_of_one = f"{{{CONNECTOR}}}" in request
    return RouteRights(needs, Reach.CONNECTOR if is_of_one else Reach.NODE)


def require_right(request: Request, rights: RouteRights) -> None:
    """Raise `ApiError` unless the caller of a request has what its route asks."""
    if rights.needs is None:
        return
    principal: Principal = request.state.principal
    access, needs = principal.access, rights.needs
    if CONNECTOR in request.path_params:
        request.state.connectors = [request.path_params[CONNECTOR]]
    if rights.reach is Reach.CONNECTOR:
        name = request.path_params[CONNECTOR]
        if access.has_somewhere(Right.VIEW) and not access.sees(name):
            raise not_found(f"Connector {name} not found")
        is_held = access.has(needs, name)
    else:
        is_held = access.has_somewhere(needs)
    if not is_held:
        text = f"lacks the right to {needs.value}, which {request.method} of this path needs"
        raise _denied(request, text)
    if rights.reach is Reach.NODE and not access.has_everywhere(needs):
        raise _beyond(request, needs, "and this request is about the whole node")
    if rights.reach is Reach.NEW_CONNECTOR:
        _require_names(request, needs, [request.path_params[CONNECTOR]])


def _require_names(request: Request, right: Right, names: Iterable[str]) -> None:
    principal: Principal = request.state.principal
    for name in names:
        if not principal.access.has(right, name):
            raise _beyond(request, right, f"not {name!r}")


def _beyond(request: Request, right: Right, what: str) -> ApiError:
    """Return the error for a caller who has the right, but not to this."""
    principal: Principal = request.state.principal
    patterns = ", ".join(principal.access.patterns)
    which = f"connectors that match {patterns}" if patterns else "some connectors"
    return _denied(request, f"may {right.value} only {which}, {what}")


def _denied(request: Request, text: str) -> ApiError:
    """Return the error for a caller without a right, and note it for the metrics."""
    principal: Principal = request.state.principal
    request.state.is_denied = True
    return ApiError(HTTPStatus.FORBIDDEN, f"{principal.name} {text}; nothing was done")


def is_denied(scope: Scope) -> bool:
    """Return whether the caller of an answered request lacked a right to it."""
    state: dict[str, object] = scope.get("state") or {}
    return bool(state.get("is_denied"))


def check_of_names(request: Request) -> Callable[[Iterable[str]], None]:
    """Return a check of names: it raises `ApiError` for one that the caller has no right to."""
    needs = request.scope["route"].rights.needs

    def check(names: Iterable[str]) -> None:
        listed = list(names)
        request.state.connectors = listed
        _require_names(request, needs, listed)

    return check


def access_of(request: Request) -> Access:
    """Return the rights of the caller of a request."""
    principal: Principal = request.state.principal
    return principal.access
