from collections.abc import Mapping
from http import HTTPStatus
from pathlib import Path
from typing import Any

import pytest
from rest.conftest import RestApi

from fairlead.actors.messages.commands import FinishDeletion
from fairlead.actors.messages.orders import DeleteConnector, PutConnector
from fairlead.events.log.space import DiskSpace
from fairlead.events.model import Resource, RunState
from fairlead.events.records import ConnectorConfig, ConnectorsTasksMetadata
from fairlead.runtime.interfaces.rest.commands.connection import Command, Outcome
from fairlead.runtime.interfaces.rest.reading import logs
from fairlead.runtime.interfaces.rest.routes.connectors import (
    config_changes,
    lifecycle,
    lists,
)
from fairlead.runtime.interfaces.rest.routes.node.health import READY
from fairlead.runtime.pipeline.spi.config import Validation
from fairlead_tests.rest.client import Client
from fairlead_tests.rest.plugins import Broken

LOCKED = {"connector.class": "Locked"}
STORED = {**LOCKED, "name": "a"}
INFO: dict[str, Any] = {"name": "a", "config": STORED, "tasks": [], "type": "source"}
GONE = {"error_code": 404, "message": "Connector a not found"}


def create(client: Client, name: str = "a", **config: object) -> None:
    body = {"name": name, "config": {**LOCKED, **config}}
    assert client.post("/connectors", json=body).status_code == HTTPStatus.CREATED


def test_a_connector_is_created_read_and_deleted(api: RestApi) -> None:
    client = api.client
    made = client.post("/connectors", json={"name": "a", "config": LOCKED})
    assert (made.status_code, made.headers["location"], made.json()) == (201, "/connectors/a", INFO)
    assert client.get("/connectors").json() == ["a"]
    assert client.get("/connectors/a").json() == INFO
    assert client.get("/connectors/a/config").json() == STORED
    assert client.get("/connectors/a/tasks").json() == []
    gone = client.delete("/connectors/a")
    assert (gone.status_code, gone.content) == (204, b"")
    assert client.get("/connectors").json() == []


def test_a_config_is_put_with_201_at_first_and_with_200_from_then_on(client: Client) -> None:
    first = client.put("/connectors/a/config", json=LOCKED)
    again = client.put("/connectors/a/config", json=LOCKED)
    other = client.put("/connectors/a/config", json={**LOCKED, "tasks.max": 2})
    assert [each.status_code for each in (first, again, other)] == [201, 200, 200]
    assert other.json() == {**INFO, "config": {**STORED, "tasks.max": "2"}}


def test_a_config_that_is_put_again_is_not_written_again(api: RestApi) -> None:
    config = {**LOCKED, "password": "hunter2"}
    api.client.put("/connectors/a/config", json=config)
    before = api.client.get("/groups/connect").json()["log_end"]
    api.client.put("/connectors/a/config", json=config)
    assert api.client.get("/groups/connect").json()["log_end"] == before


def test_patches_at_the_same_time_build_on_each_other(
    api: RestApi, monkeypatch: pytest.MonkeyPatch
) -> None:
    create(api.client)
    carry_out = api.gateway.carry_out
    others = iter([{"extra.b": "2"}, {"extra.b": "2", "extra.c": "3"}])

    async def overtaken(command: Command) -> Outcome:
        """Have somebody else change the config before the command comes."""
        if other := next(others, None):
            api.group.ask("command", PutConnector("connect", "a", {**STORED, **other}))
        return await carry_out(command)

    monkeypatch.setattr(api.gateway, "carry_out", overtaken)
    told = api.client.request("PATCH", "/connectors/a/config", json={"extra.a": "1"})
    changed = {"extra.a": "1", "extra.b": "2", "extra.c": "3"}
    assert (told.status_code, told.json()["config"]) == (200, {**STORED, **changed})


