"""Pause, resume, stop and restart over REST, and configs that are patched, as Connect has them."""

import pytest
from rest.conftest import RestApi

from fairlead.events.model import AutoRestart, Resource, RunState
from fairlead.runtime.interfaces.rest.routes.connectors import lifecycle
from fairlead_tests.rest.client import Client

LOCKED = {"connector.class": "Locked"}
AT = {"worker_id": "127.0.0.1:8083/w1", "version": "0"}
CREATED = 201
ACCEPTED = 202
NO_CONTENT = 204


@pytest.fixture
def live(api: RestApi, monkeypatch: pytest.MonkeyPatch) -> RestApi:
    """Connector `a` with two tasks that run at a worker, which hears of nothing."""
    monkeypatch.setattr(lifecycle, "START_SECONDS", 0)
    api.client.post("/connectors", json={"name": "a", "config": LOCKED})
    api.group.ask("seat", "w1")
    api.group.ask("split", "a", {"n": "0"}, {"n": "1"})
    for task in (-1, 0, 1):
        api.group.ask("report", Resource("a", task), RunState.RUNNING)
    return api


def states(client: Client) -> list[str]:
    """The state of the connector, then those of its tasks."""
    told = client.get("/connectors/a/status").json()
    return [each["state"] for each in (told["connector"], *told["tasks"])]


def test_orders_are_answered_as_in_connect_as_often_as_they_come(live: RestApi) -> None:
    orders = ("pause", "pause", "resume", "stop", "stop", "resume")
    told = [live.client.put(f"/connectors/a/{order}") for order in orders]
    assert [each.status_code for each in told] == [202, 202, 202, 204, 204, 202]
    assert {each.content for each in told} == {b""}


def test_a_stopped_connector_has_no_tasks_at_once(live: RestApi) -> None:
    live.client.put("/connectors/a/stop")
    assert live.client.get("/connectors/a/tasks").json() == []
    assert live.client.get("/connectors/a").json()["tasks"] == []
    assert live.client.get("/connectors/a/tasks/0/status").status_code == 404
    assert states(live.client) == ["RUNNING"]
    live.client.put("/connectors/a/resume")
    assert len(live.client.get("/connectors/a/tasks").json()) == 2


def test_what_is_not_there_is_told_in_the_words_of_connect(live: RestApi) -> None:
    told = {
        path: live.client.request(method, f"/connectors/{path}").json()["message"]
        for method, path in (
            ("PUT", "b/pause"),
            ("PUT", "b/resume"),
            ("PUT", "b/stop"),
            ("POST", "b/restart"),
            ("POST", "b/tasks/0/restart"),
            ("POST", "a/tasks/2/restart"),
            ("POST", "a/tasks/-1/restart"),
        )
    }
    assert told == {
        "b/pause": "Unknown connector b",
        "b/resume": "Unknown connector b",
        "b/stop": "Unknown connector b",
        "b/restart": "Unknown connector: b",
        "b/tasks/0/restart": "Unknown connector: b",
        "a/tasks/2/restart": "Unknown task: a-2",
        "a/tasks/-1/restart": "Unknown task: a--1",
    }


def test_a_restart_is_of_the_connector_or_of_one_task_alone(live: RestApi) -> None:
    assert live.client.post("/connectors/a/restart").status_code == NO_CONTENT
    assert states(live.client) == ["RESTARTING", "RUNNING", "RUNNING"]
    assert live.client.post("/connectors/a/tasks/1/restart").status_code == NO_CONTENT
    assert states(live.client) == ["RESTARTING", "RUNNING", "RESTARTING"]


def test_a_restart_with_tasks_tells_what_it_restarts(live: RestApi) -> None:
    told = live.client.post("/connectors/a/restart?includeTasks=TRUE")
    restarting = {"state": "RESTARTING", **AT}
    assert (told.status_code, told.json()) == (
        ACCEPTED,
        {
            "name": "a",
            "connector": restarting,
            "tasks": [{"id": 0, **restarting}, {"id": 1, **restarting}],
            "type": "source",
        },
    )
    assert states(live.client) == ["RESTARTING"] * 3


