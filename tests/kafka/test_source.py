# pyright: basic
"""Topics as a source: every record once, from the offsets of the log alone."""

from collections.abc import Iterator
from typing import Any

import pytest

from fairlead.events.commits import Advance, Document
from fairlead.runtime.pipeline.spi.errors import BadInput, SourceAway
from fairlead.runtime.pipeline.spi.source import Limit
from fairlead.runtime.pipeline.stores.kafka.source import reader
from fairlead.runtime.pipeline.stores.kafka.source.reader import HEADER_FLAW
from fairlead_tests.kafka.broker import Broker
from fairlead_tests.kafka.pipes import LIMIT, Reading, source_config, until
from fairlead_tests.kafka.topics import Topics
from fairlead_tests.kafka_clients.odd_producer import write_odd


@pytest.fixture
def begin(broker: Broker) -> Iterator[Any]:
    """Begin to read as a config says."""
    begun: list[Reading] = []

    def begin(offsets: Any = None, **given: str) -> Reading:
        begun.append(Reading(source_config(broker.bootstrap, **given), offsets))
        return begun[-1]

    yield begin
    for each in begun:
        each.source.close()


def test_a_record_is_its_value_and_what_kafka_knows_of_it(
    topics: Topics, topic: str, begin: Any
) -> None:
    known = {"timestamp": 1_700_000_000_123, "headers": {"h": b"\xff"}}
    topics.write(topic, ["one", None], key="k", **known)
    reading = begin(topics=topic)
    plan = reading.plan()
    first, second = reading.take(plan).to_pylist()
    assert first == {
        "_value": "one",
        "_key": "k",
        "_topic": topic,
        "_partition": 0,
        "_offset": 0,
        "_timestamp": first["_timestamp"],
        "_headers": [{"key": "h", "value": b"\xff"}],
    }
    assert first["_timestamp"].isoformat() == "2023-11-14T22:13:20.123000+00:00"
    assert second == {**first, "_value": None, "_offset": 1}
    (advance,) = plan.advances
    topic_id = advance.end["kafka_topic_id"]
    place: Document = {"kafka_topic": topic, "kafka_partition": 0}
    end = {"kafka_offset": 2, "kafka_topic_id": topic_id}
    assert plan.advances == (Advance(place, None, end),)


def test_columns_beside_the_value_and_kinds_of_values_are_the_users_choice(
    topics: Topics, topic: str, begin: Any
) -> None:
    topics.write(topic, [b"\xff"], key=b"k")
    reading = begin(
        topics=topic,
        metadata_columns="offset,key",
        key_converter="bytes",
        value_converter="org.apache.kafka.connect.converters.ByteArrayConverter",
    )
    assert reading.read(1).to_pylist() == [{"_value": b"\xff", "_offset": 0, "_key": b"k"}]


def test_batches_hold_no_more_than_the_limit_and_go_on_where_the_log_says(
    topics: Topics, topic: str, begin: Any
) -> None:
    topics.write(topic, map(str, range(1000)))
    reading = begin(topics=topic)
    limit = Limit(300, 1 << 20, 1)
    plan = reading.plan(limit)
    assert (plan.rows, plan.backlog) == (300, True)
    assert plan.lag is not None
    assert plan.lag.ranges == 700
    reading.take(plan)
    reading.again()
    assert reading.read(700, limit)["_value"].to_pylist() == [str(n) for n in range(300, 1000)]
    assert reading.looks_in_vain(3)
    few_bytes = begin(topics=topic).plan(Limit(1000, 100, 1))
    assert few_bytes.rows < 1000


def test_partitions_that_are_left_out_go_on_where_they_were_once_they_are_not(
    topics: Topics, topic: str, begin: Any
) -> None:
    topics.widen(topic, 2)
    for number, values in enumerate((["a", "b"], ["c", "d"])):
        topics.write(topic, values, partition=number)
    reading = begin(topics=topic)
    reading.source.leave_out([(topic, 0)])
    assert reading.read(2)["_value"].to_pylist() == ["c", "d"]
    assert reading.looks_in_vain(3)
    reading.source.leave_out([(topic, 0), (topic, 1)])
    assert reading.looks_in_vain(3)
    reading.source.leave_out([])
    assert reading.read(2)["_value"].to_pylist() == ["a", "b"]


