# pyright: basic
"""CSV is RFC 4180 both ways: what others write is read as it is, and others read what is written.

Tables of nasty text go from Python's csv, pyarrow and duckdb through a connector into csv, which
all of them read, and from there through another connector into parquet.
"""

import csv
import io
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv as pacsv
import pyarrow.parquet as papq
import pytest
from connectors.conftest import Run
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from fairlead_tests.tasks.memory_ledger import MemoryLedger

duckdb = pytest.importorskip("duckdb")
pytestmark = pytest.mark.spark

Row = tuple[str | None, ...]
NASTY = (
    *("", " ", "  x ", "\t", "a,b", 'a"b', '"', '""', '"a"', ',"', '",', "\\", "C:\\temp\\", '\\"'),
    *("\n", "\r", "\r\n", "a\nb", "a\rb", "a\r\nb", 'a"\n"b', "x\n", "\rx", "\n\n", "#", "#x", "'"),
    *("\0", "\0x", "x\0", "ä", "\u2028", "\u0085", "\u00a0", "\u3000", "\ufeffx", "\U0001f600"),
    *('a\0"\n', '\0"', '"\0"'),
    *("NA", "null", "\\N", "\x1a", "\x1c", "\x0b", "\x0c", ";", "=1", '5" pipe', "\ufffd"),
)
LETTERS = st.sampled_from(",\"\n\r\\ \t#'a\0ä\u2028")
VALUES = st.none() | st.sampled_from(NASTY) | st.text(LETTERS, max_size=6)
TABLES = st.lists(st.lists(st.tuples(VALUES, VALUES), max_size=5), min_size=30, max_size=30)
NAMES = ("k", ' a "name",\nof two lines ', "#b\r")
SCHEMA = pa.schema([(name, pa.string()) for name in NAMES])


def by_python(rows: Sequence[Row], header: str = "\r\n", **dialect: Any) -> bytes:
    text = io.StringIO(newline="")
    csv.writer(text, quoting=csv.QUOTE_ALL, lineterminator=header).writerow(NAMES)
    csv.writer(text, **dialect).writerows(rows)
    return text.getvalue().encode()


def by_pyarrow(rows: Sequence[Row]) -> bytes:
    sink = io.BytesIO()
    pacsv.write_csv(arrow(rows), sink)
    return sink.getvalue()


def by_duckdb(rows: Sequence[Row], file: Path) -> bytes:
    duckdb.from_arrow(arrow(rows)).write_csv(str(file))
    return file.read_bytes()


def arrow(rows: Sequence[Row]) -> pa.Table:
    columns = zip(*rows, strict=True)
    return pa.table([pa.array(each, pa.string()) for each in columns], schema=SCHEMA)


def read_by_python(file: Path) -> list[Row]:
    with file.open(newline="", encoding="utf-8") as stream:
        names, *rows = csv.reader(stream)
    assert tuple(names) == NAMES
    return [tuple(row) for row in rows]


def read_by_pyarrow(file: Path) -> list[Row]:
    table = pacsv.read_csv(
        file,
        parse_options=pacsv.ParseOptions(newlines_in_values=True),
        convert_options=pacsv.ConvertOptions(
            column_types=SCHEMA,
            null_values=[""],
            strings_can_be_null=True,
            quoted_strings_can_be_null=False,
        ),
    )
    assert tuple(table.schema.names) == NAMES
    return list(zip(*(column.to_pylist() for column in table.columns), strict=True))


def read_by_duckdb(file: Path) -> list[Row]:
    options = "all_varchar=true, header=true, delim=',', quote='\"', escape='\"'"
    found: list[Row] = duckdb.sql(f"SELECT * FROM read_csv('{file}', {options})").fetchall()
    return found


def without_null(rows: Sequence[Row]) -> list[Row]:
    """Return rows as those see them who have no null in a csv."""
    return [tuple(value or "" for value in row) for row in rows]


