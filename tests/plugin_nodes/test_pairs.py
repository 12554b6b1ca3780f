"""Source connectors of Kafka Connect feed sink connectors of Kafka Connect, without a Kafka."""

import json
import random
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from fairlead_tests.plugins.connect_node import ConnectNode, until
from fairlead_tests.plugins.pair_driver import word
from fairlead_tests.plugins.replayed_source import SOURCE
from fairlead_tests.plugins.source_driver import written
from fairlead_tests.plugins.told_sink import SINK

pytestmark = [
    pytest.mark.cluster,
    pytest.mark.spark,
    pytest.mark.soak,  # each run drives such tasks without a node: plugin_pairs/test_pair.py
    pytest.mark.xdist_group("plugin_nodes"),
]
SEED = 11


def copying(source: Path, target: Path, **more: str) -> dict[str, str]:
    """Return a config that copies a file line by line."""
    source.touch()
    return {
        "connector.class": "FileStreamSource",
        "file": str(source),
        "topic": "lines",
        "sink.type": "connect",
        "sink.connector.class": "FileStreamSink",
        "sink.file": str(target),
        **more,
    }


def write(source: Path, first: int, end: int) -> None:
    with source.open("a") as file:
        file.writelines(f"{each}\n" for each in range(first, end))


def numbers(target: Path) -> list[int]:
    """Return the lines that are there, in their order."""
    if not target.exists():
        return []
    return [int(each) for each in target.read_text().splitlines() if each.isdecimal()]


def kill(node: ConnectNode, what: str) -> None:
    if what == "host":
        for each in node.hosts():
            each.kill()
    elif what == "worker":
        until(lambda: node.status("copied")["tasks"], "it has a task")
        held = node.status("copied")["tasks"][0]["worker_id"].rpartition("/")[2]
        node.worker(held).kill()
    else:
        node.crash()
        node.up()


def test_no_line_is_lost_whatever_dies_and_a_clean_stop_repeats_none(
    node: ConnectNode, tmp_path: Path
) -> None:
    source, target = tmp_path / "in.txt", tmp_path / "out.txt"
    node.create("copied", copying(source, target))
    write(source, 0, 500)
    until(lambda: len(numbers(target)) >= 500, "all lines are there")
    node.turn("copied", "stop")
    until(lambda: node.status("copied")["connector"]["state"] == "STOPPED", "it has stopped")
    write(source, 500, 1000)
    node.turn("copied", "resume")
    until(lambda: len(numbers(target)) >= 1000, "the new lines are there")
    assert numbers(target) == [*range(1000)]
    dice, end = random.Random(SEED), 1000

    def has(number: int) -> bool:
        return number in numbers(target)

    faults = ["host", "worker", "node"]
    dice.shuffle(faults)
    for fault in faults:
        write(source, end, end + 300)
        some, end = end + dice.randrange(300), end + 300
        until(partial(has, some), f"some lines are there before a {fault}")
        kill(node, fault)
    until(lambda: len({*numbers(target)}) == end, "all lines are there after the deaths")
    assert [*dict.fromkeys(numbers(target))] == [*range(end)], "in their order"
    status = node.status("copied")
    assert (status["type"], status["delivery"]) == ("source", "at-least-once")
    assert any("with an upsert by key" in each for each in status["warnings"])
    log = node.data_dir / "logs" / "connector-copied.log"
    assert "WorkerSinkTask{id=copied" in log.read_text(), "one log has both ends"
    node.delete("copied")


def test_flaws_of_both_plugins_are_told_by_the_names_that_the_user_has_given(
    node: ConnectNode, tmp_path: Path
) -> None:
    def told(**changed: str | None) -> str:
        config = {**copying(tmp_path / "in", tmp_path / "out"), **changed}
        config = {key.replace("_", "."): value for key, value in config.items()}
        answer = node.rest.put("/connectors/flawed/config", json=config)
        assert answer.status_code == 400
        return str(answer.json()["message"])

    assert "sink.connector.class: it is missing" in told(**{"sink.connector.class": ""})
    path = "/connector-plugins/FileStreamSource/config/validate"
    asked = node.rest.put(
        path, json={"connector.class": "FileStreamSource", "sink.type": "connect"}
    )
    named = [each for each in asked.json()["configs"] if each["value"]["name"].endswith(".class")]
    assert {"FileStreamSinkConnector", "ToldSink"} <= {
        each.rpartition(".")[2] for each in named[-1]["value"]["recommended_values"]
    }
    assert "sink.connector.class names a sink" in told(sink_connector_class="FileStreamSource")
    assert "is called Nothing here" in told(sink_connector_class="Nothing")
    assert "tasks.max is for the whole connector" in told(sink_tasks_max="2")
    assert "name it in transforms" in told(sink_transforms="a", sink_transforms_a_type="sql")
    assert "sink.topics: topics and topics" in told(sink_topics="a", sink_topics_regex="b")
    wrong = told(topic="", sink_transforms="hoist", sink_transforms_hoist_type="org.apache.Nothing")
    assert "sink.transforms.hoist.type" in wrong
    assert "Missing required" in told(sink_connector_class=SINK)
    assert 'configuration "sink.told"' in told(sink_connector_class=SINK)
    assert "leave it out, or make another key" in told(sink_key_columns="a")


