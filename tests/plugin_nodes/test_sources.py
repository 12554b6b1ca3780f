"""Kafka's own source of files feeds a sink of fairlead's, on a node that knows no Kafka."""

from pathlib import Path
from typing import Any

import httpx
import pyarrow.parquet as pq
import pytest

from fairlead_tests.plugins.connect_node import ConnectNode, until
from fairlead_tests.plugins.replayed_source import SOURCE
from fairlead_tests.plugins.source_driver import written

pytestmark = [
    pytest.mark.cluster,
    pytest.mark.spark,
    pytest.mark.soak,  # each run drives such tasks without a node: plugin_sources/test_source.py
    pytest.mark.xdist_group("plugin_nodes"),
]


def feeding(source: Path, target: Path, **more: str) -> dict[str, str]:
    """Return a config that writes the lines of a file to parquet."""
    return {
        "connector.class": "FileStreamSource",
        "file": str(source),
        "topic": "lines",
        "sink.type": "files",
        "sink.path": str(target),
        "sink.format": "parquet",
        **more,
    }


def replaying(folder: Path, **more: str) -> dict[str, str]:
    """Return the config of the tests' own source, which has nothing to send yet."""
    (folder / "records").write_text("")
    return {
        "connector.class": SOURCE,
        "records": str(folder / "records"),
        "told": str(folder / "told"),
        "sink.type": "files",
        "sink.path": str(folder / "out"),
        "sink.format": "parquet",
        **more,
    }


def write(path: Path, first: int, count: int) -> None:
    with path.open("a") as file:
        file.writelines(f"{each}\n" for each in range(first, first + count))


def values(target: Path) -> list[Any]:
    """Return what has been published, in order."""
    found = (pq.read_table(each)["_value"].to_pylist() for each in target.glob("*.parquet"))
    return sorted(int(each) for part in found for each in part)


def test_each_line_is_there_once_over_the_death_of_hosts_and_workers(
    node: ConnectNode, tmp_path: Path
) -> None:
    source, target = tmp_path / "in.txt", tmp_path / "lake" / "lines"
    write(source, 0, 500)
    by_topic = {"source.metadata.columns": "topic"}
    node.create("once", feeding(source, target.with_name("${topic}"), **by_topic))
    until(lambda: len(values(target)) >= 200, "some lines are there")
    for host in node.hosts():
        host.kill()
    write(source, 500, 500)
    until(lambda: len(values(target)) >= 700, "more lines are there")
    held = node.status("once")["tasks"][0]["worker_id"].rpartition("/")[2]
    node.worker(held).kill()
    write(source, 1000, 500)
    until(lambda: len(values(target)) >= 1500, "all lines are there")
    assert values(target) == [*range(1500)]
    offset = {"position": source.stat().st_size}
    answer = node.rest.get("/connectors/once/offsets").json()
    assert answer == {"offsets": [{"partition": {"filename": str(source)}, "offset": offset}]}
    node.delete("once")


def test_offsets_of_a_stopped_connector_are_set_and_reset(
    node: ConnectNode, tmp_path: Path
) -> None:
    source, target = tmp_path / "in.txt", tmp_path / "out"
    write(source, 0, 10)
    node.create("moved", feeding(source, target))
    until(lambda: len(values(target)) == 10, "all lines are there")
    node.turn("moved", "stop")
    until(lambda: node.status("moved")["connector"]["state"] == "STOPPED", "it has stopped")
    place = {"partition": {"filename": str(source)}, "offset": {"position": 16}}
    for wrong, why in (
        ({**place, "partition": {"file": "x"}}, "'filename'"),
        ({**place, "offset": {"position": -1}}, "should be a non-negative value"),
    ):
        answer = node.rest.patch("/connectors/moved/offsets", json={"offsets": [wrong]})
        assert not answer.is_success
        assert why in answer.json()["message"]  # says the plugin
    answer = node.rest.patch("/connectors/moved/offsets", json={"offsets": [place]})
    assert answer.is_success, answer.text
    node.turn("moved", "resume")
    until(lambda: len(values(target)) == 12, "two lines are there twice")
    assert values(target) == sorted([*range(10), 8, 9])
    node.turn("moved", "stop")
    until(lambda: node.status("moved")["connector"]["state"] == "STOPPED", "it has stopped")
    answer = node.rest.delete("/connectors/moved/offsets")
    assert answer.json() == {
        "message": "The offsets for this connector have been reset successfully"
    }
    assert node.rest.get("/connectors/moved/offsets").json() == {"offsets": []}
    node.delete("moved")


def test_errors_of_plugin_and_sink_are_told_together(node: ConnectNode) -> None:
    config = {
        "connector.class": "FileStreamSource",
        "topic": "lines",
        "batch.size": "many",
        "sink.type": "files",
        "sink.pth": "/x",
    }
    answer = node.rest.put("/connectors/flawed/config", json=config)
    assert answer.status_code == 400
    told = answer.json()["message"]
    assert "Invalid value many for configuration batch.size: Not a number of type INT" in told
    assert "there is no such key: did you mean sink.path?" in told
    validate = "/connector-plugins/FileStreamSource/config/validate"
    infos = node.rest.put(validate, json={**config, "name": "flawed"}).json()
    assert infos["error_count"] == told.count("\n") - 1


