# pyright: basic, reportAttributeAccessIssue=false
"""The client for Python programs: it asks what `/openapi.json` describes, and reads answers."""

import asyncio
import json
import pickle
from collections.abc import Iterator
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, assert_type, get_args

import msgspec
import pytest
from jsonschema import Draft202012Validator  # type: ignore[import-untyped]
from rest.conftest import RestApi, service_over
from starlette.types import Receive, Scope, Send

from fairlead.client import (
    AsyncClient,
    Client,
    ClientError,
    ConnectorOffset,
    EventInfo,
    NodeUnreachableError,
    Refused,
    UnexpectedAnswerError,
    WaitTimeoutError,
)
from fairlead.events.model import Resource, RunState
from fairlead.runtime.interfaces.client.connectors import STATUS
from fairlead.runtime.interfaces.client.events import EventReader, LatestEvents
from fairlead.runtime.interfaces.client.groups import OVERVIEW
from fairlead.runtime.interfaces.client.operations import ClientOperation, Operations
from fairlead.runtime.interfaces.client.requests import NodeRequest
from fairlead.runtime.interfaces.rest.app import make_app
from fairlead.runtime.interfaces.rest.server.connections import Encryption
from fairlead.runtime.security.tls import ServerTls, TlsSettings
from fairlead_tests.certificates import Authority
from fairlead_tests.rest.client import Client as RestClient
from fairlead_tests.rest.gateway import FakeGateway
from fairlead_tests.rest.served import opened_at, serving

LOCKED = {"connector.class": "Locked"}
OFFSET = ConnectorOffset({"path": "a.csv"}, None)
CHANGES = {
    "add_workers": 1,
    "worker": {"zone": "a", "tags": ["b"], "capacity": 2},
    "drain": ["w1"],
    "remove_workers": ["w2"],
    "delete": ["A"],
    "connectors": [{"name": "B", "config": LOCKED}],
    "scale": {"C": 2},
}
GIVEN: dict[str, tuple[tuple[Any, ...], dict[str, Any]]] = {
    "create": (("A", LOCKED), {"initial_state": "STOPPED"}),
    "put_config": (("A", LOCKED), {}),
    "patch_config": (("A", {"tasks.max": 2, "topic": None}), {}),
    "delete": (("A",), {"forget": False, "publish": False}),
    "restart": (("A",), {"include_tasks": True, "only_failed": True}),
    "restart_task": (("A", 0), {}),
    "set_offsets": (("A", [OFFSET]), {}),
    "seek": (("A", "earliest"), {"dry_run": True}),
    "moves": (("A-0", 5), {"group": "connect"}),
    "history": ((5,), {"group": "connect"}),
    "explain": ((), {}),
    "past_events": ((7,), {}),
    "plan": ((), CHANGES),
    **{each: ((), {}) for each in ("connectors", "overview", "workers")},
}
"""The arguments of operations; of others it is a name."""
OF_SEVERAL = {"wait", "wait_until_drained"}
"""Operations that make requests of others."""


