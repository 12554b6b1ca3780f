"""Offsets of Kafka's own file connectors over REST, in Connect's words (KIP-875)."""

import time
from http import HTTPStatus
from pathlib import Path
from typing import Any

import httpx
import pytest

from fairlead_tests.kafka.broker import Broker
from fairlead_tests.kafka.topics import Topics
from fairlead_tests.plugins.connect_node import ONE_REPLICA, ConnectNode, until

pytestmark = [pytest.mark.cluster, pytest.mark.spark, pytest.mark.xdist_group("connect_tasks")]
SINK = "org.apache.kafka.connect.file.FileStreamSinkConnector"
ALTERED = "The offsets for this connector have been altered successfully"
RESET = "The offsets for this connector have been reset successfully"
LINES = "a\nb\nc\nd\n"


def _stop(node: ConnectNode, name: str) -> None:
    node.turn(name, "stop")
    until(lambda: node.status(name)["connector"]["state"] == "STOPPED", f"{name} is stopped")


def _offsets(node: ConnectNode, name: str) -> list[dict[str, Any]]:
    answer = node.rest.get(f"/connectors/{name}/offsets")
    assert answer.is_success, answer.text
    found: list[dict[str, Any]] = answer.json()["offsets"]
    return found


def _told(answer: httpx.Response) -> tuple[int, str]:
    return answer.status_code, answer.json()["message"]


def test_offsets_of_a_source_are_read_altered_and_reset(node: ConnectNode, tmp_path: Path) -> None:
    source = tmp_path / "in.txt"
    source.write_text(LINES)
    name, partition = "offsets-in", {"filename": str(source)}
    config = {"connector.class": "FileStreamSource", "file": str(source), "topic": "offsets-in"}
    node.create(name, {**config, **ONE_REPLICA})
    whole = [{"partition": partition, "offset": {"position": len(LINES)}}]
    until(lambda: _offsets(node, name) == whole, "all lines are read")
    path = f"/connectors/{name}/offsets"
    half = {"offsets": [{"partition": partition, "offset": {"position": 4}}]}
    refused = node.rest.patch(path, json=half)
    assert _told(refused) == (
        HTTPStatus.BAD_REQUEST,
        "Connectors must be in the STOPPED state before their offsets can be modified. This can be"
        f" done for the specified connector by issuing a 'PUT' request to the '/connectors/{name}"
        "/stop' endpoint",
    )
    _stop(node, name)
    assert _told(node.rest.patch(path, json=half)) == (HTTPStatus.OK, ALTERED)
    assert _offsets(node, name) == half["offsets"]
    node.turn(name, "resume")
    until(lambda: _offsets(node, name) == whole, "the second half is read again")
    _stop(node, name)
    wrong = {"offsets": [{"partition": partition, "offset": {"position": -1}}]}
    assert _told(node.rest.patch(path, json=wrong)) == (
        HTTPStatus.INTERNAL_SERVER_ERROR,
        "The value for the 'position' key in the offset should be a non-negative value",
    )
    status, told = _told(node.rest.post(f"{path}/seek", json={"to": "latest"}))
    assert (status, told.partition(";")[0]) == (
        HTTPStatus.BAD_REQUEST,
        "to: a connector of Kafka Connect's own class can be moved to earliest alone, which is a"
        " reset",
    )
    sought = node.rest.post(f"{path}/seek", json={"to": "earliest", "dry_run": True}).json()
    assert (sought["partitions"], _offsets(node, name)) == (1, whole)
    assert _told(node.rest.delete(path)) == (HTTPStatus.OK, RESET)
    assert _offsets(node, name) == []
    node.delete(name)


def test_offsets_of_a_sink_change_at_once_although_its_tasks_are_static_members(
    node: ConnectNode, topics: Topics, tmp_path: Path
) -> None:
    topic, target, name = topics.make("offsets-out"), tmp_path / "out.txt", "offsets-out"
    topics.write(topic, [b"a", b"b", b"c"])
    node.create(name, {"connector.class": SINK, "file": str(target), "topics": topic})
    until(lambda: target.exists() and target.read_text() == "a\nb\nc\n", "all lines are there")
    _stop(node, name)
    partition = {"kafka_topic": topic, "kafka_partition": 0}
    assert _offsets(node, name) == [{"partition": partition, "offset": {"kafka_offset": 3}}]
    path = f"/connectors/{name}/offsets"
    one = {"offsets": [{"partition": partition, "offset": {"kafka_offset": 1}}]}
    assert _told(node.rest.patch(path, json=one)) == (HTTPStatus.OK, ALTERED)
    node.turn(name, "resume")
    until(lambda: target.read_text() == "a\nb\nc\nb\nc\n", "two lines are there again")
    _stop(node, name)
    assert _told(node.rest.delete(path)) == (HTTPStatus.OK, RESET)
    assert _offsets(node, name) == []
    node.delete(name)


def test_topics_in_use_are_kept_until_they_are_reset(node: ConnectNode, tmp_path: Path) -> None:
    source, name = tmp_path / "in.txt", "uses-topics"
    source.write_text(LINES)
    config = {"connector.class": "FileStreamSource", "file": str(source), "topic": "used"}
    node.create(name, {**config, **ONE_REPLICA})

    def used() -> list[str]:
        found: list[str] = node.rest.get(f"/connectors/{name}/topics").json()[name]["topics"]
        return found

    until(lambda: used() == ["used"], "the topic is known")
    _stop(node, name)
    assert used() == ["used"]
    answer = node.rest.put(f"/connectors/{name}/topics/reset")
    assert (answer.status_code, used()) == (HTTPStatus.ACCEPTED, [])
    node.delete(name)


def test_a_broker_that_is_away_is_told_in_time_and_nothing_changes(
    node: ConnectNode, broker: Broker, tmp_path: Path
) -> None:
    source, name = tmp_path / "in.txt", "offsets-away"
    source.write_text(LINES)
    config = {"connector.class": "FileStreamSource", "file": str(source), "topic": "offsets-away"}
    node.create(name, {**config, **ONE_REPLICA})
    until(lambda: _offsets(node, name), "lines are read")
    _stop(node, name)
    before = _offsets(node, name)
    with broker.hanging():
        begun = time.monotonic()
        status, told = _told(node.rest.delete(f"/connectors/{name}/offsets", timeout=90))
        assert time.monotonic() - begun < 60
    assert status == HTTPStatus.SERVICE_UNAVAILABLE
    assert told.startswith("Kafka does not answer: ")
    assert told.endswith("; nothing was changed")
    assert _offsets(node, name) == before
    node.delete(name)
