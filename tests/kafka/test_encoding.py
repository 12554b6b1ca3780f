# pyright: basic
"""Rows become records, or are refused with their column before a batch counts; no broker is needed.

What records of Connect's envelope say of themselves becomes SQL, so their names are not trusted.
"""

import datetime as dt
import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pyarrow as pa
import pytest
from msgspec import Raw

from fairlead.events.commits import CommitId
from fairlead.events.model import Token
from fairlead.runtime.pipeline.formats.avro import RegisteredSchema, avro_schema
from fairlead.runtime.pipeline.formats.connect import (
    SchemaUnknown,
    columns_of,
)
from fairlead.runtime.pipeline.spi.errors import RowsRefused, SchemaRefused, SinkAway, SinkBroken
from fairlead.runtime.pipeline.stores.kafka.avro import columns as avro_columns
from fairlead.runtime.pipeline.stores.kafka.avro.columns import Flaws
from fairlead.runtime.pipeline.stores.kafka.cluster import TopicLimits
from fairlead.runtime.pipeline.stores.kafka.sink import staging
from fairlead.runtime.pipeline.stores.kafka.sink.encoding import Converter, RecordEncoder
from fairlead.runtime.pipeline.stores.kafka.sink.sink import KafkaSink, MarkRules
from fairlead.runtime.pipeline.stores.kafka.sink.staging import StagingFolder

ENCODER = RecordEncoder("t", "", (), Converter("string"), Converter("json"))
TIME = {"type": "int64", "name": "org.apache.kafka.connect.data.Timestamp"}


def test_a_time_between_two_milliseconds_is_the_earlier_one() -> None:
    at = dt.datetime(2024, 2, 29, 12, 0, 0, 123_456, tzinfo=dt.UTC)
    times = pa.array([at], pa.timestamp("us", "UTC"))
    (record,) = ENCODER.encode(pa.table({"n": [1], "_timestamp": times})).to_pylist()
    assert record["timestamp"] == 1_709_208_000_123


@pytest.mark.parametrize("schemas", [False, True])
def test_what_json_has_no_word_for_is_written_as_connect_does_or_refused(schemas: bool) -> None:
    json_of = Converter("json", has_schemas=schemas)
    encoder = RecordEncoder("t", "", (), Converter("string"), json_of)
    odd = pa.array([float("nan"), float("inf"), float("-inf"), 1.5, None])
    rows = pa.table({"d": odd, "f": odd.cast(pa.float32())})
    found = [json.loads(each) for each in encoder.encode(rows)["value"].to_pylist()]
    values = [each["payload"] if schemas else each for each in found]
    wanted = ["NaN", "Infinity", "-Infinity", 1.5, None]
    assert values == [{"d": each, "f": each} for each in wanted]
    inner = {"d": float("nan"), "l": [1.5, float("inf")], "m": [("k", float("-inf")), ("n", 2.5)]}
    types = {
        "d": pa.float64(),
        "l": pa.list_(pa.float32()),
        "m": pa.map_(pa.string(), pa.float64()),
    }
    nested = pa.table({"s": pa.array([inner, None], pa.struct(types))})
    found = [json.loads(each) for each in encoder.encode(nested)["value"].to_pylist()]
    values = [each["payload"] if schemas else each for each in found]
    told = {"d": "NaN", "l": [1.5, "Infinity"], "m": {"k": "-Infinity", "n": 2.5}}
    assert values == [{"s": told}, {"s": None}]
    times = pa.array([[0, None]], pa.large_list(pa.timestamp("us", "UTC")))
    (text,) = encoder.encode(pa.table({"l": times}))["value"].to_pylist()
    first = json.loads(text)["payload"]["l"][0] if schemas else json.loads(text)["l"][0]
    assert first == (0 if schemas else "1970-01-01T00:00:00Z")
    late = pa.table({"t": pa.array([0, 1000 << 52], pa.timestamp("us", "UTC"))})
    if schemas:
        assert encoder.encode(late).num_rows == 2
    else:
        with pytest.raises(RowsRefused, match="a time before the year 1 or after 9999"):
            encoder.encode(late)


def test_microseconds_that_a_time_of_connect_does_not_have_are_told() -> None:
    encoder = RecordEncoder("t", "", (), Converter("json"), Converter("json", has_schemas=True))
    for kind in (pa.timestamp("us", "UTC"), pa.timestamp("us")):
        times = {"at": pa.array([1_000, 1_001, None], kind)}
        nested = pa.array([None, [{"at": 1_001}]], pa.list_(pa.struct([("at", kind)])))
        for rows in (pa.table(times), pa.table({"l": nested})):
            name = rows.column_names[0]
            with pytest.raises(RowsRefused, match=f"column {name}: a time has microseconds, and"):
                encoder.encode(rows)
            assert encoder.encode(rows.slice(0, 1)).num_rows == 1
    plain = RecordEncoder("t", "", (), Converter("json"), Converter("json"))
    found = plain.encode(pa.table({"at": pa.array([1_001], pa.timestamp("us", "UTC"))}))
    assert found["value"].to_pylist() == [b'{"at":"1970-01-01T00:00:00.001001Z"}']


