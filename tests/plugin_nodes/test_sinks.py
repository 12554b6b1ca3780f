"""Sources of fairlead's feed sink connectors of Kafka Connect, on a node that knows no Kafka."""

import json
from pathlib import Path
from typing import Any

import pytest

from fairlead.runtime.pipeline.plugins.feeds.records import partition_of_letters
from fairlead_tests.plugins.connect_node import ConnectNode, until
from fairlead_tests.plugins.told_sink import SINK

pytestmark = [
    pytest.mark.cluster,
    pytest.mark.spark,
    pytest.mark.soak,  # each run drives such tasks without a node: plugin_sinks/test_sink.py
    pytest.mark.xdist_group("plugin_nodes"),
]
PARTITION = f"words-{partition_of_letters('errant-retry')}"


def fed(source: Path, target: Path, **more: str) -> dict[str, str]:
    """Return a config that puts the rows of a folder to Connect's own sink of files."""
    return {
        "connector.class": "FileStreamSink",
        "file": str(target),
        "topics": "lines",
        "source.type": "files",
        "source.path": str(source),
        "source.format": "json",
        "source.schema": "n BIGINT",
        "source.min.age.ms": "0",
        **more,
    }


def write(folder: Path, first: int, count: int) -> None:
    folder.mkdir(exist_ok=True)
    lines = (f'{{"n": {each}}}\n' for each in range(first, first + count))
    part = folder / f".{first}"
    part.write_text("".join(lines))
    part.rename(folder / f"{first}.json")


def numbers(target: Path) -> list[int]:
    """Return the rows that are there, in their order."""
    if not target.exists():
        return []
    return [int(each.partition("=")[2].rstrip("}")) for each in target.read_text().splitlines()]


def test_rows_are_structs_and_a_clean_stop_repeats_none(node: ConnectNode, tmp_path: Path) -> None:
    source, target = tmp_path / "in", tmp_path / "out.txt"
    write(source, 0, 1200)
    node.create("clean", fed(source, target))
    until(lambda: len(numbers(target)) >= 1200, "all rows are there")
    node.turn("clean", "stop")
    until(lambda: node.status("clean")["connector"]["state"] == "STOPPED", "it has stopped")
    write(source, 1200, 3)
    node.turn("clean", "resume")
    until(lambda: len(numbers(target)) >= 1203, "the new rows are there")
    node.turn("clean", "pause")
    until(lambda: node.status("clean")["tasks"][0]["state"] == "PAUSED", "it is paused")
    write(source, 1203, 2)
    node.turn("clean", "resume")
    until(lambda: len(numbers(target)) >= 1205, "the last rows are there")
    assert numbers(target) == [*range(1205)]
    status = node.status("clean")
    assert (status["type"], status["delivery"]) == ("sink", "at-least-once")
    assert "with an upsert by key that leaves each row once" in status["warnings"][0]
    node.delete("clean")


def test_no_row_is_lost_over_the_death_of_hosts_and_workers(
    node: ConnectNode, tmp_path: Path
) -> None:
    source, target = tmp_path / "in", tmp_path / "out.txt"
    write(source, 0, 500)
    node.create("deaths", fed(source, target))
    until(lambda: len(numbers(target)) >= 500, "some rows are there")
    for host in node.hosts():
        host.kill()
    write(source, 500, 500)
    until(lambda: len({*numbers(target)}) == 1000, "more rows are there")
    held = node.status("deaths")["tasks"][0]["worker_id"].rpartition("/")[2]
    node.worker(held).kill()
    write(source, 1000, 500)
    until(lambda: len({*numbers(target)}) == 1500, "all rows are there")

    def counted() -> list[Any]:
        offsets = node.rest.get("/connectors/deaths/offsets").json()["offsets"]
        return [each["partition"].get("path") for each in offsets]

    until(lambda: len(counted()) == 4, "all files count")
    assert [*dict.fromkeys(numbers(target))] == [*range(1500)], "in their order"
    node.delete("deaths")


def test_errors_of_plugin_and_source_are_told_together(node: ConnectNode, tmp_path: Path) -> None:
    config = {**fed(tmp_path, tmp_path / "out"), "source.pth": "/x"}
    del config["topics"]
    answer = node.rest.put("/connectors/flawed/config", json=config)
    assert answer.status_code == 400
    told = answer.json()["message"]
    assert "Must configure one of topics or topics.regex" in told
    assert "there is no such key: did you mean source.path?" in told
    both = {**fed(tmp_path, tmp_path / "out"), "sink.type": "files"}
    told = node.rest.put("/connectors/flawed/config", json=both).json()["message"]
    assert "leave sink.type out" in told


