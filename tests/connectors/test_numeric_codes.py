# pyright: basic
"""Texts of digits that say more than their number, `01234`, lose nothing without a word."""

import json
from pathlib import Path

import pytest
from connectors.conftest import Run
from pyspark.sql.types import (
    ArrayType,
    DataType,
    DecimalType,
    DoubleType,
    FloatType,
    LongType,
    MapType,
    StringType,
    StructField,
    StructType,
)

from fairlead.runtime.pipeline.formats.spark.odd_texts import (
    OddTextScan,
    csv_edges,
    odd_in_csv,
    odd_in_json,
)
from fairlead_tests.tasks.numbers import Reports

Config = dict[str, str]
SAMPLED = "n,x,s\n" + 12_000 * "1,2.5,a\n"
"""More than is looked at to infer a schema."""


def scan(separator: str, quote: str, *, trims: bool) -> OddTextScan:
    columns = StructType([StructField("n", LongType())])
    edges = csv_edges(separator, quote, trims=trims)
    return OddTextScan(odd_in_csv(columns, edges, finds_codes=True))


@pytest.mark.parametrize(
    ("text", "has_any"),
    [
        (b"n\n01234\n", True),
        (b"a,01\n", True),
        (b'a,"007"\n', True),
        (b"-01,a\n", True),
        (b"a,+1\n", True),
        (b"a, 01\n", False),
        (b"0,0.5,-0.25,10,100\n", False),
        (b"2026-01-02 03:04:05,x01\n", False),
    ],
)
def test_they_are_found_wherever_a_value_begins_in_pieces_as_well(
    text: bytes, *, has_any: bool
) -> None:
    whole, pieces = (scan(",", '"', trims=False) for _ in range(2))
    whole.feed(text)
    for each in text:
        pieces.feed(bytes([each]))
    assert (whole.found, pieces.found) == (has_any, has_any)


def test_blanks_that_are_trimmed_hide_none_and_separators_are_any_letters() -> None:
    found = scan("|", "", trims=True)
    found.feed(b"a|  01\n")
    assert found.found


@pytest.mark.parametrize(
    ("kind", "text", "are_odd"),
    [
        (LongType(), "\u0661\u0662", (True, False)),
        (DecimalType(10, 2), "-1\uff11.5", (True, True)),
        (LongType(), "\u00e9\u0661", (False, False)),
        (StringType(), "\u0661\u0662", (False, False)),
    ],
)
def test_digits_of_other_scripts_are_found_where_java_would_take_them_for_a_number(
    kind: DataType, text: str, are_odd: tuple[bool, bool]
) -> None:
    columns = StructType([StructField("n", kind)])
    csv, js = (
        OddTextScan(odd_in_csv(columns, b",\r\n", finds_codes=False)),
        OddTextScan(odd_in_json(columns)),
    )
    csv.feed(f"n\n{text}\n".encode())
    js.feed(f'{{"n": "{text}"}}\n'.encode())
    assert (csv.found, js.found) == are_odd


DOUBLE, FLOAT = DoubleType(), FloatType()


@pytest.mark.parametrize(
    ("column", "kind", "text", "is_found"),
    [
        ("n", DOUBLE, '{"n": "1.5"}', True),
        ("n", FLOAT, '{"a": 1,"n" : "\\u0031"}', True),
        ("s", StructType([StructField("n", DOUBLE)]), "{'s': {n: '1'}}", True),
        ("m\u00fc", DOUBLE, '{"m\\u00fc": "1"}', True),
        ("m\u00fc", DOUBLE, '{"m\u00fc": "1"}', True),
        ("n", ArrayType(DOUBLE), '{"n": [1, "2"]}', True),
        ("n", MapType(StringType(), FLOAT), '{"n": {"a": "-2"}}', True),
        ("n", ArrayType(DOUBLE), '{"n": [1], "s": "text"}', False),
        ("n", DOUBLE, '{"n": 1.5, "s": "2", "own": "3"}', False),
        ("n", DecimalType(9, 2), '{"n": "1.5", "i": "2"}', False),
        ("n", LongType(), '{"n": "1"}', False),
    ],
)
def test_a_number_in_quotes_is_found_where_spark_refuses_it(
    column: str, kind: DataType, text: str, *, is_found: bool
) -> None:
    columns = StructType([StructField(column, kind), StructField("i", LongType())])
    scan = OddTextScan(odd_in_json(columns))
    scan.feed(text.encode())
    assert scan.found is is_found


@pytest.fixture
def config(folders: Config) -> Config:
    return {
        **folders,
        "source.format": "csv",
        "source.schema.sample.bytes": "1000",
        "sink.format": "json",
        "tasks.max": "1",
        "errors.deadletterqueue.path": str(Path(folders["sink.path"]).parent / "bad"),
    }


def failures(reports: Reports) -> list[str]:
    return [each.reason for each in reports.statuses if each.state.value == "FAILED"]


def rows(folder: Path) -> list[dict[str, object]]:
    files = [each for each in folder.rglob("*.json") if "_fairlead" not in each.parts]
    return [json.loads(line) for each in files for line in each.read_text().splitlines()]


pytestmark = pytest.mark.spark


BAD = ("01234,2.5,b", "3,+1.5,b")


@pytest.mark.parametrize(
    ("row", "column", "text"),
    [(BAD[0], "`n` (BIGINT)", "01234"), (BAD[1], "`x` (DOUBLE)", "+1.5")],
)
def test_one_that_comes_when_the_schema_is_inferred_is_told_with_a_way_out(
    run: Run, config: Config, tmp_path: Path, row: str, column: str, text: str
) -> None:
    (tmp_path / "in" / "a.csv").write_text(f"{SAMPLED}{row}\n")
    (told,) = failures(run(config))
    assert f'{tmp_path}/in/a.csv: column {column}: For input string: "{text}", which loses' in told
    assert "give the columns in `source.schema`" in told
    assert rows(tmp_path / "out") == []


def test_those_that_come_when_the_schema_is_inferred_are_bad_rows(
    run: Run, config: Config, tmp_path: Path
) -> None:
    lines = "".join(f"{row}\n" for row in BAD)
    (tmp_path / "in" / "a.csv").write_text(f"{SAMPLED}{lines}")
    assert failures(run({**config, "errors.tolerance": "all"})) == []
    assert len(rows(tmp_path / "out")) == 12_000
    told = [(each["raw"], "loses zeros" in str(each["reason"])) for each in rows(tmp_path / "bad")]
    assert sorted(told) == [(row, True) for row in BAD]


def test_a_schema_that_is_given_is_taken_at_its_word_and_texts_stay_as_they_are(
    run: Run, config: Config, tmp_path: Path
) -> None:
    (tmp_path / "in" / "a.csv").write_text("n,x,s\n01234,+1.5,007\n")
    assert failures(run({**config, "source.schema": "n BIGINT, x STRING, s STRING"})) == []
    assert rows(tmp_path / "out") == [{"n": 1234, "x": "+1.5", "s": "007"}]