@given(tables=TABLES)
@settings(
    max_examples=1,
    phases=[Phase.generate],
    deadline=None,
    suppress_health_check=[
        HealthCheck.too_slow,
        HealthCheck.data_too_large,
        HealthCheck.function_scoped_fixture,
    ],
)
def test_every_text_is_the_same_in_python_pyarrow_duckdb_and_here_in_every_direction(
    run: Run,
    folders: dict[str, str],
    ledger: MemoryLedger,
    tmp_path_factory: pytest.TempPathFactory,
    tables: list[list[tuple[str | None, ...]]],
) -> None:
    place = tmp_path_factory.mktemp("csv")
    wanted: dict[str, Row] = {}
    (place / "in").mkdir()
    # Each value of the list is met in each way of writing, beside those that are drawn.
    every: list[tuple[str | None, ...]] = list(zip(NASTY, NASTY[::-1], strict=True))
    tables = [every] * 5 + tables
    for number, table in enumerate(tables):
        rows: list[Row] = [(f"{number}-{at}", *row) for at, row in enumerate([("x", "y"), *table])]
        name, text = write(number, rows, place)
        (place / "in" / f"{number}.csv").write_bytes(text)
        known = rows if name in {"pyarrow", "duckdb"} else _as_python(rows, name)
        wanted |= {str(row[0]): row for row in known}

    config = {**folders, "source.format": "csv", "source.path": str(place / "in")}
    ledger.logged.clear()  # the fixtures are those of the example before
    through(run, {**config, "sink.format": "csv", "sink.path": str(place / "out")})
    files = list((place / "out").glob("*.csv"))
    python, arrow_, duck = (
        {row[0]: row for file in files for row in reader(file)}
        for reader in (read_by_python, read_by_pyarrow, read_by_duckdb)
    )
    assert without_null(list(python.values())) == without_null([wanted[str(k)] for k in python])
    assert arrow_ == wanted
    assert without_null(list(duck.values())) == without_null([wanted[str(k)] for k in duck])
    assert len(python) == len(duck) == len(wanted)

    config |= {"source.path": str(place / "out"), "sink.path": str(place / "again")}
    ledger.logged.clear()
    through(run, {**config, "sink.format": "parquet"})
    tables_ = [papq.ParquetFile(file).read() for file in (place / "again").glob("*.parquet")]
    again = [row for table in tables_ for row in zip(*table.to_pydict().values(), strict=True)]
    assert {row[0]: row for row in again} == wanted


def write(number: int, rows: list[Row], place: Path) -> tuple[str, bytes]:
    """Return the name of one of five ways of writing, and what it wrote."""
    match number % 5:
        case 0:
            return "excel", by_python(rows)
        case 1:
            return "all quoted", by_python(rows, "\n", quoting=csv.QUOTE_ALL, lineterminator="\n")
        case 2:
            return "mixed", by_python(rows, "\n")
        case 3:
            return "pyarrow", by_pyarrow(rows)
        case _:
            return "duckdb", by_duckdb(rows, place / "duck.csv")


def _as_python(rows: list[Row], way: str) -> list[Row]:
    """Return rows as Python's writer puts them: null and empty text are one to it."""
    empty = "" if way == "all quoted" else None
    return [tuple(value or empty for value in row) for row in rows]


def through(run: Run, config: dict[str, str]) -> None:
    reports = run(config)
    assert [each.trace for each in reports.statuses if each.trace] == []


def test_an_empty_value_in_quotes_is_no_number_but_an_empty_text(
    run: Run, folders: dict[str, str], tmp_path: Path
) -> None:
    (tmp_path / "in" / "a.csv").write_text('n,s,t\n"1","x","2013-01-01"\n"","",""\n,,\n')
    (tmp_path / "in" / "b.csv").write_text("n,s,t\r\n2,,2013-01-02\r\n")
    through(run, {**folders, "source.format": "csv", "sink.format": "json"})
    assert json_rows(tmp_path / "out") == [
        {"n": 1, "s": "x", "t": "2013-01-01"},
        {"n": 2, "t": "2013-01-02"},
        {"s": ""},
        {},
    ]


@pytest.mark.parametrize(
    ("more", "lines"),
    [
        ({}, ['""', '""', "a", "b"]),
        ({"sink.option.nullValue": "NA"}, ['""', "NA", "a", "b"]),
        ({"sink.option.quote": "'"}, ['""', "''", "a", "b"]),
    ],
)
def test_a_null_is_a_row_where_csv_has_one_column(
    run: Run, folders: dict[str, str], tmp_path: Path, more: dict[str, str], lines: list[str]
) -> None:
    table = pa.table({"S": ["a", None, "b", ""], "p": ["x"] * 4})
    papq.write_table(table, tmp_path / "in" / "a.parquet")
    config = {"source.format": "parquet", "sink.format": "csv", "sink.partition.by": "P"}
    through(run, {**folders, **config, **more, "sink.option.header": "false"})
    written = [each.read_text() for each in (tmp_path / "out").rglob("*.csv")]
    assert sorted("".join(written).splitlines()) == lines