def test_aborted_and_open_transactions_are_left_out_and_their_marks_are_no_gap(
    topics: Topics, topic: str, begin: Any
) -> None:
    topics.write_transaction(topic, ["a", "b"])
    topics.write_transaction(topic, ["lost"], commits=False)
    topics.write_transaction(topic, ["c"])
    reading = begin(topics=topic)
    assert reading.read(3)["_value"].to_pylist() == ["a", "b", "c"]
    everything = begin(topics=topic, isolation_level="read_uncommitted")
    assert everything.read(4)["_value"].to_pylist() == ["a", "b", "lost", "c"]


def test_markers_of_transactions_at_an_end_are_passed_so_that_retention_removes_nothing_unread(
    topics: Topics, topic: str, begin: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reader, "_SETTLE_S", 0.0)
    topics.widen(topic, 2)
    topics.write_transaction(topic, ["a"])
    topics.write_transaction(topic, ["lost"], commits=False)
    reading = begin(topics=topic)
    assert reading.read(1)["_value"].to_pylist() == ["a"]
    while [each["kafka_offset"] for each in reading.offsets.values()] != [4]:
        assert reading.take(reading.plan()).num_rows == 0
    topics.cut(topic, 4)
    reading.again()
    assert reading.looks_in_vain(3)
    topics.write(topic, ["b"])
    assert reading.read(1)["_value"].to_pylist() == ["b"]


def test_kafka_is_told_of_no_group_and_no_offset(topics: Topics, topic: str, begin: Any) -> None:
    topics.write(topic, ["a"])
    begin(topics=topic).read(1)
    assert not [each for each in topics.groups() if each.startswith("fairlead.orders")]


def test_a_partition_without_an_offset_begins_at_the_end_that_is_asked_for_once(
    topics: Topics, topic: str, begin: Any
) -> None:
    topics.write(topic, ["before"])
    reading = begin(topics=topic, auto_offset_reset="latest")
    lost = reading.plan()
    first = reading.plan()
    assert lost.advances == first.advances  # the log does not have them yet
    assert (first.rows, first.backlog) == (0, True)
    topics.write(topic, ["while it is away"])
    reading.take(first)
    reading.again()
    assert reading.read(1)["_value"].to_pylist() == ["while it is away"]


def test_a_partition_that_is_added_begins_with_its_first_record_whatever_the_first_start_does(
    topics: Topics, topic: str, begin: Any
) -> None:
    topics.write(topic, ["old"])
    reading = begin(topics=topic, auto_offset_reset="latest")
    reading.take(reading.plan())
    topics.widen(topic, 2)
    topics.write(topic, ["new"], partition=1)
    for _ in range(2):  # the second start finds it in the split of the first
        reading.again()
        assert reading.split[0]["task.kafka.partitions.later"] == f"{topic}-1"
    assert reading.read(1)["_value"].to_pylist() == ["new"]


def test_reading_begins_with_the_first_record_of_a_time(
    topics: Topics, topic: str, begin: Any
) -> None:
    for minute in range(3):
        topics.write(topic, [str(minute)], timestamp=1_700_000_000_000 + 60_000 * minute)
    reading = begin(topics=topic, start_timestamp_ms="1700000030000")
    assert reading.read(2)["_value"].to_pylist() == ["1", "2"]


def test_records_that_are_gone_end_the_task_and_are_counted(
    topics: Topics, topic: str, begin: Any
) -> None:
    topics.write(topic, map(str, range(10)))
    reading = begin(topics=topic)
    reading.take(reading.plan(Limit(2, 1 << 20, 1)))
    topics.cut(topic, 7)
    reading.again()
    with pytest.raises(BadInput, match=r"5 records of .* are gone: offsets 2 to 6\..*To go on"):
        until(lambda: reading.source.plan(reading.offsets, LIMIT), lambda _: False)


