# pyright: basic
"""Tasks of sinks that end for good leave their consumer group, in which they are static members."""

from pathlib import Path
from typing import Any

import pytest

from fairlead_tests.kafka.broker import Broker
from fairlead_tests.kafka.topics import Topics
from fairlead_tests.plugins.connect_node import ConnectNode, until

pytestmark = [pytest.mark.cluster, pytest.mark.spark, pytest.mark.xdist_group("connect_tasks")]
SINK = "org.apache.kafka.connect.file.FileStreamSinkConnector"
PARTITIONS = 4
LONG = {"consumer.override.session.timeout.ms": "900000"}
"""A session that no test waits for."""
BY_BROKER = {"consumer.override.group.protocol": "consumer"}
"""Sessions are the broker's then: 45 seconds."""
SOON_S = 30.0


def _members(topics: Topics, name: str) -> set[str]:
    asked: Any = topics.admin.describe_consumer_groups([f"connect-{name}"])
    (found,) = asked.values()
    return {each.group_instance_id for each in found.result().members}


@pytest.mark.parametrize(
    "protocol",
    [
        pytest.param(LONG, id="classic"),
        pytest.param(BY_BROKER, id="consumer", marks=pytest.mark.soak),
    ],
)
def test_fewer_tasks_have_all_partitions_at_once(
    node: ConnectNode, topics: Topics, tmp_path: Path, protocol: dict[str, str]
) -> None:
    target, name = tmp_path / "out.txt", f"fewer-{len(protocol[next(iter(protocol))])}"
    topic = topics.make(name, PARTITIONS)

    def come(word: str) -> None:
        lines = {f"{word}-{each}" for each in range(PARTITIONS)}
        for each in range(PARTITIONS):
            topics.write(topic, [f"{word}-{each}".encode()], partition=each)
        has = lambda: target.exists() and lines <= {*target.read_text().split()}  # noqa: E731
        until(has, f"the lines of all partitions are there: {word}", SOON_S)

    config = {"connector.class": SINK, "file": str(target), "topics": topic, **protocol}
    node.create(name, {**config, "tasks.max": "3"}, 3)
    come("three")
    node.create(name, {**config, "tasks.max": "1"}, 1)
    come("one")
    node.delete(name)


def test_a_sink_that_is_stopped_or_deleted_leaves_nobody_in_its_group(
    node: ConnectNode, topics: Topics, tmp_path: Path
) -> None:
    name = "leaves"
    topic = topics.make(name, 2)
    file = str(tmp_path / "out.txt")
    config = {"connector.class": SINK, "file": file, "topics": topic, "tasks.max": "2", **LONG}
    both = {f"{name}-0", f"{name}-1"}
    node.create(name, config, 2)
    until(lambda: _members(topics, name) == both, "both are members")
    node.turn(name, "stop")
    until(lambda: _members(topics, name) == set(), "both have left")
    node.turn(name, "resume")
    until(lambda: _members(topics, name) == both, "both are members again")
    assert node.rest.put("/workers/w1/drain").is_success
    node.runs(name, 2)
    assert _members(topics, name) == both, "a task that moves stays a member"
    until(lambda: node.rest.put("/workers/w1/uncordon").is_success, "w1 is free")
    node.delete(name)
    until(lambda: _members(topics, name) == set(), "both have left")


def test_a_sink_that_stays_failed_leaves_its_partitions_to_others(
    node: ConnectNode, topics: Topics, tmp_path: Path
) -> None:
    topic, name = topics.make("poisoned"), "poisoned"
    config = {
        "connector.class": SINK,
        "file": str(tmp_path / "out.txt"),
        "topics": topic,
        "value.converter": "org.apache.kafka.connect.json.JsonConverter",
        "task.restart.budget": "1",
        "task.restart.backoff.initial.ms": "100",
        **LONG,
    }
    node.create(name, config)
    until(lambda: _members(topics, name) == {f"{name}-0"}, "it is a member")
    topics.write(topic, [b"no JSON"])
    until(lambda: node.status(name)["tasks"][0]["state"] == "FAILED", "it has failed")
    until(lambda: _members(topics, name) == set(), "it has left")
    node.delete(name)


def test_a_name_that_the_user_has_given_to_a_member_stays_in_its_group(
    node: ConnectNode, topics: Topics, tmp_path: Path
) -> None:
    name = "named"
    topic = topics.make(name)
    named = {"consumer.override.group.instance.id": "mine"}
    config = {"connector.class": SINK, "file": str(tmp_path / "out.txt"), "topics": topic}
    node.create(name, {**config, **named, **LONG})
    until(lambda: _members(topics, name) == {"mine"}, "it is a member")
    node.delete(name)
    assert _members(topics, name) == {"mine"}


def test_a_broker_that_is_away_does_not_hold_up_a_deletion(
    node: ConnectNode, topics: Topics, broker: Broker, tmp_path: Path
) -> None:
    name = "leaves-later"
    topic = topics.make(name)
    config = {"connector.class": SINK, "file": str(tmp_path / "out.txt"), "topics": topic}
    node.create(name, config)
    until(lambda: _members(topics, name) == {f"{name}-0"}, "it is a member")
    with broker.hanging():
        node.delete(name)
