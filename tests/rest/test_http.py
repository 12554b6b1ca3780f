"""How HTTP is spoken, whatever a request is about: as Connect's server does."""

from urllib.parse import quote

import pytest
from rest.conftest import RestApi

from fairlead.runtime.interfaces.rest.routes.connectors.internal import ALGORITHM, SIGNATURE
from fairlead_tests.rest.client import HERE, Client

READABLE = ["/", "/connectors", "/connector-plugins", "/connector-plugins/SparkPipeline/config"]


def error(code: int, message: str) -> dict[str, object]:
    return {"error_code": code, "message": message}


@pytest.mark.parametrize("path", ["/nope", "/nope/deeper", "/Connectors", "/health/x", "/admin"])
@pytest.mark.parametrize("method", ["GET", "POST", "OPTIONS"])
def test_a_path_that_is_not_there_is_a_404(client: Client, method: str, path: str) -> None:
    reply = client.request(method, path)
    assert (reply.status_code, reply.json()) == (404, error(404, "HTTP 404 Not Found"))


@pytest.mark.parametrize(
    ("method", "path", "allowed"),
    [
        ("POST", "/", {"GET", "HEAD", "OPTIONS"}),
        ("DELETE", "/connectors", {"GET", "HEAD", "OPTIONS", "POST"}),
        ("PUT", "/connectors/a%2Fb", {"GET", "HEAD", "OPTIONS", "DELETE"}),
        ("PATCH", "/groups/connect/rebalance", {"OPTIONS", "POST"}),
        ("BREW", "/connectors", {"GET", "HEAD", "OPTIONS", "POST"}),
    ],
)
def test_a_method_that_a_path_does_not_take_is_a_405(
    client: Client, method: str, path: str, allowed: set[str]
) -> None:
    reply = client.request(method, path)
    told = reply.headers["allow"]
    assert (reply.status_code, set(told.split(","))) == (405, allowed)
    assert reply.json() == error(405, "HTTP 405 Method Not Allowed")
    asked = client.request("OPTIONS", path)
    assert (asked.status_code, asked.headers["allow"]) == (200, told)
    assert asked.text == told.replace(",", ", ")


@pytest.mark.parametrize("path", READABLE)
def test_head_is_get_and_a_slash_at_the_end_counts_for_nothing(client: Client, path: str) -> None:
    ids = {"X-Request-Id": "1"}
    told, asked = client.get(path, headers=ids), client.request("HEAD", path, headers=ids)
    assert (asked.status_code, asked.headers) == (200, told.headers)
    if path != "/":
        assert client.get(f"{path}/").json() == told.json()


def test_parameters_in_a_segment_and_unknown_ones_of_a_query_count_for_nothing(
    client: Client,
) -> None:
    for path in ("/connectors/;a=b", "/connectors;a=b", "/connectors?unknown=1"):
        assert client.get(path).json() == []


@pytest.mark.parametrize(
    ("path", "why"),
    [
        (f"{HERE}//connectors", "Ambiguous URI empty segment"),
        ("/connectors//", "Ambiguous URI empty segment"),
        (f"{HERE}//", "Ambiguous URI empty segment"),
        ("/connectors/%2e%2e/health", "Ambiguous URI path segment"),
        ("/connectors/a%0Ab", "Suspicious Path Character"),
        ("/connectors/a%00b", "Suspicious Path Character"),
        ("/connectors/Gr%F6%DFe", "Bad UTF-8 encoding"),
        ("/connectors/a%2", "HTTP 400 Bad Request"),
        ("/connectors/%zz", "HTTP 400 Bad Request"),
    ],
)
def test_a_path_that_can_be_read_in_two_ways_is_a_400(client: Client, path: str, why: str) -> None:
    reply = client.request("PUT", path)
    assert (reply.status_code, reply.json()) == (400, error(400, why))


@pytest.mark.parametrize("name", ["a/b", "a b", "a+b", "a%2Fb", "Größe-日本-😀", "a;b"])
def test_a_name_stands_in_a_path_percent_encoded(client: Client, name: str) -> None:
    reply = client.get(f"/connector-plugins/{quote(name, safe='')}/config")
    assert reply.json() == error(404, f"Unknown plugin {name}.")


@pytest.mark.parametrize(
    ("accept", "status"),
    [
        ("application/json", 200),
        ("application/*;q=0.1", 200),
        ("text/html, */*;q=0.1", 200),
        ("", 200),
        ("application/xml", 406),
        ("text/html, application/json;q=0.0", 200),
    ],
)
def test_an_answer_is_json_or_none(client: Client, accept: str, status: int) -> None:
    assert client.get("/connectors", headers={"accept": accept}).status_code == status
    assert client.get("/nope", headers={"accept": accept}).status_code == 404
    asked = {"accept": accept, "content-type": "text/plain"}
    refused = client.request("POST", "/connectors", headers=asked)
    assert refused.json() == error(415, "HTTP 415 Unsupported Media Type")


def test_an_answer_that_the_client_does_not_take_is_not_begun(api: RestApi) -> None:
    reply = api.client.request("DELETE", "/connectors/a", headers={"accept": "text/html"})
    assert reply.json() == error(406, "HTTP 406 Not Acceptable")
    assert api.gateway.sent == []


@pytest.mark.parametrize(
    ("headers", "told"),
    [
        ({}, error(400, "Internal request missing required signature")),
        ({ALGORITHM: "HmacSHA256"}, error(400, "Internal request missing required signature")),
        (
            {SIGNATURE: "AAAA", ALGORITHM: "HmacNonsense"},
            error(400, "Algorithm HmacNonsense not available"),
        ),
        (
            {SIGNATURE: "AAAA", ALGORITHM: "HmacSHA256"},
            error(403, "Internal request contained invalid signature."),
        ),
    ],
)
def test_nobody_signs_what_workers_of_connect_tell_each_other(
    client: Client, headers: dict[str, str], told: dict[str, object]
) -> None:
    assert client.post("/connectors/a/tasks", json=[], headers=headers).json() == told
    assert client.put("/connectors/a/fence", headers=headers).json() == told


@pytest.mark.parametrize("task", ["first", "1.5", "99999999999"])
def test_a_task_that_is_no_number_is_a_404(client: Client, task: str) -> None:
    reply = client.get(f"/connectors/a/tasks/{task}/status")
    assert (reply.status_code, reply.json()["error_code"]) == (404, 404)
