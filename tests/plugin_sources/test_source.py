"""A source task of Connect hands over its batches, and hears when they count."""
# pyright: basic

import json
from pathlib import Path
from typing import Any

import pytest

from fairlead.events.model import CONNECTOR
from fairlead.runtime.pipeline.plugins.batches import connector
from fairlead.runtime.pipeline.plugins.batches.connector import SplittingConnector
from fairlead.runtime.pipeline.plugins.running.hosts import TaskHosts
from fairlead.runtime.pipeline.spi.context import Shared
from fairlead.runtime.pipeline.spi.errors import BadInput, FailedElsewhere, NotReady, SourceAway
from fairlead.runtime.pipeline.spi.rows import COLUMNS_OF_TOPICS, TYPE_CONFLICT
from fairlead.runtime.pipeline.stores.topics import rows_of_topics
from fairlead_tests.plugins.host_processes import kill_plugin_host
from fairlead_tests.plugins.replayed_source import SLOW_SOURCE
from fairlead_tests.plugins.source_driver import (
    SECONDS,
    Driver,
    envelope,
    rows_of,
    text,
)
from fairlead_tests.tasks.memory_ledger import MemoryLedger

pytestmark = [pytest.mark.cluster, pytest.mark.xdist_group("plugins")]


def line(value: str, **more: object) -> dict[str, object]:
    return {"topic": "words", "value": text(value), **more}


def test_what_one_poll_returns_is_a_batch_and_the_next_poll_waits_until_it_counts(
    driver: Driver,
) -> None:
    driver.write([line("a"), line("b")], [line("c")])
    plan = driver.plan()
    assert rows_of(plan) == [{"_value": "a", "_topic": "words"}, {"_value": "b", "_topic": "words"}]
    (advance,) = plan.advances
    assert (advance.partition, advance.start, advance.end) == ({"file": "one"}, None, {"at": 2})
    again = driver.plan()
    assert again.ranges[0] is plan.ranges[0], "a plan that is discarded is given again"
    assert driver.told == ["starts at 0", "polls 2, 0 counts"]
    driver.commit(again)
    assert driver.batch() == [{"_value": "c", "_topic": "words"}]
    driver.until(lambda: driver.told.count("commits") == 2)
    assert driver.told == [
        "starts at 0",
        "polls 2, 0 counts",
        "counts {at=1}, 2 counts",
        "counts {at=2}, 2 counts",
        "commits",
        "polls 1, 2 counts",
        "counts {at=4}, 4 counts",
        "commits",
    ], "the plugin reads what counts, each time"


def test_a_task_that_ends_amid_a_batch_begins_again_at_the_last_one_that_counts(
    driver: Driver,
) -> None:
    driver.write([line("a")], [line("b")], [line("c")])
    driver.batch()
    left = driver.plan()
    driver.source.close()
    assert driver.told[-1] == "stops, 1 counts"
    driver.begin()
    assert rows_of(driver.plan()) == rows_of(left)
    assert driver.told[-2:] == ["starts at 1", "polls 1, 1 counts"]


def test_a_task_that_is_stopped_while_it_is_made_does_not_go_on(driver: Driver) -> None:
    driver.write([line("a")], [line("b")])
    driver.config = {"connector.class": SLOW_SOURCE}
    driver.task_class = f"{SLOW_SOURCE}$SlowTask"
    driver.begin()
    driver.until(lambda: driver.is_asked)
    driver.source.close()
    driver.begin()
    values = [each["_value"] for each in (*driver.batch(), *driver.batch())]
    assert values == ["a", "b"]


def test_a_connector_that_is_stopped_while_it_is_made_does_not_go_on(
    driver: Driver, monkeypatch: pytest.MonkeyPatch
) -> None:
    driver.config = {"connector.class": SLOW_SOURCE}
    task = {**driver.plugin_config, "task.class": f"{SLOW_SOURCE}$SlowTask"}
    made = [SplittingConnector(driver.context(CONNECTOR), driver.plugin_config) for _ in "ab"]
    monkeypatch.setattr(connector, "_TURN_S", 0.0)
    with pytest.raises(NotReady):
        made[0].split()
    made[0].stop()
    monkeypatch.setattr(connector, "_TURN_S", SECONDS)
    assert made[1].split() == [task]
    made[1].stop()


def test_a_host_that_is_killed_is_replaced_and_no_record_is_lost_or_doubled(
    driver: Driver,
) -> None:
    driver.write([line("a")], [line("b")])
    driver.batch()
    driver.plan()
    kill_plugin_host()
    driver.until(lambda: driver.has_ended)
    with pytest.raises(SourceAway, match="the plugin host has ended"):
        driver.plan()
    driver.source.close()  # of which there is nothing to tell any more
    driver.begin()
    assert driver.batch() == [{"_value": "b", "_topic": "words"}]


def test_an_offset_of_null_removes_the_partitions_and_an_empty_one_is_an_offset(
    driver: Driver,
) -> None:
    driver.write([line("a", partition={}, offset={})], [line("b", partition={}, offset=None)])
    driver.batch()
    assert driver.offsets == {"": {}}
    driver.batch()
    assert driver.offsets == {}


