"""Each route is called by each role: who is let in is what the route, and the page, declare."""

from collections.abc import Generator
from contextlib import contextmanager
from http import HTTPStatus
from pathlib import Path

import pytest
from rest.conftest import service_over
from rest.test_reach import BODIES, PARAMETERS, ROUTES, SEEN, request_of
from starlette.requests import Request

from fairlead.runtime.interfaces.rest.app import make_app
from fairlead.runtime.interfaces.rest.server.admission import NotAdmittedError
from fairlead.runtime.interfaces.rest.server.permissions import Reach
from fairlead.runtime.interfaces.rest.server.principals import Principal
from fairlead.runtime.interfaces.rest.server.routing import ApiRoute
from fairlead.runtime.security.rights import NOTHING, Access, Role
from fairlead_tests.rest.client import Client
from fairlead_tests.rest.gateway import FakeGateway

ADMITTED, UNKNOWN, LACKS, BEYOND = "admitted", "unknown", "lacks the right", "beyond its connectors"
ROLES: dict[str, Access | None] = {
    "nobody": None,
    "no role": NOTHING,
    **{role.value: Access.of(role) for role in Role},
    "operator of some": Access.of(Role.OPERATOR, ("orders-*",)),
    "admin of some": Access.of(Role.ADMIN, ("orders-*",)),
}


@contextmanager
def client_of(folder: Path, access: Access | None) -> Generator[Client]:
    async def identify(_: Request) -> Principal:
        if access is None:
            raise NotAdmittedError(HTTPStatus.UNAUTHORIZED, "who are you?")
        return Principal(("192.0.2.7", 4711), ("127.0.0.1", 8083), access, proven="ann")

    service = service_over(folder, FakeGateway(None))  # what is let in changes nothing
    yield Client(make_app(service, identify=identify))
    service.logs.close()


def outcome(client: Client, route: ApiRoute) -> str:
    """Call a route about a connector of the limited roles; return what became of it."""
    path = route.path_format.format(**PARAMETERS, connector=SEEN)
    body = BODIES.get(request_of(route), "").replace("{}", SEEN)
    headers = {"content-type": "application/json"} if body else {}
    answer = client.request(route.method, path, content=body, headers=headers)
    if answer.status_code == HTTPStatus.UNAUTHORIZED:
        return UNKNOWN
    if answer.status_code == HTTPStatus.FORBIDDEN:
        message = answer.json()["message"]
        if " lacks the right to " in message:
            return LACKS
        if " may " in message and " only connectors that match " in message:
            return BEYOND
    return ADMITTED


def declared(route: ApiRoute, access: Access | None) -> str:
    """Return what the route declares."""
    needs, reach = route.rights.needs, route.rights.reach
    if needs is None:
        return ADMITTED
    if access is None:
        return UNKNOWN
    if not access.has_somewhere(needs):
        return LACKS
    return BEYOND if reach is Reach.NODE and access.is_limited else ADMITTED


@pytest.mark.parametrize("role", ROLES)
def test_who_is_let_in_is_what_each_route_declares(tmp_path: Path, role: str) -> None:
    with client_of(tmp_path, ROLES[role]) as client:
        outcomes = {request_of(each): outcome(client, each) for each in ROUTES}
        document = client.get("/openapi.json").status_code
    assert document == (HTTPStatus.UNAUTHORIZED if ROLES[role] is None else HTTPStatus.OK)
    assert outcomes == {request_of(each): declared(each, ROLES[role]) for each in ROUTES}
