"""`/state` and `/events`: one page of one moment, and each change of it to all who may see it."""

import asyncio
import json
import re
from collections.abc import AsyncGenerator, Collection, Iterator
from contextlib import aclosing
from dataclasses import replace
from itertools import count
from posixpath import normpath
from types import SimpleNamespace
from typing import Any
from unittest.mock import AsyncMock, Mock

import pytest
from jsonschema import Draft202012Validator  # type: ignore[import-untyped]
from rest.conftest import RestApi
from starlette.requests import Request

from fairlead.actors.messages.commands import ExpireSession, Traffic
from fairlead.events.log.errors import CorruptLogError, TrimmedError
from fairlead.events.model import Resource, RunState
from fairlead.projections.page.streaks import STEADY_MS
from fairlead.projections.page.today import DAY_MS
from fairlead.runtime.cluster.messages import ProcessView, Whereabouts
from fairlead.runtime.interfaces.rest import app
from fairlead.runtime.interfaces.rest.app import make_app
from fairlead.runtime.interfaces.rest.middleware.answers import AnswerSettings
from fairlead.runtime.interfaces.rest.reading import feed
from fairlead.runtime.interfaces.rest.reading.changes import LogChanges
from fairlead.runtime.interfaces.rest.routes.page import events
from fairlead.runtime.interfaces.rest.routes.page.files import page_files
from fairlead.runtime.interfaces.rest.server.admission import NotAdmittedError
from fairlead.runtime.interfaces.rest.server.principals import Principal
from fairlead.runtime.interfaces.rest.watch.page import watch
from fairlead.runtime.interfaces.rest.watch.page.node import NodeLooks
from fairlead.runtime.interfaces.rest.watch.page.watch import PageWatch, now_ms
from fairlead.runtime.security.rights import Access, Role
from fairlead_tests.rest.client import Client

NOW_MS = 1_700_000_000_000
"""The time of the group's process."""
LOCKED = {"connector.class": "Locked", "labels": "team=a"}
SEEN, HIDDEN = "orders-a", "secret-b"


class Page:
    """A node's page, which looks when a test says so."""

    def __init__(self, api: RestApi) -> None:
        self.api = api
        self.node = NodeLooks(api.service, lambda: True)
        self.changes = LogChanges(api.service.logs)
        self.now = now_ms()
        following = PageWatch(api.service, self.node, lambda: self.now)
        self.changes.subscribe_to_looks(following.follow)
        self.changes.subscribe_to_errors(following.fail)

    def look(self, seconds: float = 1.0) -> None:
        self.now += int(1000 * seconds)
        self.node.look()
        self.changes.look()

    def report(self, connector: str, state: RunState) -> None:
        """Report the state of the second task of a connector, and look."""
        self.api.group.ask("report", Resource(connector, 1), state)
        self.look()

    def state(self, client: Client | None = None) -> dict[str, Any]:
        self.look()
        found: dict[str, Any] = (client or self.api.client).get("/state").json()
        return found

    def hours(self, client: Client | None = None) -> dict[str, Any]:
        """Return the last hour of each connector."""
        found: dict[str, Any] = (client or self.api.client).get("/state/history").json()
        return found


@pytest.fixture
def page(api: RestApi) -> Iterator[Page]:
    """A group with a worker and two connectors, each with two tasks of which one has failed."""
    api.group.ask("seat", "w1")
    for name in (SEEN, HIDDEN):
        assert api.client.post("/connectors", json={"name": name, "config": LOCKED}).is_success
    api.group.ask("settle")
    for name in (SEEN, HIDDEN):
        api.group.ask("split", name, {"part": "1"}, {"part": "2"})
        api.group.ask("report", Resource(name), RunState.RUNNING)
        api.group.ask("report", Resource(name, 0), RunState.RUNNING)
        api.group.ask("report", Resource(name, 1), RunState.FAILED, "input: amount is no number\nx")
    api.gateway.workers = (ProcessView("w1", None, "127.0.0.1:8083/w1", "running", 2, ""),)
    yield Page(api)
    api.service.page.close()


