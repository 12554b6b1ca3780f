# pyright: basic
"""Tasks of Connect's own classes that are paused: as in Connect, each keeps its place."""

from pathlib import Path

import pytest

from fairlead_tests.kafka.topics import Topics
from fairlead_tests.plugins.connect_node import ONE_REPLICA, ConnectNode, until

pytestmark = [pytest.mark.cluster, pytest.mark.spark, pytest.mark.xdist_group("connect_tasks")]
SINK = "org.apache.kafka.connect.file.FileStreamSinkConnector"
STARTS = "Source task finished initialization and start"


def _turn(node: ConnectNode, name: str, verb: str, state: str) -> None:
    assert node.rest.put(f"/connectors/{name}/{verb}").is_success

    def is_there() -> bool:
        status = node.status(name)
        return {each["state"] for each in (status["connector"], *status["tasks"])} == {state}

    until(is_there, f"{name} is {state}")


def _starts(node: ConnectNode, name: str) -> int:
    return (node.data_dir / f"logs/connector-{name}.log").read_text().count(STARTS)


def _read_file(node: ConnectNode, name: str, source: Path) -> None:
    source.write_text("a\n")
    config = {"connector.class": "FileStreamSource", "file": str(source), "topic": name}
    node.create(name, {**config, **ONE_REPLICA})


def _append(source: Path, line: str) -> None:
    with source.open("a") as file:
        file.write(f"{line}\n")


def test_a_source_that_is_paused_goes_on_in_the_same_task(
    node: ConnectNode, topics: Topics, tmp_path: Path
) -> None:
    name, source = "pauses", tmp_path / "in.txt"
    topics.make(name)
    _read_file(node, name, source)
    until(lambda: topics.values(name) == ["a"], "the first line is there")
    _turn(node, name, "pause", "PAUSED")
    _append(source, "b")
    assert topics.values(name) == ["a"]
    _turn(node, name, "resume", "RUNNING")
    until(lambda: topics.values(name) == ["a", "b"], "the second line is there")
    node.runs(name)
    assert _starts(node, name) == 1
    node.delete(name)


def test_a_task_that_moves_while_it_is_paused_begins_once_it_is_resumed(
    node: ConnectNode, topics: Topics, tmp_path: Path
) -> None:
    name, source = "paused-moves", tmp_path / "in.txt"
    topics.make(name)
    _read_file(node, name, source)
    until(lambda: topics.values(name) == ["a"], "the first line is there")
    _turn(node, name, "pause", "PAUSED")
    worker = node.status(name)["tasks"][0]["worker_id"].rpartition("/")[2]
    until(lambda: node.rest.put(f"/workers/{worker}/drain").is_success, f"{worker} drains")

    def has_moved() -> bool:
        task = node.status(name)["tasks"][0]
        return task["state"] == "PAUSED" and not task["worker_id"].endswith(worker)

    until(has_moved, "it is paused elsewhere")
    _append(source, "b")
    until(lambda: node.rest.put(f"/workers/{worker}/uncordon").is_success, "it is free")
    assert (topics.values(name), _starts(node, name)) == (["a"], 1)
    _turn(node, name, "resume", "RUNNING")
    until(lambda: topics.values(name) == ["a", "b"], "the second line is there")
    node.delete(name)


def test_a_sink_that_is_paused_stays_a_member_and_goes_on_behind_its_last_record(
    node: ConnectNode, topics: Topics, tmp_path: Path
) -> None:
    name, target = "paused-sink", tmp_path / "out.txt"
    topic = topics.make(name)
    node.create(name, {"connector.class": SINK, "file": str(target), "topics": topic})
    topics.write(topic, [b"a"])
    until(lambda: target.exists() and target.read_text() == "a\n", "the first line is there")
    _turn(node, name, "pause", "PAUSED")
    topics.write(topic, [b"b"])
    assert target.read_text() == "a\n"
    _turn(node, name, "resume", "RUNNING")
    until(lambda: target.read_text() == "a\nb\n", "the second line is there")
    node.delete(name)