def test_times_that_have_a_name_of_debezium_only_are_times_in_avro_as_in_json() -> None:
    kinds = {
        "day": ("int", "Date", pa.date32()),
        "second": ("long", "Timestamp", pa.timestamp("ms", "UTC")),
        "at": ("long", "MicroTimestamp", pa.timestamp("us", "UTC")),
        "number": ("long", "NanoTimestamp", pa.int64()),
    }
    fields = [
        {"name": name, "type": ["null", {"type": base, "connect.name": f"io.debezium.time.{of}"}]}
        for name, (base, of, _) in kinds.items()
    ]
    text = json.dumps({"type": "record", "name": "R", "fields": fields})
    wanted = pa.struct([(name, kind) for name, (_, _, kind) in kinds.items()])
    assert avro_schema(RegisteredSchema(1, "AVRO", text)).kind == wanted


def test_fields_without_a_default_that_must_not_be_null_are_needed() -> None:
    fields = [
        {"name": "needed", "type": "long"},
        {"name": "has_default", "type": "long", "default": 0},
        {"name": "may_be_null", "type": ["null", "long"]},
        {"name": "is_null", "type": "null"},
    ]
    text = json.dumps({"type": "record", "name": "R", "namespace": "n", "fields": fields})
    found = avro_schema(RegisteredSchema(1, "AVRO", text))
    assert (found.name, found.needed, found.has_branches) == ("n.R", frozenset({"needed"}), False)
    bare = avro_schema(RegisteredSchema(1, "AVRO", '["null","long","string"]'))
    assert (bare.name, bare.needed, bare.has_branches) == ("", frozenset[str](), True)


@pytest.mark.parametrize("unit", ["ms", "us"])
def test_a_time_of_day_in_avro_that_is_none_is_a_bad_record(unit: str) -> None:
    day, kind = {"ms": (86_400_000, pa.time32("ms")), "us": (86_400_000_000, pa.time64("us"))}[unit]
    texts, flaws = pa.list_(pa.string()), Flaws({}, {})
    values: Any = [[0, None], [day]]
    part = avro_columns._Part([4, 7], values, pa.list_(kind))
    found = avro_columns._columns(part, texts, flaws)
    assert found.to_pylist() == [["00:00:00.000000"[: 12 if unit == "ms" else 15], None], None]
    assert flaws.unreadable == {7: f"a value does not fit its column: {day} is no time of day"}


def test_the_end_of_a_day_is_told_and_not_its_beginning() -> None:
    encoder = RecordEncoder("t", "", (), Converter("json"), Converter("json"))
    for values, kind in (
        ([5, 86_400_000_000], pa.int64()),
        ([[86_400_000_000]], pa.list_(pa.int64())),
    ):
        numbers = pa.array(values, kind)
        times = numbers.cast(pa.time64("us") if kind == pa.int64() else pa.list_(pa.time64("us")))
        with pytest.raises(RowsRefused, match="the time of day 24:00:00, which cannot be written"):
            encoder.encode(pa.table({"at": times}))
    last = pa.array([86_399_999_999]).cast(pa.time64("us"))
    found = encoder.encode(pa.table({"at": last}))["value"].to_pylist()
    assert found == [b'{"at":"23:59:59.999999"}']


def test_what_a_topic_accepts_is_asked_again_once_a_row_was_refused(tmp_path: Path) -> None:
    cluster = Mock(id=lambda: "k")
    cluster.limits.side_effect = [{"t": TopicLimits(most, False, None, None)} for most in (9, 999)]
    rules = MarkRules(0, "fail")
    sink = KafkaSink(ENCODER, StagingFolder(tmp_path), cluster, Mock(), rules, "c")
    rows, commit = pa.table({"n": [1]}), CommitId("c", 0, Token(1, 0), 0)
    with pytest.raises(RowsRefused, match="of 207 bytes, but topic t accepts at most 9:"):
        sink.stage(rows, commit, 0)
    assert sink.stage(rows, commit, 0).rows == 1
    assert sink.stage(rows, commit, 0).rows == 1


def other_records(path: Path) -> None:
    """Put a whole file with one record less in the place of a staged one."""
    with pa.ipc.open_file(pa.memory_map(str(path))) as reader:
        left = reader.read_all().slice(1)
    path.unlink()
    with pa.ipc.new_file(str(path), left.schema) as writer:
        writer.write_table(left)


