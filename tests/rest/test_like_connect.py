"""What Connect 4.3.0 was seen to answer, where no recorded conversation asks for it."""

from typing import Any

import pytest
from rest.conftest import RestApi

from fairlead.runtime.interfaces.rest.routes.connectors.internal import ALGORITHM, SIGNATURE
from fairlead.runtime.interfaces.rest.server.paths import encoded
from fairlead_tests.rest.client import Client

JSON = {"content-type": "application/json"}
UNSUPPORTED = {"error_code": 415, "message": "HTTP 415 Unsupported Media Type"}
BAD = {"error_code": 400, "message": "HTTP 400 Bad Request"}
INVALID = (
    "Connector configuration is invalid and contains the following {} error(s):\n{}\nYou can also"
    " find the above list of errors at the endpoint"
    " `/connector-plugins/{{connectorType}}/config/validate`"
)


@pytest.fixture
def config(api: RestApi) -> dict[str, Any]:
    """What a connector needs."""
    (source := api.data_dir / "in").mkdir()
    return {
        "connector.class": "SparkPipeline",
        "source.format": "json",
        "source.path": str(source),
        "sink.format": "json",
        "sink.path": str(source.parent / "out"),
    }


def told(client: Client, method: str, path: str, body: str = "{}", **headers: str) -> Any:
    reply = client.request(method, path, content=body, headers={**JSON, **headers})
    return reply.status_code, reply.json()


def missing(name: str) -> tuple[int, dict[str, object]]:
    return 404, {"error_code": 404, "message": f"Connector {name} not found"}


@pytest.mark.parametrize("name", [".", "..", "..."])
def test_dots_that_are_not_encoded_are_a_name(name: str) -> None:
    path = f"/connectors/{name}"
    assert encoded(path.encode()) == path


def test_of_a_parameter_that_is_given_twice_the_first_counts(client: Client) -> None:
    asked = "/connector-plugins?connectorsOnly={}&connectorsOnly={}"
    only, all_of_them = (
        len(client.get(asked.format(*each)).json())
        for each in (("true", "false"), ("false", "true"))
    )
    assert only < all_of_them


@pytest.mark.parametrize("path", ["/connectors", "/connectors/a", "/connector-plugins"])
def test_what_is_read_is_refused_to_who_sends_no_json(client: Client, path: str) -> None:
    told = client.get(path, headers={"content-type": "text/plain"})
    assert (told.status_code, told.json()) == (415, UNSUPPORTED)
    assert client.get(path, headers={"content-type": "*/*"}).status_code != 415
    assert client.get("/", headers={"content-type": "text/plain"}).status_code == 200


@pytest.mark.parametrize("kind", ["*/*", "application/*"])
def test_what_has_no_body_may_be_of_any_type_that_json_is_of(client: Client, kind: str) -> None:
    for method, path in (("PUT", "/connectors/a/pause"), ("POST", "/connectors/a/restart")):
        assert told(client, method, path, "", **{"content-type": kind})[0] == 404
        assert told(client, method, path, "{}", **{"content-type": kind}) == (415, UNSUPPORTED)


def test_a_change_without_a_body_of_a_connector_that_is_missing_is_a_404(
    client: Client, config: dict[str, Any]
) -> None:
    assert told(client, "PATCH", "/connectors/a/config", "") == missing("a")
    client.put("/connectors/a/config", json=config)
    flaw = {"error_code": 400, "message": "the request is malformed: body: Field required"}
    for nothing in ("", "null"):
        assert told(client, "PATCH", "/connectors/a/config", nothing) == (400, flaw)


@pytest.mark.parametrize("kind", ["json", "", "application/json, text/plain"])
def test_a_content_type_that_is_none_is_a_400(client: Client, kind: str) -> None:
    for method, path in (
        ("GET", "/connectors"),
        ("POST", "/connectors"),
        ("PUT", "/connectors/a/pause"),
    ):
        assert told(client, method, path, **{"content-type": kind}) == (400, BAD)


@pytest.mark.parametrize(
    "number", ["1.00", "1e3", "1E+3", "0.10", "1e400", "12345678901234567890.5"]
)
def test_a_number_of_a_config_is_kept_as_it_is_spelt(
    client: Client, config: dict[str, Any], number: str
) -> None:
    client.put("/connectors/a/config", json=config)
    status, changed = told(client, "PATCH", "/connectors/a/config", f'{{"mine": {number}}}')
    assert (status, changed["config"]["mine"]) == (200, number)


