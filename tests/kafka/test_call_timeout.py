# pyright: basic
"""Calls of librdkafka that do not come back, and transactions that nobody ends."""

import threading
from typing import Any

import pyarrow as pa
import pytest
from confluent_kafka import KafkaException, TopicPartition

from fairlead.events.model import Resource
from fairlead.runtime.pipeline.spi.errors import SinkAway
from fairlead.runtime.pipeline.stores.kafka.call_timeout import call_within, end_in_background
from fairlead.runtime.pipeline.stores.kafka.cluster import LATE
from fairlead.runtime.pipeline.stores.kafka.sink import sending
from fairlead.runtime.pipeline.stores.kafka.sink.marks import BatchMark
from fairlead.runtime.pipeline.stores.marks import PublishedBatch
from fairlead_tests.connectors.pipes import CLUSTER, sink_of
from fairlead_tests.connectors.publish_once import FIRST, SECOND, SinkLog
from fairlead_tests.kafka.pipes import sink_config
from fairlead_tests.kafka.topics import Topics


def test_a_call_that_does_not_come_back_is_left_behind() -> None:
    going_on = threading.Event()
    with pytest.raises(KafkaException) as late:
        call_within(0.01, going_on.wait)
    assert late.value.args[0].code() == LATE
    end_in_background(going_on.wait)  # nor does anybody wait for this one
    going_on.set()


def test_what_a_call_raises_in_time_is_raised() -> None:
    with pytest.raises(ValueError, match="invalid literal"):
        call_within(60, int, "x")


def test_a_publisher_whose_client_hangs_begins_anew_and_publishes_once(
    topics: Topics, topic: str, tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = SinkLog(Resource(topic, 0))
    config = sink_config(topics.bootstrap, tmp_path, topic=topic)
    hangs: Any = sink_of(config, log.task)
    log.acquire(hangs, FIRST)
    log.count(log.stage(hangs, pa.table({"n": [1]})))
    going_on = threading.Event()
    monkeypatch.setattr(sending, "_PATIENCE_S", 0.05)
    monkeypatch.setattr(hangs._publisher, "begin", lambda *_, **__: None)
    monkeypatch.setattr(hangs._publisher, "_producer", _Hung(going_on))
    with pytest.raises(SinkAway):
        log.publish(hangs)
    monkeypatch.undo()
    again = sink_of(config, log.task)
    log.acquire(again, FIRST)
    going_on.set()
    assert topics.values(topic) == ['{"n":1}']
    again.close()


class _Hung:
    """A producer whose transaction does not begin."""

    def __init__(self, going_on: threading.Event) -> None:
        self.begin_transaction = going_on.wait
        self.purge = going_on.wait


def test_a_transaction_that_a_former_owner_left_open_keeps_nobody_waiting(
    topics: Topics, topic: str, tmp_path: Any
) -> None:
    log = SinkLog(Resource(topic, 0))
    config = sink_config(topics.bootstrap, tmp_path, topic=topic)
    former: Any = sink_of(config, log.task)
    log.acquire(former, FIRST)
    log.write(former, pa.table({"n": [1]}))
    publisher = former._publisher
    publisher._producer.begin_transaction()
    publisher._producer.produce(topic, b"of a batch that is never whole")
    mark = BatchMark(CLUSTER, PublishedBatch(FIRST, 1))
    place = TopicPartition(topic, 0, 1, metadata=mark.text)
    publisher._producer.send_offsets_to_transaction([place], publisher._marks.metadata(), 5)
    successor = sink_of(config, log.task)
    log.acquire(successor, SECOND)  # which a mark under way would refuse for a minute
    log.write(successor, pa.table({"n": [2]}))
    assert topics.values(topic) == ['{"n":1}', '{"n":2}']
    for each in (former, successor):
        each.close()
