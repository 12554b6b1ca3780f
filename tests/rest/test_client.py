# pyright: basic, reportAttributeAccessIssue=false
"""The client for Python programs: it asks what `/openapi.json` describes, and reads answers."""

import asyncio
import json
import pickle
from collections.abc import AsyncGenerator, Generator, Iterator
from contextlib import aclosing, contextmanager
from inspect import signature
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, assert_type, get_args
from urllib.parse import quote

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
    PageChange,
    PageMessage,
    PageState,
    Refused,
    StreamGap,
    StreamOpened,
    UnexpectedAnswerError,
    WaitTimeoutError,
)
from fairlead.events.model import Resource, RunState
from fairlead.runtime.interfaces.client.calls.connectors import STATUS
from fairlead.runtime.interfaces.client.calls.node import OVERVIEW, follow_logs
from fairlead.runtime.interfaces.client.calls.page import EventReader, LatestEvents, MessageReader
from fairlead.runtime.interfaces.client.operations import ClientOperation, Operations
from fairlead.runtime.interfaces.client.sending.exchange import NodeExchange
from fairlead.runtime.interfaces.client.sending.requests import NodeRequest
from fairlead.runtime.interfaces.replies.node import LoggedEntry, LogPage
from fairlead.runtime.interfaces.rest.app import make_app
from fairlead.runtime.interfaces.rest.reading.changes import LogChanges
from fairlead.runtime.interfaces.rest.server.connections import Encryption
from fairlead.runtime.interfaces.rest.watch.page.node import NodeLooks
from fairlead.runtime.interfaces.rest.watch.page.watch import PageWatch
from fairlead.runtime.security.tls import ServerTls, TlsSettings
from fairlead_tests.certificates import Authority
from fairlead_tests.rest.client import Client as RestClient
from fairlead_tests.rest.gateway import FakeGateway
from fairlead_tests.rest.served import opened_at, serving

LOCKED: dict[str, str | int] = {"connector.class": "Locked"}
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
    "connectors": ((5, "A"), {}),
    "expanded": ((["status", "info"],), {"limit": 5, "after": "A"}),
    "task_status": (("A", 0), {}),
    "diff": (("A", LOCKED), {}),
    "apply": (({"A": LOCKED, "B": LOCKED},), {"dry_run": True}),
    "roll_back": (("A", 3), {}),
    "sample": (("A", LOCKED), {}),
    "plugins": ((), {"connectors_only": True}),
    "plugin_keys": (("Locked", "latest"), {}),
    "validate": (("Locked", LOCKED), {}),
    "dead_letters": (("A", 7, "x"), {}),
    "put_group_config": (({"group.max.size": 9},), {}),
    "patch_group_config": (({"group.max.size": None},), {}),
    "place": (("A", 0), {"weight": 2, "workers": ["w1"]}),
    "release": (("A", 0), {}),
    "compact": ((), {"keep_ms": 1, "keep_epochs": 1, "keep_bytes": 1}),
    "expect": (("w1", 1_000), {"group": "connect"}),
    "remove_worker": (("w1",), {"force": True, "group": "connect"}),
    "set_log_level": (("root", "INFO"), {"keep": True}),
    "logs": ((["A"],), {"level": "WARN", "tail": 5, "since_ms": 9, "after": "x", "wait_ms": 1}),
    **{
        each: ((), {})
        for each in (
            "assignors",
            "groups",
            "health",
            "liveness",
            "loggers",
            "metrics",
            "nodes",
            "overview",
            "readiness",
            "server",
            "settings",
            "state",
            "workers",
        )
    },
}
"""The arguments of operations; of others it is a name."""
OTHERS = {("place", ("A",)), ("release", ("A",))}
"""Operations with fewer arguments, which are other requests."""
STREAMED = {"/events", "/connectors/{connector}/dead-letters/export"}
"""What iterators read as it comes."""
NOT_ASKED = {
    ("post", "/connectors/{connector}/tasks"),
    ("put", "/connectors/{connector}/fence"),
    ("get", "/state/history"),
    ("get", "/ui/{file}"),
}
"""What refuses whoever asks it, or is for browsers."""


@pytest.fixture(scope="module")
def document(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    service = service_over(tmp_path_factory.mktemp("node"), FakeGateway(None))
    found: dict[str, Any] = RestClient(make_app(service)).get("/openapi.json").json()
    return found


def operations() -> Iterator[tuple[str, NodeRequest[Any]]]:
    for name, each in vars(Operations).items():
        if isinstance(each, ClientOperation):
            args, named = GIVEN.get(name, (("A",), {}))
            yield name, each.make(*args, **named)
    for name, args in OTHERS:
        yield name, getattr(Operations, name).make(*args)


def place_of(request: NodeRequest[Any], document: dict[str, Any]) -> tuple[str, str]:
    """Return the method and the path of a request as the document has them; fixed ones first."""
    method = request.method.lower()
    for path, methods in sorted(document["paths"].items(), key=lambda each: "{" in each[0]):
        parts = path.strip("/").split("/")
        if (
            method in methods
            and len(parts) == len(request.path)
            and all(
                part.startswith("{") or part == own
                for part, own in zip(parts, request.path, strict=True)
            )
        ):
            return method, path
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
        method, path = place_of(request, document)
        operation = document["paths"][path][method]
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
            for (content,) in [answer["content"].values()]
            for whole in [shape(content["schema"], components)]
            for each in whole.get("anyOf", [whole])
        ]
        assert all(each in answers for each in shapes_of(request.answer.type)), name
        assert bool(answers) is bool(shapes_of(request.answer.type)), name


