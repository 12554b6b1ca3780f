# pyright: basic
"""A source hears where its records were written, of each that nobody wrote between."""

import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any
from unittest.mock import MagicMock

import pyarrow as pa
import pytest

from fairlead.events.model import Resource
from fairlead.runtime.pipeline.spi.errors import SinkAway, SinkBroken
from fairlead.runtime.pipeline.stores.kafka.sink.encoding import RECORD
from fairlead.runtime.pipeline.stores.kafka.sink.places import UNKNOWN
from fairlead.runtime.pipeline.stores.kafka.sink.publishing import Publisher
from fairlead_tests.connectors.pipes import sink_of
from fairlead_tests.connectors.publish_once import FIRST, SinkLog
from fairlead_tests.kafka.pipes import sink_config
from fairlead_tests.kafka.topics import Topics

RECORDS = {"source.type": "connect", "source.connect.records": "true"}


def records(topic: str, values: Sequence[bytes], partitions: Sequence[int | None]) -> pa.Table:
    nothing = [None] * len(values)
    columns = [[topic] * len(values), nothing, values, nothing, nothing, partitions]
    return pa.Table.from_arrays(
        [pa.array(each, kind.type) for each, kind in zip(columns, RECORD, strict=True)],
        schema=RECORD,
    )


@pytest.fixture
def publisher(topics: Topics, topic: str, tmp_path: Path) -> Iterator[Publisher]:
    log = SinkLog(Resource(topic, 0))
    sink: Any = sink_of(sink_config(topics.bootstrap, tmp_path, topic=topic), log.task)
    log.acquire(sink, FIRST)
    yield sink._publisher
    sink.close()


def placed(publisher: Publisher, batches: Iterator[pa.RecordBatch]) -> list[tuple[int, int]]:
    """Send batches in a transaction; return partition and offset of each record."""
    publisher.begin(notes_places=True)
    publisher.producer.begin_transaction()
    publisher.send(batches)
    publisher.producer.commit_transaction(60)
    return [
        (run.partition, run.offset if run.offset == UNKNOWN else run.offset + each)
        for run in publisher.places
        for each in range(run.rows)
    ]


@pytest.mark.parametrize("count", [3, 1])
def test_places_are_those_at_which_records_are_found(
    topics: Topics, topic: str, publisher: Publisher, count: int
) -> None:
    if count > 1:
        topics.widen(topic, count)
    values = [b"%d" % each for each in range(2000)]
    partitions = [each // 7 % 3 if count > 1 else None for each in range(2000)]
    topics.write(topic, ["before"])
    found = placed(publisher, iter(records(topic, values, partitions).to_batches(900)))
    known = {(each.partition(), each.offset()): each.value() for each in topics.read(topic)}
    assert [known[each] for each in found] == values
    assert len(publisher.places) == (286 if count == 3 else 1)


def test_places_in_partitions_that_the_producer_chooses_are_not_known(
    topics: Topics, topic: str, publisher: Publisher
) -> None:
    topics.widen(topic, 2)
    first, second = placed(publisher, iter(records(topic, [b"a", b"b"], [None, 1]).to_batches()))
    known = {(each.partition(), each.offset()): each.value() for each in topics.read(topic)}
    assert (first, known[second]) == ((UNKNOWN, UNKNOWN), b"b")


def test_what_another_producer_writes_between_makes_no_place_wrong(
    topics: Topics, topic: str, publisher: Publisher
) -> None:
    values = [b"%d" % each for each in range(600)]

    def batches() -> Iterator[pa.RecordBatch]:
        for each in records(topic, values, [0] * 600).to_batches(200):
            yield each
            publisher.producer.flush(60)
            topics.write(topic, ["of another"])

    found = placed(publisher, batches())
    known = {(each.partition(), each.offset()): each.value() for each in topics.read(topic)}
    assert [known[each] for each in found] == values
    assert len(publisher.places) == 3


def test_a_record_that_its_topic_refuses_is_told_by_the_second_try_at_the_latest(
    topics: Topics, topic: str, publisher: Publisher
) -> None:
    topics.configure(topic, max_message_bytes="2000")
    values = [b"x" * (5000 if each == 60 else 5) for each in range(200)]
    told = []
    for _ in range(2):
        publisher.begin(1000, notes_places=True)
        mark = MagicMock(text="a mark")
        with pytest.raises((SinkAway, SinkBroken)) as raised:
            publisher.publish(iter(records(topic, values, [0] * 200).to_batches()), mark, 1)
        told.append(str(raised.value))
    assert "is too large for its topic" in told[-1]
    assert topics.values(topic) == []


def test_a_source_that_asks_hears_the_places_of_its_batch_before_it_is_acknowledged(
    topics: Topics, topic: str, tmp_path: Path
) -> None:
    log, source = SinkLog(Resource(topic, 0)), MagicMock(wants_places=True)
    sink = sink_of(sink_config(topics.bootstrap, tmp_path) | RECORDS, log.task)
    assert sink.paired(source) is source
    log.acquire(sink, FIRST)
    log.write(sink, records(topic, [b"a", b"b"], [0, 0]))
    source.note_places.assert_called_once_with([(2, 0, 0)])
    source.wants_places = False
    log.write(sink, records(topic, [b"c"], [0]))
    source.note_places.assert_called_once()
    sink.close()
    deadline = time.monotonic() + 60
    while topics.values(topic) != ["a", "b", "c"]:
        assert time.monotonic() < deadline
