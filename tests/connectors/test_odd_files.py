# pyright: basic
"""What Spark alone would lose or refuse: names of columns and of files, columns of nothing."""

import datetime as dt
import json
import zlib
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any
from uuid import UUID

import pyarrow as pa
import pyarrow.parquet as papq
import pytest
from connectors.conftest import Run

from fairlead.runtime.pipeline.formats.evolution.policy import SchemaPolicy
from fairlead.runtime.pipeline.spi.errors import BadInput
from fairlead.runtime.pipeline.stores.files.copies import Copies
from fairlead.runtime.pipeline.stores.files.source.file_survey import survey_file
from fairlead.runtime.pipeline.stores.files.source.formats import ReadFormat

NEVER = dt.datetime.fromisoformat("2026-01-01 05:00")
WIDE = pa.array([Decimal("1.5")], pa.decimal256(45, 2))
pytestmark = pytest.mark.spark


def rows_through(run: Run, config: dict[str, str]) -> list[dict[str, Any]]:
    reports = run({**config, "sink.format": "json", "source.schema.evolution": "add-columns"})
    assert [each.trace for each in reports.statuses if each.trace] == []
    files = Path(config["sink.path"]).glob("*.json")
    lines = [line for file in files for line in file.read_text().splitlines()]
    return sorted((json.loads(line) for line in lines), key=repr)


@pytest.mark.parametrize("fmt", ["csv", "json"])
def test_a_column_with_sparks_name_for_bad_rows_is_a_column_like_others(
    run: Run, folders: dict[str, str], tmp_path: Path, fmt: str
) -> None:
    text = "a,_corrupt_record\n1,x\n" if fmt == "csv" else '{"a": 1, "_corrupt_record": "x"}\n'
    (tmp_path / "in" / "a").write_text(text)
    found = rows_through(run, {**folders, "source.format": fmt})
    assert found == [{"a": 1, "_corrupt_record": "x"}]


def test_a_column_of_parquet_without_any_value_is_null_whatever_others_have_in_it(
    run: Run, folders: dict[str, str], tmp_path: Path
) -> None:
    for name, table in {
        "a": {"n": [1], "S": pa.nulls(1), "t": ["x"]},
        "b": {"n": [2], "S": ["y"], "t": pa.nulls(1)},
        "c": {"n": pa.nulls(1), "S": pa.nulls(1), "t": pa.nulls(1)},
        "d": {"n": [3], "S": pa.nulls(1), "t": ["z"], "new": pa.nulls(1)},
    }.items():
        papq.write_table(pa.table(table), tmp_path / "in" / name)
    found = rows_through(run, {**folders, "source.format": "parquet"})
    assert found == [{"n": 1, "t": "x"}, {"n": 2, "S": "y"}, {"n": 3, "t": "z"}, {}]


def test_times_of_nanoseconds_in_parquet_are_times_of_microseconds(
    run: Run, folders: dict[str, str], tmp_path: Path
) -> None:
    times = [-1, 1_700_000_000_123_456_789, None]
    columns = {
        "at": pa.array(times, pa.timestamp("ns", "UTC")),
        "local": pa.array(times, pa.timestamp("ns")),
        "count": pa.array(times, pa.timestamp("ns")),
    }
    papq.write_table(pa.table(columns), tmp_path / "in" / "fine")
    coarse = {"at": pa.array([0], pa.timestamp("us", "UTC")), "local": [None], "count": [7]}
    papq.write_table(pa.table(coarse), tmp_path / "in" / "coarse")
    given = {"source.schema": "at TIMESTAMP, local TIMESTAMP_NTZ, count BIGINT"}
    given |= {"source.format": "parquet", "spark.conf.spark.sql.session.timeZone": "Asia/Tokyo"}
    found = rows_through(run, {**folders, **given})
    assert found == [
        {
            "at": "1970-01-01T08:59:59.999999+09:00",
            "local": "1969-12-31T23:59:59.999999",
            "count": -1,
        },
        {"at": "1970-01-01T09:00:00.000000+09:00", "count": 7},
        {
            "at": "2023-11-15T07:13:20.123456+09:00",
            "local": "2023-11-14T22:13:20.123456",
            "count": 1_700_000_000_123_456_789,
        },
        {},
    ]


