# pyright: basic
"""The registry of the other tests of Avro is a small one; here it is Apicurio's, a real one."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pyarrow as pa
import pytest

from fairlead.events.model import Resource
from fairlead.runtime.pipeline.engines.embedded.engine import Embedded
from fairlead.runtime.pipeline.spi.errors import SchemaRefused, SinkAway
from fairlead.runtime.pipeline.stores.kafka.avro.registry import SchemaRegistry
from fairlead.runtime.pipeline.stores.kafka.registry_keys import RegistryAccess
from fairlead_tests.connectors.pipes import sink_of
from fairlead_tests.connectors.publish_once import FIRST, SinkLog
from fairlead_tests.java_peer import NoPeer
from fairlead_tests.kafka.broker import free_ports
from fairlead_tests.kafka.pipes import Reading, sink_config, source_config
from fairlead_tests.kafka.schema_registry import apicurio
from fairlead_tests.kafka.topics import Topics

pytestmark = [pytest.mark.soak, pytest.mark.spark]


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    try:
        with apicurio(tmp_path_factory.mktemp("apicurio"), *free_ports(2)) as url:
            rule = httpx.put(f"{url}/config", json={"compatibility": "BACKWARD"})
            assert rule.is_success
            yield url
    except NoPeer as reason:
        pytest.skip(f"Apicurio's registry cannot be had: {reason}")


def test_rows_go_through_a_real_registry_which_refuses_what_does_not_go_with_them(
    url: str, engine: Embedded, topics: Topics, topic: str, tmp_path: Path
) -> None:
    avro = {"value_converter": "avro", "value_converter_schema_registry_url": url}
    log = SinkLog(Resource(topic, 0))
    sink = sink_of(sink_config(topics.bootstrap, tmp_path, topic=topic, **avro), log.task)
    log.acquire(sink, FIRST)
    rows = pa.table({"n": [1, 2], "name": ["a", None]})
    log.write(sink, rows)
    more = pa.table({"n": [3], "name": ["c"], "x": [0.5]})
    log.write(sink, more)
    with pytest.raises(SchemaRefused, match=r"refuses the schema: 409 .*[Ii]ncompatible"):
        sink.prepare(pa.schema([("n", pa.string())]))
    sink.close()
    config = source_config(topics.bootstrap, topics=topic, metadata_columns="offset", **avro)
    reading = Reading(config)
    plan = reading.plan()

    def job(spark: Any) -> Any:
        return reading.take(plan, spark).to_pylist()

    assert engine.run("test", job) == [
        {"n": 1, "name": "a", "x": None, "_offset": 0},
        {"n": 2, "name": None, "x": None, "_offset": 1},
        {"n": 3, "name": "c", "x": 0.5, "_offset": 3},
    ]
    reading.source.close()


def test_what_a_real_registry_has_not_is_not_there(url: str) -> None:
    registry = SchemaRegistry(RegistryAccess("key", (url,), ""), SinkAway)
    assert registry.schema(999_999) is None
    assert registry.latest("nobody-value") is None
    with pytest.raises(SchemaRefused, match="422"):
        registry.register("text-value", {"type": "nothing"})
