"""Requests that a foreign page can have sent are refused; what people and programs send is not."""

import pytest
from rest.conftest import RestApi

from fairlead.actors.transport.ports import HostPort
from fairlead.runtime.interfaces.rest.app import make_app
from fairlead_tests.rest.client import HERE, Client

FORMS = ["application/x-www-form-urlencoded", "multipart/form-data; boundary=x", "text/plain", ""]
LET_IN = (
    "; nothing was done. If it should be let in, add its host to the setting rest.allowed.hosts"
    " and start the node again"
)


@pytest.mark.parametrize(
    "host",
    ["evil.example", "evil.example:8083", "127.0.0.1:9", "127.0.0.1", "", "a@127.0.0.1:8083"],
)
@pytest.mark.parametrize("method", ["GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"])
def test_a_request_for_another_host_is_refused(client: Client, method: str, host: str) -> None:
    refused = client.request(method, "/groups/connect/rebalance", headers={"host": host})
    assert (refused.status_code, refused.json()) == (
        403,
        {
            "error_code": 403,
            "message": f"the request is for host {host!r}, which is not where this interface"
            f" listens{LET_IN}",
        },
    )


@pytest.mark.parametrize(
    "origin",
    [
        "https://evil.example",
        "http://localhost:3000",
        "http://evil.example:8083",
        "https://127.0.0.1",
        "http://127.0.0.1:8083/",
        "http://127.0.0.1:8083.evil.example",
        "http://[",
        "file://",
        "null",
        "",
    ],
)
@pytest.mark.parametrize("path", ["/", "/connectors", "/nothing/there", "/openapi.json"])
def test_a_request_from_a_foreign_page_is_refused(client: Client, path: str, origin: str) -> None:
    told = f"the request comes from a page of {origin!r}, which is not where this interface"
    more = ", or that origin to access.control.allow.origin, and start"
    for method in ("GET", "POST", "DELETE"):
        refused = client.request(method, path, headers={"origin": origin})
        assert (refused.status_code, refused.json()["message"]) == (
            403,
            f"{told} listens{LET_IN.replace(' and start', more)}",
        )


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"host": "localhost:8083"},
        {"host": "LOCALHOST:8083"},
        {"host": "[::1]:8083"},
        {"origin": HERE},
        {"origin": "http://localhost:8083", "host": "localhost:8083"},
    ],
)
def test_who_names_a_listener_is_answered(client: Client, headers: dict[str, str]) -> None:
    assert client.get("/connectors", headers=headers).status_code == 200


def test_the_names_of_a_proxy_are_let_in_where_a_setting_says_so(api: RestApi) -> None:
    listeners = [HostPort("127.0.0.1", 8083), HostPort("10.1.2.3", 80)]
    client = Client(make_app(api.service, listeners, ["etl.example", "[fe80::1]:99"]))
    for place in ("etl.example", "etl.example:1234", "[fe80::1]:99", "10.1.2.3", "localhost:80"):
        for scheme in ("http", "https") if place.startswith("etl") else ("http",):
            told = {"host": place, "origin": f"{scheme}://{place}"}
            assert client.get("/connectors", headers=told).status_code == 200, place
    for place in ("x.etl.example", "[fe80::1]", "10.1.2.3:8083"):
        assert client.get("/connectors", headers={"host": place}).status_code == 403


@pytest.mark.parametrize("kind", FORMS)
@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("POST", "/groups/connect/rebalance"),
        ("PUT", "/groups/connect/placements/a"),
        ("DELETE", "/groups/connect/placements/a"),
        ("DELETE", "/connectors/a"),
        ("PUT", "/connectors/a/config"),
        ("POST", "/connectors"),
        ("PUT", "/workers/w1/drain"),
    ],
)
def test_a_change_is_json_or_has_no_body(api: RestApi, method: str, path: str, kind: str) -> None:
    headers = {"content-type": kind} if kind else {"origin": HERE}
    refused = api.client.request(method, path, headers=headers, content=b"weight=1")
    assert (refused.status_code, refused.json()["message"]) == (
        415,
        "HTTP 415 Unsupported Media Type",
    )
    empty = api.client.request(method, path, headers={"content-type": "text/plain"})
    assert empty.status_code == 415
    assert api.gateway.sent == []


def test_a_body_that_is_not_used_needs_no_type_as_in_connect_unless_a_page_sends_it(
    api: RestApi,
) -> None:
    calls = [("PUT", "/connectors/a/pause"), ("POST", "/connectors/a/restart")]
    for method, path in [*calls, ("PUT", "/connectors/a/config")]:
        answers = [
            api.client.request(method, path, headers=headers, content=b"x").status_code
            for headers in ({}, {"origin": HERE})
        ]
        assert answers == [404 if (method, path) in calls else 415, 415], path
