"""Settings of plugins' clients and topics: their keys do what they do in a real worker beside.

What a producer was set to is read from the broker's own files: each batch says how it is compressed
and whether it is part of a transaction.
"""
# pyright: basic

from pathlib import Path

import pytest
from confluent_kafka.admin import ConfigResource

from fairlead_tests.kafka.broker import Broker
from fairlead_tests.kafka.log_segments import compressions
from fairlead_tests.plugins.beside import FAILED, Beside, Side
from fairlead_tests.plugins.connect_node import ONE_REPLICA, until

pytestmark = [
    pytest.mark.cluster,
    pytest.mark.spark,
    pytest.mark.soak,
    pytest.mark.xdist_group("connect_tasks"),
]

KEYED = {
    "transforms": "struct,key",
    "transforms.struct.type": "org.apache.kafka.connect.transforms.HoistField$Value",
    "transforms.struct.field": "line",
    "transforms.key.type": "org.apache.kafka.connect.transforms.ValueToKey",
    "transforms.key.fields": "line",
}
"""What gives each line a key, without which no compacted topic takes it."""


def source(side: Side, name: str, **more: str) -> dict[str, str]:
    """Return the config of a source of two lines."""
    own = {"topic": side.own(name), "file": side.file(f"{name}.txt", "one", "two")}
    given = {key.replace("_", "."): each for key, each in more.items()}
    return {"connector.class": "FileStreamSource", **own, **ONE_REPLICA, **given}


def sink(side: Side, name: str, **more: str) -> dict[str, str]:
    """Return the config of a sink of the topic with the same name."""
    own = {"topics": side.own(name), "file": side.file(f"{name}.out")}
    given = {key.replace("_", "."): each for key, each in more.items()}
    return {"connector.class": "FileStreamSink", **own, **given}


def topic_as_made(side: Side, topic: str) -> tuple[int, str, str]:
    """Return the count of partitions, and two settings."""
    admin, own = side.topics.admin, side.own(topic)
    resource = ConfigResource(ConfigResource.Type.TOPIC, own)
    settings = admin.describe_configs([resource])[resource].result(60)
    partitions = len(admin.list_topics(own, timeout=60).topics[own].partitions)
    return partitions, settings["cleanup.policy"].value, settings["retention.ms"].value


def test_topics_are_created_as_their_group_says(beside: Beside) -> None:
    def act(side: Side) -> list[tuple[int, str, str]]:
        groups = {
            "topic_creation_groups": "small",
            "topic_creation_small_include": f"{side.own('grouped')}.*",
            "topic_creation_small_partitions": "3",
            "topic_creation_small_cleanup.policy": "compact",
            "topic_creation_default_retention.ms": "7200000",
        }
        made = []
        for name in ("grouped", "ungrouped"):
            with side.having(name, {**source(side, name, **groups), **KEYED}):
                side.read(name, 2)
                made.append(topic_as_made(side, name))
        return made

    grouped, ungrouped = beside.both(act)
    assert grouped == (3, "compact", grouped[2])
    assert ungrouped == (1, "delete", "7200000")


@pytest.mark.parametrize(
    ("given", "used"),
    [({}, "lz4"), ({"producer_override_compression_type": "gzip"}, "gzip")],
    ids=["of-the-worker", "of-the-connector"],
)
def test_a_producer_is_set_by_the_worker_and_by_its_connector(
    beside: Beside, broker: Broker, given: dict[str, str], used: str
) -> None:
    name = f"compressed-{used}"

    def act(side: Side) -> tuple[set[str], list[str]]:
        with side.having(name, source(side, name, **given)):
            values = side.values(name, 2)
        return compressions(broker.data, side.own(name)), values

    assert beside.both(act) == ({used}, ["one", "two"])


def test_the_consumer_is_set_by_the_worker_what_was_aborted_is_not_read(beside: Beside) -> None:
    def act(side: Side) -> list[str]:
        topic = side.topics.make(side.own("committed"))
        side.topics.write_transaction(topic, ["never"], commits=False)
        side.topics.write_transaction(topic, ["once"])
        with side.having("committed", sink(side, "committed")):
            return side.lines("committed.out", 1)

    assert beside.both(act) == ["once"]


def test_the_consumer_of_a_connector_has_its_own_group_and_first_offset(beside: Beside) -> None:
    def act(side: Side) -> tuple[list[str], bool, bool]:
        topic = side.topics.make(side.own("latest"))
        side.topics.write(topic, ["before"])
        group = side.own("chosen-group")
        config = sink(
            side,
            "latest",
            consumer_override_auto_offset_reset="latest",
            consumer_override_group_id=group,
        )
        with side.having("latest", config):

            def reads_a_new_line() -> bool:
                side.topics.write(topic, ["after"])
                return bool(Path(config["file"]).read_text())

            # What is written before the consumer has looked for the end is not read, either.
            until(reads_a_new_line, "a line is read")
            groups = side.topics.groups()
        lines = set(side.lines("latest.out", 1))
        return sorted(lines), group in groups, f"connect-{side.own('latest')}" in groups

    assert beside.both(act) == (["after"], True, False)


def test_the_admin_client_of_a_connector_goes_where_its_config_says(beside: Beside) -> None:
    def act(side: Side) -> str:
        side.topics.make(side.own("nowhere"))
        config = sink(
            side,
            "nowhere",
            errors_tolerance="all",
            errors_deadletterqueue_topic_name=side.own("nowhere-dead"),
            admin_override_bootstrap_servers="127.0.0.1:1",
            admin_override_default_api_timeout_ms="2000",
            admin_override_request_timeout_ms="1000",
        )
        with side.having("nowhere", config, [FAILED]):
            return side.trace("nowhere")

    trace = beside.both(act)
    assert "Could not initialize dead letter queue with topic=nowhere-dead" in trace