def test_everything_that_the_document_describes_can_be_asked(document: dict[str, Any]) -> None:
    asked = {place_of(request, document) for _, request in operations()}
    asked |= {("get", each) for each in STREAMED}
    offered = {(method, path) for path, methods in document["paths"].items() for method in methods}
    assert offered - asked == NOT_ASKED


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
    position = {"position": 1, "time_ms": 1, **msgspec.to_builtins(content)}
    data = msgspec.json.encode(position)
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


def test_a_reader_of_changes_hears_of_a_gap_after_another_process() -> None:
    reader = MessageReader("4")
    reader.close(NodeUnreachableError("away"))
    assert reader.headers["Last-Event-ID"] == "0-0", "4 would be of any process"
    (gap,) = reader.take(b'id: 8-2\nevent: gap\ndata: {"sequence":2}\n\nid: 8-2\nevent: o')
    assert gap == StreamGap(2)
    reader.close()
    assert reader.headers["Last-Event-ID"] == "8-2"
    later = b"id: 8-3\nevent: news\ndata: of a later version\n\n: \n\n"
    assert [*reader.take(later)] == []
    with pytest.raises(UnexpectedAnswerError, match="a node of the same version"):
        next(reader.take(b"id: 8-4\nevent: change\ndata: {}\n\n"))
    MessageReader("").close()
    assert MessageReader("").headers["Last-Event-ID"] == ""


@pytest.fixture
def watched(api: RestApi) -> Iterator[str]:
    """The URL of a node whose page is followed, with a connector."""
    api.group.ask("seat", "w1")
    api.client.put(f"/connectors/{quote(NAME, safe='')}/config", json=LOCKED)
    following = PageWatch(api.service, NodeLooks(api.service, lambda: True))
    changes = LogChanges(api.service.logs, lambda: True)
    changes.subscribe_to_looks(following.follow)
    changes.look()
    changes.start()
    with serving(make_app(api.service), opened_at("http://127.0.0.1:0")) as (listener,):
        yield f"http://127.0.0.1:{listener.address.port}"
        api.service.page.close()
    changes.stop()


async def follow_async(url: str, after: int) -> list[str]:
    heard: list[str] = []
    async with AsyncClient(url) as client:
        messages = await client.changes(after)
        async with aclosing(messages):
            async for each in messages:
                if isinstance(each, PageChange) and each.lines:
                    return heard + [line.text for line in each.lines]
                heard.append(type(each).__name__)
    return heard


def test_both_clients_follow_what_changes_on_the_page(watched: str) -> None:
    with Client(watched) as client:
        state = assert_type(client.state(), PageState)
        assert [*state.connectors] == [NAME]
        messages = assert_type(client.changes(state.sequence), Generator[PageMessage])
        assert next(messages) == StreamOpened(state.sequence)
        client.create("new", LOCKED)
        change = next(each for each in messages if isinstance(each, PageChange) and each.connectors)
        assert change.connectors
        assert change.connectors["new"].made_by == "Locked"
        messages.close()
        assert next(client.changes(9_999_999)) == StreamGap(client.state().sequence)
        with pytest.raises(Refused, match="not found"):
            client.last_hour("none")
        assert client.last_hour(NAME, minutes=5).step_ms == state.step_ms
    opened, *others = asyncio.run(follow_async(watched, state.sequence))
    assert opened == "StreamOpened"
    assert "connector new was created" in {each.partition(" by ")[0] for each in others}


@contextmanager
def served(api: RestApi) -> Generator[Client]:
    """Return a client of a node that is served."""
    with (
        serving(make_app(api.service), opened_at("http://127.0.0.1:0")) as (listener,),
        Client(f"http://127.0.0.1:{listener.address.port}") as client,
    ):
        yield client


def test_a_node_that_is_not_well_is_described_and_what_says_nothing_of_it_is_raised(
    api: RestApi,
) -> None:
    with served(api) as client:
        api.gateway.group, api.gateway.why = None, "it is being restarted"
        assert client.liveness().status == "alive"
        assert (client.readiness().status, client.health().status) == ("not ready", "unhealthy")
        assert "it is being restarted" in client.health().message
        assert "# HELP" in client.metrics()
        with pytest.raises(Refused, match="503"):
            client.pause("A")
    request = Operations.health.make()
    with pytest.raises(Refused, match="too busy"):
        request.read(503, b'{"error_code":503,"message":"too busy"}')


