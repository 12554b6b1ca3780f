# pyright: basic
"""Keys and values written in Avro, by schemas of a registry (the small one of the tests)."""

import io
import json
from collections.abc import Iterator
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from fastavro import parse_schema, schemaless_reader

from fairlead.events.model import Resource
from fairlead.runtime.pipeline.spi.config import ConfigInvalid
from fairlead.runtime.pipeline.spi.errors import RowsRefused, SchemaRefused, SinkAway
from fairlead.runtime.pipeline.spi.sink import Sink
from fairlead_tests.connectors.pipes import sink_of
from fairlead_tests.connectors.publish_once import FIRST, SinkLog
from fairlead_tests.kafka.pipes import sink_config
from fairlead_tests.kafka.schema_registry import SchemaRegistryServer
from fairlead_tests.kafka.topics import Topics

AT = datetime(2024, 2, 29, 12, 0, 0, 123_456, tzinfo=UTC)


@pytest.fixture
def log(topic: str) -> SinkLog:
    return SinkLog(Resource(topic, 0))


@pytest.fixture
def registry() -> Iterator[SchemaRegistryServer]:
    registry = SchemaRegistryServer()
    yield registry
    registry.down()


@pytest.fixture
def sink(topics: Topics, tmp_path: Path, log: SinkLog, registry: SchemaRegistryServer) -> Any:
    """Make a sink that writes values in Avro, as a config says."""
    made: list[Sink[Any]] = []

    def sink(**given: str) -> Sink[Any]:
        url = {"value_converter_schema_registry_url": registry.url}
        settings = {"value_converter": "avro", **url, **given}
        made.append(sink_of(sink_config(topics.bootstrap, tmp_path, **settings), log.task))
        log.acquire(made[-1], FIRST)
        return made[-1]

    yield sink
    for each in made:
        each.close()


def plain(registry: SchemaRegistryServer, record: bytes) -> Any:
    """Return what a record says by the schema that it names."""
    _, told = registry.answer("GET", f"/schemas/ids/{int.from_bytes(record[1:5])}", None)
    assert record[0] == 0
    return schemaless_reader(io.BytesIO(record[5:]), parse_schema(json.loads(told["schema"])), None)


def test_rows_become_records_of_a_schema_that_is_registered(
    topics: Topics, topic: str, sink: Any, log: SinkLog, registry: SchemaRegistryServer
) -> None:
    inner = pa.struct([("at", pa.timestamp("us", "UTC")), ("x", pa.int16())])
    rows = pa.table(
        {
            "n": pa.array([2**40, None], pa.int64()),
            "at": pa.array([AT, None], pa.timestamp("us", "UTC")),
            "day": pa.array([AT.date(), None], pa.date32()),
            "amount": pa.array([Decimal("-1.25"), None], pa.decimal128(38, 2)),
            "tags": pa.array([[("a", None)], None], pa.map_(pa.string(), pa.float64())),
            "parts": pa.array([[{"at": AT, "x": 1}, None], None], pa.list_(inner)),
            "_key": pa.array([{"id": 1}, {"id": 2}], pa.struct([("id", pa.int32())])),
        }
    )
    keyed = {"key_converter": "avro", "key_converter_schema_registry_url": registry.url}
    log.write(sink(topic=topic, **keyed), rows)
    first, second = topics.read(topic)
    wanted = rows.drop_columns(["_key"]).slice(0, 1).to_pylist(maps_as_pydicts="strict")
    assert plain(registry, first.value()) == wanted[0]
    assert [plain(registry, each.key()) for each in (first, second)] == [{"id": 1}, {"id": 2}]
    assert second.value() is None
    made = json.loads(registry.subjects[f"{topic}-value"][0]["schema"])
    assert (made["namespace"], made["name"]) == ("io.confluent.connect.avro", "ConnectDefault")
    assert set(registry.subjects) == {f"{topic}-value", f"{topic}-key"}