def test_only_what_failed_is_restarted_if_that_is_asked_for_and_its_trace_is_told(
    live: RestApi,
) -> None:
    live.group.ask("report", Resource("a", 1), RunState.FAILED, "ValueError: no")
    failed = live.client.post("/connectors/a/restart?onlyFailed=true")
    assert [each["state"] for each in failed.json()["tasks"]] == ["RUNNING", "FAILED"]
    told = live.client.post("/connectors/a/restart?onlyFailed=true&includeTasks=true").json()
    assert told["connector"]["state"] == "RUNNING"
    restarting = {"id": 1, "state": "RESTARTING", **AT}
    assert told["tasks"][1] == {**restarting, "trace": "ValueError: no"}
    assert states(live.client) == ["RUNNING", "RUNNING", "RESTARTING"]


@pytest.mark.parametrize("state", ["PAUSED", "stopped", "Running", None])
def test_a_connector_is_created_in_the_state_that_is_asked_for(
    client: Client, state: str | None
) -> None:
    body = {"name": "a", "config": LOCKED, "initial_state": state}
    assert client.post("/connectors", json=body).status_code == CREATED


def test_a_state_that_there_is_not_is_refused(client: Client) -> None:
    body = {"name": "a", "config": LOCKED, "initial_state": "FAILED"}
    refused = client.post("/connectors", json=body)
    assert (refused.status_code, refused.json()["message"]) == (
        400,
        "the request is malformed: initial_state: must be one of RUNNING, PAUSED, STOPPED",
    )


def test_a_patch_changes_adds_and_removes_keys_and_keeps_secrets(client: Client) -> None:
    config = {**LOCKED, "password": "hunter2", "gone": "1", "kept": "2"}
    client.post("/connectors", json={"name": "a", "config": config})
    changes = {"gone": None, "never": None, "number": 5, "truth": True}
    told = client.request("PATCH", "/connectors/a/config", json=changes)
    wanted = {**LOCKED, "name": "a", "password": "********", "kept": "2"}
    assert (told.status_code, told.json()["config"]) == (
        200,
        {**wanted, "number": "5", "truth": "true"},
    )


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"name": None}, 'Missing required configuration "name" which has no default value.'),
        ({"name": "b"}, "Connector name configuration (b) doesn't match connector name"),
    ],
)
def test_a_patch_leaves_a_connector_its_name(
    client: Client, changes: dict[str, str | None], said: str
) -> None:
    client.post("/connectors", json={"name": "a", "config": LOCKED})
    refused = client.request("PATCH", "/connectors/a/config", json=changes)
    assert refused.status_code == 400
    assert said in refused.json()["message"]
    none = client.request("PATCH", "/connectors/b/config", json=changes)
    assert none.json() == {"error_code": 404, "message": "Connector b not found"}


def test_null_is_no_value_of_a_config(client: Client) -> None:
    body = {**LOCKED, "a": None, "b": None}
    told = "Null value can not be supplied as the configuration value."
    for reply in (
        client.post("/connectors", json={"name": "a", "config": body}),
        client.put("/connectors/a/config", json=body),
    ):
        assert reply.status_code == 400
        assert reply.json()["message"].splitlines()[1:3] == [told, told]
    assert client.get("/connectors").json() == []


def test_restarts_after_failures_are_told_while_they_count_to_those_who_ask(
    live: RestApi, monkeypatch: pytest.MonkeyPatch
) -> None:
    restarted_ms = 1_700_000_000_000
    live.group.ask("pass_time", 1)
    live.group.ask("report", Resource("a", 0), RunState.RUNNING, "", AutoRestart(3, restarted_ms))
    path = "/connectors/a/tasks/0/status"
    for since_ms, told in (
        (600_000, {"count": 3, "lastRestartTimestamp": "2023-11-14T22:13:20+00:00"}),
        (600_001, None),
    ):
        now_ns = (restarted_ms + since_ms) * 1_000_000
        monkeypatch.setattr("time.time_ns", lambda now_ns=now_ns: now_ns)
        assert live.client.get(f"{path}?extended=true").json().get("autoRestart") == told
        listed = live.client.get("/connectors?expand=status&extended=true").json()
        assert listed["a"]["status"]["tasks"][0].get("autoRestart") == told
    assert "autoRestart" not in live.client.get(path).json()


def test_topics_are_those_of_offsets_and_are_not_forgotten(live: RestApi) -> None:
    live.group.ask("commit", Resource("a", 0), 0, 1, 1)
    assert live.client.get("/connectors/a/topics").json() == {"a": {"topics": []}}
    reset = live.client.put("/connectors/a/topics/reset")
    assert reset.json() == {"error_code": 403, "message": "Topic tracking reset is disabled."}
