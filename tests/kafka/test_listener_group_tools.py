"""Kafka's tools set and tell the settings of our groups, and manage connect groups."""
# pyright: basic

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from fairlead_tests.kafka.broker import Broker
from fairlead_tests.kafka.topics import Topics
from fairlead_tests.kafka_clients.connect import until
from fairlead_tests.kafka_clients.jars import Tools, tools
from fairlead_tests.kafka_listener.example_member import Example
from fairlead_tests.kafka_listener.node import ListenerNode

pytestmark = pytest.mark.usefixtures("jars")

GROUPS = ("--entity-type", "groups")
SESSION = "consumer.session.timeout.ms"


def told(run: Tools, *words: str) -> list[str]:
    """Return what the tool says of the settings of groups, without where it says so in its code."""
    lines = [" ".join(each) for each in run.configs(*GROUPS, *words)]
    return [each for each in lines if not each.startswith(("at ", "SLF4J", "Error while"))]


def dynamic(group: str, **configs: str) -> list[str]:
    """Return what the tool says of the settings that a group has of its own."""
    named = {key.replace("_", "."): value for key, value in sorted(configs.items())}
    return [
        f"Dynamic configs for group {group} are:",
        *(
            f"{key}={value} sensitive=false synonyms={{DYNAMIC_GROUP_CONFIG:{key}={value}}}"
            for key, value in named.items()
        ),
    ]


def fairlead(node: ListenerNode, *words: str) -> str:
    """Return the output of a command for the node."""
    command = [sys.executable, "-m", "fairlead.runtime", *words, "--data-dir", str(node.folder)]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


@pytest.fixture(scope="module")
def run(
    node: ListenerNode, broker: Broker, jars: None, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Tools]:
    """Kafka's tools for the listener, in one process."""
    del jars
    with tools(tmp_path_factory.mktemp("tools"), node.bootstrap, broker.classpath) as run:
        yield run


@pytest.mark.soak  # each run has such calls: kafka_listener/test_group_configs.py
def test_kafka_configs_sets_and_tells_the_settings_of_any_group(
    node: ListenerNode, run: Tools, topics: Topics
) -> None:
    for group, *configs in (
        ("configured", f"{SESSION}=60000,consumer.heartbeat.interval.ms=6000"),
        ("connect", "session.timeout.ms=20000"),
    ):
        assert told(run, "--alter", "--entity-name", group, "--add-config", *configs) == [
            f"Completed updating config for group {group}."
        ]
    both = {"consumer_session_timeout_ms": "60000", "consumer_heartbeat_interval_ms": "6000"}
    own = dynamic("connect", session_timeout_ms="20000")
    assert told(run, "--describe", "--entity-name", "configured") == dynamic("configured", **both)
    assert told(run, "--describe", "--entity-name", "connect") == own
    node.kill("fairlead: shard")
    assert set(told(run, "--describe")) >= {*dynamic("configured", **both), *own}
    refused = told(run, "--alter", "--entity-name", "configured", "--add-config", f"{SESSION}=1000")
    assert refused[-1].endswith(
        f"InvalidConfigurationException: {SESSION} = '1000': allowed is a whole number of"
        " milliseconds, from 45000 to 60000; nothing was changed"
    )
    for group, key in (
        ("configured", "consumer.heartbeat.interval.ms"),
        ("connect", "session.timeout.ms"),
    ):
        told(run, "--alter", "--entity-name", group, "--delete-config", key)
    left = dynamic("configured", consumer_session_timeout_ms="60000")
    assert told(run, "--describe", "--entity-name", "configured") == left
    by_rest = ("--group", "configured", "consumer.assignment.interval.ms=0", "-o", "json")
    assert json.loads(fairlead(node, "group-config", *by_rest)) == {
        SESSION: "60000",
        "consumer.assignment.interval.ms": "0",
    }
    assert told(run, "--describe", "--entity-name", "configured") == dynamic(
        "configured",
        consumer_session_timeout_ms="60000",
        consumer_assignment_interval_ms="0",
    )
    named = ("--entity-type", "topics", "--entity-name", topics.make("listener.configs"))
    run.configs(*named, "--alter", "--add-config", "retention.ms=1000000")
    said = " ".join(map(" ".join, run.configs(*named, "--describe")))
    assert "retention.ms=1000000" in said, "those of topics are the broker's"


@pytest.mark.soak  # each run has such calls, as recorded: conformance/test_listener_wire.py
def test_kafkas_tools_list_a_connect_group_and_delete_it_once_it_is_empty(
    node: ListenerNode, run: Tools, tmp_path: Path
) -> None:
    name = "crew.of.tools"
    listed = [name, "Unknown", "connect"]
    member = Example(node.port, tmp_path / "member", name)
    try:
        until(lambda: listed in run.groups("--list"), "it is listed")
        what = ("--group", name)
        said = " ".join(map(" ".join, run.consumer_groups("--describe", *what)))
        assert f"GroupId {name} is not a consumer group (connect)" in said, "as at a broker"
        said = " ".join(map(" ".join, run.consumer_groups("--delete", *what)))
        assert "GroupNotEmptyException: The group is not empty." in said
    finally:
        member.leaves()
    said = " ".join(map(" ".join, run.consumer_groups("--delete", "--group", name)))
    assert said == f"Deletion of requested consumer groups ('{name}') was successful."
    assert listed not in run.groups("--list")
