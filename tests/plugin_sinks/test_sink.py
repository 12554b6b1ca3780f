"""A sink task of Connect is fed with rows, as by a consumer, and what it agrees to counts."""
# pyright: basic

import datetime as dt
import json
from decimal import Decimal

import pyarrow as pa
import pytest

from fairlead.events.commits import identity
from fairlead.runtime.pipeline.spi.errors import (
    FailedElsewhere,
    RowsRefused,
    SchemaRefused,
    SinkAway,
)
from fairlead_tests.plugins.host_processes import kill_plugin_host
from fairlead_tests.plugins.sink_driver import LIST, Driver, put, words

pytestmark = [pytest.mark.cluster, pytest.mark.xdist_group("plugins")]
MOMENT = 1_704_164_645_006_007
"""Microseconds since 1970."""
PAIRS = words(*(["a", "b"] for _ in range(6)))
TWELVE = put(*((each, "ab"[each % 2]) for each in range(12)))


def test_what_a_plugin_holds_does_not_count_and_the_task_reads_on(driver: Driver) -> None:
    driver.begin(PAIRS, does="holds")
    driver.until(lambda: driver.offsets == (5, 10))
    driver.until(lambda: len(driver.told) == 13)
    assert driver.told == ["open words-0", *TWELVE]
    assert driver.inner.acknowledged[-1] == {"at": 5}, "its source hears of what counts alone"
    driver.end()
    assert driver.offsets == (5, 10)
    driver.begin(PAIRS)
    driver.until(lambda: driver.offsets == (6, 12))
    assert driver.told[13:] == ["stop", "open words-0", *TWELVE[10:]], "the same offsets again"


def test_a_plugin_that_agrees_to_nothing_is_given_all_and_nothing_counts(driver: Driver) -> None:
    driver.begin(PAIRS, does="opts out")
    driver.until(lambda: len(driver.told) == 13)
    driver.end()
    assert driver.logged == {}


def test_a_clean_end_asks_the_plugin_a_last_time(driver: Driver) -> None:
    driver.begin(words(["a"]), offset_flush_interval_ms="60000")
    driver.until(lambda: len(driver.told) == 2)
    driver.end()
    assert driver.offsets == (1, 1)
    assert driver.told[-1] == "stop"


def test_a_plugin_goes_back_to_what_does_not_count_yet(driver: Driver) -> None:
    driver.begin(words(["a", "b", "c", "d"], ["e"]), does="seeks")
    driver.until(lambda: driver.offsets == (2, 5))
    letters = [*enumerate("abcde")]
    again = [*letters[:4], *letters[1:]]
    assert driver.told == ["open words-0", *put(*again)]


def test_a_plugin_skips_what_it_has_already(driver: Driver) -> None:
    driver.begin(words(["a", "b", "c"], ["d"]), does="skips")
    driver.until(lambda: driver.offsets == (2, 4))
    assert driver.told == ["open words-0", *put((2, "c"), (3, "d"))]


def test_a_put_that_is_refused_for_a_moment_is_repeated_with_the_same_records(
    driver: Driver,
) -> None:
    driver.begin(words(["a", "b"], ["c"]), does="retries")
    driver.until(lambda: driver.offsets == (2, 3))
    refused = ["refuse 2", "refuse 2"]
    assert driver.told == ["open words-0", *refused, *put((0, "a"), (1, "b"), (2, "c"))]


def test_a_flush_that_fails_has_all_that_does_not_count_put_again(driver: Driver) -> None:
    driver.begin(words(["a", "b"]), does="fails flushes")
    driver.until(lambda: driver.offsets == (1, 2))
    both = put((0, "a"), (1, "b"))
    assert driver.told == ["open words-0", *both, "fail flush", *both]


def test_a_partition_that_is_paused_goes_on_once_it_is_resumed(driver: Driver) -> None:
    driver.begin(words(["a", "b"], ["c"]), does="pauses")
    driver.until(lambda: driver.offsets == (2, 3))
    assert driver.told == ["open words-0", *put((0, "a"), (1, "b")), "pause", *put((2, "c"))]


