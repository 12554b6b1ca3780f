# pyright: basic
"""Rows of JSON that Arrow has read while it looked for columns are not read again by Spark."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as papq
import pytest
from connectors.conftest import Run
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    DataType,
    DecimalType,
    DoubleType,
    FloatType,
    IntegerType,
    LongType,
    MapType,
    StringType,
    StructField,
    StructType,
    TimestampNTZType,
    TimestampType,
)

from fairlead.events.model import Resource
from fairlead.runtime.pipeline.engines.embedded.engine import Embedded
from fairlead.runtime.pipeline.formats.evolution.policy import WIDEN, SchemaPolicy
from fairlead.runtime.pipeline.formats.json.attempts import ProofAttempts
from fairlead.runtime.pipeline.formats.json.columns import JsonColumns
from fairlead.runtime.pipeline.formats.json.proof import JsonReading, reading_of
from fairlead.runtime.pipeline.formats.json.records import parse_records, with_nulls
from fairlead.runtime.pipeline.spi.context import Context
from fairlead.runtime.pipeline.stores.files.source import reading as readings
from fairlead.runtime.pipeline.stores.files.source.formats import ReadFormat
from fairlead.runtime.pipeline.stores.files.source.listing import stat_file
from fairlead.runtime.pipeline.stores.files.source.reading import Reading

TEXT = StringType()


def schema_of(*kinds: DataType) -> StructType:
    return StructType([StructField(name, kind) for name, kind in zip("abcd", kinds, strict=False)])


def reading(*kinds: DataType) -> JsonReading:
    made = reading_of(schema_of(*kinds))
    assert made is not None
    return made


@pytest.mark.parametrize(
    ("schema", "is_plain"),
    [
        (schema_of(TEXT, DoubleType(), TimestampType(), ArrayType(schema_of(LongType()))), True),
        (schema_of(FloatType()), False),
        (schema_of(DecimalType(4, 2)), False),
        (schema_of(MapType(TEXT, TEXT)), False),
        (schema_of(BinaryType()), False),
        (schema_of(schema_of(TimestampType())), False),  # its texts are not looked at
        (schema_of(StructType([])), False),
        (StructType([]), False),
        (StructType([StructField("a", TEXT, nullable=False)]), False),
        (schema_of(ArrayType(TEXT, containsNull=False)), False),
        (StructType([StructField("a", TEXT), StructField("A", TEXT)]), False),
        (StructType([StructField("a", TEXT, metadata={"comment": "x"})]), False),
    ],
)
def test_only_columns_of_plain_types_are_read_by_arrow(
    schema: StructType, *, is_plain: bool
) -> None:
    assert (reading_of(schema) is not None) is is_plain


@pytest.mark.parametrize(
    "text",
    [
        *(b"null\n", b"null", b" null\n{}\n", b"[]\n", b"1\n", b"\n", b"\0", b'{"a":1}\n\0'),
        *(b'{"a":1}\n\n{"a":2}\n', b'{"a":1}\nnull\n{"a":2}\n', b'{"a":1}{"a":2}\n{"a":\n3}\n'),
        *(b'{"a":1}\n ', b'{"a":1,\r"b":2}\n', b'{"a":1}\r{"a":2}\n', b'\xef\xbb\xbf{"a":1}\n'),
    ],
)
def test_arrow_sees_only_lines_that_are_objects(text: bytes) -> None:
    assert reading(LongType()).parse(text) is None


@pytest.mark.parametrize("end", [b"\n", b"\r\n"])
def test_both_line_ends_are_plain_and_the_last_may_be_missing(end: bytes) -> None:
    for last in (b"", end):
        table = reading(LongType()).parse(b'{"a":1}' + end + b'{"a":2}' + last)
        assert table is not None
        assert table["a"].to_pylist() == [1, 2]


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        (DoubleType(), "-0.0"),
        (DoubleType(), "-0"),
        (DoubleType(), "Infinity"),
        (ArrayType(DoubleType()), "[1, -0]"),
        (TimestampType(), '"2013-01-01T10:00:00"'),  # it has no zone
        (TimestampNTZType(), '"2013-02-29"'),
        (StringType(), "1"),
        (IntegerType(), "2147483648"),
        (IntegerType(), "1.0"),
    ],
)
def test_values_that_the_readers_may_take_otherwise_are_not_kept(
    kind: DataType, value: str
) -> None:
    how = reading(kind)
    parsed = how.parse(f'{{"a":{value}}}'.encode())
    assert parsed is None or how.typed(parsed) is None


@pytest.mark.parametrize(
    "value", ["9" * 30, "0." + "1" * 300, "Infinity", '{"' + "n" * 20_000 + '": 1}']
)
def test_other_columns_are_passed_over_only_if_spark_does_so(value: str) -> None:
    how = reading(LongType())
    parsed = how.parse(f'{{"a":1,"z":{value}}}'.encode())
    assert parsed is None or how.typed(parsed) is None


def test_rows_are_kept_block_by_block_and_only_all_of_them() -> None:
    line = b'{"a":1,"b":"%s"}\n' % (b"x" * 1_000_000)
    for lines, rows in (([line] * 10, 10), ([*[line] * 9, b"{}\n\n"], None), ([line] * 70, None)):
        kept = JsonColumns(schema_of(LongType(), TEXT), reading=reading(LongType(), TEXT))
        for each in lines:
            kept.feed(each)
        assert kept.end().names == ["a", "b"]
        assert (kept.rows and kept.rows.num_rows) == rows


def test_records_without_a_value_are_rows_without_values() -> None:
    how, values = reading(LongType()), pa.chunked_array([[None, b'{"a":1}'], [None, b'{"a":2}']])
    parsed = parse_records(values, how)
    assert parsed is not None
    assert with_nulls(parsed, values)["a"].to_pylist() == [None, 1, None, 2]


@pytest.mark.parametrize(
    "values",
    [
        *([None], [b""], [b"null"], [b'{"a":1}', b""], [b'{"a":1}\n{"a":2}'], [b'{"a":1}{"a":2}']),
        *([b'{"b":"\xff"}'], [rb'{"b":"\ud83d"}'], [b'{"b":"x\ny"}'], [b'{"a":', b"1}"]),
        [b'{"a":' + b"[" * 200 + b"]" * 200 + b"}"],
    ],
)
def test_records_that_are_no_plain_objects_are_left_to_spark(values: list[bytes | None]) -> None:
    column = pa.chunked_array([pa.array(values, pa.binary())])
    assert parse_records(column, reading(LongType(), TEXT)) is None


def test_what_often_fails_is_tried_less_often() -> None:
    attempts, tried = ProofAttempts(is_allowed=True), list[int]()
    for turn in range(100):
        if attempts.is_due:
            tried.append(turn)
        attempts.end_turn(is_tried=attempts.is_due, has_failed=True)
        assert not attempts.has_succeeded
    assert tried == [0, 2, 6, 14, 30, 62, 94]
    while not attempts.is_due:
        attempts.end_turn(is_tried=False, has_failed=False)
    attempts.end_turn(is_tried=True, has_failed=False)
    assert attempts.has_succeeded
    assert attempts.is_due


@pytest.mark.spark
def test_a_batch_of_proved_files_is_a_table_and_any_other_one_is_sparks(
    engine: Embedded, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    texts = {
        "a": '{"a":1}\n',
        "b": '{"a":2,"b":"x"}\n{}\n',
        "new": '{"a":3,"c":true}\n',
        "local": '{"b":4}\n',
    }
    files = {name: tmp_path / name for name in texts}
    for name, text in texts.items():
        files[name].write_text(text)
    found = {name: stat_file(tmp_path, name) for name in texts}

    def run(spark: Any) -> list[tuple[bool, list[Any]]]:
        policy = SchemaPolicy(WIDEN, is_exact=True)
        form = ReadFormat("json", "a BIGINT, b STRING", policy=policy)
        made = Reading(tmp_path, form, Context(Resource("c", 0), print))

        def read(*names: str) -> tuple[bool, list[Any]]:
            rows: Any = made.read(spark, [each for name in names if (each := found[name])])
            is_table = isinstance(rows, pa.Table)
            assert made.has_table is is_table
            held = rows.to_pylist() if is_table else [row.asDict() for row in rows.collect()]
            return is_table, sorted((tuple(each.values()) for each in held), key=str)

        outcomes = [read("a", "b"), read("a", "new"), read("a"), read("a", "new")]
        monkeypatch.setattr(readings, "MOST_HELD", 5)
        return [*outcomes, read("a"), read("local")]

    assert engine.run("json", run) == [
        (True, [(1, None), (2, "x"), (None, None)]),
        (False, [(1, None, None), (3, None, True)]),  # a column more
        (False, [(1, None, None)]),  # no attempt
        (True, [(1, None, None), (3, None, True)]),
        (False, [(1, None, None)]),  # too many bytes
        (False, [(None, "4", None)]),
    ]


@pytest.mark.spark
def test_a_pipeline_delivers_the_rows_of_a_table_and_tells_of_them(
    run: Run, folders: Mapping[str, str]
) -> None:
    (Path(folders["source.path"]) / "a.json").write_text('{"n":1,"s":"é"}\n{"n":2}\n')
    given = {"source.format": "json", "source.schema": "n INT, s STRING", "sink.format": "parquet"}
    reports = run({**folders, **given})
    assert [each.trace for each in reports.statuses if each.trace] == []
    (written,) = Path(folders["sink.path"]).glob("part-*")
    assert papq.read_table(written).to_pylist() == [{"n": 1, "s": "é"}, {"n": 2, "s": None}]
    assert [each.lanes.rows for each in reports.batches] == [2]