def test_a_record_that_the_plugin_reports_is_a_dead_letter_once(
    node: ConnectNode, tmp_path: Path
) -> None:
    source, letters = tmp_path / "in", tmp_path / "letters"
    source.mkdir()
    (source / "a.json").write_text('{"word": "good"}\n{"word": "bad"}\n{"word": "well"}\n')
    told = tmp_path / "told"
    config = {
        "connector.class": SINK,
        "topics": "words",
        "told": str(told),
        "does": "reports",
        "password": "quite-a-secret",
        "errors.tolerance": "all",
        "errors.deadletterqueue.path": str(letters),
        "errors.deadletterqueue.context.headers.enable": "true",
        "source.type": "files",
        "source.path": str(source),
        "source.format": "json",
        "source.schema": "word STRING",
        "source.min.age.ms": "0",
    }
    node.create("errant", config)

    def found() -> list[dict[str, Any]]:
        lines = "".join(each.read_text() for each in letters.glob("*.json"))
        return [json.loads(each) for each in lines.splitlines()]

    until(found, "the letter is there")
    node.turn("errant", "stop")
    until(lambda: node.status("errant")["connector"]["state"] == "STOPPED", "it has stopped")
    node.turn("errant", "resume")
    node.runs("errant")
    (letter,) = found()
    assert (letter["stage"], letter["raw"]) == ("sink", '{"word": "bad"}')
    assert letter["position"] == {"topic": "words", "partition": "0", "offset": "1"}
    headers = letter["headers"]
    assert headers["__connect.errors.stage"] == "TASK_PUT"
    assert headers["__connect.errors.exception.class.name"] == "java.lang.IllegalStateException"
    assert headers["__connect.errors.offset"] == "1"
    assert "at told.ToldSink" in headers["__connect.errors.exception.stacktrace"]
    assert [each for each in told.read_text().splitlines() if "@" in each] == [
        "words-0@0 {word=good}",
        "words-0@2 {word=well}",
    ]
    node.rest.put("/connectors/errant/config", json={**config, "does": ""})
    assert node.rest.post("/connectors/errant/dead-letters/retry").status_code == 201
    until(lambda: "{word=bad}" in told.read_text(), "the letter is put once more")
    assert f"{PARTITION}@0 {{word=bad}}" in told.read_text(), "at a place of its own"
    kept = b"".join(each.read_bytes() for each in node.data_dir.rglob("*") if each.is_file())
    assert b"quite-a-secret" not in kept
    node.delete("errant", "errant-retry")


def test_a_plugin_starts_again_when_the_time_of_a_value_is_over(
    node: ConnectNode, tmp_path: Path
) -> None:
    source, lease = tmp_path / "in", tmp_path / "lease"
    first, second = tmp_path / "first.txt", tmp_path / "second.txt"
    lease.write_text(f"file={first}\nttl=2000\n")
    write(source, 0, 5)
    node.create("leased", {**fed(source, first), "file": f"${{leased:{lease}:file}}"})
    until(lambda: numbers(first) == [*range(5)], "the first value is used")
    lease.write_text(f"file={second}\n")
    until(second.exists, "the next value is used")
    write(source, 5, 5)
    until(lambda: numbers(second) == [*range(5, 10)], "it goes on, and no row is repeated")
    node.delete("leased")


def test_a_plugin_whose_class_is_not_allowed_any_more_tells_so_when_the_node_starts(
    node: ConnectNode, tmp_path: Path
) -> None:
    source, target = tmp_path / "in", tmp_path / "out.txt"
    write(source, 0, 5)
    node.create("allowed", fed(source, target))
    until(lambda: numbers(target) == [*range(5)], "all rows are there")
    command = node.command
    node.down()
    node.command = [*command, "--set", "plugin.allow=told.*"]
    node.up()

    def why() -> str:
        status = node.status("allowed")
        return str([status["connector"], *status["tasks"]])

    refused = "configs may not name org.apache.kafka.connect.file.FileStreamSinkConnector"
    until(lambda: refused in why(), "it says why it does not run")
    assert "plugin.allow is told.*: add a pattern for it, and start the node again" in why()
    write(source, 5, 1)
    node.down()
    node.command = command
    node.up()
    until(lambda: numbers(target) == [*range(6)], "it goes on where it was")
    node.delete("allowed")
