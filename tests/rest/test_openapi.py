"""What `/openapi.json` says of the answers, held against what is answered."""

import json
import re
from collections.abc import Iterator
from typing import Any

import pytest
from rest.conftest import RestApi, service_over

from fairlead.events.model import Resource, RunState
from fairlead.runtime.cluster.messages import ProcessView
from fairlead.runtime.interfaces.rest.app import make_app
from fairlead_tests.rest.client import Client
from fairlead_tests.rest.gateway import FakeGateway

SCHEMAS = "#/components/schemas/"
KINDS: dict[str, Any] = {
    "string": str,
    "boolean": bool,
    "integer": int,
    "array": list,
    "object": dict,
    "null": type(None),
}
PATHS = {
    "/",
    "/health",
    "/health/live",
    "/connectors",
    "/connectors?expand=status&expand=info&expand=progress",
    "/connectors/A",
    "/connectors/A/config",
    "/connectors/A/status",
    "/connectors/A/progress",
    "/connectors/A/tasks",
    "/connectors/A/tasks/0/status",
    "/connector-plugins",
    "/connector-plugins/SparkPipeline/config",
    "/assignors",
    "/workers",
    "/groups",
    "/groups/connect",
    "/groups/connect/config",
    "/groups/connect/history",
    "/groups/connect/explain/latest",
    "/connectors/none",
    "/groups/none",
    "/groups/connect/explain/99",
}


def flaws_of(value: Any, schema: dict[str, Any], document: dict[str, Any]) -> Iterator[str]:
    """Yield where a value is not what a schema says, members that it does not know included."""
    if reference := schema.get("$ref"):
        schema = document["components"]["schemas"][reference.removeprefix(SCHEMAS)]
    if alternatives := schema.get("anyOf"):
        found = [list(flaws_of(value, each, document)) for each in alternatives]
        yield from min(found, key=len)
        return
    kind = KINDS[schema["type"]]
    if type(value) is not kind:
        yield f"{value!r} is not {schema['type']}"
    elif kind is list:
        for each in value:
            yield from flaws_of(each, schema["items"], document)
    elif kind is dict:
        yield from flaws_of_object(value, schema, document)


def flaws_of_object(
    value: dict[str, Any], schema: dict[str, Any], document: dict[str, Any]
) -> Iterator[str]:
    yield from (f"no {each}" for each in schema.get("required", ()) if each not in value)
    for name, each in value.items():
        others: Any = schema.get("additionalProperties")
        described: Any = schema.get("properties", {}).get(name, others)
        if described:
            yield from flaws_of(each, described, document)
        else:
            yield f"{name} is not described"


def operations(document: dict[str, Any]) -> Iterator[tuple[str, str, dict[str, Any]]]:
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            yield method, path, operation


@pytest.fixture(scope="module")
def document(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What any node says of its interface."""
    service = service_over(tmp_path_factory.mktemp("node"), FakeGateway(None))
    found: dict[str, Any] = Client(make_app(service)).get("/openapi.json").json()
    return found


def test_every_answer_and_every_error_has_a_schema(document: dict[str, Any]) -> None:
    error = {"$ref": f"{SCHEMAS}ErrorMessage"}
    for method, path, operation in operations(document):
        responses = operation["responses"]
        assert responses["default"]["content"]["application/json"]["schema"] == error
        for status, response in responses.items():
            where = f"{method} {path} {status}"
            if status == "204" or "content" not in response:
                assert status in {"202", "204"} or path.endswith("/topics/reset"), where
                assert "content" not in response, where
                continue
            ((_, content),) = response["content"].items()
            assert content["schema"], where
            assert content["schema"].keys() & {"$ref", "type", "anyOf"}, where
            if status not in {"200", "201", "202", "default"} and not path.startswith("/health"):
                assert content["schema"] == error, where


def test_an_operation_is_called_as_its_function(document: dict[str, Any]) -> None:
    names = [operation["operationId"] for _, _, operation in operations(document)]
    assert len(names) == len({*names})
    assert {"pause", "create_connector", "get_root", "explain_epoch"} <= {*names}


def test_states_and_causes_are_one_of_the_words_that_there_are(document: dict[str, Any]) -> None:
    schemas = document["components"]["schemas"]
    words = {
        ("TaskState", "state"): "FAILED",
        ("ConnectorState", "state"): "RESTARTING",
        ("ConnectorStateInfo", "type"): "source",
        ("MemberDescription", "state"): "UNREVOKED",
        ("GroupDescription", "state"): "Reconciling",
        ("GroupSummary", "type"): "connect",
        ("EpochExplanation", "cause"): "worker-drained",
        ("Health", "status"): "slow",
    }
    for (kind, member), word in words.items():
        assert word in schemas[kind]["properties"][member]["enum"], f"{kind}.{member}"


def test_every_member_of_an_answer_says_what_it_is(document: dict[str, Any]) -> None:
    silent = {
        f"{name}.{member}"
        for name, schema in document["components"]["schemas"].items()
        for member, each in schema.get("properties", {}).items()
        if not each.get("description")
    }
    assert silent == set()


def test_every_schema_that_is_referred_to_is_there(document: dict[str, Any]) -> None:
    references = set(re.findall(f'"{SCHEMAS}([^"]+)"', json.dumps(document)))
    assert references <= document["components"]["schemas"].keys()


def test_no_member_of_an_answer_may_be_anything(document: dict[str, Any]) -> None:
    for name, schema in document["components"]["schemas"].items():
        for member, each in schema.get("properties", {}).items():
            assert each.keys() & {"$ref", "type", "anyOf", "enum"}, f"{name}.{member}"


def template_of(path: str, document: dict[str, Any]) -> dict[str, Any]:
    """Return the operation that reads a path."""
    asked = path.partition("?")[0].split("/")
    for method, template, operation in operations(document):
        parts = template.split("/")
        if (
            method == "get"
            and len(parts) == len(asked)
            and all(one == other or one[:1] == "{" for one, other in zip(parts, asked, strict=True))
        ):
            return operation
    raise AssertionError(path)


def test_real_answers_are_what_their_schemas_say(api: RestApi, document: dict[str, Any]) -> None:
    group = api.group
    group.ask("seat", "w1")
    api.client.put(
        "/connectors/A/config",
        json={
            "connector.class": "SparkPipeline",
            "source.format": "csv",
            "source.path": "/in",
            "sink.format": "parquet",
            "sink.path": "/out",
        },
    )
    group.ask("settle")
    group.ask("split", "A", {"task": "0"}, {"task": "1"})
    group.ask("seat", "w2")
    group.ask("report", Resource("A", 0), RunState.FAILED, "no such column")
    group.ask("commit", Resource("A", 0), 0, 10, 9)
    api.client.put("/workers/w1/cordon")
    api.client.put("/groups/connect/placements/A", json={"weight": 2})
    api.gateway.workers = (ProcessView("w1", 4711, "127.0.0.1:8083/w1", "running", 0, ""),)
    for path in sorted(PATHS):
        answer = api.client.get(path)
        responses = template_of(path, document)["responses"]
        described = responses.get(str(answer.status_code), responses["default"])
        schema = described["content"]["application/json"]["schema"]
        assert list(flaws_of(answer.json(), schema, document)) == [], path
