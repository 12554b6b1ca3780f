"""A role that is limited to some connectors: others are not even named, whatever route is asked."""

import json
from collections.abc import Callable
from dataclasses import replace

import pytest
from rest.conftest import RestApi
from rest.test_metrics_page import value
from starlette.requests import Request

from fairlead.events.model import Resource, RunState
from fairlead.runtime.interfaces.rest.app import SUBJECTS, make_app
from fairlead.runtime.interfaces.rest.routes.groups.groups import UNTOLD
from fairlead.runtime.interfaces.rest.server.permissions import Reach
from fairlead.runtime.interfaces.rest.server.principals import Principal
from fairlead.runtime.interfaces.rest.server.routing import ApiRoute
from fairlead.runtime.security.rights import Access, Role
from fairlead_tests.rest.client import Client
from fairlead_tests.shards.recorded import live

SEEN, HIDDEN, UNKNOWN = "orders-a", "secret-b", "secret-x"
LOCKED = {"connector.class": "Locked"}
CONFIG = json.dumps(LOCKED)
ROUTES = [route for subject in SUBJECTS for route in subject]
PARAMETERS = {
    "group": "connect",
    "worker": "w1",
    "task": "0",
    "plugin": "Locked",
    "logger": "root",
    "epoch": "latest",
    "file": "page.css",
    "resource": "secret-b-0",
}
BODIES = {
    "POST /connectors": f'{{"name": "{{}}", "config": {CONFIG}}}',
    "POST /sample": f'{{"name": "{{}}", "config": {CONFIG}}}',
    "PUT /connectors/{connector}/config": CONFIG,
    "PATCH /connectors/{connector}/config": CONFIG,
    "PUT /connectors/{connector}/config/diff": CONFIG,
    "POST /apply": f'{{"connectors": [{{"name": "{{}}", "config": {CONFIG}}}]}}',
    "PUT /connector-plugins/{plugin}/config/validate": (
        '{"connector.class": "Locked", "name": "{}"}'
    ),
}
"""What is sent, with {} in the place of a connector's name."""
WHOLE = {"extended": "true", "expand": ["status", "info", "progress"]}
"""Asks for all that an answer may have."""


def request_of(route: ApiRoute) -> str:
    return f"{route.method} {route.path_format}"


def limited(role: Role, *patterns: str) -> Callable[[RestApi], Client]:
    """Return what makes a client of a caller with a role, limited to connectors."""

    async def identify(_: Request) -> Principal:
        ends = ("192.0.2.7", 4711), ("127.0.0.1", 8083)
        return Principal(*ends, Access.of(role, patterns), proven="ann")

    return lambda api: Client(make_app(api.service, identify=identify))


ADMIN = limited(Role.ADMIN, "orders-*", "ord")


@pytest.fixture
def two(api: RestApi) -> RestApi:
    """A group with a worker that runs two connectors, of which one is hidden and has failed."""
    api.group.ask("seat", "w1")
    for name in (SEEN, HIDDEN):
        assert api.client.post("/connectors", json={"name": name, "config": LOCKED}).is_success
    api.group.ask("settle")
    for name in (SEEN, HIDDEN):
        api.group.ask("split", name, {"part": "1"})
        api.group.ask("report", Resource(name), RunState.RUNNING)
        api.group.ask("report", Resource(name, 0), RunState.FAILED, f"{name} is broken")
    return api


def send(client: Client, route: ApiRoute, connector: str) -> tuple[int, str]:
    """Send a request about a connector; return the answer without the connector's name."""
    path = route.path_format.format(**PARAMETERS, connector=connector)
    body = BODIES.get(request_of(route))
    options = {} if body is None else {"json": json.loads(body.replace("{}", connector))}
    answer = client.request(route.method, path, **options)
    return int(answer.status_code), answer.text.replace(connector, "?")