def test_a_subject_keeps_its_records_name_and_each_topic_has_its_own(
    topics: Topics, topic: str, sink: Any, log: SinkLog, registry: SchemaRegistryServer
) -> None:
    other = topics.make(f"{topic}.other")
    known = {"type": "record", "name": "acme.Order", "fields": []}
    registry.add(f"{topic}-value", known)
    log.write(sink(topic_column="to"), pa.table({"n": [1, 2, 3], "to": [topic, other, topic]}))
    found = sorted(topics.read(topic, other), key=lambda each: (each.topic(), each.offset()))
    assert [plain(registry, each.value())["n"] for each in found] == [1, 3, 2]
    names = [
        json.loads(registry.subjects[f"{each}-value"][-1]["schema"])["name"]
        for each in (topic, other)
    ]
    assert names == ["Order", "ConnectDefault"]


def test_without_registering_rows_are_written_by_the_latest_schema_or_refused(
    topics: Topics, topic: str, sink: Any, log: SinkLog, registry: SchemaRegistryServer
) -> None:
    latest = {"topic": topic, "value_converter_auto_register_schemas": "false"}
    fields = pa.schema([("n", pa.int64()), ("at", pa.timestamp("us", "UTC"))])
    with pytest.raises(SchemaRefused, match=f"has no subject {topic}-value: register"):
        sink(**latest).prepare(fields)
    millis = {"type": "long", "logicalType": "timestamp-millis"}
    known = [
        {"name": "at", "type": millis},
        {"name": "n", "type": "int"},
        {"name": "by", "type": "string", "default": "me"},
    ]
    registry.add(f"{topic}-value", {"type": "record", "name": "R", "fields": known})
    made = sink(**latest)
    made.prepare(fields)
    with pytest.raises(SchemaRefused, match=r"topic .*: the subject's schema has no field more"):
        made.prepare(fields.append(pa.field("more", pa.string())))
    with pytest.raises(SchemaRefused, match="there is no column at, which the subject's schema"):
        made.prepare(pa.schema([("n", pa.int64())]))
    with pytest.raises(SchemaRefused, match=r"column n is list.*wants int32"):
        made.prepare(pa.schema([("n", pa.list_(pa.int64())), fields.field(1)]))
    at = AT.replace(microsecond=123_000)
    for n, wrong in ((2**40, at), (1, None), (1, AT)):
        with pytest.raises(RowsRefused):
            log.write(made, pa.table({"n": [n], "at": [wrong]}, fields))
    log.write(made, pa.table({"n": [1], "at": [at]}, fields))
    (record,) = topics.read(topic)
    assert plain(registry, record.value()) == {"n": 1, "at": at, "by": "me"}


def test_what_a_registry_refuses_is_told_in_its_words_and_one_that_is_away_is_waited_for(
    topic: str, sink: Any, registry: SchemaRegistryServer
) -> None:
    fields = pa.schema([("n", pa.int64())])
    registry.refusals[f"{topic}-value"] = "Schema being registered is incompatible: n"
    made = sink(topic=topic)
    with pytest.raises(SchemaRefused, match="409 Schema being registered is incompatible: n"):
        made.prepare(fields)
    with pytest.raises(SchemaRefused, match="Avro has no name for column 'a b': rename it"):
        made.prepare(pa.schema([("a b", pa.int64())]))
    registry.add(
        f"{topic}-value",
        {"type": "record", "name": "R", "fields": [{"name": "n", "type": ["int", "string"]}]},
    )
    by_latest = sink(topic=topic, value_converter_auto_register_schemas="false")
    with pytest.raises(SchemaRefused, match="the subject's schema has a union of several types"):
        by_latest.prepare(fields)
    registry.user_info = "writer:open sesame"
    with pytest.raises(ConfigInvalid, match=r"basic\.auth\.user\.info: .* 401 Unauthorized"):
        made.prepare(fields)
    registry.down()
    with pytest.raises(SinkAway, match="the schema registry at http://127"):
        made.prepare(fields)