def test_types_of_parquet_that_spark_reads_as_others_are_themselves_at_any_depth(
    run: Run, folders: dict[str, str], tmp_path: Path
) -> None:
    def inner(uuid: pa.DataType) -> pa.DataType:
        at = pa.timestamp("ns")
        return pa.struct([("at", at), ("nothing", pa.null()), ("n", pa.int32()), ("of", uuid)])

    def types(uuid: pa.DataType) -> dict[str, pa.DataType]:
        return {
            "id": uuid,
            "ids": pa.list_(uuid),
            "s": inner(uuid),
            "deep": pa.list_(pa.map_(pa.string(), pa.list_(inner(uuid)))),
            "by": pa.map_(uuid, pa.timestamp("ns", "UTC")),
            "nulls": pa.list_(pa.null()),
            "wide": pa.list_(pa.uint32()),
        }

    one = {"at": 1_700_000_000_123_456_789, "nothing": None, "n": 7, "of": UUID(int=6).bytes}
    values = {
        "id": UUID(int=5).bytes,
        "ids": [UUID(int=1).bytes, None],
        "s": one,
        "deep": [[("k", [one])], None],
        "by": [(UUID(int=2).bytes, -1)],
        "nulls": [None, None],
        "wide": [(1 << 32) - 1],
    }
    kinds = types(pa.uuid())
    columns = {
        name: made
        if (made := pa.array([values[name]], kind)).type == kinds[name]
        else made.cast(kinds[name])
        for name, kind in types(pa.binary(16)).items()
    }
    papq.write_table(pa.table(columns), tmp_path / "in" / "a")
    days = pa.array([NEVER], pa.timestamp("us"))
    old = pa.table({"top": days, "s": pa.StructArray.from_arrays([days], ["old"])})
    papq.write_table(old, tmp_path / "in" / "b", use_deprecated_int96_timestamps=True)
    papq.write_table(pa.table({"nulls": [[1]]}), tmp_path / "in" / "c")
    given = {"source.format": "parquet", "spark.conf.spark.sql.session.timeZone": "Asia/Tokyo"}
    found = rows_through(run, {**folders, **given})
    inside = {"at": "2023-11-14T22:13:20.123456", "n": 7, "of": str(UUID(int=6))}
    local = "2026-01-01T14:00:00.000000+09:00"
    assert found == [
        {
            "id": str(UUID(int=5)),
            "ids": [str(UUID(int=1)), None],
            "s": inside,
            "deep": [{"k": [inside]}, None],
            "by": {str(UUID(int=2)): "1970-01-01T08:59:59.999999+09:00"},
            "nulls": [None, None],
            "wide": [(1 << 32) - 1],
        },
        {"nulls": [1]},
        {"s": {"old": local}, "top": local},
    ]


def test_lists_of_parquet_whose_elements_are_all_null_are_lists_of_nulls(
    run: Run, folders: dict[str, str], tmp_path: Path
) -> None:
    lists = [[[None, None]], [None], [[]], None]
    inner = {"n": pa.null(), "t": pa.timestamp("ns"), "u": pa.binary(16)}
    table = {name: pa.array(lists, pa.list_(pa.list_(kind))) for name, kind in inner.items()}
    table["u"] = table["u"].cast(pa.list_(pa.list_(pa.uuid())))
    table["m"] = pa.array(
        [[("k", [None])], [("k", None)], [], None], pa.map_("string", pa.list_(inner["t"]))
    )
    papq.write_table(pa.table({"id": range(4), **table}), tmp_path / "in" / "a")
    found = rows_through(run, {**folders, "source.format": "parquet"})
    maps = [{"k": [None]}, {"k": None}, {}]
    assert found == [
        {"id": at, "m": maps[at], **dict.fromkeys(inner, lists[at])} for at in range(3)
    ] + [{"id": 3}]