def test_a_partition_of_null_is_one_without_keys(driver: Driver) -> None:
    driver.write([line("a", partition=None, offset={"at": 1})])
    driver.batch()
    assert driver.offsets == {"": {"at": 1}}


def test_records_without_offsets_are_told_as_best_effort_until_one_has_an_offset(
    driver: Driver,
) -> None:
    driver.write(
        [line("a", partition={}, offset=None)], [line("b", partition={}, offset={})], [line("c")]
    )
    remarks = []
    for _ in range(3):
        plan = driver.plan()
        remarks.append(plan.remark.partition(":")[0])
        driver.commit(plan)
    assert remarks == ["delivery is best-effort", "delivery is best-effort", ""]


def test_a_snapshot_of_debezium_is_told_as_at_least_once_until_its_last_record(
    driver: Driver,
) -> None:
    amid, after = {"lsn": 1, "snapshot": "INITIAL"}, {"lsn": 2}
    last = {**amid, "snapshot_completed": True}
    former, ends = {"pos": 1, "snapshot": True}, {"pos": 1, "snapshot": "last"}
    offsets = [amid, last, after, former, ends]
    driver.write(*([line("a", partition={"server": "a"}, offset=each)] for each in offsets))
    remarks = []
    for _ in offsets:
        plan = driver.plan()
        remarks.append(plan.remark.partition(":")[0])
        driver.commit(plan)
    snapshot = "delivery is at-least-once"
    assert remarks == [snapshot, "", "", snapshot, ""]


def test_a_failure_of_the_task_has_its_stack_trace(driver: Driver) -> None:
    driver.write([line("a")], ["fail"])
    driver.batch()
    with pytest.raises(FailedElsewhere, match="IllegalStateException: the file says so"):
        driver.plan()


def test_records_of_several_topics_and_schemas_are_one_table_in_their_order(
    driver: Driver,
) -> None:
    def item(topic: str, **fields: Any) -> dict[str, object]:
        kinds = {int: "int64", str: "string"}
        schema = [
            {"field": name, "type": kinds[type(each)], "optional": True}
            for name, each in fields.items()
        ]
        value = envelope(fields, type="struct", fields=schema)
        return {"topic": topic, "value": value}

    driver.write([item("a", id=1), item("b", id=2, name="x"), item("a", id=3), {"topic": "b"}])
    plan = driver.plan()
    (table,) = plan.ranges
    own = json.loads(table.schema.metadata[COLUMNS_OF_TOPICS])
    assert {topic: {*names} for topic, names in own.items()} == {
        "a": {"id", "_topic"},
        "b": {"id", "name", "_value", "_topic"},
    }
    found = [(each["_topic"], each["id"], each["name"]) for each in rows_of(plan)]
    assert found == [("a", 1, None), ("b", 2, "x"), ("a", 3, None), ("b", None, None)]


def test_a_name_with_two_types_has_two_columns_and_is_told_to_who_keeps_no_topics_apart(
    driver: Driver,
) -> None:
    number = envelope({"id": 1}, type="struct", fields=[{"field": "id", "type": "int64"}])
    word = envelope({"id": "x"}, type="struct", fields=[{"field": "id", "type": "string"}])
    more = [{"topic": "a", "value": number}, {"topic": "b", "value": word}]
    driver.write([*more, *more])
    (table,) = driver.plan().ranges
    told = table.schema.metadata
    assert json.loads(told[COLUMNS_OF_TOPICS])["b"]["id"] == "id (b)"
    assert b"column id is string in records of b and int64 in those of a: " in told[TYPE_CONFLICT]
    parts = {topic: rows.to_pylist() for topic, rows in rows_of_topics(table, "sink.path")}
    assert parts == {
        "a": 2 * [{"id": 1, "_topic": "a"}],
        "b": 2 * [{"id": "x", "_topic": "b"}],
    }


def test_a_column_that_changes_its_type_within_a_topic_and_a_batch_is_told(
    driver: Driver,
) -> None:
    number = envelope({"id": 1}, type="struct", fields=[{"field": "id", "type": "int64"}])
    word = envelope({"id": "x"}, type="struct", fields=[{"field": "id", "type": "string"}])
    driver.write([{"topic": "a", "value": number}, {"topic": "a", "value": word}])
    with pytest.raises(BadInput, match=r"one topic whose columns changed their types: .* id "):
        driver.plan()


def test_keys_headers_and_times_come_beside_the_value_where_they_are_asked_for(
    hosts: TaskHosts, ledger: MemoryLedger, tmp_path: Path
) -> None:
    ledger.logged.clear()
    shared = Shared()
    shared.get(TaskHosts, lambda: hosts)
    beside = ("key", "topic", "timestamp", "headers")
    driver = Driver(shared, ledger, tmp_path / "records", tmp_path / "told", beside)
    driver.write([line("a", key=text("k"), headers={"h": "1"}, timestamp=1_700_000_000_123)])
    (row,) = driver.batch()
    driver.source.close()
    assert (row["_key"], row["_headers"]) == ("k", [{"key": "h", "value": b"1"}])
    assert row["_timestamp"].isoformat() == "2023-11-14T22:13:20.123000+00:00"