async def no_body() -> dict[str, Any]:
    return await asyncio.Event().wait() and {}


async def stream(
    page: Page,
    path: str,
    client: Any = None,
    kinds: Collection[str] = ("change", "gap", "open"),
    last_id: str = "",
) -> AsyncGenerator[dict[str, Any]]:
    """Yield the messages of a stream, without the comments."""
    parts: asyncio.Queue[bytes] = asyncio.Queue()
    served = client or make_app(page.api.service)

    async def send(message: Any) -> None:
        if message["type"] == "http.response.body":
            await parts.put(message["body"])

    raw, _, query = path.partition("?")
    scope = {
        "type": "http",
        "asgi": {"version": "3.0", "spec_version": "2.3"},
        "http_version": "1.1",
        "method": "GET",
        "scheme": "http",
        "path": raw,
        "raw_path": raw.encode(),
        "query_string": query.encode(),
        "headers": [
            (b"host", b"127.0.0.1:8083"),
            (b"accept-encoding", b"gzip"),
            *([(b"last-event-id", last_id.encode())] if last_id else []),
        ],
        "client": ("127.0.0.1", 4711),
        "server": ("127.0.0.1", 8083),
    }
    serving = asyncio.create_task(served(scope, no_body, send))
    try:
        while True:
            getting = asyncio.create_task(parts.get())
            await asyncio.wait({getting, serving}, return_when=asyncio.FIRST_COMPLETED, timeout=60)
            if not getting.done():
                getting.cancel()
                return
            for block in getting.result().decode().split("\n\n"):
                fields = dict(each.split(": ", 1) for each in block.split("\n") if ": " in each)
                if "data" in fields and fields["event"] in kinds:
                    yield {**fields, "data": json.loads(fields["data"])}
    finally:
        serving.cancel()


async def ann(_: Request) -> Principal:
    """Take every caller for one who sees some connectors alone."""
    access = Access.of(Role.VIEWER, ("orders-*",))
    return Principal(("192.0.2.7", 4711), ("127.0.0.1", 8083), access, proven="ann")


def test_the_state_is_all_of_a_page_with_the_verdict_of_the_status(page: Page) -> None:
    for path in ("/state", "/state/history"):
        assert page.api.client.get(path).status_code == 503
    state = page.state()
    row = state["connectors"][SEEN]
    assert (row["state"], row["shape"], row["cells"], row["on"]) == ("RUNNING", "bad", "kf", [0, 0])
    assert (row["reason"], row["labels"], row["class"]) == (
        "input: amount is no number",
        {"team": "a"},
        "Locked",
    )
    (worker,) = state["workers"]
    assert (worker["name"], worker["state"], worker["tasks"], worker["restarts"]) == (
        "w1",
        "running",
        4,
        2,
    )
    first, second = state["troubles"]
    assert {first["id"], second["id"]} == {f"failed:{SEEN}", f"failed:{HIDDEN}"}
    assert (first["title"], first["tasks"], first["text"], first["error_class"]) == (
        "1 of 2 tasks failed",
        [1],
        "amount is no number",
        "input",
    )
    assert first["actions"] == ["restart", "dead-letters", "log"]
    assert state["verdict"]["status"] == page.api.client.get("/status").json()["verdict"]["status"]
    assert state["verdict"]["title"] == "2 of 2 connectors need you"
    assert state["position"] == page.api.service.page.view.position  # type: ignore[union-attr]
    assert state["lines"][0]["text"].startswith(f"{HIDDEN}-1 has FAILED")
    assert [each["cause"] for each in state["epochs"]][-1] == "member-joined"