def test_a_partition_that_is_paused_holds_up_no_other(driver: Driver) -> None:
    other = [pa.table({"_topic": ["b", "b"], "word": ["c", each]}) for each in ("d", "e", "go")]
    driver.begin([pa.table({"_topic": ["a"], "word": ["a"]})], does="pauses a")
    driver.until(lambda: len(driver.told) == 2)
    more = pa.table({"_topic": ["a", "b"], "word": ["a", "b"]})
    driver.inner.batches = [*driver.inner.batches, more, *other[:2]]
    driver.until(lambda: len(driver.told) == 8)
    assert "a-0@1 {word=a}" not in driver.told
    assert driver.inner.left_out == {("a", 0)}, "a source of topics reads none of it"
    assert driver.logged.get(identity(LIST)) in (None, {"at": 1})
    driver.inner.batches = [*driver.inner.batches, other[2]]
    driver.until(lambda: driver.logged.get(identity(LIST)) == {"at": 5})
    assert driver.told[-1] == "a-0@1 {word=a}"
    assert driver.inner.left_out == frozenset()


def test_a_record_that_cannot_be_written_is_told_once_with_the_batch_that_counts(
    driver: Driver,
) -> None:
    driver.begin(words(["a", "bad", "c"], ["d"]), does="reports", errors_tolerance="all")
    driver.until(lambda: driver.offsets == (2, 4))
    assert driver.rejected == 1
    assert driver.told == ["open words-0", *put((0, "a"), (2, "c"), (3, "d"))]


def test_a_host_that_is_killed_is_replaced_and_what_did_not_count_is_put_again(
    driver: Driver,
) -> None:
    driver.begin(PAIRS, does="holds")
    driver.until(lambda: driver.offsets == (5, 10) and len(driver.told) == 13)
    kill_plugin_host()
    with pytest.raises(SinkAway, match="the plugin host has ended"):
        driver.until(lambda: False)
    driver.close()
    driver.begin(PAIRS)
    driver.until(lambda: driver.offsets == (6, 12))
    assert driver.told[13:] == ["open words-0", *TWELVE[10:]]


def test_a_failure_has_javas_trace_and_what_counts_is_logged_before(driver: Driver) -> None:
    driver.begin(words(["a"], ["bad"]), does="fails")
    with pytest.raises(FailedElsewhere, match="IllegalStateException: it is bad"):
        driver.until(lambda: False)
    assert driver.offsets == (1, 1)


def test_rows_have_the_types_of_their_columns_and_what_lies_beside_a_record(
    driver: Driver,
) -> None:
    moment = dt.datetime(2024, 1, 2, 3, 4, 5, 6000, dt.UTC)
    columns = {
        "_topic": ["other"],
        "_key": pa.array([7], pa.int64()),
        "_timestamp": pa.array([moment], pa.timestamp("us", "UTC")),
        "_headers": pa.array(
            [[("h", b"1")]],
            pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())])),
        ),
        "tiny": pa.array([1], pa.uint8()),
        "day": pa.array([moment.date()], pa.date32()),
        "time": pa.array([moment], pa.timestamp("us", "UTC")),
        "price": pa.array([Decimal("1.50")], pa.decimal128(10, 2)),
        "flag": pa.array([True]),
        "half": pa.array([0.5], pa.float32()),
        "raw": pa.array([b"xyz"], pa.binary()),
        "name": pa.array(["n"], pa.large_string()),
        "kind": pa.array(["k"]).dictionary_encode(),
        "list": pa.array([[1, None]], pa.list_(pa.int32())),
        "pairs": pa.array([[("a", 1)]], pa.map_(pa.string(), pa.int64())),
        "inner": pa.array([{"x": 1, "when": moment}]),
        "none": pa.array([None], pa.null()),
    }
    rows = pa.table(columns)
    nothing = pa.table(
        {
            name: pa.nulls(1, each.type)
            for name, each in zip(rows.column_names, rows.columns, strict=True)
        }
    )
    gone = nothing.set_column(0, "_topic", [["other"]]).set_column(
        1, "_key", pa.array([8], pa.int64())
    )
    driver.begin([rows, gone])
    driver.until(lambda: len(driver.told) == 3)
    ms = 1704164645006
    assert driver.told == [
        "open other-0",
        "other-0@0 7 -> {tiny=1, day=time 1704153600000, "
        f"time=time {ms}, price=1.50, flag=true, half=0.5, raw=xyz, name=n, kind=k, "
        f"list=[1, null], pairs={{a=1}}, inner={{x=1, when=time {ms}}}, none=null}} at {ms} h=1",
        "other-0@1 8 -> null",
    ]