@pytest.mark.usefixtures("engine")  # schemas are parsed by it
@pytest.mark.parametrize(
    ("late", "told"),
    [
        ({"n": [1], "s": [{"at": NEVER}]}, "column `s.at` has times in UTC in some files, and"),
        ({"n": [1], "h": pa.array([1.5], pa.float16())}, "column `h` is halffloat, which Spark"),
        ({"n": [1], "t": [{"d": dt.time(5)}]}, r"`t` is time64.us. in it, .* its microseconds"),
        (
            {"n": [1], "d": WIDE},
            r"column `d` is decimal256\(45, 2\), which Spark cannot read; .*38",
        ),
    ],
)
def test_a_later_file_of_parquet_that_spark_would_misread_is_told(
    tmp_path: Path, late: dict[str, Any], told: str
) -> None:
    schema = pa.struct([("at", pa.timestamp("us", "UTC"))])
    papq.write_table(pa.table({"n": [1], "s": pa.array([{"at": NEVER}], schema)}), tmp_path / "a")
    form = ReadFormat("parquet", "`n` BIGINT, `s` STRUCT<`at`: TIMESTAMP>", is_inferred=True)
    form = replace(form, policy=SchemaPolicy.of("add-columns", is_given=False, is_exact=False))
    assert survey_file(form, tmp_path / "a", Copies(), None).converted == {}
    papq.write_table(pa.table(late), tmp_path / "b")
    with pytest.raises(BadInput, match=rf"^{tmp_path}/b: .*{told}"):
        survey_file(form, tmp_path / "b", Copies(), None)
    given = replace(form, is_inferred=False, policy=SchemaPolicy())
    assert survey_file(given, tmp_path / "b", Copies(), None).valueless == frozenset()


@pytest.mark.parametrize("fmt", ["csv", "json"])
def test_a_deflated_file_is_read_by_its_header_to_its_end(
    run: Run, folders: dict[str, str], tmp_path: Path, fmt: str
) -> None:
    head, line = (b"s,n\n", b"x,%d\n") if fmt == "csv" else (b"", b'{"s": "x", "n": %d}\n')
    parts = [head + line % 0, b"".join(line % each for each in range(1, 2_000))]
    file = tmp_path / "in" / f"a.{fmt}.deflate"
    file.write_bytes(b"".join(map(zlib.compress, parts)))
    config = {**folders, "source.format": fmt, "source.schema": "n INT, s STRING"}
    found = rows_through(run, config)
    assert sorted(each["n"] for each in found) == [*range(2_000)]
    assert {each["s"] for each in found} == {"x"}


@pytest.mark.parametrize("fmt", ["csv", "json"])
def test_a_file_of_zstandard_is_read_with_all_columns_that_it_has(
    run: Run, folders: dict[str, str], tmp_path: Path, fmt: str
) -> None:
    text = b"n,new\n1,5\n" if fmt == "csv" else b'{"n": 1, "new": 5}\n'
    packed = pa.Codec("zstd").compress(text, asbytes=True)
    (tmp_path / "in" / f"a.{fmt}.zst").write_bytes(packed)
    config = {**folders, "source.format": fmt, "source.schema": "n INT"}
    assert rows_through(run, config) == [{"n": 1, "new": 5}]


@pytest.mark.parametrize("tolerance", ["none", "all"])
def test_files_are_read_whatever_their_names(
    run: Run, folders: dict[str, str], tmp_path: Path, tolerance: str
) -> None:
    names = ["2024-01-01T12:00:00.csv", "a:b", "[x]{y}*?.csv", "%20 \\.csv", "k=v/\n'\".csv", ":"]
    names += ["12:00/x[1].csv", "12:00/[1]/x.csv", "12:00/{1}/x:y.csv", "foo.:", "plain.gz:"]
    for number, name in enumerate(names):
        file = tmp_path / "in" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(f"n\n{number}\n")
    found = rows_through(run, {**folders, "source.format": "csv", "errors.tolerance": tolerance})
    assert sorted(each["n"] for each in found) == [*range(len(names))]


@pytest.mark.parametrize("tolerance", ["none", "all"])
def test_a_header_with_a_name_too_long_is_told_with_its_file_and_tells_no_schema(
    run: Run, folders: dict[str, str], tmp_path: Path, tolerance: str
) -> None:
    bad = tmp_path / "in" / "a.csv"
    bad.write_text(f"n,{'s' * 131_073}\n1,a\n")
    (tmp_path / "in" / "b.csv").write_text("n,s\n2,b\n")
    config = {**folders, "source.format": "csv", "sink.format": "json"}
    config |= {"errors.tolerance": tolerance, "errors.deadletterqueue.path": str(tmp_path / "bad")}
    told = {each.trace for each in run(config).statuses if each.trace}
    letters = [json.loads(each.read_text()) for each in (tmp_path / "bad").glob("*.json")]
    why = "a name in its header has more than 131072 characters"
    if tolerance == "none":
        assert [each.startswith(f"{bad}: {why}") for each in told] == [True]
    else:
        (letter,) = letters
        assert (letter["position"], letter["reason"][: len(why)]) == ({"file": str(bad)}, why)
        (file,) = (tmp_path / "out").glob("*.json")
        assert (told, json.loads(file.read_text())) == (set(), {"n": 2, "s": "b"})
