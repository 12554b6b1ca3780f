# pyright: basic
"""A broker that is away for long is waited for at both ends, and each row comes once."""

import time
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from fairlead.events.model import Resource
from fairlead.runtime.pipeline.spi.errors import SinkAway, SourceAway
from fairlead.runtime.pipeline.spi.sink import Sink
from fairlead_tests.connectors.pipes import sink_of, source_of
from fairlead_tests.connectors.publish_once import FIRST, SinkLog
from fairlead_tests.kafka.broker import Broker
from fairlead_tests.kafka.pipes import Reading, sink_config, source_config, until
from fairlead_tests.kafka.topics import Topics

pytestmark = pytest.mark.soak

AWAY_S = 30


def test_a_broker_that_is_away_for_half_a_minute_is_waited_for_at_both_ends(
    broker: Broker, topics: Topics, topic: str, tmp_path: Path
) -> None:
    topics.make(f"{topic}.out")
    topics.write(topic, ["a"])
    log = SinkLog(Resource(topic, 0))
    sink = sink_of(
        sink_config(broker.bootstrap, tmp_path / "staging", topic=f"{topic}.out"), log.task
    )
    reading = Reading(source_config(broker.bootstrap, topics=topic))
    log.acquire(sink, FIRST)
    log.write(sink, _values(reading.read(1)))
    broker.kill()
    since = time.monotonic()
    log.count(log.stage(sink, pa.table({"n": ["while it was away"]})))
    while time.monotonic() - since < AWAY_S:
        with pytest.raises(SinkAway, match=r"refused|imed out"):
            log.publish(sink)
        with pytest.raises(SourceAway, match=r"refused|imed out"):
            reading.plan()
        reading.source.close()
        reading.source = source_of(reading.split[0], log.task)  # as a task does that tries again
    broker.up()
    topics.write(topic, ["b"])
    _publish(log, sink)
    log.write(sink, _values(reading.read(1)))
    assert topics.values(f"{topic}.out") == [
        '{"n":"a"}',
        '{"n":"while it was away"}',
        '{"n":"b"}',
    ]
    sink.close()
    reading.source.close()


def _publish(log: SinkLog, sink: Sink[Any]) -> None:
    """Publish what waits, as often as a task would try until the broker is back."""

    def publishes() -> bool:
        try:
            log.publish(sink)
        except SinkAway:
            return False
        return True

    until(publishes, bool)


def _values(rows: pa.Table) -> pa.Table:
    return pa.table({"n": rows["_value"]})