@pytest.mark.parametrize(
    ("times", "told"),
    [
        ("milliseconds", "set sink.time.precision=microseconds for a plugin that knows"),
        ("truncated", f"{{at=time {MOMENT // 1000}, inner={{when=time {MOMENT // 1000}}}}}"),
        ("microseconds", f"{{at={MOMENT}, inner={{when={MOMENT}}}}}"),
    ],
)
def test_times_of_microseconds_are_refused_cut_or_written_as_debezium_does(
    driver: Driver, times: str, told: str
) -> None:
    moment = pa.array([MOMENT], pa.timestamp("us", "UTC"))
    inner = pa.StructArray.from_arrays([moment], ["when"])
    driver.begin([pa.table({"at": moment, "inner": inner})], times=times)
    if times == "milliseconds":
        with pytest.raises(RowsRefused, match=told):
            driver.until(lambda: False)
        return
    driver.until(lambda: len(driver.told) == 2)
    assert driver.told[1] == f"words-0@0 {told}"


def test_columns_may_be_a_records_key_and_a_deleted_row_is_a_tombstone(driver: Driver) -> None:
    rows = pa.table({"id": [1, 2, 1], "name": ["a", "b", None], "__op": ["c", "c", "d"]})
    driver.begin([rows], keys="id")
    driver.until(lambda: driver.offsets == (1, 3))
    assert driver.told == [
        "open words-0",
        "words-0@0 {id=1} -> {id=1, name=a, __op=c}",
        "words-0@1 {id=2} -> {id=2, name=b, __op=c}",
        "words-0@2 {id=1} -> null",
    ]


def test_bytes_of_records_are_read_by_the_plugins_own_converters_at_their_own_offsets(
    driver: Driver,
) -> None:
    schema = {"type": "struct", "fields": [{"field": "word", "type": "string"}]}
    value = json.dumps({"schema": schema, "payload": {"word": "a"}}).encode()
    rows = {
        "_topic": ["words"],
        "_partition": pa.array([0], pa.int32()),
        "_offset": pa.array([41], pa.int64()),
        "_key": pa.array([None], pa.binary()),
        "_value": pa.array([value], pa.binary()),
    }
    driver.begin([pa.table(rows)], is_raw="true")
    driver.until(lambda: driver.offsets == (1, None))
    assert driver.told == ["open words-0", *put((41, "a"))]


def test_a_batch_of_many_rows_is_given_in_parts(driver: Driver) -> None:
    wide = ["x" * 4_000] * 5_000
    driver.begin(words(wide))
    driver.until(lambda: driver.offsets == (1, 5_000))
    assert len(driver.told) == 5_001


@pytest.mark.parametrize(
    ("columns", "told"),
    [
        ({"_topic": [None], "a": [1]}, "1 rows have no topic"),
        ({"_topic": ["t"]}, "no column is left for the value"),
        ({"b": [1]}, "sink.key.columns: rows have no column a"),
        ({"a": [None], "__op": ["t"]}, "source.skipped.operations=t"),
        ({"a": [1], "time": pa.array([1], pa.time64("us"))}, "Connect has no type for column time"),
    ],
    ids=["no topic", "no value", "no key", "a truncate", "a time of day"],
)
def test_rows_that_are_no_records_are_refused(
    driver: Driver, columns: dict[str, object], told: str
) -> None:
    driver.begin([pa.table(columns)], keys="" if "_topic" in columns else "a")
    with pytest.raises(SchemaRefused, match=told):
        driver.until(lambda: False)