def test_an_unchanged_state_is_not_sent_again(page: Page) -> None:
    page.look()
    client = page.api.client
    answer = client.get("/state")
    again = client.get("/state", headers={"If-None-Match": answer.headers["etag"]})
    assert (answer.headers["content-encoding"], again.status_code, again.content) == (
        "gzip",
        304,
        b"",
    )
    client.put(f"/connectors/{SEEN}/pause")
    page.look()
    changed = client.get("/state", headers={"If-None-Match": answer.headers["etag"]})
    assert changed.status_code == 200
    assert changed.json()["sequence"] == answer.json()["sequence"] + 1


def test_rows_a_second_are_of_the_last_seconds(page: Page) -> None:
    page.look()
    page.api.group.ask("commit", Resource(SEEN, 0), 0, 100, 90)
    row = page.state()["connectors"][SEEN]
    assert (row["rows_per_second"], row["rows"], row["lag"]["ranges"]) == (100.0, 100, 2)
    assert page.state()["figures"]["rows_today"] == 100
    page.look(5)
    assert page.state()["connectors"][SEEN]["rows_per_second"] < 20
    page.look(20)
    state = page.state()
    assert (state["connectors"][SEEN]["rows_per_second"], state["figures"]["behind_connector"]) == (
        0.0,
        SEEN,
    )


def test_a_stream_has_each_change_once_and_goes_on_after_the_last_one(page: Page) -> None:
    async def play() -> list[dict[str, Any]]:
        heard: list[dict[str, Any]] = []
        await asyncio.to_thread(page.look)
        async with aclosing(stream(page, "/events")) as messages:
            heard.append(await anext(messages))
            await asyncio.to_thread(page.report, SEEN, RunState.RUNNING)
            heard.append(await anext(messages))
            await asyncio.to_thread(page.report, SEEN, RunState.FAILED)
            heard.append(await anext(messages))
        async with aclosing(stream(page, f"/events?after={heard[1]['id']}")) as messages:
            heard += [await anext(messages), await anext(messages)]
        for unknown in ("12-3", f"{'9' * 60}"):
            async with aclosing(stream(page, f"/events?after={unknown}")) as messages:
                heard.append(await anext(messages))
        async with aclosing(stream(page, "/events", last_id="1" * 5_000)) as messages:
            heard.append(await anext(messages))
        return heard

    opened, first, second, resumed, again, *gaps = asyncio.run(play())
    assert opened["id"].endswith(f"-{opened['data']['sequence']}")
    assert (opened["event"], opened["data"]) == (
        "open",
        {"sequence": first["data"]["sequence"] - 1},
    )
    assert resumed["data"] == {"sequence": first["data"]["sequence"]}
    assert (first["event"], [*first["data"]["connectors"]]) == ("change", [SEEN])
    assert first["data"]["lines"][0]["text"] == (f"{SEEN}-1 runs at w1")
    assert again == second
    assert second["data"]["sequence"] == first["data"]["sequence"] + 1
    (gap,) = {(each["event"], each["data"]["sequence"]) for each in gaps}
    assert gap == ("gap", second["data"]["sequence"])


