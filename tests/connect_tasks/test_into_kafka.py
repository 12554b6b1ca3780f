"""Sources of Connect's whose records fairlead's sink writes to Kafka, as Connect writes them."""
# pyright: basic

import random
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer

from connect_tasks.test_beside_records import CHAIN, JSON
from fairlead_tests.kafka.broker import Broker
from fairlead_tests.kafka.topics import Topics
from fairlead_tests.plugins.connect_node import STRING, ConnectNode, until
from fairlead_tests.plugins.mirror import copied, mirroring
from fairlead_tests.soaks import thinned

pytestmark = [pytest.mark.cluster, pytest.mark.spark, pytest.mark.xdist_group("connect_tasks")]

SEED = 14
THREE = {
    "topic.creation.default.partitions": "3",
    "topic.creation.default.replication.factor": "1",
}
CONVERTERS = {
    "String": {"value.converter": STRING},
    "Json with schemas": {
        "key.converter": JSON,
        "value.converter": JSON,
        "header.converter": JSON,
        "header.converter.schemas.enable": "true",
    },
}


def into(broker: Broker, **more: str) -> dict[str, str]:
    return {"sink.type": "kafka", "sink.bootstrap.servers": broker.bootstrap, **more}


def found_in(topics: Topics, topic: str) -> list[tuple[Any, ...]]:
    """Return partition, key, value and headers of each record; none before there is a topic."""
    if topic not in topics.admin.list_topics(timeout=60).topics:
        return []
    found = [
        (each.partition(), each.key(), each.value(), each.headers()) for each in topics.read(topic)
    ]
    return sorted(found, key=lambda each: each[0])


@pytest.mark.parametrize(
    "converters",
    [
        pytest.param(CONVERTERS["String"], id="String", marks=pytest.mark.soak),
        pytest.param(CONVERTERS["Json with schemas"], id="Json with schemas"),
    ],
)
def test_keys_values_headers_and_partitions_are_those_that_connect_writes(
    node: ConnectNode, broker: Broker, topics: Topics, tmp_path: Path, converters: dict[str, str]
) -> None:
    lines = tmp_path / "lines"
    lines.write_text("".join(f"line {each}\n" for each in range(30)))
    name = f"bytes-{len(converters)}"
    config = {
        "connector.class": "FileStreamSource",
        "file": str(lines),
        **CHAIN,
        **THREE,
        **converters,
    }
    node.create(f"{name}-connect", {**config, "topic": f"{name}-connect-in"})
    node.create(f"{name}-here", {**config, "topic": f"{name}-here-in", **into(broker)})
    until(lambda: len(found_in(topics, f"{name}-connect-out")) == 30, "Connect has written")
    until(lambda: len(found_in(topics, f"{name}-here-out")) == 30, "fairlead has written")
    ours, connects = (found_in(topics, f"{name}-{each}-out") for each in ("here", "connect"))
    assert ours == connects
    assert {partition for partition, *_ in ours} == {0, 1, 2}
    node.delete(f"{name}-connect", f"{name}-here")


def test_sink_topic_is_the_topic_of_all_records_and_is_created(
    node: ConnectNode, broker: Broker, topics: Topics, tmp_path: Path
) -> None:
    (tmp_path / "lines").write_text("a\nb\n")
    config = {"connector.class": "FileStreamSource", "file": str(tmp_path / "lines"), **THREE}
    node.create("routed", {**config, "topic": "away", **into(broker, **{"sink.topic": "routed"})})
    until(lambda: len(found_in(topics, "routed")) == 2, "they are there")
    known = topics.admin.list_topics(timeout=60).topics
    assert (len(known["routed"].partitions), "away" in known) == (3, False)
    node.delete("routed")


SECRET = 'a "quoted" \\ secret'


