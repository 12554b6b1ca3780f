"""Who asks, and what they may do: each route says which right it needs."""

import getpass
import socket

import pytest
from rest.conftest import RestApi
from starlette.requests import Request

from fairlead.runtime.interfaces.rest.app import SUBJECTS, make_app
from fairlead.runtime.interfaces.rest.server.principals import Principal
from fairlead.runtime.security.rights import FULL, Access, Right, Role
from fairlead.runtime.security.settings import Authentication
from fairlead_tests.rest.client import Client


@pytest.mark.parametrize(
    ("family", "host"), [(socket.AF_INET, "127.0.0.1"), (socket.AF_INET6, "::1")]
)
def test_the_user_of_a_local_connection_is_named(family: socket.AddressFamily, host: str) -> None:
    try:
        listener = socket.create_server((host, 0), family=family)
    except OSError:
        pytest.skip(f"this machine has no {host}")
    with listener, socket.create_connection(listener.getsockname()[:2]) as caller:
        served, address = listener.accept()
        with served:
            ends = address[:2], served.getsockname()[:2]
            assert Principal(*ends).name == f"rest {host} ({getpass.getuser()})"
            assert caller.getsockname()[1] == address[1]
            another = host, served.getsockname()[1] - 1  # its connection may have the same port
            assert Principal(ends[0], another).name == f"rest {host}"
            caller.close()  # the kernel lists what is left of it as root's
            assert Principal(*ends).name == f"rest {host}"


def test_who_is_elsewhere_or_gone_is_named_by_the_address() -> None:
    here = "127.0.0.1", 8083
    assert Principal(("192.0.2.7", 4711), here).name == "rest 192.0.2.7"
    assert Principal(("127.0.0.1", 0), here).name == "rest 127.0.0.1"
    assert Principal(("testclient", 50_000), here).name == "rest testclient"
    assert Principal(("127.0.0.1", 4711), ("testserver", 80)).name == "rest 127.0.0.1"
    assert Principal(None, here).name == "rest"


def test_a_caller_has_all_rights_and_has_proved_nothing() -> None:
    caller = Principal(("127.0.0.1", 4711), ("127.0.0.1", 8083))
    assert (caller.access, caller.authentication) == (FULL, Authentication.NONE)


def requests_by_right() -> dict[Right, set[str]]:
    """Return the requests of all routes, by the right that they need."""
    found: dict[Right, set[str]] = {right: set() for right in Right}
    for route in (route for subject in SUBJECTS for route in subject):
        if route.rights.needs is not None:
            found[route.rights.needs].add(f"{route.method} {route.path_format}")
    return found


def test_a_route_that_changes_something_needs_more_than_to_view() -> None:
    viewed = requests_by_right()[Right.VIEW]
    assert {each for each in viewed if not each.startswith("GET ")} == {
        "POST /groups/{group}/plan",
        "PUT /connector-plugins/{plugin}/config/validate",
        "PUT /connectors/{connector}/config/diff",
    }


def test_what_is_configured_is_changed_by_administrators() -> None:
    assert requests_by_right()[Right.ADMINISTER] == {
        "DELETE /connectors/{connector}",
        "DELETE /groups/{group}",
        "PATCH /connectors/{connector}/config",
        "PATCH /groups/{group}/config",
        "POST /apply",
        "POST /connectors",
        "POST /connectors/{connector}/dead-letters/retry",
        "POST /connectors/{connector}/rollback",
        "POST /connectors/{connector}/tasks",
        "POST /sample",
        "PUT /admin/loggers/{logger}",
        "PUT /connectors/{connector}/config",
        "PUT /connectors/{connector}/fence",
        "PUT /groups/{group}/compaction",
        "PUT /groups/{group}/config",
    }


def test_a_caller_without_the_right_is_refused_as_connect_refuses(api: RestApi) -> None:
    async def viewer(_: Request) -> Principal:
        return Principal(("192.0.2.7", 4711), ("127.0.0.1", 8083), Access.of(Role.VIEWER))

    client = Client(make_app(api.service, identify=viewer))
    assert client.get("/connectors").json() == []
    for method, path, right in (
        ("PUT", "/connectors/a/pause", "operate"),
        ("POST", "/connectors", "administer"),
    ):
        refused = client.request(method, path)
        assert (refused.status_code, refused.json()) == (
            403,
            {
                "error_code": 403,
                "message": f"rest 192.0.2.7 lacks the right to {right}, which {method} of this path"
                " needs; nothing was done",
            },
        )
