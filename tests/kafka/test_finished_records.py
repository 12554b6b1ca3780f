"""Records that a plugin of Kafka Connect's has made are written as they are."""
# pyright: basic

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from fairlead.events.model import Resource
from fairlead.runtime.pipeline.spi.errors import RowsRefused, SinkAway
from fairlead.runtime.pipeline.spi.keys.plugin_source import RECORDS
from fairlead.runtime.pipeline.stores.kafka.sink.encoding import RECORD
from fairlead_tests.connectors.pipes import sink_of
from fairlead_tests.connectors.publish_once import FIRST, SinkLog
from fairlead_tests.kafka.pipes import sink_config
from fairlead_tests.kafka.topics import Topics


@pytest.fixture
def log(topic: str) -> SinkLog:
    return SinkLog(Resource(topic, 0))


@pytest.fixture
def sink(topics: Topics, tmp_path: Path, log: SinkLog) -> Any:
    config = sink_config(topics.bootstrap, tmp_path / "staging")
    sink = sink_of({**config, RECORDS: "true"}, log.task)
    log.acquire(sink, FIRST)
    yield sink
    sink.close()


def record(topic: str, **given: Any) -> dict[str, Any]:
    return {**dict.fromkeys(RECORD.names), "topic": topic, **given}


def table(*records: dict[str, Any]) -> pa.Table:
    return pa.Table.from_pylist([*records], RECORD)


def test_no_bytes_and_no_value_differ_and_a_time_of_zero_is_the_next_one(
    topics: Topics, topic: str, sink: Any, log: SinkLog
) -> None:
    headers = [{"key": "h", "value": None}, {"key": "h", "value": b""}]
    log.write(
        sink,
        table(
            record(topic, key=b"", value=b"", timestamp=0, headers=headers),
            record(topic, key=None, value=None, timestamp=5),
        ),
    )
    found = [(each.key(), each.value(), each.timestamp()[1]) for each in topics.read(topic)]
    assert found == [(b"", b"", 1), (None, None, 5)]
    assert topics.read(topic)[0].headers() == [("h", None), ("h", b"")]


def test_a_batch_waits_until_the_topic_has_the_partitions_of_its_records(
    topics: Topics, topic: str, sink: Any, log: SinkLog
) -> None:
    rows = table(record(topic, value=b"a", partition=2), record(topic, value=b"b", partition=0))
    with pytest.raises(SinkAway, match=rf"partition 2 of topic {topic}, which has 1 partitions"):
        log.stage(sink, rows)
    topics.widen(topic, 3)
    log.write(sink, rows)
    found = sorted((each.partition(), each.value()) for each in topics.read(topic))
    assert found == [(0, b"b"), (2, b"a")]


def test_a_record_that_its_topic_refuses_is_refused_before_the_batch_counts(
    topics: Topics, topic: str, sink: Any, log: SinkLog
) -> None:
    topics.configure(topic, max_message_bytes="1000")
    with pytest.raises(RowsRefused, match="accepts at most 1000"):
        log.stage(sink, table(record(topic, value=b"x" * 2000)))