def test_secrets_of_the_sink_are_sealed(node: ConnectNode, tmp_path: Path) -> None:
    records, told = tmp_path / "records", tmp_path / "told"
    records.write_text(written([word("good")]))
    config = {
        "connector.class": SOURCE,
        "records": str(records),
        "told": str(tmp_path / "heard"),
        "sink.type": "connect",
        "sink.connector.class": SINK,
        "sink.told": str(told),
        "sink.password": "quite-a-secret",
    }
    node.create("sealed", config)
    until(lambda: told.exists() and "words-0@0 good" in told.read_text(), "it is put")
    assert node.rest.get("/connectors/sealed").json()["config"]["sink.password"] == "*" * 8
    kept = b"".join(each.read_bytes() for each in node.data_dir.rglob("*") if each.is_file())
    assert b"quite-a-secret" not in kept
    node.delete("sealed")


def test_a_letter_is_written_once_with_and_without_a_transform_between(
    node: ConnectNode, tmp_path: Path
) -> None:
    records, told, letters = tmp_path / "records", tmp_path / "told", tmp_path / "letters"
    records.write_text(written([word("good"), word("bad", headers={"h": "1"}), word("well")]))
    config = {
        "connector.class": SOURCE,
        "records": str(records),
        "told": str(tmp_path / "heard"),
        "errors.tolerance": "all",
        "errors.deadletterqueue.path": str(letters),
        "errors.deadletterqueue.context.headers.enable": "true",
        "transforms": "long",
        "transforms.long.type": "sql",
        "transforms.long.query": "SELECT * FROM input WHERE _value <> 'well'",
        "sink.type": "connect",
        "sink.connector.class": SINK,
        "sink.told": str(told),
        "sink.does": "reports",
        "sink.password": "quite-a-secret",
    }
    node.create("rows", config)

    def found() -> list[dict[str, Any]]:
        lines = "".join(each.read_text() for each in letters.glob("*.json"))
        return [json.loads(each) for each in lines.splitlines()]

    def puts() -> list[str]:
        lines = told.read_text().splitlines() if told.exists() else []
        return [each.partition(" at ")[0] for each in lines if "@" in each]

    until(found, "the letter is there")
    node.turn("rows", "stop")
    until(lambda: node.status("rows")["connector"]["state"] == "STOPPED", "it has stopped")
    assert puts() == ["words-0@0 good"]
    (letter,) = found()
    assert letter["stage"] == "sink"
    assert json.loads(letter["raw"])["_value"] == "bad"
    assert letter["position"] == {"topic": "words", "partition": "0", "offset": "1"}
    held = {key: value for key, value in config.items() if not key.startswith("transforms")}
    assert node.rest.put("/connectors/rows/config", json=held).is_success
    assert node.rest.get("/connectors/rows").json()["config"]["sink.password"] == "*" * 8
    records.write_text(f"{records.read_text()}\n{written([word('late'), word('bad')])}")
    node.turn("rows", "resume")
    until(lambda: len(found()) == 2, "the second letter is there")

    def counted() -> list[object]:
        offsets = node.rest.get("/connectors/rows/offsets").json()["offsets"]
        return [each["offset"] for each in offsets]

    until(lambda: counted() == [{"at": 6}, {"sink_offset": 4}], "all of it counts")
    assert dict.fromkeys(puts()) == dict.fromkeys(["words-0@0 good", "words-0@2 late"])
    kept = b"".join(each.read_bytes() for each in node.data_dir.rglob("*") if each.is_file())
    assert b"quite-a-secret" not in kept
    node.delete("rows")