def test_a_patch_makes_no_connector_anew_that_was_deleted_meanwhile(
    api: RestApi, monkeypatch: pytest.MonkeyPatch
) -> None:
    create(api.client)
    carry_out = api.gateway.carry_out

    async def overtaken(command: Command) -> Outcome:
        if isinstance(command, PutConnector):
            api.group.ask("command", DeleteConnector("connect", "a"))
            api.group.ask("command", FinishDeletion("a"))
        return await carry_out(command)

    monkeypatch.setattr(api.gateway, "carry_out", overtaken)
    told = api.client.request("PATCH", "/connectors/a/config", json={"extra.a": "1"})
    assert (told.status_code, told.json()) == (404, GONE)
    assert api.client.get("/connectors").json() == []


def test_a_diff_tells_what_a_put_would_change_and_shows_no_secret(api: RestApi) -> None:
    def diff(config: object) -> tuple[int, dict[str, Any]]:
        told = api.client.put("/connectors/a/config/diff", json=config)
        return told.status_code, told.json()

    config = {**LOCKED, "password": "hunter2", "tasks.max": "2"}
    added = [
        {"key": "connector.class", "from": None, "to": "Locked"},
        {"key": "name", "from": None, "to": "a"},
    ]
    new = {"name": "a", "is_new": True, "changes": added, "warnings": []}
    assert diff(LOCKED) == (200, new)
    assert api.client.get("/connectors").json() == []
    api.client.put("/connectors/a/config", json=config)
    assert diff(config) == (200, {**new, "is_new": False, "changes": []})
    assert diff({**config, "password": "********"})[1]["changes"] == []
    assert diff({**LOCKED, "password": "other"})[1]["changes"] == [
        {"key": "password", "from": "********", "to": "********"},
        {"key": "tasks.max", "from": "2", "to": None},
    ]
    assert diff({**LOCKED, "name": "b"})[0] == 400
    api.client.delete("/connectors/a")
    assert diff(LOCKED) == (200, new)


def test_a_connector_whose_name_has_offsets_says_so_wherever_it_is_told(api: RestApi) -> None:
    client = api.client
    config = ConnectorConfig("a", STORED, 1, 5, offsets_before=1_000)
    api.group.ask("write", config, ConnectorsTasksMetadata(frozenset({Resource("a")})))
    put = client.put("/connectors/a/config?extended=true", json=LOCKED)
    got = (client.get(f"/connectors/a{path}?extended=true") for path in ("", "/status"))
    listed = client.get("/connectors?expand=status&extended=true").json()["a"]["status"]
    (warning,) = put.json()["warnings"]
    assert [each.json()["warnings"] for each in got] == [[warning]] * 2
    assert listed["warnings"] == [warning]
    assert warning.startswith("1000 offsets of an earlier connector a count for this one: ")


def test_a_name_that_is_taken_is_a_409(client: Client) -> None:
    create(client)
    taken = client.post("/connectors", json={"name": "a", "config": LOCKED})
    assert (taken.status_code, taken.json()) == (
        409,
        {"error_code": 409, "message": "Connector a already exists"},
    )