def test_every_route_says_what_it_is_about() -> None:
    by_reach: dict[Reach, set[str]] = {each: set() for each in Reach}
    for route in ROUTES:
        by_reach[route.rights.reach].add(request_of(route))
    of_one = {each for each in map(request_of, ROUTES) if "{connector}" in each} - by_reach[
        Reach.NEW_CONNECTOR
    ]
    assert by_reach[Reach.CONNECTOR] == of_one
    assert by_reach[Reach.NEW_CONNECTOR] == {
        "PUT /connectors/{connector}/config",
        "PUT /connectors/{connector}/config/diff",
    }
    assert by_reach[Reach.BODY] == {
        "POST /apply",
        "POST /connectors",
        "POST /sample",
        "PUT /connector-plugins/{plugin}/config/validate",
    }
    assert by_reach[Reach.VISIBLE] == {
        "GET /assignors",
        "GET /connectors",
        "GET /events",
        "GET /groups",
        "GET /groups/{group}/events",
        "GET /groups/{group}/explain/{epoch}",
        "GET /groups/{group}/history",
        "GET /health",
        "GET /logs",
        "GET /state",
        "GET /state/history",
        "GET /status",
        "GET /workers",
    }
    assert by_reach[Reach.NEUTRAL] >= {
        "GET /",
        "GET /admin/loggers",
        "GET /admin/loggers/{logger}",
        "GET /connector-plugins",
        "GET /connector-plugins/{plugin}/config",
        "GET /groups/{group}/config",
        "GET /whoami",
    }
    assert by_reach[Reach.NODE] >= {
        "DELETE /groups/{group}",
        "DELETE /workers/{worker}",
        "GET /groups/{group}",
        "GET /groups/{group}/moves/{resource}",
        "GET /metrics",
        "POST /groups/{group}/plan",
        "POST /groups/{group}/rebalance",
        "PUT /admin/loggers/{logger}",
    }


def test_no_route_lets_a_caller_know_whether_there_is_a_hidden_connector(two: RestApi) -> None:
    client, before = ADMIN(two), len(two.gateway.sent)
    different, named = set[str](), set[str]()
    for route in ROUTES:
        if route.rights.reach in {Reach.CONNECTOR, Reach.NEW_CONNECTOR, Reach.BODY}:
            answers = [send(client, route, each) for each in (HIDDEN, UNKNOWN)]
            if answers[0] != answers[1] or answers[0][0] not in {403, 404}:
                different.add(f"{request_of(route)}: {answers}")
        else:
            path = route.path_format.format(**{**PARAMETERS, "resource": "a-0"})
            answer = client.request(route.method, path, params=WHOLE)
            if HIDDEN in answer.text + str(answer.headers):
                named.add(request_of(route))
    assert (different, named) == (set(), set())
    assert two.gateway.sent[before:] == []


def test_what_is_about_the_whole_node_is_refused_to_a_limited_caller(two: RestApi) -> None:
    client = ADMIN(two)
    whole = [route for route in ROUTES if route.rights.reach is Reach.NODE]
    assert {send(client, route, SEEN)[0] for route in whole} == {403}
    refused = client.get("/groups/connect/moves/a-0").json()["message"]
    assert refused == (
        "ann may view only connectors that match orders-*, ord, and this request is about the whole"
        " node; nothing was done"
    )
    request = "GET /groups/{group}/moves/{resource}"
    assert value(two, "fairlead_auth_denials_total", listener="rest", request=request) == 2


def test_reasons_of_processes_are_not_told_to_a_limited_caller(two: RestApi) -> None:
    (process,) = two.client.get("/assignors").json()["processes"]
    (limited_to,) = ADMIN(two).get("/assignors").json()["processes"]
    assert process["detail"]
    assert limited_to == {**process, "detail": ""}
    two.gateway.group, two.gateway.why = None, f"{HIDDEN} is broken"
    assert HIDDEN in two.client.get("/health").json()["message"]
    assert HIDDEN not in ADMIN(two).get("/health").text