def test_configs_are_compared_applied_and_rolled_back(api: RestApi) -> None:
    with served(api) as client:
        configs = {name: {"tasks.max": 1, **LOCKED} for name in ("a", "b")}
        assert [each.is_new for each in client.apply(configs, dry_run=True)] == [True, True]
        assert client.connectors() == []
        client.apply(configs)
        (diff,) = client.diff("a", {**LOCKED, "tasks.max": 2}).changes
        assert (diff.key, diff.before, diff.after) == ("tasks.max", "1", "2")
        client.patch_config("a", {"tasks.max": 2})
        assert client.roll_back("a").config == client.config("b") | {"name": "a"}
        first, second, third = client.revisions("a").revisions
        assert (first.config, second.changed) == (third.config, ["tasks.max"])
        assert client.roll_back("a", second.revision).config["tasks.max"] == "2"
        assert client.validate("Locked", {**LOCKED, "name": "c"}).error_count == 0
        assert any(each.class_name.endswith("Locked") for each in client.plugins())
        assert client.plugin_keys("Locked")[0].name
        assert client.connectors(limit=1, after="a") == ["b"]
        (page,) = client.expanded(["status", "info"], limit=1).values()
        assert page.status
        assert page.info
        assert page.progress is None
        with pytest.raises(Refused, match="no sample was read"):
            client.sample("a", LOCKED)


def test_loggers_settings_and_orders_are_asked_by_their_methods(api: RestApi) -> None:
    api.group.ask("seat", "w1")
    (api.data_dir / "rest.log").write_text("2026-01-01 10:00:00,000 INFO 1 a: b\n")
    with served(api) as client:
        assert "fairlead.client_test" in client.set_log_level("fairlead.client_test", "DEBUG")
        assert client.logger("fairlead.client_test").level == "DEBUG"
        assert client.loggers()["fairlead.client_test"].level == "DEBUG"
        assert client.settings().settings == []
        assert client.whoami().node == ["view", "operate", "administer"]
        assert client.server().kafka_cluster_id == "a-cluster"
        assert client.expect("w1", 60_000, group="connect").expected_back_ms
        client.create("A", LOCKED)
        assert client.place("A", weight=3).weight == 3
        assert client.release("A").weight == 1
        assert client.patch_group_config({"group.max.size": 9}) == {"group.max.size": "9"}
        assert client.rebalance().group_id == client.group().group_id
        assert client.compact(keep_epochs=1).state == client.compaction().state == "running"
        assert client.logs().entries[0].text.endswith("a: b")
        entries = client.follow_logs(tail=1)
        assert next(entries).file
        entries.close()


class ScriptedExchange(NodeExchange):
    """Gives one answer after the other, or raises it."""

    def __init__(self, *answers: object) -> None:
        self.asked: list[str] = []
        self.pauses = 0
        self._answers = iter(answers)

    async def send(self, request: NodeRequest[Any]) -> Any:
        self.asked.append(request.target)
        answer = next(self._answers)
        if isinstance(answer, ClientError):
            raise answer
        return answer

    def receive(self, *_: object) -> AsyncGenerator[bytes]:
        raise NotImplementedError

    async def pause(self, _seconds: float) -> None:
        self.pauses += 1


def test_entries_of_the_logs_are_followed_also_while_the_node_is_away() -> None:
    pages = [LogPage([LoggedEntry("rest.log", text)], False, text) for text in ("one", "two")]
    away = NodeUnreachableError("away"), Refused(503, "not yet")
    node = ScriptedExchange(pages[0], *away, pages[1], Refused(401, "who are you?"))

    async def play() -> None:
        async with aclosing(await follow_logs(node)) as entries:
            assert [(await anext(entries)).text for _ in pages] == ["one", "two"]
            with pytest.raises(Refused, match="who are you"):
                await anext(entries)

    asyncio.run(play())
    assert ["after=one" in each for each in node.asked] == [False, True, True, True, False]
    assert node.pauses == len(away)


def test_an_address_that_is_none_is_told_without_its_password() -> None:
    with pytest.raises(NodeUnreachableError) as refused:
        Client("http://ann:pass/word@node:8083").liveness()
    assert "percent-encode" in str(refused.value)
    assert "pass" not in str(refused.value).replace("password", "")
    with pytest.raises(NodeUnreachableError, match=r"'http://node:no' is no URL of a node: .*'no'"):
        Client("http://node:no").liveness()


def test_methods_are_described_as_their_requests_are() -> None:
    client = Client()
    methods = (client.pause, client.wait, client.changes)
    described = {each.__name__: [*signature(each).parameters] for each in methods}
    assert described == {
        "pause": ["name"],
        "wait": ["name", "for_", "timeout"],
        "follow_changes": ["after"],
    }
    assert (client.roll_back.__doc__ or "").startswith("Give a connector a config again")


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
