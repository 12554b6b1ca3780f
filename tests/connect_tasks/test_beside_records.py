"""Transformations, predicates and header converters, in a real worker of Connect and in a node.

The same config is given to both, and the bytes of keys, values and headers are compared.
"""
# pyright: basic

from typing import Any

import pytest

from fairlead_tests.plugins.beside import Beside, Side
from fairlead_tests.plugins.connect_node import ONE_REPLICA

pytestmark = [
    pytest.mark.cluster,
    pytest.mark.spark,
    pytest.mark.soak,
    pytest.mark.xdist_group("connect_tasks"),
]

OWN = "org.apache.kafka.connect.transforms"
JSON = "org.apache.kafka.connect.json.JsonConverter"
CHAIN = {
    "transforms": "struct,stamp,key,plain,count,mark,route",
    "transforms.struct.type": f"{OWN}.HoistField$Value",
    "transforms.struct.field": "line",
    "transforms.stamp.type": f"{OWN}.InsertField$Value",
    "transforms.stamp.static.field": "from",
    "transforms.stamp.static.value": "a file",
    "transforms.key.type": f"{OWN}.ValueToKey",
    "transforms.key.fields": "line",
    "transforms.plain.type": f"{OWN}.ExtractField$Key",
    "transforms.plain.field": "line",
    "transforms.count.type": f"{OWN}.InsertHeader",
    "transforms.count.header": "count",
    "transforms.count.value.literal": "17",
    "transforms.mark.type": f"{OWN}.InsertHeader",
    "transforms.mark.header": "mark",
    "transforms.mark.value.literal": '{"a": [1, 2]}',
    "transforms.route.type": f"{OWN}.RegexRouter",
    "transforms.route.regex": "(.*)-in",
    "transforms.route.replacement": "$1-out",
    "value.converter": JSON,
}
HEADER_CONVERTERS = {
    "that of the worker": {},
    "Json": {"header.converter": JSON, "header.converter.schemas.enable": "true"},
    "String": {"header.converter": "org.apache.kafka.connect.storage.StringConverter"},
}


@pytest.mark.parametrize("converter", HEADER_CONVERTERS.values(), ids=HEADER_CONVERTERS)
def test_a_chain_makes_the_same_keys_values_and_headers(
    beside: Beside, converter: dict[str, str]
) -> None:
    name = f"chain-{len(converter)}"

    def act(side: Side) -> list[tuple[Any, ...]]:
        config = {
            "connector.class": "FileStreamSource",
            "file": side.file(f"{name}.txt", "one", "two"),
            "topic": side.own(f"{name}-in"),
            **CHAIN,
            **converter,
            **ONE_REPLICA,
        }
        with side.having(name, config):
            found = side.read(f"{name}-out", 2)
        return [(each.key(), each.value(), each.headers()) for each in found]

    first, second = beside.both(act)
    assert (first[0], second[0]) == (b"one", b"two")
    assert b'"payload":{"line":"one","from":"a file"}' in first[1]
    assert [name for name, _ in first[2]] == ["count", "mark"]
    counted = dict(first[2])["count"]
    assert counted.endswith(b'"payload":17}' if JSON in converter.values() else b"17")


def test_predicates_choose_the_records_of_a_chain(beside: Beside) -> None:
    def act(side: Side) -> list[str]:
        topics = [side.topics.make(side.own(each)) for each in ("chosen-a", "chosen-b")]
        side.topics.write(topics[0], ["kept"])
        side.topics.write(topics[0], ["passed over"], headers={"skip": b"1"})
        side.topics.write(topics[0], [None])
        side.topics.write(topics[1], ["of b"])
        config = {
            "connector.class": "FileStreamSink",
            "topics": ",".join(topics),
            "file": side.file("chosen"),
            "transforms": "without,empty,wrap",
            "transforms.without.type": f"{OWN}.Filter",
            "transforms.without.predicate": "skipped",
            "transforms.empty.type": f"{OWN}.Filter",
            "transforms.empty.predicate": "tombstone",
            "transforms.wrap.type": f"{OWN}.HoistField$Value",
            "transforms.wrap.field": "other",
            "transforms.wrap.predicate": "of-a",
            "transforms.wrap.negate": "true",
            "predicates": "skipped,tombstone,of-a",
            "predicates.skipped.type": f"{OWN}.predicates.HasHeaderKey",
            "predicates.skipped.name": "skip",
            "predicates.tombstone.type": f"{OWN}.predicates.RecordIsTombstone",
            "predicates.of-a.type": f"{OWN}.predicates.TopicNameMatches",
            "predicates.of-a.pattern": ".*-a",
        }
        with side.having("chosen", config):
            return sorted(side.lines("chosen", 2))

    assert beside.both(act) == ["Struct{other=of b}", "kept"]


def test_headers_of_a_topic_are_read_by_the_header_converter_of_the_sink(beside: Beside) -> None:
    def act(side: Side) -> list[str]:
        topic = side.topics.make(side.own("read"))
        side.topics.write(topic, ["bad"], headers={"h": b"no JSON"})
        side.topics.write(topic, ["good"], headers={"h": b"1"})
        config = {
            "connector.class": "FileStreamSink",
            "topics": topic,
            "file": side.file("read"),
            "header.converter": JSON,
            "header.converter.schemas.enable": "false",
            "errors.tolerance": "all",
            "errors.deadletterqueue.topic.name": side.own("read-dead"),
            "errors.deadletterqueue.topic.replication.factor": "1",
        }
        with side.having("read", config):
            letters = side.values("read-dead", 1)
            return [*side.lines("read", 1), *letters]

    assert beside.both(act) == ["good", "bad"]