@pytest.mark.parametrize("beside", ["", '""'])
def test_times_have_the_pattern_of_their_type_whatever_stands_beside_them(
    run: Run, folders: dict[str, str], tmp_path: Path, beside: str
) -> None:
    (tmp_path / "in" / "a.csv").write_text(
        f"d,z,l,n\n01/02/2013,03/04/2013 05:06,2013|05|06 07,{beside}\n{beside},,,1\n"
    )
    config = {
        "source.schema": "d DATE, z TIMESTAMP, l TIMESTAMP_NTZ, n INT",
        "source.option.dateformat": "dd/MM/yyyy",
        "source.option.TimestampFormat": "dd/MM/yyyy HH:mm",
        "source.option.timestampNTZFormat": "yyyy|dd|MM HH",
    }
    through(run, {**folders, **config, "source.format": "csv", "sink.format": "json"})
    assert json_rows(tmp_path / "out") == [
        {
            "d": "2013-02-01",
            "z": "2013-04-03T05:06:00.000000Z",
            "l": "2013-06-05T07:00:00.000000",
        },
        {"n": 1},
    ]


@pytest.mark.parametrize("tolerance", ["none", "all"])
def test_a_bad_value_beside_an_empty_one_in_quotes_is_named_or_dropped(
    run: Run, folders: dict[str, str], tmp_path: Path, tolerance: str
) -> None:
    bad = tmp_path / "in" / "bad one.csv"
    bad.write_text('n,s\n"","x"\nfoo "?,y\n')
    config = {**folders, "source.format": "csv", "source.schema": "n INT, s STRING"}
    config |= {"errors.tolerance": tolerance, "sink.format": "json"}
    # No value of the column is asked for, and each is looked at nevertheless.
    config |= {"transforms": "t", "transforms.t.type": "select", "transforms.t.columns": "s"}
    reports = run(config)
    told = [each.trace for each in reports.statuses if each.trace]
    if tolerance == "all":
        assert (told, json_rows(tmp_path / "out")) == ([], [{"s": "x"}])
    else:
        assert told == [f'{bad}: column `n` (INT): For input string: "foo "?"']


def test_values_with_a_backslash_and_blanks_are_read_where_keys_say_so(
    run: Run, folders: dict[str, str], tmp_path: Path
) -> None:
    text = "a;b;c\r\n'x\\'y\n' ; z;1\n'w' ;\\'v; 2 \n"
    (tmp_path / "in" / "a.csv").write_bytes(text.encode("utf-16"))
    config = {"source.separator": ";", "source.quote": "'", "source.escape": "\\"}
    config |= {
        "source.trim": "true",
        "source.encoding": "UTF-16",
    }
    through(run, {**folders, **config, "source.format": "csv", "sink.format": "json"})
    assert json_rows(tmp_path / "out") == [
        {"a": "x'y\n", "b": "z", "c": 1},
        {"a": "w", "b": "\\'v", "c": 2},
    ]


@pytest.mark.parametrize("key", ["source.encoding", "source.option.encoding"])
@pytest.mark.parametrize("fmt", ["csv", "json"])
def test_an_encoding_counts_for_the_schema_and_for_the_rows(
    run: Run, folders: dict[str, str], tmp_path: Path, key: str, fmt: str
) -> None:
    text = "ä\nö\n" if fmt == "csv" else '{"ä": "ö"}\n'
    (tmp_path / "in" / "a").write_bytes(text.encode("cp1252"))
    through(run, {**folders, key: "windows-1252", "source.format": fmt, "sink.format": "json"})
    assert json_rows(tmp_path / "out") == [{"ä": "ö"}]


@pytest.mark.parametrize("fmt", ["csv", "json"])
def test_a_byte_that_is_not_of_the_encoding_ends_the_task_with_its_place(
    run: Run, folders: dict[str, str], tmp_path: Path, fmt: str
) -> None:
    bad = tmp_path / "in" / "a"
    bad.write_bytes(b"s\nxxx\xe4\n" if fmt == "csv" else b'{"s":\xe4}\n')
    config = {**folders, "source.format": fmt, "source.schema": "s STRING", "sink.format": "json"}
    (told,) = {each.trace for each in run(config).statuses if each.trace}
    assert told.startswith(f"{bad}: byte 5 (0xe4) is not UTF-8: ")


@pytest.mark.parametrize("fmt", ["csv", "json"])
def test_times_keep_all_their_digits(
    run: Run, folders: dict[str, str], tmp_path: Path, fmt: str
) -> None:
    (tmp_path / "in" / "a.csv").write_text("t\n2013-01-01T05:06:07.123456Z\n")
    through(run, {**folders, "source.format": "csv", "sink.format": fmt})
    (file,) = (tmp_path / "out").glob(f"*.{fmt}")
    assert "2013-01-01T05:06:07.123456Z" in file.read_text()


def json_rows(folder: Path) -> list[dict[str, Any]]:
    lines = [line for file in folder.glob("*.json") for line in file.read_text().splitlines()]
    return sorted((json.loads(line) for line in lines), key=repr)