def test_lists_and_overviews_have_the_visible_connectors_alone(two: RestApi) -> None:
    client = ADMIN(two)
    assert client.get("/connectors").json() == [SEEN]
    assert [*client.get("/connectors?expand=status&expand=info").json()] == [SEEN]
    status = client.get("/status").json()
    assert [*status["connectors"]] == [SEEN]
    assert status["verdict"]["troubles"] == {"FAILED": 1}
    (worker,) = client.get("/workers").json()["workers"]
    assert {each["connector"] for each in worker["member"]["assigned"]} == {SEEN}
    events = client.get("/groups/connect/events").json()["events"]
    assert {each["connector"] for each in events} == {SEEN}
    assert client.get(f"/groups/connect/events?connector={HIDDEN}").json()["events"] == []
    whole = two.client.get("/status").json()
    assert (len(whole["connectors"]), whole["verdict"]["troubles"]) == (2, {"FAILED": 2})


def test_a_limited_caller_does_with_its_connectors_what_its_role_may(two: RestApi) -> None:
    operator = limited(Role.OPERATOR, "orders-*")(two)
    assert operator.put(f"/connectors/{SEEN}/pause").status_code == 202
    assert operator.put(f"/connectors/{HIDDEN}/pause").json()["message"] == (
        f"Connector {HIDDEN} not found"
    )
    assert operator.delete(f"/connectors/{SEEN}").json()["message"] == (
        "ann lacks the right to administer, which DELETE of this path needs; nothing was done"
    )
    both = {"connectors": [{"name": each, "config": LOCKED} for each in (SEEN, HIDDEN)]}
    assert ADMIN(two).post("/apply", json=both).json()["message"] == (
        "ann may administer only connectors that match orders-*, ord, not 'secret-b'; nothing was"
        " done"
    )
    assert two.gateway.sent[-1].principal == "ann"


def test_who_one_is_is_told_with_the_rights_to_all_and_to_one_connector(two: RestApi) -> None:
    assert ADMIN(two).get(f"/whoami?connector={SEEN}").json() == {
        "name": "ann",
        "authentication": "none",
        "address": "192.0.2.7",
        "grants": [
            {"rights": ["view", "operate", "administer"], "connectors": ["orders-*", "ord"]}
        ],
        "node": [],
        "connector": ["view", "operate", "administer"],
    }
    assert ADMIN(two).get(f"/whoami?connector={HIDDEN}").json()["connector"] == []


def test_a_limited_caller_is_told_the_epochs_of_its_connectors_without_the_others(
    two: RestApi,
) -> None:
    assert two.client.put(f"/connectors/{HIDDEN}/stop").is_success
    two.group.ask("settle")
    two.group.ask("seat", "w2")
    client, whole = ADMIN(two), two.client.get("/groups/connect/history").json()["epochs"]
    told = client.get("/groups/connect/history").json()["epochs"]
    subjects = [(each["cause"], each["subject"]) for each in told]
    assert subjects == [
        ("connector-added", SEEN),
        ("connector-added", ""),  # one target answered both
        ("tasks-changed", SEEN),
    ]
    numbers = {each["group_epoch"] for each in told}
    for each in whole:
        answer = client.get(f"/groups/connect/explain/{each['group_epoch']}")
        assert answer.status_code == (200 if each["group_epoch"] in numbers else 404)
        assert HIDDEN not in answer.text


def test_groups_of_others_and_the_words_of_an_assignor_are_not_told_either(two: RestApi) -> None:
    live(two.data_dir)
    with two.service.logs.reading("connect") as logs:
        failed = replace(logs.group.target, error=f"{HIDDEN} fits nowhere", failures=1)
    two.group.ask("write", failed)
    everything, own = (
        client.get("/status").json()["groups"] for client in (two.client, ADMIN(two))
    )
    assert [each["group_id"] for each in everything] == [
        *("connect", "billing", "pay", "registry", "resets")
    ]
    assert everything[0]["assignor_error"] == f"{HIDDEN} fits nowhere"
    assert own == [{**everything[0], "assignor_error": UNTOLD}]
    assert ADMIN(two).get("/groups").json() == own