@pytest.mark.parametrize("number", ["NaN", "Infinity", "-Infinity"])
def test_what_json_has_no_number_for_is_a_400(client: Client, number: str) -> None:
    flaw = f"no valid JSON, from character 0 on ({number} is no number)"
    message = f"the request is malformed: body: {flaw}"
    refused = told(client, "PUT", "/connectors/a/config", f'{{"mine": {number}}}')
    assert refused == (400, {"error_code": 400, "message": message})


def test_a_change_to_an_empty_name_is_an_invalid_config(
    client: Client, config: dict[str, Any]
) -> None:
    client.put("/connectors/a/config", json=config)
    flaw = INVALID.format(1, "Invalid value  for configuration name: String may not be empty")
    refused = told(client, "PATCH", "/connectors/a/config", '{"name": ""}')
    assert refused == (400, {"error_code": 400, "message": flaw})


def test_blanks_around_words_count_for_nothing_and_are_kept(
    client: Client, config: dict[str, Any]
) -> None:
    blank = {"errors.tolerance": " all ", "config.action.reload": "none\n", "tasks.max": " 1"}
    made = client.put("/connectors/a/config", json={**config, **blank})
    assert (made.status_code, made.json()["config"]) == (201, {**config, **blank, "name": "a"})
    flaw = "Invalid value some for configuration errors.tolerance: String must be one of: none, all"
    refused = client.put("/connectors/a/config", json={**config, "errors.tolerance": " some "})
    assert refused.json()["message"] == INVALID.format(1, flaw)


@pytest.mark.parametrize(
    ("name", "kept"),
    [(" a\x00", "a"), ("\t\na", "a"), ("\u00a0a", "\u00a0a"), ("a\u3000", "a\u3000")],
)
def test_a_name_loses_what_java_takes_for_blanks(
    client: Client, config: dict[str, Any], name: str, kept: str
) -> None:
    made = client.post("/connectors", json={"name": name, "config": config})
    assert (made.status_code, made.json()["name"]) == (201, kept)


def test_a_name_of_blanks_is_none(client: Client, config: dict[str, Any]) -> None:
    flaw = INVALID.format(1, "Invalid value  for configuration name: String may not be empty")
    assert client.put("/connectors/%20%20/config", json=config).json()["message"] == flaw


@pytest.mark.parametrize("offset", [{"partition": {"a": {"b": "c"}}}, {"offset": {"a": [1]}}])
def test_what_offsets_hold_is_looked_at_once_the_connector_is_stopped(
    client: Client, config: dict[str, Any], offset: dict[str, Any]
) -> None:
    path = "/connectors/a/offsets"
    sent = {"offsets": [offset]}
    refused = client.request("PATCH", path, json=sent)
    assert (refused.status_code, refused.json()) == missing("a")
    client.put("/connectors/a/config", json=config)
    refused = client.request("PATCH", path, json=sent)
    assert refused.json()["message"].startswith("Connectors must be in the STOPPED state before")


def test_the_root_logger_has_one_name_in_any_case(client: Client) -> None:
    root = client.get("/admin/loggers/root").json()
    assert [client.get(f"/admin/loggers/{each}").json() for each in ("ROOT", "Root")] == [root] * 2


@pytest.mark.parametrize("algorithm", ["HmacMD5", "hmacsha256"])
def test_workers_of_connect_sign_by_one_algorithm(client: Client, algorithm: str) -> None:
    headers = {SIGNATURE: "AAAA", ALGORITHM: algorithm}
    status, refused = told(client, "POST", "/connectors/a/tasks", "[]", **headers)
    flaw = f"This worker does not support the '{algorithm}' key signing algorithm"
    assert (status, refused["message"].startswith(flaw)) == (400, True)


@pytest.mark.parametrize(
    ("version", "asked"), [("9", "[9,9]"), ("", "[,]"), ("[9,)", "[9,)"), ("x", "[x,x]")]
)
def test_keys_of_another_version_are_not_told(client: Client, version: str, asked: str) -> None:
    path = "/connector-plugins/SparkPipeline/config"
    flaw = (
        "Plugin fairlead.runtime.connectors.spark_pipeline.SparkPipeline not found that matches the"
        f" version range {asked}, available versions: [1.0]"
    )
    refused = client.get(path, params={"version": version})
    assert (refused.status_code, refused.json()) == (400, {"error_code": 400, "message": flaw})


@pytest.mark.parametrize("version", ["1.0", "1", "latest", "[1,2)", " 1.0 "])
def test_keys_of_this_version_are_told(client: Client, version: str) -> None:
    path = "/connector-plugins/SparkPipeline/config"
    asked = client.get(path, params={"version": version})
    assert asked.json() == client.get(path).json()