def test_a_limited_caller_hears_of_its_connectors_alone_until_it_is_not_admitted(
    page: Page, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(events, "ADMISSION_SECONDS", 0.0)
    is_revoked = False

    async def identify(request: Request) -> Principal:
        if is_revoked:
            raise NotAdmittedError(401, "revoked")  # type: ignore[arg-type]
        return await ann(request)

    limited = make_app(page.api.service, identify=identify)
    page.look()
    whole = page.api.client.get("/state")
    own = Client(limited).get("/state", headers={"If-None-Match": whole.headers["etag"]})
    assert (own.status_code, SEEN in own.text, HIDDEN in own.text) == (200, True, False)

    async def play() -> list[dict[str, Any]]:
        nonlocal is_revoked
        heard: list[dict[str, Any]] = []
        async with aclosing(stream(page, "/events?after=0", limited)) as messages:
            assert (await anext(messages))["event"] == "open"
            for name in (HIDDEN, SEEN):
                await asyncio.to_thread(page.report, name, RunState.RUNNING)
                heard.append(await anext(messages))
            is_revoked = True
            await asyncio.to_thread(page.report, SEEN, RunState.FAILED)
            heard += [each async for each in messages]
        return heard

    heard = asyncio.run(play())
    assert HIDDEN not in json.dumps(heard)
    assert heard[1]["data"]["connectors"].keys() == {SEEN}
    assert len(heard) <= 3


def test_a_limited_caller_is_told_the_epochs_of_its_connectors(page: Page) -> None:
    limited = make_app(page.api.service, identify=ann)
    epochs = page.state(Client(limited))["epochs"]
    assert {each["subject"] for each in epochs} >= {SEEN}
    assert len(epochs) < len(page.state()["epochs"])

    async def play() -> list[dict[str, Any]]:
        heard: list[dict[str, Any]] = []
        async with aclosing(stream(page, "/events", limited)) as messages:
            assert (await anext(messages))["event"] == "open"
            for name in (HIDDEN, SEEN):
                await asyncio.to_thread(page.api.client.put, f"/connectors/{name}/stop")
                await asyncio.to_thread(page.look)
                heard.append(await anext(messages))
        return heard

    first, second = (each["data"] for each in asyncio.run(play()))
    assert (first.get("epochs", []), HIDDEN in json.dumps(first)) == ([], False)
    assert [each["title"] for each in second["epochs"]] == [f"{SEEN}: connector stopped"]


def test_callers_with_the_same_rights_have_one_page_until_it_changes(page: Page) -> None:
    page.look()
    pages = page.api.service.page
    own = pages.view_of(Access.of(Role.VIEWER, ("orders-*",)))
    assert own is not None
    assert own.rows.keys() == {SEEN}
    assert pages.view_of(Access.of(Role.VIEWER, ("orders-*",))) is own
    assert pages.view_of(Access.of(Role.VIEWER)) is pages.view
    page.report(HIDDEN, RunState.RUNNING)
    later = pages.view_of(Access.of(Role.VIEWER, ("orders-*",)))
    assert later is not None
    assert later is not own
    # What a target of ten thousand tasks names is looked through once, and not for each message.
    assert later.epochs[-1] is own.epochs[-1]


def test_a_reader_who_lets_a_megabyte_wait_is_ended(
    page: Page, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(feed, "MOST_WAITING", 10)
    page.look()
    ended: list[str] = []

    async def play() -> None:
        access, own = Access.of(Role.VIEWER), page.api.service.page
        own.open(access, 0, lambda: ended.append("slow"))
        quick = own.open(access, 0, lambda: ended.append("quick"))
        for state in (RunState.RUNNING, RunState.FAILED):
            assert ended == []  # each message is larger than what may wait
            await asyncio.to_thread(page.report, SEEN, state)
            await quick.woken.wait()
            own.take(quick)

    asyncio.run(play())
    assert ended == ["slow"]


def test_a_browser_gets_the_page_with_the_verdict_and_the_connectors(page: Page) -> None:
    page.look()
    client = page.api.client
    root = client.get("/", headers={"Accept": "text/html"})
    shown, _, others = root.text.partition("<noscript>")
    assert "<h1>2 of 2 connectors need you</h1>" in shown
    assert f"<td>{SEEN}</td><td>RUNNING</td><td>2</td>" in others
    assert root.headers["content-security-policy"].startswith("default-src 'self'")
    assert client.get("/").json()["kafka_cluster_id"] == "a-cluster"

    async def nobody(_: Request) -> Principal:
        raise NotAdmittedError(401, "unknown")  # type: ignore[arg-type]

    stranger = Client(make_app(page.api.service, identify=nobody))
    file = stranger.get("/ui/index.html")
    again = stranger.get("/ui/index.html", headers={"If-None-Match": file.headers["etag"]})
    assert (file.status_code, again.status_code, stranger.get("/").status_code) == (200, 304, 401)
    assert stranger.get("/ui/../app.py").status_code in {401, 404}
    asked = stranger.get("/", headers={"Accept": "text/html"})
    assert (asked.status_code, "Who are you?" in asked.text, SEEN in asked.text) == (
        401,
        True,
        False,
    )
    assert asked.headers["content-security-policy"] == root.headers["content-security-policy"]


MODULE = re.compile(r'^(?:import|export) [^;]*?from "(.+?)";', re.MULTILINE)


def imports(module: str) -> set[str]:
    """Return the files of the page that a module of it needs before it runs, itself included."""
    needed, asked = set[str](), {module}
    while asked:
        name = asked.pop()
        needed.add(name)
        found = MODULE.findall(page_files()[name].plain.decode())
        asked |= {normpath(f"{name}/../{each}") for each in found} - needed
    return needed


def test_the_page_names_each_file_that_it_needs_at_once_and_a_browser_keeps_them(
    page: Page,
) -> None:
    root = page.api.client.get("/", headers={"Accept": "text/html"}).text
    named = re.findall(r'<link rel="modulepreload" href="(ui/\w+)/(.+?)">', root)
    assert sorted(each for _, each in named) == sorted(imports("modules/app.js"))
    assert len({below for below, _ in named}) == 1
    below = named[0][0]
    lasting = [page.api.client.get(f"/{below}/{each}").headers for _, each in named]
    assert {each["cache-control"] for each in lasting} == {"max-age=31536000, immutable"}
    assert page.api.client.get("/ui/modules/app.js").headers["cache-control"] == "no-cache"
    assert page.api.client.get("/ui/0123456789abcdef/modules/app.js").status_code == 404


def test_the_last_hour_of_a_connector_has_each_step_and_what_happened(page: Page) -> None:
    page.look()
    page.api.group.ask("commit", Resource(SEEN, 0), 0, 150, 90)
    page.look(15)
    page.look(15)
    history = page.api.client.get(f"/connectors/{SEEN}/history?minutes=1").json()
    assert (history["step_ms"], history["lag_bytes"]) == (15_000, [None, 20.0, 20.0])
    assert history["rows_per_second"] == [None, 10.0, 0.0]
    assert len(history["time_ms"]) == 3
    for _ in range(2):
        page.look(15)
    state, hours = page.state(), page.hours()
    assert hours["connectors"][SEEN]["rows_per_second"] == [3.3]
    assert (hours["connectors"].keys(), hours["sequence"]) == ({SEEN, HIDDEN}, state["sequence"])
    limited = Client(make_app(page.api.service, identify=ann))
    assert page.hours(limited)["connectors"].keys() == {SEEN}
    assert state["figures"]["history"]["rows_per_second"][:3] == [None, 10.0, 0.0]
    refused = page.api.client.get("/connectors/none/history")
    assert (refused.status_code, page.api.client.get("/state").status_code) == (404, 200)


def test_the_step_of_a_page_has_what_changes_all_the_time(page: Page) -> None:
    async def play() -> dict[str, Any]:
        await asyncio.to_thread(page.look)
        async with aclosing(stream(page, "/events", kinds={"open", "step"})) as messages:
            assert (await anext(messages))["event"] == "open"
            page.api.group.ask("commit", Resource(SEEN, 0), 0, 150, 90)
            await asyncio.to_thread(page.look, 15)
            return await anext(messages)

    step = asyncio.run(play())["data"]
    assert step["connectors"][SEEN] > 0
    assert step["workers"].keys() == {"w1"}
    assert step["figures"]["rows_per_second"] == step["connectors"][SEEN]


def heard(page: Page, age_ms: int, interval_ms: int = 3_000) -> None:
    """Have the group tell that the last heartbeat of the worker is so old."""
    page.api.gateway.heartbeats = Traffic(1_000, 2, 0, 0, {"W1": age_ms}, interval_ms)


def age_of(page: Page) -> int | None:
    (worker,) = page.state()["workers"]
    age: int | None = worker["heartbeat_age_ms"]
    return age


def test_a_worker_has_the_age_of_its_last_heartbeat_and_its_last_hour(page: Page) -> None:
    assert age_of(page) is None, "the group has not heard of it"
    for age_ms in (1_200, 2_400):
        heard(page, age_ms)
        page.look(15)
    (worker,) = page.state()["workers"]
    assert (worker["heartbeat_age_ms"], worker["history"]["heartbeat_age_ms"]) == (
        2_400,
        [None, 1_200.0, 2_400.0],
    )


def test_the_age_of_a_heartbeat_is_not_known_while_the_group_does_not_answer(page: Page) -> None:
    heard(page, 0)
    assert age_of(page) == 0
    page.api.gateway.heartbeats = None
    page.look(15)
    (worker,) = page.state()["workers"]
    assert (worker["heartbeat_age_ms"], worker["history"]["heartbeat_age_ms"][-1]) == (None, None)
    assert worker["restarts"] == 2, "what the supervisor tells is there"
    heard(page, 7)
    assert age_of(page) == 7
    page.api.gateway.why, group = "starts", page.api.gateway.group
    page.api.gateway.group = None
    assert age_of(page) is None
    page.api.gateway.group = group


def test_a_group_that_takes_no_commands_is_not_asked_for_heartbeats(page: Page) -> None:
    heard(page, 7)
    page.api.gateway.locate = AsyncMock(return_value=Whereabouts("connect", None, 1))  # type: ignore[method-assign]
    page.api.gateway.traffic = AsyncMock()  # type: ignore[method-assign]
    assert age_of(page) is None
    assert page.api.gateway.traffic.await_count == 0


def test_a_late_heartbeat_is_told_with_each_look_and_others_with_the_steps(page: Page) -> None:
    async def play() -> list[dict[str, Any]]:
        messages: list[dict[str, Any]] = []
        heard(page, 100)
        await asyncio.to_thread(page.look)
        async with aclosing(stream(page, "/events", kinds={"open", "step", "change"})) as told:
            assert (await anext(told))["event"] == "open"
            for age_ms in (2_900, 4_500, 4_501, 6_500, 20, 1_000):
                heard(page, age_ms)
                await asyncio.to_thread(page.look)
            await asyncio.to_thread(page.look, 15)
            while not messages or messages[-1]["event"] != "step":
                messages.append(await anext(told))
        return messages

    *changes, step = asyncio.run(play())
    ages = [each["data"]["workers"][0]["heartbeat_age_ms"] for each in changes]
    assert ages == [4_501, 6_500, 20]
    assert step["data"]["workers"] == {"w1": [None, None, 1_000]}


def test_a_limited_caller_sees_the_heartbeats_of_workers_as_their_cpu(page: Page) -> None:
    heard(page, 900)
    (worker,) = page.state(Client(make_app(page.api.service, identify=ann)))["workers"]
    assert (worker["heartbeat_age_ms"], worker["tasks"], worker["detail"]) == (900, 2, "")


def test_messages_are_what_the_document_describes(page: Page) -> None:
    async def play() -> list[dict[str, Any]]:
        heard: list[dict[str, Any]] = []
        await asyncio.to_thread(page.look)
        of_all = "change", "gap", "open", "step"
        async with aclosing(stream(page, "/events?after=unknown-1", kinds=of_all)) as messages:
            heard += [await anext(messages), await anext(messages)]
            await asyncio.to_thread(page.report, SEEN, RunState.RUNNING)
            heard.append(await anext(messages))
            page.api.group.ask("commit", Resource(SEEN, 0), 0, 150, 90)
            await asyncio.to_thread(page.look, 15)
            while heard[-1]["event"] != "step":
                heard.append(await anext(messages))
        return heard

    document = page.api.client.get("/openapi.json").json()
    answer = document["paths"]["/events"]["get"]["responses"]["200"]
    ((media_type, content),) = answer["content"].items()
    assert media_type == "text/event-stream"
    described = {
        members["event"]["const"]: members["data"]["contentSchema"]
        for each in content["x-itemSchema"]["oneOf"]
        for members in [each["properties"]]
    }
    heard = asyncio.run(play())
    assert {each["event"] for each in heard} == described.keys()
    for each in heard:
        schema = {**described[each["event"]], "components": document["components"]}
        Draft202012Validator(schema).validate(each["data"])
        members = document["components"]["schemas"][schema["$ref"].rpartition("/")[2]]
        assert each["data"].keys() <= members["properties"].keys()


def test_each_step_is_recorded_although_nothing_changes(page: Page) -> None:
    page.look()
    for _ in range(3):
        page.now += 15_000
        page.changes.look()
    history = page.api.service.page.history.of_connector(SEEN, 60, ())
    assert len(history.time_ms) == 4
    assert history.rows_per_second == [None, 0.0, 0.0, 0.0]


def test_minutes_in_which_nothing_was_recorded_are_not_known(page: Page) -> None:
    page.look()
    page.api.group.ask("commit", Resource(SEEN, 0), 0, 150, 90)
    page.look(150)
    page.look()
    history = page.hours()["connectors"][SEEN]
    assert history["rows_per_second"] == [None, pytest.approx(1, abs=0.1)]


def test_the_last_hour_begins_anew_when_the_clock_was_set_back(page: Page) -> None:
    page.look()
    page.look(15)
    page.look(-3600)
    page.api.group.ask("commit", Resource(SEEN, 0), 0, 150, 90)
    page.look(15)
    history = page.api.client.get(f"/connectors/{SEEN}/history").json()
    assert (history["began_ms"], history["rows_per_second"]) == (page.now - 15_000, [None, 10.0])
    assert page.api.client.get("/state").json()["began_ms"] == page.now - 15_000


def test_logs_that_are_opened_anew_bring_no_line_twice(page: Page) -> None:
    async def play() -> dict[str, Any]:
        await asyncio.to_thread(page.look)
        async with aclosing(stream(page, "/events")) as messages:
            assert (await anext(messages))["event"] == "open"
            page.api.service.logs.close()
            await asyncio.to_thread(page.report, SEEN, RunState.RUNNING)
            return await anext(messages)

    (line,) = asyncio.run(play())["data"]["lines"]
    assert line["text"] == f"{SEEN}-1 runs at w1"


def test_the_interface_is_served_below_a_prefix_and_without_it(page: Page) -> None:
    page.look()
    client = Client(make_app(page.api.service, answers=AnswerSettings(prefix="/lead")))
    moved = client.get("/lead")
    assert (moved.status_code, moved.headers["location"]) == (308, "/lead/")
    root = client.get("/lead/", headers={"Accept": "text/html"})
    assert "2 of 2 connectors need you" in root.text
    paths = ("/lead/connectors", "/connectors", "/leader", "/lead/lead/connectors")
    assert [client.get(each).status_code for each in paths] == [200, 200, 404, 404]


def test_a_list_that_is_kept_is_that_of_each_connector(page: Page) -> None:
    client, group = page.api.client, page.api.group

    def check() -> None:
        both = client.get("/connectors?expand=status&expand=info").json()
        assert both == {
            name: {
                "status": client.get(f"/connectors/{name}/status").json(),
                "info": client.get(f"/connectors/{name}").json(),
            }
            for name in client.get("/connectors").json()
        }

    check()
    group.ask("report", Resource(SEEN, 1), RunState.RUNNING)
    check()
    client.put(f"/connectors/{SEEN}/config", json={**LOCKED, "tasks.max": "3"})
    check()
    group.ask("seat", "w2")
    group.ask("settle")
    check()
    client.delete(f"/connectors/{HIDDEN}")
    check()


def test_rows_of_today_are_read_from_the_log_at_first_and_then_counted(page: Page) -> None:
    page.api.group.ask("commit", Resource(SEEN, 0), 0, 100, 90)
    page.api.group.ask("commit", Resource(HIDDEN, 0), 0, 7, 7)
    page.api.group.ask("pass_time", DAY_MS)
    page.now = NOW_MS + DAY_MS
    page.api.group.ask("commit", Resource(SEEN, 0), 1, 50, 40)
    page.api.group.ask("commit", Resource(SEEN, 0), 2, 5, 4)
    assert page.state()["figures"]["rows_today"] == 55
    page.api.group.ask("commit", Resource(HIDDEN, 0), 1, 3, 3)
    assert page.state()["figures"]["rows_today"] == 58
    page.look(DAY_MS / 1000)
    assert page.state()["figures"]["rows_today"] == 0


def test_a_stream_counts_as_a_request_that_took_as_long_as_its_head(
    page: Page, monkeypatch: pytest.MonkeyPatch
) -> None:
    seconds = count()
    monkeypatch.setattr(app, "time", SimpleNamespace(perf_counter=lambda: next(seconds)))

    async def play() -> None:
        await asyncio.to_thread(page.look)
        async with aclosing(stream(page, "/events")) as messages:
            assert (await anext(messages))["event"] == "open"
            page.api.service.page.close()
            assert [each async for each in messages] == []

    asyncio.run(play())
    (family,) = page.api.service.requests.duration.collect()
    took = {each.name: each.value for each in family.samples if each.labels["route"] == "/events"}
    name = "fairlead_rest_request_duration_seconds"
    assert (took[f"{name}_count"], took[f"{name}_sum"], next(seconds)) == (1, 1, 2)


def test_a_log_that_cannot_be_read_is_in_the_verdict_until_it_can(
    page: Page, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = page.state()
    damaged = CorruptLogError("entry 3 is missing")
    with monkeypatch.context() as patch:
        patch.setattr(page.api.service.logs, "apart", Mock(side_effect=damaged))
        broken = page.state()
    assert (broken["verdict"]["status"], broken["sequence"]) == (
        "unhealthy",
        before["sequence"] + 1,
    )
    assert broken["verdict"]["text"].startswith("entry 3 is missing. `fairlead log verify`")
    assert broken["connectors"] == before["connectors"]
    assert page.state()["verdict"] == before["verdict"]
    with monkeypatch.context() as patch:
        patch.setattr(page.api.service.logs, "apart", Mock(side_effect=TrimmedError("", 7)))
        assert page.state()["verdict"] == before["verdict"], "it is only read anew"


def test_a_page_that_cannot_be_built_is_told_once_and_tried_again(
    page: Page, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(watch, "make_row", Mock(side_effect=ValueError("a mistake")))
        page.look()
        page.look()
    assert [each.getMessage() for each in caplog.records if each.exc_info] == [
        "the page stays as it is for now; it is built anew in a moment"
    ]
    page.look(20)
    assert page.state()["connectors"].keys() == {SEEN, HIDDEN}


def test_a_trouble_is_since_its_first_failure_also_for_the_next_process(page: Page) -> None:
    group, failed = page.api.group, Resource(SEEN, 1)

    def since_ms() -> dict[str, int]:
        return {each["id"]: each["since_ms"] for each in page.state()["troubles"]}

    first = since_ms()
    for state in (RunState.RUNNING, RunState.FAILED):
        group.ask("pass_time", 5_000)
        group.ask("report", failed, state)
    assert since_ms() == first
    service = replace(page.api.service, page=feed.PageFeed())
    again = Page(replace(page.api, service=service, client=Client(make_app(service))))
    assert {each["id"]: each["since_ms"] for each in again.state()["troubles"]} == first
    group.ask("pass_time", 5_000)
    group.ask("report", failed, RunState.RUNNING)
    group.ask("pass_time", STEADY_MS)
    group.ask("carry_out", ExpireSession("W1"))
    lost_ms = NOW_MS + 3 * 5_000 + STEADY_MS
    assert {page.state()["connectors"][each]["since_ms"] for each in (SEEN, HIDDEN)} == {
        lost_ms,
        first[f"failed:{HIDDEN}"],
    }
