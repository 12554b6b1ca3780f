"""Topics that fairlead reads feed Kafka's own sink of files, by the plugin's converters."""
# pyright: basic

import json
from pathlib import Path

import pytest

from fairlead_tests.kafka.broker import Broker
from fairlead_tests.kafka.topics import Topics
from fairlead_tests.plugins.connect_node import ConnectNode, until

pytestmark = [
    pytest.mark.cluster,
    pytest.mark.spark,
    # Its sink needs Spark for its rows, as no connector of each run does on this node. Without a
    # node each run has its converters, its letters and its clean end: plugin_sinks/test_sink.py.
    pytest.mark.soak,
    pytest.mark.xdist_group("connect_tasks"),
]
JSON = "org.apache.kafka.connect.json.JsonConverter"


def test_records_are_converted_by_the_plugin_and_what_it_cannot_read_is_a_letter_once(
    node: ConnectNode, broker: Broker, topics: Topics, tmp_path: Path
) -> None:
    topics.make("fed", partitions=2)
    topics.make("fed-letters")
    for partition in range(2):
        values = [json.dumps({"n": each}) for each in range(partition, 600, 2)]
        topics.write("fed", values, partition=partition)
    topics.write("fed", ["no json"], partition=1)
    target = tmp_path / "out.txt"
    config = {
        "connector.class": "FileStreamSink",
        "file": str(target),
        "topics": "fed",
        "tasks.max": "2",
        "value.converter": JSON,
        "value.converter.schemas.enable": "false",
        "transforms": "only",
        "transforms.only.type": "org.apache.kafka.connect.transforms.ExtractField$Value",
        "transforms.only.field": "n",
        "errors.tolerance": "all",
        "errors.deadletterqueue.topic.name": "fed-letters",
        "errors.deadletterqueue.topic.replication.factor": "1",
        "errors.deadletterqueue.context.headers.enable": "true",
        "source.type": "kafka",
        "source.bootstrap.servers": broker.bootstrap,
    }

    def written() -> list[int]:
        return [int(each) for each in target.read_text().split()] if target.exists() else []

    node.create("fed", config, tasks=2)
    until(lambda: len(written()) >= 600, "all records are there")
    until(lambda: topics.values("fed-letters"), "the letter is there")
    node.turn("fed", "stop")
    until(lambda: node.status("fed")["connector"]["state"] == "STOPPED", "it has stopped")
    offsets = {
        each["partition"]["kafka_partition"]: each["offset"]["kafka_offset"]
        for each in node.rest.get("/connectors/fed/offsets").json()["offsets"]
    }
    assert offsets == {0: 300, 1: 301}
    topics.write("fed", [json.dumps({"n": 600})], partition=0)
    node.turn("fed", "resume")
    until(lambda: len(written()) >= 601, "the last record is there")
    assert sorted(written()) == [*range(601)], "a clean stop repeats nothing"
    (letter,) = topics.read("fed-letters")
    headers = {name: value.decode() for name, value in letter.headers()}
    assert letter.value() == b"no json"
    context = {
        "stage": "VALUE_CONVERTER",
        "class.name": JSON,
        "partition": "1",
        "offset": "300",
    }
    assert {key: headers[f"__connect.errors.{key}"] for key in context} == context
    del config["transforms"]
    config["value.converter"] = "org.apache.kafka.connect.storage.StringConverter"
    node.rest.put("/connectors/fed/config", json=config)
    assert node.rest.post("/connectors/fed/dead-letters/retry").status_code == 201
    until(lambda: "no json" in target.read_text(), "the letter is written as a text")
    node.delete("fed", "fed-retry")