def test_a_connector_that_is_being_deleted_is_gone_for_readers_and_in_the_way_of_writers(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(config_changes, "DELETION_SECONDS", 0)
    create(client)
    client.delete("/connectors/a")
    told = "connector a is being deleted"
    for path in ("", "/config", "/tasks"):
        assert client.get(f"/connectors/a{path}").json() == GONE
    refused = (
        client.post("/connectors", json={"name": "a", "config": LOCKED}),
        client.put("/connectors/a/config", json=LOCKED),
    )
    message = f"{told}: create it once it is gone"
    assert [each.json() for each in refused] == [{"error_code": 409, "message": message}] * 2
    assert client.delete("/connectors/a").json() == GONE


def test_a_batch_that_no_running_task_publishes_is_told_wherever_one_asks(api: RestApi) -> None:
    client = api.client
    create(client)
    api.group.ask("seat", "w1")
    api.group.ask("split", "a", {"n": "0"}, {"n": "1"})
    api.group.ask("commit", Resource("a", 1), 0, 10, 9)

    def warned() -> list[str]:
        """Return what each place says of batches; `health` with the connector's name."""
        expanded = client.get("/connectors?expand=status&expand=info&extended=true").json()["a"]
        described = client.get("/connectors/a?extended=true").json()
        status = client.get("/connectors/a/status?extended=true").json()
        told = [expanded["status"], expanded["info"], described, status]
        warnings = [each for reply in told for each in reply.get("warnings", ())]
        health = client.get("/health").json()["message"].partition("; of its connectors")[0]
        return [each for each in (*warnings, health) if "not published" in each]

    assert warned() == [], "its task does it"
    batch = "not published in /sink is batch 0 of a-1 (token 2-1, 9 rows), which counts already. "
    client.put("/connectors/a/pause")
    told = f"{batch}No task that runs does it: resume the connector"
    assert warned() == [*[told] * 4, f"{READY} connector a: {told}"]
    client.put("/connectors/a/resume")
    api.group.ask("split", "a", {"n": "0"})
    told = f"{batch}No task that runs does it: a worker tries again and again, and what keeps it "
    told += "from that is in logs/actors.log"
    assert warned() == [*[told] * 4, f"{READY} connector a: {told}"]


def test_what_keeps_a_connector_from_being_deleted_is_told_wherever_one_asks(
    api: RestApi, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lifecycle, "PUBLISH_SECONDS", 0)
    monkeypatch.setattr(config_changes, "DELETION_SECONDS", 0)
    client = api.client
    create(client)
    api.group.ask("seat", "w1")
    api.group.ask("split", "a", {"n": "0"}, {"n": "1"})
    api.group.ask("commit", Resource("a", 1), 0, 10, 9)
    deleted = client.delete("/connectors/a")
    waits = "it waits until what counts already is published in /sink (batch 0 of a-1 (token "
    replies = [
        deleted,
        client.delete("/connectors/a"),
        client.get("/connectors/a/status"),
        client.post("/connectors", json={"name": "a", "config": LOCKED}),
        client.get("/health"),
    ]
    assert [each.status_code for each in replies] == [202, 404, 404, 409, 200]
    assert all(waits in each.json()["message"] for each in replies)


def test_batches_that_can_never_be_published_are_given_up_by_a_deletion_that_says_so(
    api: RestApi, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(lifecycle, "PUBLISH_SECONDS", 0)
    client = api.client
    create(client)
    api.group.ask("seat", "w1")
    api.group.ask("split", "a", {"n": "0"}, {"n": "1"})
    api.group.ask("commit", Resource("a", 1), 0, 10, 9)
    assert client.delete("/connectors/a").status_code == 202
    batch = "batch 0 of a-1 (token 2-1, 9 rows)"
    given_up = client.delete("/connectors/a?publish=false")
    told = (
        f"connector a is deleted; given up is {batch}, which the offsets count as read,"
        " unless it was published now"
    )
    assert (given_up.status_code, given_up.json()) == (200, {"message": told})
    assert client.delete("/connectors/a?publish=false").json() == GONE
    assert f"gave up what a had not published: {batch}" in caplog.messages[-1]
    assert client.get("/health").json()["message"] == READY


def test_what_was_never_created_is_a_404(client: Client) -> None:
    replies = [client.get(f"/connectors/a{path}") for path in ("", "/config", "/tasks")]
    assert [each.json() for each in [*replies, client.delete("/connectors/a")]] == [GONE] * 4
    assert client.get("/connectors/a/topics").json() == {"a": {"topics": []}}, "as Connect says"
    for path, of in (("", "connector a"), ("/tasks/0", "task a-0")):
        none = {"error_code": 404, "message": f"No status found for {of}"}
        assert client.get(f"/connectors/a{path}/status").json() == none


def test_names_that_no_path_leads_to_are_refused(client: Client) -> None:
    for name in ("", "  ", "..", "ä" * 125):
        reply = client.post("/connectors", json={"name": name, "config": LOCKED})
        assert (reply.status_code, reply.json()["error_code"]) == (400, 400), name


def test_names_are_decoded_from_their_path(client: Client) -> None:
    created = client.post("/connectors", json={"name": "flüge & more", "config": LOCKED})
    location = created.headers["location"]
    assert location == "/connectors/fl%C3%BCge%20%26%20more"
    assert client.get(location).json()["name"] == "flüge & more"
    assert client.delete(location).status_code == 204


def test_a_config_with_another_name_is_refused(client: Client) -> None:
    config = {**LOCKED, "name": "b"}
    replies = (
        client.post("/connectors", json={"name": "a", "config": config}),
        client.put("/connectors/a/config", json=config),
    )
    message = "Connector name configuration (b) doesn't match connector name in the URL (a)"
    assert [each.json() for each in replies] == [{"error_code": 400, "message": message}] * 2


def test_an_invalid_config_is_refused_with_all_that_is_wrong_with_it(client: Client) -> None:
    config = {"connector.class": "SparkPipeline", "tasks.max": 0, "source.format": "exe"}
    reply = client.post("/connectors", json={"name": "a", "config": config})
    first, *errors, last = reply.json()["message"].split("\n")
    assert reply.status_code == 400
    assert first == (
        f"Connector configuration is invalid and contains the following {len(errors)} error(s):"
    )
    missing = ("source.path", "sink.format", "sink.path")
    assert errors == [
        "Invalid value 0 for configuration tasks.max: Value must be at least 1",
        "Invalid value exe for configuration source.format:"
        " String must be one of: csv, json, parquet",
        *(
            f'Missing required configuration "{each}" which has no default value.'
            for each in missing
        ),
    ]
    assert last.endswith("`/connector-plugins/{connectorType}/config/validate`")
    assert client.get("/connectors").json() == []


def test_a_class_that_is_missing_or_unknown_is_told_in_the_words_of_connect(
    client: Client,
) -> None:
    missing = client.put("/connectors/a/config", json={"password": "hunter2"}).json()
    unknown = client.put("/connectors/a/config", json={"connector.class": "Lokced"}).json()
    assert missing["message"] == ("Connector config {password, name} contains no connector type")
    assert unknown["message"].startswith(
        "Failed to find any class that implements Connector and which name matches Lokced,"
        " available connectors are: fairlead."
    )
    assert unknown["message"].endswith(
        "Locked, fairlead_tests.rest.plugins.Broken; did you mean Locked?"
    )


def test_a_class_of_connect_is_told_what_does_that_here(client: Client) -> None:
    hint = (
        "what JdbcSinkConnector does is done here by source.type=kafka with sink.type=postgres or"
        " sink.type=jdbc: `fairlead translate FILE` writes such a config"
    )
    plugin = (
        "the plugin of JdbcSinkConnector comes from its maker's archive, by `fairlead plugins add`"
    )
    name = "io.confluent.connect.jdbc.JdbcSinkConnector"
    config = {"connector.class": name, "topics": "t"}
    refused = client.put("/connectors/a/config", json=config)
    assert (refused.status_code, refused.json()["message"].endswith(f"; {hint}; {plugin}")) == (
        400,
        True,
    )
    path = "/connector-plugins/JdbcSinkConnector/config/validate"
    unknown = client.put(path, json={"connector.class": "JdbcSinkConnector"})
    told = f"Unknown plugin JdbcSinkConnector. Note: {hint}"
    assert (unknown.status_code, unknown.json()["message"]) == (404, told)


@pytest.mark.parametrize("failure", [RuntimeError, SystemExit])  # the latter ends no server
def test_a_class_that_fails_is_named_without_a_word_of_the_config(
    client: Client, failure: type[BaseException], monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(config: Mapping[str, str]) -> Validation:
        raise failure(f"no idea what to make of {config}")

    monkeypatch.setattr(Broken, "validate", fail)
    config = {"connector.class": "Broken", "password": "hunter2"}
    reply = client.put("/connectors/a/config", json=config)
    assert reply.status_code == 500
    told = f"Broken failed to examine the config ({failure.__name__})"
    assert told in reply.json()["message"]
    assert "hunter2" not in reply.text


def test_commands_that_nobody_answers_are_a_503_and_reads_go_on(api: RestApi) -> None:
    create(api.client)
    api.gateway.group = None
    silent = {"error_code": 503, "message": "nobody is here: try again"}
    replies = (
        api.client.post("/connectors", json={"name": "b", "config": LOCKED}),
        api.client.put("/connectors/a/config", json={**LOCKED, "tasks.max": 2}),
        api.client.delete("/connectors/a"),
    )
    assert [each.json() for each in replies] == [silent] * 3
    assert api.client.get("/connectors/a").json() == INFO


def test_a_command_that_was_sent_twice_is_answered_as_if_once(api: RestApi) -> None:
    client = api.client
    api.gateway.loses_answers = True
    assert client.post("/connectors", json={"name": "a", "config": LOCKED}).status_code == 201
    assert client.put("/connectors/b/config", json=LOCKED).status_code == 201
    assert client.put("/connectors/b/config", json=LOCKED).status_code == 200
    assert client.delete("/connectors/a").status_code == 204


def test_a_status_is_that_of_the_current_token(api: RestApi) -> None:
    group, client = api.group, api.client
    create(client)
    unassigned = {"state": "UNASSIGNED", "worker_id": "", "version": "0"}
    assert client.get("/connectors/a/status").json() == {
        "name": "a",
        "connector": unassigned,
        "tasks": [],
        "type": "source",
    }
    worker = "127.0.0.1:8083/w1"
    group.ask("seat", "w1")
    group.ask("split", "a", {"n": "0"}, {"n": "1"})
    group.ask("report", Resource("a"), RunState.RUNNING)
    group.ask("report", Resource("a", 1), RunState.FAILED, "ValueError: no")
    at = {"worker_id": worker, "version": "0"}
    running = {"state": "RUNNING", **at}
    failed = {"id": 1, "state": "FAILED", **at, "trace": "ValueError: no"}
    waiting = {"id": 0, "state": "UNASSIGNED", **at}
    status = {"name": "a", "connector": running, "tasks": [waiting, failed], "type": "source"}
    assert client.get("/connectors/a/status").json() == status
    assert client.get("/connectors/a/tasks/1/status").json() == failed
    assert client.get("/connectors/a/tasks/2/status").json() == {
        "error_code": 404,
        "message": "No status found for task a-2",
    }
    group.ask("split", "a", {"n": "0"}, {"n": "other"})
    assert client.get("/connectors/a/tasks/1/status").json() == {**waiting, "id": 1}


def test_the_list_tells_more_of_each_connector_on_request(api: RestApi) -> None:
    create(api.client)
    api.group.ask("seat", "w1")
    api.group.ask("split", "a", {"n": "0"})
    tasks = [{"connector": "a", "task": 0}]
    info = {**INFO, "tasks": tasks}
    status = api.client.get("/connectors/a/status").json()
    get = api.client.get
    assert get("/connectors?expand=info").json() == {"a": {"info": info}}
    both = {"a": {"status": status, "info": info}}
    assert get("/connectors?expand=status&expand=info&expand=more").json() == both
    assert get("/connectors/a/tasks").json() == [{"id": tasks[0], "config": {"n": "0"}}]


def test_a_list_is_built_once_for_each_end_of_the_log_however_it_is_asked_for(
    api: RestApi, monkeypatch: pytest.MonkeyPatch
) -> None:
    built: list[str] = []

    def counted(*given: Any, **more: Any) -> Any:
        built.append(given[2])
        return expand(*given, **more)

    expand = lists._expand
    monkeypatch.setattr(lists, "_expand", counted)
    create(api.client)
    for times in range(1, 4):  # or else each would be kept for itself
        assert api.client.get(f"/connectors?{'&'.join(['expand=status'] * times)}").json().keys()
    assert built == ["a"]
    create(api.client, "b")
    assert [*api.client.get("/connectors?expand=status").json()] == ["a", "b"]
    assert built == ["a", "a", "b"]
    built.clear()
    for _ in range(2):
        api.client.get("/connectors?expand=status&extended=true")
    assert built == ["a", "b"]


def test_the_progress_of_tasks_is_told_with_what_is_left_to_read(api: RestApi) -> None:
    create(api.client)
    api.group.ask("seat", "w1")
    api.group.ask("split", "a", {"n": "0"}, {"n": "1"})
    api.group.ask("commit", Resource("a", 1), 0, 10, 9)
    nothing: dict[str, object] = {
        "id": 0,
        "rows_in": 0,
        "rows_out": 0,
        "bytes_out": 0,
        "batches": 0,
        "unpublished": 0,
        "last_commit_ms": None,
        "lag": None,
        "skipped": 0,
        "dead_letters": 0,
        "bytes_in": 0,
        "batch_ms": {},
        "rows_per_second": None,
    }
    done = {
        "id": 1,
        "rows_in": 10,
        "rows_out": 9,
        "bytes_out": 90,
        "batches": 1,
        "unpublished": 1,
        "last_commit_ms": 1_700_000_000_000,
        "lag": {"ranges": 2, "bytes": 20},
        "skipped": 0,
        "dead_letters": 0,
        "bytes_in": 0,
        "batch_ms": {},
        "rows_per_second": None,
    }
    progress = {"name": "a", "tasks": [nothing, done]}
    get = api.client.get
    assert get("/connectors/a/progress").json() == progress
    assert get("/connectors?expand=progress").json() == {"a": {"progress": progress}}
    assert get("/connectors/b/progress").json()["error_code"] == HTTPStatus.NOT_FOUND


def test_a_method_that_a_path_does_not_take_is_told_with_all_that_it_takes(client: Client) -> None:
    refused = client.request("BREW", "/connectors/a/config")
    assert (refused.status_code, refused.headers["allow"]) == (405, "GET,HEAD,OPTIONS,PATCH,PUT")
    assert client.request("PATCH", "/connectors").headers["allow"] == "GET,HEAD,OPTIONS,POST"
    assert client.get("/connectors/a/tasks/x/y").status_code == HTTPStatus.NOT_FOUND


@pytest.mark.parametrize("number", ["1.0", "%200", "0x0", "zero"])
def test_a_task_whose_number_is_no_whole_number_has_no_path(api: RestApi, number: str) -> None:
    create(api.client)
    api.group.ask("seat", "w1")
    api.group.ask("split", "a", {"n": "0"})
    status = api.client.get(f"/connectors/a/tasks/{number}/status")
    restart = api.client.post(f"/connectors/a/tasks/{number}/restart")
    nowhere = {"error_code": 404, "message": "HTTP 404 Not Found"}
    assert [status.json(), restart.json()] == [nowhere, nowhere]


def test_where_the_disk_is_full_health_and_each_task_that_cannot_commit_say_so(
    api: RestApi, monkeypatch: pytest.MonkeyPatch
) -> None:
    create(api.client)
    api.group.ask("seat", "w1")
    api.group.ask("split", "a", {"n": "0"})
    api.group.ask("report", Resource("a", 0), RunState.RUNNING)
    room = DiskSpace(Path("/disk"), 5)

    def disk_space_at(_: Path) -> DiskSpace:
        return room

    monkeypatch.setattr(logs, "disk_space_at", disk_space_at)
    waits = f"waiting for space: {room.why}"
    told = api.client.get("/connectors/a/status?extended=true").json()
    assert [each["reason"] for each in told["tasks"]] == [waits]
    task = "/connectors/a/tasks/0/status"
    assert api.client.get(f"{task}?extended=true").json()["reason"] == waits
    assert "reason" not in api.client.get(task).json()
    health = api.client.get("/health")
    assert health.status_code == HTTPStatus.SERVICE_UNAVAILABLE
    assert room.why in health.json()["message"]