def test_ends_that_a_plugin_cannot_have_are_refused_with_the_way_that_works(
    node: ConnectNode, tmp_path: Path
) -> None:
    sink = {"connector.class": "FileStreamSink", "file": str(tmp_path / "out"), "topics": "t"}
    told = [
        node.rest.put("/connectors/wrong/config", json={**config, **end}).json()["message"]
        for config, end in (
            (sink, {"source.type": "files", "sink.type": "files"}),
            (sink, {"sink.type": "files"}),
            (feeding(tmp_path / "in", tmp_path / "out"), {"source.type": "files"}),
        )
    ]
    assert "leave sink.type out" in told[0]
    assert "leave sink.type out" in told[1]
    assert "leave source.type out" in told[2]
    assert all("the following 1 error(s)" in each for each in told)


def test_code_of_a_plugin_that_does_not_come_back_is_told_with_its_line(
    node: ConnectNode, tmp_path: Path
) -> None:
    config = replaying(tmp_path, does="blocks in start")
    assert node.rest.put("/connectors/blocking/config", json=config).is_success

    def reason() -> str:
        return "".join(each.get("reason") or "" for each in node.status("blocking")["tasks"])

    until(lambda: "its start has not come back since " in reason(), "its status says so")
    assert "it is at replayed.ReplayedSource$ReplayedTask.start(" in reason()
    node.delete("blocking")


def test_exactly_once_is_required_of_the_plugin_and_then_promised(
    node: ConnectNode, tmp_path: Path
) -> None:
    required = {"exactly.once.support": "required"}
    config = feeding(tmp_path / "in.txt", tmp_path / "out", **required)
    del config["file"]  # what it reads from its standard input it cannot read again
    answer = node.rest.put("/connectors/required/config", json=config)
    assert answer.status_code == 400
    assert "does not support exactly-once" in answer.json()["message"]
    write(tmp_path / "in.txt", 0, 1)
    node.create("required", feeding(tmp_path / "in.txt", tmp_path / "out", **required))
    assert node.status("required")["delivery"] == "exactly-once"
    node.delete("required")


def test_what_a_plugin_says_of_its_offsets_is_promised_wherever_it_is_asked(
    node: ConnectNode, tmp_path: Path
) -> None:
    config = replaying(tmp_path, password="quite-a-secret")
    path = "/connectors/asked/config?extended=true"
    created = node.rest.put(path, json={**config, "does": "fails to say"}).json()
    assert created["delivery"] == "at-least-once"
    assert "it failed java.lang.IllegalStateException" in created["warnings"][0]
    nothing = {**config, "does": "says nothing"}
    planned = {"connectors": [{"name": "planned", "config": nothing}]}
    plan = node.rest.post("/groups/connect/plan", json=planned).json()
    assert "the plugin does not say whether" in plan["warnings"][0]
    validate = "/connector-plugins/ReplayedSource/config/validate?extended=true"
    infos = node.rest.put(validate, json={**nothing, "name": "asked"}).json()
    assert infos["exactly_once"] == "undefined"
    assert "the plugin does not say whether" in infos["warnings"][0]
    forged = {**nothing, "source.connect.exactly.once": "supported"}
    assert node.rest.put(path, json=forged).json()["delivery"] == "at-least-once"
    assert node.rest.put(path, json=config).json()["delivery"] == "exactly-once"
    node.delete("asked")


def test_a_promise_outlives_rest_and_is_no_more_than_the_tasks_tell(
    node: ConnectNode, tmp_path: Path
) -> None:
    node.create("asked", replaying(tmp_path))
    (task,) = node.rest.get("/connectors/asked/tasks").json()
    assert task["config"]["source.connect.exactly.once"] == "supported"
    assert node.status("asked")["delivery"] == "exactly-once"
    rest, *_ = node.processes("fairlead: rest")
    rest.kill()
    until(lambda: serves(node), "REST is back")
    assert node.status("asked")["delivery"] == "exactly-once"
    text = {"schema": {"type": "string"}, "payload": "a"}
    record = {"topic": "t", "value": text, "partition": {}, "offset": {"snapshot": True}}
    (tmp_path / "records").write_text(written([record]))

    def is_told() -> bool:
        status = node.status("asked")
        reason = status["tasks"][0].get("reason", "")
        return (status["delivery"], "the plugin takes its first snapshot" in reason) == (
            "at-least-once",
            True,
        )

    until(is_told, "its snapshot is told")
    node.delete("asked")


def serves(node: ConnectNode) -> bool:
    try:
        return node.rest.get("/connectors/asked/status").is_success
    except httpx.TransportError:
        return False


def test_a_password_of_the_plugin_is_in_no_log_and_no_reply(
    node: ConnectNode, tmp_path: Path
) -> None:
    config = replaying(tmp_path, password="quite-a-secret")
    node.create("secret", config)
    until((tmp_path / "told").exists, "the task has started")
    replies = [
        node.rest.get(f"/connectors/secret{each}").text for each in ("", "/tasks", "/status")
    ]
    files = (each for each in node.data_dir.rglob("*") if each.is_file())
    kept = b"".join(each.read_bytes() for each in files)
    assert "quite-a-secret" not in "".join(replies)
    assert b"quite-a-secret" not in kept
    node.delete("secret")


def test_a_connector_that_does_not_start_is_failed_with_its_stack_trace(
    node: ConnectNode, tmp_path: Path
) -> None:
    config = {
        "connector.class": SOURCE,
        "records": "-",
        "told": "-",
        "does": "refuses",
        "task.restart.budget": "0",
        "sink.type": "files",
        "sink.path": str(tmp_path / "out"),
        "sink.format": "parquet",
    }
    assert node.rest.put("/connectors/refusing/config", json=config).is_success
    until(lambda: node.status("refusing")["connector"]["state"] == "FAILED", "it has failed")
    assert (
        "IllegalStateException: it does not start" in node.status("refusing")["connector"]["trace"]
    )
    node.delete("refusing")