@pytest.mark.parametrize("way", thinned(["a user over TLS", "a certificate"], 2))
def test_topics_are_created_by_whom_the_sinks_keys_name(
    node: ConnectNode, broker: Broker, topics: Topics, tmp_path: Path, way: str
) -> None:
    if way == "a certificate":
        client = str(broker.authority.sign("client"))
        trust = broker.authority.path.read_text()
        given = {
            "security.protocol": "SSL",
            "ssl.truststore.certificates": trust,
            "ssl.keystore.location": client,
        }
    else:
        broker.let_in("mirror", SECRET)
        given = {
            "security.protocol": "SASL_SSL",
            "sasl.mechanism": "SCRAM-SHA-512",
            "sasl.username": "mirror",
            "sasl.password": SECRET,
            "ssl.truststore.location": str(broker.authority.truststore("open sesame")),
            "ssl.truststore.password": "open sesame",
        }
    servers = broker.mutual if way == "a certificate" else broker.encrypted
    sink = {f"sink.{key}": value for key, value in given.items()}
    name = way.replace(" ", "-")
    (tmp_path / "lines").write_text("a\nb\n")
    config = {"connector.class": "FileStreamSource", "file": str(tmp_path / "lines"), **THREE}
    sink |= {"sink.type": "kafka", "sink.bootstrap.servers": servers}
    node.create(name, {**config, "topic": name, **sink})
    until(lambda: len(found_in(topics, name)) == 2, "they are there")
    node.delete(name)


# It would be the only one of each run for which this node starts a Spark. Each run has what queries
# make, and keys of columns by these converters: postgres/test_pipeline.py, kafka/test_sink.py.
@pytest.mark.soak
def test_what_a_transform_of_fairleads_makes_is_written_by_the_sinks_own_converters(
    node: ConnectNode, broker: Broker, topics: Topics, tmp_path: Path
) -> None:
    topics.make("made")
    (tmp_path / "lines").write_text("one\nthree\n")
    query = "SELECT _value AS word, length(_value) AS size FROM input"
    config = {
        "connector.class": "FileStreamSource",
        "file": str(tmp_path / "lines"),
        "topic": "unused",
        "transforms": "own",
        "transforms.own.type": "sql",
        "transforms.own.query": query,
        **into(broker, **{"sink.topic": "made", "sink.key.columns": "word"}),
    }
    node.create("made", config)
    until(lambda: len(found_in(topics, "made")) == 2, "they are there")
    found = [(key, value) for _, key, value, _ in found_in(topics, "made")]
    assert found == [
        (b"one", b'{"word":"one","size":3}'),
        (b"three", b'{"word":"three","size":5}'),
    ]
    node.delete("made")


def write_at_random(topics: Topics, topic: str, dice: random.Random, count: int) -> None:
    """Write records of all kinds: without a key, a value or headers, and with their own times."""
    producer = Producer({"bootstrap.servers": topics.bootstrap, "enable.idempotence": True})
    for _ in range(count):
        key = dice.choice([None, b"", dice.randbytes(4)])
        value = dice.choice([None, b"", dice.randbytes(30)])
        headers: list[Any] = dice.choice([[], [("h", b"")], [("h", b"1"), ("h", None)]])
        producer.produce(
            topic,
            value,
            key,
            partition=dice.randrange(3),
            timestamp=1_700_000_000_000 + dice.randrange(1000),
            headers=headers,
        )
    producer.flush()


@pytest.mark.soak  # each run kills hosts under sources: plugin_sources/test_source.py
def test_mirror_source_has_each_record_in_its_partition_once_over_deaths(
    node: ConnectNode, broker: Broker, topics: Topics
) -> None:
    topics.make("seas", partitions=3, cleanup_policy="delete")
    dice = random.Random(SEED)
    write_at_random(topics, "seas", dice, 300)
    node.create("mirror", {**mirroring(topics.bootstrap, "seas"), **into(broker)}, tasks=2)
    until(lambda: len(copied(topics, "there.seas")) >= 100, "some are there")
    for host in node.hosts():
        host.kill()
    write_at_random(topics, "seas", dice, 300)
    until(lambda: len(copied(topics, "there.seas")) >= 400, "more are there")
    held = node.status("mirror")["tasks"][dice.randrange(2)]["worker_id"].rpartition("/")[2]
    node.worker(held).kill()
    write_at_random(topics, "seas", dice, 300)
    until(lambda: len(copied(topics, "there.seas")) >= 900, "all are there")
    assert copied(topics, "there.seas") == copied(topics, "seas")
    node.delete("mirror")