@pytest.mark.parametrize(("place", "at"), [("earliest", 7), ("latest", 10)])
def test_records_that_are_gone_are_skipped_with_a_warning_where_that_is_set(
    topics: Topics, topic: str, begin: Any, place: str, at: int
) -> None:
    topics.write(topic, map(str, range(10)))
    offsets = begin(topics=topic)
    offsets.take(offsets.plan(Limit(2, 1 << 20, 1)))
    topics.cut(topic, 7)
    reading = begin(offsets.offsets, topics=topic, offset_out_of_range=place)
    until(lambda: reading.source.plan(reading.offsets, LIMIT), lambda _: reading.warnings)
    topics.write(topic, ["10"])
    assert reading.read(11 - at)["_value"].to_pylist() == [str(n) for n in range(at, 11)]
    (told,) = reading.warnings
    assert told.startswith("5 records of")
    assert told.endswith(f"reading goes on at offset {at}")


def test_a_topic_that_was_made_anew_is_another_one(topics: Topics, topic: str, begin: Any) -> None:
    topics.write(topic, ["a", "b"])
    reading = begin(topics=topic)
    reading.read(2)
    topics.delete(topic)
    until(lambda: topics.admin.list_topics(timeout=5).topics, lambda found: topic not in found)
    with pytest.raises(SourceAway, match="does not exist"):
        reading.source.verify([])
    topics.make(topic)
    topics.write(topic, ["c", "d", "e"])
    with pytest.raises(SourceAway, match="created again while it was read"):
        reading.source.verify([])
    reading.again()
    with pytest.raises(BadInput, match="was deleted and created again since"):
        reading.plan()
    going_on = begin(reading.offsets, topics=topic, offset_out_of_range="earliest")
    assert going_on.read(3)["_value"].to_pylist() == ["c", "d", "e"]
    assert len(going_on.warnings) == 1


def test_an_offset_that_a_person_set_needs_no_id_of_its_topic(
    topics: Topics, topic: str, begin: Any
) -> None:
    topics.write(topic, ["a", "b", "c"])
    reading = begin(topics=topic)
    reading.take(reading.plan(Limit(1, 1 << 20, 1)))
    for key in reading.offsets:
        reading.offsets[key] = {"kafka_offset": 2}
    reading.again()
    assert reading.read(1)["_value"].to_pylist() == ["c"]


def test_what_was_read_ahead_is_read_again_if_the_log_goes_on_elsewhere(
    topics: Topics, topic: str, begin: Any
) -> None:
    topics.write(topic, map(str, range(100)))
    reading = begin(topics=topic)
    few = Limit(10, 1 << 20, 1)
    spark: Any = None
    for _ in range(2):  # the second time what is next was read ahead, and is not
        plan = reading.plan(few)
        found = reading.source.read(spark, plan.ranges)["_value"].to_pylist()
        assert found == [str(n) for n in range(10)]
    reading.take(plan)
    for start in range(10, 100, 10):
        found = reading.take(reading.plan(few))["_value"].to_pylist()
        assert found == [str(n) for n in range(start, start + 10)]
    assert reading.looks_in_vain(3)


def test_a_time_of_another_unit_is_the_latest_that_there_is(topics: Topics, begin: Any) -> None:
    topic = topics.make("nanos", message_timestamp_after_max_ms=str((1 << 63) - 1))
    topics.write(topic, ["one"], timestamp=1_700_000_000_123_456_789)
    topics.write(topic, ["two"], timestamp=1_700_000_000_123)
    times = begin(topics=topic).read(2)["_timestamp"].to_pylist()
    assert [each.year for each in times] == [9999, 2023]


def test_a_record_may_lack_a_time_and_have_headers_that_nobody_asked_for(
    topics: Topics, topic: str, begin: Any
) -> None:
    write_odd(topics.bootstrap, topic, 2)
    rows = begin(topics=topic, metadata_columns="timestamp,offset").read(2).to_pylist()
    assert rows == [{"_value": "v", "_timestamp": None, "_offset": each} for each in (0, 1)]


def test_headers_that_no_client_can_read_make_a_bad_record_however_many_there_are(
    topics: Topics, topic: str, begin: Any
) -> None:
    write_odd(topics.bootstrap, topic, 200)
    (table,) = begin(topics=topic).plan().ranges
    told = table[HEADER_FLAW].to_pylist()
    assert [each is not None for each in told] == [False, True] * 100
    with pytest.raises(BadInput, match="at offset 1: the key of one of its headers is not in UTF"):
        begin(topics=topic).read(1)
