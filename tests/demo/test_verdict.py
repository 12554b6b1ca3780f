"""A verdict passes on the whole output only, and names what is wrong with any other."""
# pyright: basic

import json
import math
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyarrow import csv, dataset, parquet

from fairlead.runtime.demo.output import Format, visible_files
from fairlead.runtime.demo.verdict import ExpectedRows, Verdict, expect_flights, judge

START = datetime(2013, 1, 1, 10, tzinfo=UTC)
SCHEMA = pa.schema(
    {
        "time_hour": pa.timestamp("us", tz="UTC"),
        "carrier": pa.string(),
        "flight": pa.int64(),
        "distance": pa.int64(),
        "air_time": pa.int64(),
    }
)
ROWS: list[dict[str, Any]] = [
    {
        "time_hour": START + timedelta(hours=n // 4),
        "carrier": ("AA", "UA", "9E")[n % 3],
        "flight": n,
        "distance": 100 + n,
        "air_time": None if n % 5 == 0 else n,
    }
    for n in range(24)
]
KEYS = ("time_hour", "carrier", "flight")
EXPECTED = ExpectedRows.of(
    pa.Table.from_pylist(ROWS, SCHEMA),
    keys=KEYS,
    sums=("distance", "air_time"),
    partition="carrier",
)


def test_the_whole_output_passes_however_it_is_cut(tmp_path: Path) -> None:
    for start in range(0, 24, 5):
        _write(tmp_path, ROWS[start : start + 5], name=f"part-{start}")
    verdict = judge(EXPECTED, tmp_path)
    assert verdict.passed
    assert [(check.name, check.expected, check.found) for check in verdict.checks] == [
        ("unreadable files", 0, 0),
        ("rows", 24, 24),
        ("rows doubled", 0, 0),
        ("rows lost", 0, 0),
        ("rows of no source", 0, 0),
        ("values of distance", 24, 24),
        ("sum of distance", 2676, 2676),
        ("values of air_time", 19, 19),
        ("sum of air_time", 226, 226),
        ("carriers with another count", 0, 0),
    ]


def test_all_flights_pass_and_without_one_day_they_do_not(archive: Path, tmp_path: Path) -> None:
    expected = expect_flights(archive)
    _write_table(tmp_path, expected.rows)
    assert judge(expected, tmp_path).passed
    hawaiian = next((tmp_path / "carrier=HA").iterdir())
    hawaiian.unlink()
    assert _failed(judge(expected, tmp_path))["rows"] == (336_776, 336_434)


def test_a_doubled_row_is_found_and_shown(tmp_path: Path) -> None:
    _write(tmp_path, ROWS)
    _write(tmp_path, ROWS[3:4], name="again")
    verdict = judge(EXPECTED, tmp_path)
    assert _failed(verdict) == {
        "rows": (24, 25),
        "rows doubled": (0, 1),
        "values of distance": (24, 25),
        "sum of distance": (2676, 2779),
        "values of air_time": (19, 20),
        "sum of air_time": (226, 229),
        "carriers with another count": (0, 1),
    }
    details = {check.name: check.detail for check in verdict.checks if check.detail}
    assert details == {
        "rows doubled": "time_hour=2013-01-01 10:00:00+00:00, carrier=AA, flight=3",
        "carriers with another count": "AA: 9 rows instead of 8",
    }


def test_a_lost_row_is_found_and_a_doubled_one_does_not_make_up_for_it(tmp_path: Path) -> None:
    _write(tmp_path, [*ROWS[:6], *ROWS[7:], ROWS[9]])
    failed = _failed(judge(EXPECTED, tmp_path))
    assert failed == {
        "rows doubled": (0, 1),
        "rows lost": (0, 1),
        "sum of distance": (2676, 2679),
        "sum of air_time": (226, 229),
    }


def test_a_row_of_no_source_is_found(tmp_path: Path) -> None:
    _write(tmp_path, [*ROWS[:-1], {**ROWS[-1], "flight": 999}])
    failed = _failed(judge(EXPECTED, tmp_path))
    assert failed == {"rows lost": (0, 1), "rows of no source": (0, 1)}


def test_a_changed_value_is_found(tmp_path: Path) -> None:
    _write(tmp_path, [*ROWS[:-1], {**ROWS[-1], "distance": 1}])
    assert _failed(judge(EXPECTED, tmp_path)) == {"sum of distance": (2676, 2554)}


def test_a_missing_value_that_became_zero_is_found(tmp_path: Path) -> None:
    _write(tmp_path, [{**ROWS[0], "air_time": 0}, *ROWS[1:]])
    assert _failed(judge(EXPECTED, tmp_path)) == {"values of air_time": (19, 20)}


def test_a_file_under_the_wrong_partition_is_found(tmp_path: Path) -> None:
    _write(tmp_path, ROWS)
    (tmp_path / "carrier=9E").rename(tmp_path / "carrier=XX")
    failed = _failed(judge(EXPECTED, tmp_path))
    assert failed == {
        "rows lost": (0, 8),
        "rows of no source": (0, 8),
        "carriers with another count": (0, 2),
    }


def test_a_truncated_file_fails_by_name(tmp_path: Path) -> None:
    _write(tmp_path, ROWS)
    path = next((tmp_path / "carrier=UA").iterdir())
    path.write_bytes(path.read_bytes()[:-20])
    (tmp_path / "carrier=UA" / "empty.parquet").write_bytes(b"")
    verdict = judge(EXPECTED, tmp_path)
    assert _failed(verdict)["unreadable files"] == (0, 2)
    assert _failed(verdict)["rows lost"] == (0, 8)
    assert "carrier=UA/empty.parquet: " in verdict.checks[0].detail
    assert f"carrier=UA/{path.name}: " in verdict.checks[0].detail


def test_a_visible_partial_file_fails_by_name(tmp_path: Path) -> None:
    _write(tmp_path, ROWS)
    (tmp_path / "carrier=UA" / "part-9.parquet.tmp").write_bytes(b"PAR1")
    checks = judge(EXPECTED, tmp_path).checks
    assert [(check.found, check.detail) for check in checks if not check.ok] == [
        (1, "carrier=UA/part-9.parquet.tmp: a visible file that is not named as parquet")
    ]


def test_a_file_that_lacks_a_column_or_has_another_type_fails_by_name(tmp_path: Path) -> None:
    _write(tmp_path, ROWS)
    whole = pa.Table.from_pylist(ROWS, SCHEMA)
    parquet.write_table(whole.drop_columns(["flight", "air_time"]), tmp_path / "lacks.parquet")
    words = whole.set_column(3, "distance", pa.array(["far"] * 24))
    parquet.write_table(words, tmp_path / "words.parquet")
    verdict = judge(EXPECTED, tmp_path)
    assert _failed(verdict) == {"unreadable files": (0, 2)}
    lacks, words_detail = verdict.checks[0].detail.split("; ")
    assert lacks == "lacks.parquet: has no column flight, air_time"
    assert words_detail.startswith("words.parquet: Failed to parse string: 'far'")


def test_hidden_names_are_no_output(tmp_path: Path) -> None:
    _write(tmp_path, ROWS)
    whole = sorted(visible_files(tmp_path))
    for name in ("_SUCCESS", ".part-0.parquet.crc", "_fairlead/staging/x.parquet", ".tmp/y"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes(b"no parquet")
    (tmp_path / "_day=1").mkdir()
    (tmp_path / "_day=1" / "z.parquet").write_bytes(b"")
    assert sorted(visible_files(tmp_path)) == sorted([*whole, tmp_path / "_day=1" / "z.parquet"])


def test_an_output_that_is_not_there_has_lost_every_row(tmp_path: Path) -> None:
    verdict = judge(EXPECTED, tmp_path / "never")
    assert not verdict.passed
    assert (_failed(verdict)["rows"], _failed(verdict)["rows lost"]) == ((24, 0), (0, 24))
    assert verdict.checks[3].detail.endswith("; and 21 more")


def test_other_types_of_the_same_values_pass(tmp_path: Path) -> None:
    for unit, number in (("s", pa.int32()), ("ns", pa.float64()), ("ms", pa.decimal128(22, 2))):
        kinds = [pa.timestamp(unit, tz="UTC"), pa.string(), pa.int32(), number, number]
        _write_table(
            tmp_path / unit,
            EXPECTED.rows.select(SCHEMA.names).cast(
                pa.schema(zip(SCHEMA.names, kinds, strict=True))
            ),
        )
        assert judge(EXPECTED, tmp_path / unit).passed
    text = EXPECTED.rows.select(SCHEMA.names).to_pylist()
    for row in text:
        row["time_hour"] = row["time_hour"].strftime("%Y-%m-%dT%H:%M:%SZ")
    _write_table(tmp_path / "text", pa.Table.from_pylist(text))
    assert judge(EXPECTED, tmp_path / "text").passed


@pytest.mark.parametrize("file_format", ["csv", "json"])
def test_csv_and_json_are_judged_alike(tmp_path: Path, file_format: Format) -> None:
    first, second = tmp_path / f"a.{file_format}", tmp_path / f"b.{file_format}"
    first.write_text(_text(ROWS[:1], file_format))
    second.write_text(_text(ROWS[1:], file_format))
    assert judge(EXPECTED, tmp_path, file_format).passed
    second.write_text(second.read_text()[:-4])
    cut = f"b.{file_format}: the last line has no end"
    assert judge(EXPECTED, tmp_path, file_format).checks[0].detail.startswith(cut)


def test_sums_are_exact_beyond_64_bits_in_decimals_and_in_any_order_of_floats(
    tmp_path: Path,
) -> None:
    table = pa.table(
        {
            "key": [1, 2, 3, 4],
            "int": [2**62, 2**62, 2**62, 2**62],
            "decimal": pa.array([Decimal("0.10")] * 4, pa.decimal128(10, 2)),
            "float": [1e16, 1.0, -1e16, math.nan],
        }
    )
    expected = ExpectedRows.of(table, keys=["key"], sums=["int", "decimal", "float"])
    parquet.write_table(table.take([3, 0, 2, 1]), tmp_path / "part-0.parquet")
    verdict = judge(expected, tmp_path)
    assert verdict.passed
    assert [check.found for check in verdict.checks if check.name.startswith("sum")] == [
        2**64,
        Decimal("0.40"),
        1.0,
    ]


def test_null_is_a_key_and_a_partition_like_any_other(tmp_path: Path) -> None:
    table = pa.table({"key": [None, "a b/c", "a b/c"], "value": [1, 2, 3]})
    expected = ExpectedRows.of(table, keys=["key", "value"], sums=["value"], partition="key")
    _write_table(tmp_path, table, "key")
    assert {path.parent.name for path in visible_files(tmp_path)} == {
        "key=__HIVE_DEFAULT_PARTITION__",
        "key=a%20b%2Fc",
    }
    assert judge(expected, tmp_path).passed


def test_columns_that_the_source_lacks_or_cannot_sum_are_refused() -> None:
    with pytest.raises(ValueError, match=r"not in the source: \['gate'\]; not numeric: \['carri"):
        ExpectedRows.of(EXPECTED.rows, keys=["gate"], sums=["carrier"])


def _failed(verdict: Verdict) -> dict[str, tuple[Any, Any]]:
    return {check.name: (check.expected, check.found) for check in verdict.checks if not check.ok}


def _write(root: Path, rows: list[dict[str, Any]], *, name: str = "part") -> None:
    _write_table(root, pa.Table.from_pylist(rows, SCHEMA), name=name)


def _write_table(
    root: Path, table: pa.Table, partition: str = "carrier", *, name: str = "part"
) -> None:
    kind = table.schema.field(partition)
    dataset.write_dataset(
        table,
        root,
        format="parquet",
        partitioning=dataset.partitioning(pa.schema([kind]), flavor="hive"),
        basename_template=f"{name}-{{i}}.parquet",
        existing_data_behavior="overwrite_or_ignore",
    )


def _text(rows: list[dict[str, Any]], file_format: Format) -> str:
    """The rows as Spark writes them: instants with milliseconds, no field for a null in JSON."""
    told = [{**row, "time_hour": row["time_hour"].strftime("%FT%T.000Z")} for row in rows]
    if file_format == "json":
        full = [{k: v for k, v in row.items() if v is not None} for row in told]
        return "".join(json.dumps(row) + "\n" for row in full)
    sink = pa.BufferOutputStream()
    csv.write_csv(pa.Table.from_pylist(told), sink, csv.WriteOptions(quoting_style="none"))
    return str(sink.getvalue().to_pybytes(), "utf-8")