HARMS: dict[str, Callable[[Path], object]] = {
    "removed": Path.unlink,
    "emptied": lambda path: path.write_bytes(b""),
    "cut off": lambda path: os.truncate(path, path.stat().st_size // 2),
    "replaced": other_records,
    "removed with its folder": lambda path: shutil.rmtree(path.parent),
}
"""What a program that cleans up may do to a staged file."""


@pytest.fixture
def staging_sink(tmp_path: Path) -> tuple[KafkaSink, Mock]:
    """A sink whose topics take all, and what would send its records."""
    cluster = Mock(id=lambda: "k", limits=lambda _: {"t": TopicLimits(999, False, None, None)})
    publisher = Mock(own_mark=None, mark=lambda: None)
    rules = MarkRules(10**9, "fail")
    return KafkaSink(ENCODER, StagingFolder(tmp_path), cluster, publisher, rules, "c"), publisher


@pytest.mark.parametrize("harm", HARMS)
def test_a_batch_whose_file_was_changed_before_its_manifest_does_not_count(
    staging_sink: tuple[KafkaSink, Mock],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    harm: str,
) -> None:
    sink, _ = staging_sink
    rows, commit = pa.table({"n": [1, 2, 3]}), CommitId("c", 0, Token(1, 0), 0)
    path = tmp_path / "c-0/1-0/0.arrow"
    with monkeypatch.context() as patch:
        patch.setattr(staging, "sync_path", lambda _: HARMS[harm](path))
        with pytest.raises(SinkAway) as told:
            sink.stage(rows, commit, 0)
    assert f"{path} was changed after it was written: " in str(told.value)
    assert ("of 3 records it has 2. Nothing" in str(told.value)) == (harm == "replaced")
    assert sink.stage(rows, commit, 0).rows == 3


@pytest.mark.parametrize("harm", HARMS)
def test_a_committed_batch_is_sent_only_as_it_was_written(
    staging_sink: tuple[KafkaSink, Mock], tmp_path: Path, harm: str
) -> None:
    sink, publisher = staging_sink
    commit = CommitId("c", 0, Token(1, 0), 0)
    manifest = sink.stage(pa.table({"n": [1, 2, 3]}), commit, 0)
    path = tmp_path / "c-0/1-0/0.arrow"
    kept = path.read_bytes()
    HARMS[harm](path)
    with pytest.raises(SinkBroken, match="is committed"):
        sink.publish(manifest, commit, 7)
    assert publisher.publish.mock_calls == []
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(kept)
    sink.publish(manifest, commit, 7)
    (sent,) = publisher.publish.mock_calls
    assert [each.num_rows for each in sent.args[0]] == [3]


def test_columns_that_no_record_can_have_are_refused_beforehand() -> None:
    with pytest.raises(SchemaRefused, match="rows cannot be encoded as records: "):
        ENCODER.check(pa.schema([("n", pa.int64()), ("_headers", pa.int64())]))


def test_a_name_in_a_schema_stays_a_name() -> None:
    inner = {"field": "x', uuid(), 'y", **TIME}
    struct = {"field": "s", "type": "struct", "fields": [inner]}
    (made,) = columns_of({"type": "struct", "fields": [struct]}, "p").select
    assert "'x', uuid()" not in made


@pytest.mark.parametrize("schema", [5, {"type": "array", "items": "x"}, {"type": "struct"}])
def test_what_is_no_schema_is_told(schema: object) -> None:
    with pytest.raises(SchemaUnknown):
        columns_of(schema, "p")  # type: ignore[arg-type]


def test_a_map_with_other_keys_than_texts_is_told_as_what_it_is() -> None:
    numbers = {"type": "map", "keys": {"type": "int32"}, "values": {"type": "string"}}
    with pytest.raises(SchemaUnknown, match="a map whose keys are not of the type string"):
        columns_of(numbers, "p")


def test_a_value_whose_decimals_are_numbers_stays_as_it_is() -> None:
    decimal = {"type": "bytes", "name": "org.apache.kafka.connect.data.Decimal"}
    inner = {"type": "struct", "fields": [{"field": "d", **decimal}]}
    array = {"type": "array", "items": inner}
    schema = {"type": "map", "keys": {"type": "string"}, "values": array}
    to_numbers = columns_of(schema, "p").to_numbers
    assert to_numbers is not None
    same = Raw(b'{"a": [{"d": 1.5, "s": 2}, null], "b": [], "c": null}')
    assert to_numbers(same) is same
    other = Raw(b'{"a": [{"d": "fQ==", "s": 2}, null], "b": [], "c": null}')
    assert bytes(to_numbers(other)) == b'{"a":[{"d":125E0,"s":2},null],"b":[],"c":null}'


@pytest.mark.parametrize("name", ["a", "é b", 'a"b', "a\\b", "self"])
def test_a_column_of_any_name_is_a_field_of_the_object(name: str) -> None:
    nested = pa.array([[("k", 1)], None], pa.map_(pa.string(), pa.int64()))
    rows = pa.table({name: ["x", None], "m": nested})
    made = ENCODER.encode(rows)["value"].to_pylist()
    assert [json.loads(each) for each in made] == [
        {name: "x", "m": {"k": 1}},
        {name: None, "m": None},
    ]