@pytest.fixture(scope="module")
def document(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    service = service_over(tmp_path_factory.mktemp("node"), FakeGateway(None))
    found: dict[str, Any] = RestClient(make_app(service)).get("/openapi.json").json()
    return found


def operations() -> Iterator[tuple[str, NodeRequest[Any]]]:
    for name, each in vars(Operations).items():
        if isinstance(each, ClientOperation) and name not in OF_SEVERAL:
            args, named = GIVEN.get(name, (("A",), {}))
            request = each.make(*args, **named)
            assert isinstance(request, NodeRequest), name
            yield name, request


def described(request: NodeRequest[Any], document: dict[str, Any]) -> dict[str, Any]:
    """Return what the document says of a request."""
    for path, methods in document["paths"].items():
        parts = path.strip("/").split("/")
        if len(parts) == len(request.path) and all(
            part.startswith("{") or part == own
            for part, own in zip(parts, request.path, strict=True)
        ):
            found: dict[str, Any] = methods[request.method.lower()]
            return found
    raise AssertionError(request.target)


def shape(schema: Any, components: dict[str, Any]) -> Any:
    """Return a schema without references and texts."""
    if isinstance(schema, list):
        return [shape(each, components) for each in schema]
    if not isinstance(schema, dict):
        return schema
    if "$ref" in schema:
        return shape(components[schema["$ref"].rpartition("/")[2]], components)
    return {
        key: {name: shape(each, components) for name, each in value.items()}
        if key == "properties"
        else shape(value, components)
        for key, value in schema.items()
        if key not in {"title", "description"}
    }


def shapes_of(kind: Any) -> list[Any]:
    """Return the schemas of an answer's type, without that for nothing."""
    kinds = get_args(kind) if isinstance(kind, UnionType) else (kind,)
    bodies = [each for each in kinds if each not in {None, NoneType}]
    schemas, components = msgspec.json.schema_components(bodies)
    return [json.loads(json.dumps(shape(each, components))) for each in schemas]


def test_operations_ask_and_take_what_the_document_describes(document: dict[str, Any]) -> None:
    components = document["components"]["schemas"]
    for name, request in operations():
        operation = described(request, document)
        queries = {each["name"] for each in operation["parameters"] if each["in"] == "query"}
        assert request.query.keys() <= queries, name
        body = operation.get("requestBody")
        assert (body is None) is (request.content is None), name
        if body is not None:
            schema = {
                **body["content"]["application/json"]["schema"],
                "components": document["components"],
            }
            Draft202012Validator(schema).validate(json.loads(request.content or b""))
        answers = [
            each
            for status, answer in operation["responses"].items()
            if status.startswith("2") and "content" in answer
            for whole in [shape(answer["content"]["application/json"]["schema"], components)]
            for each in whole.get("anyOf", [whole])
        ]
        assert all(each in answers for each in shapes_of(request.answer.type)), name
        assert bool(answers) is bool(shapes_of(request.answer.type)), name


def test_a_plan_can_have_all_changes_that_there_are(document: dict[str, Any]) -> None:
    assert CHANGES.keys() == document["components"]["schemas"]["Proposal"]["properties"].keys()


NAME = "../A"


async def play_async(url: str) -> None:
    async with AsyncClient(url) as client:
        assert_type(await client.pause(NAME), None)
        await client.wait(NAME, "paused", timeout=0)
        with pytest.raises(WaitTimeoutError) as late:
            await client.wait(NAME, timeout=0.01)
        assert str(late.value) == f"connector {NAME} is not running after 0.01 s: PAUSED"
        with pytest.raises(Refused, match="No status found for connector none"):
            await client.status("none")


def play(url: str) -> None:
    with Client(url) as client:
        assert assert_type(client.connectors(), list[str]) == [NAME]
        client.drain("w1")
        with pytest.raises(WaitTimeoutError, match="w1 still has after 0 s: "):
            client.wait_until_drained("w1", timeout=0)
        with pytest.raises(ClientError, match="there is no worker w9"):
            client.wait_until_drained("w9")
        with pytest.raises(Refused) as refused:
            client.create(NAME, LOCKED)
        error = refused.value
        assert (error.status, error.message) == (409, f"Connector {NAME} already exists")
        assert str(pickle.loads(pickle.dumps(error))) == str(error)
        epochs = client.history().to_pandas()
        assert [*epochs["cause"]][:2] == ["member-joined", "connector-added"]
        assert str(epochs["time"].dtype) == "datetime64[ms, UTC]"
        (task,) = client.progress(NAME).to_arrow().to_pylist()
        assert (task["task"], task["rows_in"], task["last_commit"]) == (0, 0, None)


def test_both_clients_read_wait_and_are_refused(api: RestApi, tmp_path: Path) -> None:
    api.group.ask("seat", "w1")
    path = f"unix://{tmp_path}/rest.sock"
    with serving(make_app(api.service), opened_at("http://127.0.0.1:0", path)) as (listener, _):
        url = f"http://127.0.0.1:{listener.address.port}"
        with Client(url) as client:
            assert client.create(NAME, LOCKED).name == NAME
        api.group.ask("settle")
        api.group.ask("split", NAME, {"task": "0"})
        for each in (Resource(NAME), Resource(NAME, 0)):
            api.group.ask("report", each, RunState.PAUSED)
        asyncio.run(play_async(path))
        play(url)
        with Client(f"{url}/elsewhere") as client, pytest.raises(Refused):
            client.connectors()
    with Client(url) as client, pytest.raises(NodeUnreachableError, match="nothing was sent"):
        client.connectors()


async def echo(scope: Scope, _: Receive, send: Send) -> None:
    """Answer with what a request has said, as if that were the names of connectors."""
    if scope["type"] == "lifespan":
        return
    authorization = dict(scope["headers"]).get(b"authorization", b"").decode()
    subject = scope["extensions"].get("tls", {}).get("client_cert_name")
    body = json.dumps([scope["path"], authorization, str(subject)]).encode()
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": body})


def test_a_client_says_who_it_is_and_checks_who_answers(tmp_path: Path) -> None:
    authority = Authority()
    keystore = authority.issue("first").write(tmp_path / "server.pem")
    ca = str(authority.write(tmp_path / "ca.pem"))
    own = str(authority.issue("ann").write(tmp_path / "ann.pem"))
    tls = ServerTls(
        TlsSettings(
            keystore_location=str(keystore), truststore_location=ca, client_auth="requested"
        )
    )
    with serving(echo, opened_at("https://127.0.0.1:0"), Encryption(tls)) as (listener,):
        port = listener.address.port
        url = f"https://localhost:{port}"
        with Client(url, ca=ca, token="t") as client:
            assert client.connectors() == ["/connectors", "Bearer t", "None"]
            with pytest.raises(UnexpectedAnswerError, match="is it the right URL"):
                client.overview()
        proxied = f"https://ann:se%40cret@localhost:{port}/of/proxy/"
        with Client(proxied, ca=ca, cert=own) as client:
            basic = "Basic YW5uOnNlQGNyZXQ="
            assert client.connectors() == ["/of/proxy/connectors", basic, "CN=ann"]
            assert repr(client) == f"Client('{url}/of/proxy/')"
        with Client(url) as client, pytest.raises(NodeUnreachableError, match="certificate verify"):
            client.connectors()
        with (
            pytest.raises(NodeUnreachableError, match="cannot be used"),
            Client(url, ca=str(tmp_path / "none")) as client,
        ):
            client.connectors()


def event(number: int) -> EventInfo:
    return EventInfo(number, "Normal", f"event {number}\u2028", None, None, "", None)


def latest(sequence: int, *numbers: int) -> LatestEvents:
    return LatestEvents(sequence, [event(each) for each in reversed(numbers)])


def change(process: int, content: LatestEvents) -> bytes:
    data = msgspec.json.encode(content)
    return b"id: %d-%d\nevent: change\ndata: %s\n\n" % (process, content.sequence, data)


def times(events: Iterator[EventInfo]) -> list[int]:
    return [each.time_ms for each in events]


def test_a_reader_of_events_has_each_once() -> None:
    reader = EventReader(latest(4, 1, 2))
    assert reader.headers["Last-Event-ID"] == "4"
    stream = b'retry: 1000\n\nevent: open\ndata: {"sequence":4}\n\n: \n\n' + change(
        7, latest(5, 3, 4)
    )
    parts = [stream[at : at + 11] for at in range(0, len(stream), 11)]
    assert [each for part in parts for each in times(reader.take(part))] == [3, 4]
    assert times(reader.take(b"id: 7-6\nevent: cha")) == []
    reader.close(NodeUnreachableError("away"))
    assert (reader.headers["Last-Event-ID"], reader.is_behind) == ("7-5", False)
    assert times(reader.take(b'id: 8-2\nevent: gap\ndata: {"sequence":2}\n\n')) == []
    assert reader.is_behind
    reader.close()
    assert times(reader.fill(latest(3, 2, 3, 4, 5, 6))) == [5, 6]
    reader.close(Refused(503, "not yet"))
    assert reader.is_behind  # the number names no process, and another one may count by now
    missing, *others = reader.fill(latest(9, 8, 9))
    assert missing.type == "Warning"
    assert "are missing" in missing.text
    assert times(iter(others)) == [8, 9]
    with pytest.raises(Refused):
        reader.close(Refused(401, "who are you?"))


def test_a_notebook_shows_statuses_as_tables_in_which_names_are_no_html() -> None:
    name = "<img src=x onerror=alert(1)>"
    state = {"state": "FAILED", "worker_id": "w1", "version": "1", "trace": "<b>no</b>"}
    status = {"name": name, "connector": state, "tasks": [{"id": 0, **state}], "type": "source"}
    of_connector = STATUS.decode(json.dumps(status))._repr_html_()
    overview = {
        "server": {"version": "4", "commit": "", "kafka_cluster_id": "c"},
        "health": {"status": "healthy", "message": "<i>ready</i>"},
        "verdict": {"status": "degraded", "message": "<i>ready</i>", "troubles": {}},
        "groups": [],
        "workers": {"processes_known": True, "workers": []},
        "connectors": {name: {"status": status}},
    }
    of_node = OVERVIEW.decode(json.dumps(overview))._repr_html_()
    for each in ("<img", "<b>no", "<i>"):
        assert each not in of_connector + of_node
    assert "<td>task 0</td><td>FAILED</td><td>w1</td><td>&lt;b&gt;no&lt;/b&gt;</td>" in of_connector
    assert "<b>degraded</b>" in of_node
    assert "onerror=alert(1)&gt;</td><td>source</td><td>FAILED</td><td>1</td><td>0</td>" in of_node
