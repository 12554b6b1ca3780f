# pyright: basic
"""One language of values: a text is the same value, or none, whatever stands beside it.

It holds for csv by each of its two ways, for json and for records of Kafka.
"""

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pytest
from pyspark.sql import functions as sf
from pyspark.sql.types import TimestampType

from fairlead.runtime.pipeline.engines.embedded.engine import Embedded
from fairlead.runtime.pipeline.engines.engine import TaskError
from fairlead.runtime.pipeline.engines.sessions import session_beside
from fairlead.runtime.pipeline.formats.csv.style import CsvStyle
from fairlead.runtime.pipeline.stores.files.copies import Copies, FileSurvey
from fairlead.runtime.pipeline.stores.files.source.file_survey import survey_file
from fairlead.runtime.pipeline.stores.files.source.formats import ReadFormat
from fairlead.runtime.pipeline.stores.kafka.source.decoding import JsonDecoder, KafkaRows
from fairlead_tests.soaks import thinned

pytestmark = pytest.mark.spark

NEW_YORK, LORD_HOWE, SAO_PAULO = "America/New_York", "Australia/Lord_Howe", "America/Sao_Paulo"
EPOCH = datetime(1970, 1, 1)  # noqa: DTZ001  # in UTC, without saying so
Values = dict[str, str | None]
"""Texts with their values as Spark's casts show them; None: the text does not fit."""

NUMBERS: Values = {
    "1.5": "1.5",
    "-1": "-1.0",
    "1.": "1.0",
    ".5": "0.5",
    "1e3": "1000.0",
    "1E-05": "1.0E-5",
    "-0.0": "-0.0",
    "0e999": "0.0",
    "12D": None,
    "7f": None,
    "1.5d": None,
    "0x1p3": None,
    "1e400": None,
    "-1e400": None,
    "1e-400": None,
    "9" * 400: None,
    "1.2.3": None,
    "abc": None,
}
TYPES: dict[str, Values] = {
    "DOUBLE": {**NUMBERS, "1e39": "1.0E39", "1e-50": "1.0E-50", "1e308": "1.0E308"},
    "FLOAT": {**NUMBERS, "1e39": None, "1e-50": None, "3.4e38": "3.4E38", "9" * 39: None},
    "DECIMAL(10,2)": {
        "1.25": "1.25",
        "1e3": "1000.00",
        "1.005": "1.01",
        "1e16000000": None,
        "1e-16000000": None,
        "1" * 2_000: None,
        "123456789": None,
        "\u0661\u0662": None,
        "1d": None,
    },
    "DATE": {
        "2026-01-05": "2026-01-05",
        "2026-1-5": "2026-01-05",
        "2026-01-05 10:30": "2026-01-05",
        "2026-01-05T10:30:00.5+02:00": "2026-01-05",
        "2026-01-05 garbage": None,
        "2026-01-05 10:30pm": None,
        "2026-01-05T": None,
        "2026-02-30": None,
        "2026-01": None,
        "2026": None,
        "10:30": None,
        "300000-01-01": None,
    },
    "TIMESTAMP": {
        "2026-01-05": "2026-01-05 00:00:00",
        "2026-01-05 10:30": "2026-01-05 10:30:00",
        "2026-01-05T10:30:00.123456Z": "2026-01-05 10:30:00.123456",
        "2026-01-05 10:30:00+02:00": "2026-01-05 08:30:00",
        "2026-03-08 02:30:00": "2026-03-08 02:30:00",
        "2026-01-05 10:30Z": None,
        "10:30": None,
        "T10:30": None,
        "2026": None,
        "2026-01": None,
        "2026-01-05 10:30 garbage": None,
        "2026-01-05 25:00": None,
        "300000-01-01": None,
        "294248-01-01": None,
        "1700000000000000000": None,
    },
    "TIMESTAMP_NTZ": {
        "2026-01-05": "2026-01-05 00:00:00",
        "2026-03-08 02:30:00": "2026-03-08 02:30:00",
        "2024-02-28T10:11:12+02:00": None,
        "2024-02-28T10:11:12Z": None,
        "10:30": None,
        "300000-01-01": None,
    },
}
OF_CSV: dict[str, Values] = {
    "BOOLEAN": {"true": "true", "FALSE": "false", "yes": None, "t": None, "1": None, "n": None},
    "INT": {
        "12": "12",
        "+1": "1",
        "007": "7",
        "1.5": None,
        "12D": None,
        "2147483648": None,
        "\u0661\u0662": None,
        "-1\u0662": None,
        "\uff11": None,
        "\u0967": None,
    },
    "DOUBLE": {"Inf": "Infinity", "-Infinity": "-Infinity", "NaN": "NaN", "inf": None, "nan": None},
}
PLAIN_INSTANTS: Values = {
    "1000-02-28 23:59:59.5-17:59": "1000-03-01 17:58:59.500000",
    "2999-12-31T00:00:00+00:00": "2999-12-31 00:00:00",
}
PLAIN: dict[str, Values] = {
    "DATE": {"1000-01-01": "1000-01-01", "2000-02-29": "2000-02-29", "2999-12-31": "2999-12-31"},
    "TIMESTAMP": {**PLAIN_INSTANTS, "1000-01-01": "1000-01-01 00:00:00"},
    "TIMESTAMP_NTZ": {
        "1000-01-01": "1000-01-01 00:00:00",
        "2024-02-29T23:59": "2024-02-29 23:59:00",
        "2999-12-31 00:00:00.000001": "2999-12-31 00:00:00.000001",
    },
}
NEW_YORKS: Values = {
    "2026-03-08 01:59:59": "2026-03-08 06:59:59",
    "2026-03-08 02:30:00": None,
    "2026-03-08T02": None,
    "2026-03-08 03:30:00": "2026-03-08 07:30:00",
    "2026-03-08 02:30:00Z": "2026-03-08 02:30:00",
    "2026-11-01 00:59:59": "2026-11-01 04:59:59",
    "2026-11-01 01:30:00": None,
    "2026-11-01 01:30:00-05:00": "2026-11-01 06:30:00",
    "2026-11-01 02:00:00": "2026-11-01 07:00:00",
}
IN_ZONES: dict[str, Values] = {
    NEW_YORK: NEW_YORKS,
    LORD_HOWE: {
        "2026-10-04 02:15:00": None,
        "2026-10-04 02:30:00": "2026-10-03 15:30:00",
        "2026-04-05 01:45:00": None,
        "2026-04-05 01:15:00": "2026-04-04 14:15:00",
    },
    SAO_PAULO: {"2018-11-04": None, "2018-11-05": "2018-11-05 02:00:00"},
}


Found = dict[int, str | None]
"""Values by `k`; those of bad rows are not there."""


class Cell(NamedTuple):
    """A text in a column of a type, which is the only value of its row."""

    kind: str
    text: str
    value: str | None
    """Its value as Spark's casts show it; None: the text does not fit."""


def cells_of(types: Mapping[str, Values]) -> list[Cell]:
    return [Cell(kind, *each) for kind, values in types.items() for each in values.items()]


def columns_of(cells: Sequence[Cell]) -> dict[str, str]:
    """Return the name of the column of each type."""
    return {kind: f"v{n}" for n, kind in enumerate(dict.fromkeys(each.kind for each in cells))}


def ddl_of(columns: Mapping[str, str]) -> str:
    return ", ".join(["k INT", *(f"{name} {kind}" for kind, name in columns.items())])


def read(spark: Any, form: ReadFormat, file: Path) -> Found:
    """Return the values of a file."""
    form = form.in_session(spark)
    rows, _ = form.rows(spark, [survey_file(form, file, Copies(), None)], Copies())
    return shown(rows)


def shown(rows: Any) -> Found:
    """Return the value that each row has as a text, an instant in UTC."""
    names = [each for each in rows.columns if each.startswith("v")]
    instants = {each for each in names if isinstance(rows.schema[each].dataType, TimestampType)}
    told = [
        (sf.unix_micros(each) if each in instants else sf.col(each)).cast("string").alias(each)
        for each in names
    ]
    found: Found = {}
    for row in rows.select("k", *told).collect():
        values = {name: row[name] for name in names if row[name] is not None}
        assert len(values) <= 1
        found[row.k] = next((_shown(it, name in instants) for name, it in values.items()), None)
    return found


def _shown(value: str, is_instant: bool) -> str:  # one of two
    return (EPOCH + timedelta(microseconds=int(value))).isoformat(" ") if is_instant else value


def expected(cells: Sequence[Cell]) -> dict[int, str]:
    return {number: each.value for number, each in enumerate(cells) if each.value is not None}


def from_csv(spark: Any, folder: Path, cells: Sequence[Cell]) -> Iterator[Found]:
    """Read cells by the reader's way, by that of files with a `""`, and with texts for null."""
    columns, file = columns_of(cells), folder / "a.csv"
    form = ReadFormat("csv", f"{ddl_of(columns)}, s STRING", tolerant=True)
    for beside in ("", f'-1,{"," * len(columns)}""\n'):
        file.write_text(_lines_of_csv(cells, columns, "") + beside)
        found = read(spark, form, file)
        assert not beside or found.pop(-1) is None
        yield found
    nulls = ReadFormat("csv", form.schema, CsvStyle(nulls=("NA", "-")), tolerant=True)
    file.write_text(_lines_of_csv(cells, columns, "NA"))
    yield read(spark, nulls, file)


def from_plain_csv(spark: Any, folder: Path, cells: Sequence[Cell]) -> tuple[Found, dict[int, str]]:
    """Read the cells that are plain; return their values as they are read, and as they are."""
    columns, file = columns_of(cells), folder / "a.csv"
    form = ReadFormat("csv", f"{ddl_of(columns)}, s STRING", tolerant=True).in_session(spark)
    header, *lines = _lines_of_csv(cells, columns, "").splitlines(keepends=True)

    def survey(text: str) -> FileSurvey:
        file.write_text(header + text)
        return survey_file(form, file, Copies(), None)

    plain = {n: each for n, each in enumerate(lines) if survey(each).plain}
    found = survey("".join(plain.values()))
    assert found.plain == form.columns
    return shown(form.rows(spark, [found], Copies())[0]), {
        n: each for n, each in expected(cells).items() if n in plain
    }


def _lines_of_csv(cells: Sequence[Cell], columns: Mapping[str, str], null: str) -> str:
    lines = [["k", *columns.values(), "s"]]
    for number, each in enumerate(cells):
        values = [each.text if kind == each.kind else null for kind in columns]
        lines.append([str(number), *values, "x"])
    return "".join(f"{','.join(each)}\n" for each in lines)


def in_json(text: str, kind: str) -> str:
    return json.dumps(text) if kind in {"DATE", "TIMESTAMP", "TIMESTAMP_NTZ"} else text


def is_json(text: str) -> bool:
    try:
        json.loads(text)
    except ValueError:
        return False
    return True


NESTED = {
    "{}": "{}",
    "ARRAY<{}>": "[{}]",
    "STRUCT<f: {}>": '{{"f": {}}}',
    "MAP<STRING, ARRAY<{}>>": '{{"m": [{}]}}',
}
"""What values of json may stand in, with the values as they are first."""


def cells_of_json(types: Mapping[str, Values], within: str) -> list[Cell]:
    """Return the texts that json may have, each within what is given."""
    found = [each._replace(text=in_json(each.text, each.kind)) for each in cells_of(types)]
    return [
        Cell(within.format(kind), NESTED[within].format(text), value)
        for kind, text, value in found
        if is_json(text)
    ]


def from_json(spark: Any, folder: Path, cells: Sequence[Cell]) -> list[Found]:
    """Read cells from a file of json, and from records of Kafka."""
    columns, file = columns_of(cells), folder / "a.json"
    lines = [
        f'{{"k": {number}, "{columns[each.kind]}": {each.text}}}'
        for number, each in enumerate(cells)
    ]
    file.write_text("\n".join(lines))
    count = len(lines)
    table = pa.table(
        {
            "_value": pa.array([each.encode() for each in lines], pa.binary()),
            "_topic": ["t"] * count,
            "_partition": pa.array([0] * count, pa.int32()),
            "_offset": pa.array(range(count), pa.int64()),
        }
    )
    ddl = ddl_of(columns)
    made = JsonDecoder(KafkaRows((), has_text_keys=False, separates_bad=True), ddl)
    return [
        read(spark, ReadFormat("json", ddl, tolerant=True), file),
        shown(made.decode(spark, table)),
    ]


def test_a_text_of_csv_is_the_same_value_whatever_stands_beside_it(
    engine: Embedded, tmp_path: Path
) -> None:
    kinds = dict.fromkeys([*TYPES, *OF_CSV])
    cells = cells_of({each: TYPES.get(each, {}) | OF_CSV.get(each, {}) for each in kinds})
    run = lambda spark: [*from_csv(_in(spark, "UTC"), tmp_path, cells)]  # noqa: E731
    assert engine.run("values", run) == 3 * [expected(cells)]


def test_texts_of_csv_that_are_plain_are_the_same_values_to_sparks_reader(
    engine: Embedded, tmp_path: Path
) -> None:
    kinds = dict.fromkeys([*TYPES, *OF_CSV])
    every = (TYPES, OF_CSV, PLAIN)
    cells = cells_of(
        {each: {k: v for of in every for k, v in of.get(each, {}).items()} for each in kinds}
    )
    local = cells_of({"TIMESTAMP": NEW_YORKS | PLAIN_INSTANTS})

    def run(spark: Any) -> Any:
        ways = (_in(spark, "UTC"), cells), (_in(spark, NEW_YORK), local)
        return [from_plain_csv(there, tmp_path, each) for there, each in ways]

    (found, wanted), (found_there, wanted_there) = engine.run("values", run)
    assert (found, found_there) == (wanted, wanted_there)
    assert (Counter(cells[each].kind for each in found), len(found_there)) == (
        {
            "DOUBLE": 9,
            "FLOAT": 7,
            "DECIMAL(10,2)": 1,
            "INT": 2,
            "BOOLEAN": 2,
            "DATE": 4,
            "TIMESTAMP": 8,
            "TIMESTAMP_NTZ": 5,
        },
        4,
    )


def test_what_is_plain_for_one_type_is_read_as_a_text_for_another(
    engine: Embedded, tmp_path: Path
) -> None:
    file = tmp_path / "a.csv"
    file.write_text("k,v\n1,2018-11-04\n2,2018-11-05\n")
    wide = ReadFormat("csv", "k INT, v TIMESTAMP", tolerant=True)

    def run(spark: Any) -> Found:
        there = _in(spark, SAO_PAULO)
        dates = ReadFormat("csv", "k INT, v DATE", tolerant=True).in_session(there)
        found = survey_file(dates, file, Copies(), None)
        assert found.plain == dates.columns
        return shown(wide.in_session(there).rows(there, [found], Copies())[0])

    assert engine.run("values", run) == {2: "2018-11-05 02:00:00"}


def test_the_rules_of_spark_2_for_times_do_not_count(engine: Embedded, tmp_path: Path) -> None:
    text = "2026-01-05T10:30:00.123456Z"
    (tmp_path / "a.csv").write_text(f"k,v\n1,{text}\n")
    form = ReadFormat("csv", "k INT, v TIMESTAMP", tolerant=True)

    def run(spark: Any) -> Found:
        old = session_beside(_in(spark, "UTC"), {"spark.sql.legacy.timeParserPolicy": "LEGACY"})
        return read(old, form, tmp_path / "a.csv")

    assert engine.run("values", run) == {1: "2026-01-05 10:30:00.123456"}


def _in(spark: Any, zone: str) -> Any:
    return session_beside(spark, {"spark.sql.session.timeZone": zone})


def test_json_has_the_same_values_in_files_and_in_records(engine: Embedded, tmp_path: Path) -> None:
    cells = cells_of_json(TYPES, "{}")
    run = lambda spark: from_json(_in(spark, "UTC"), tmp_path, cells)  # noqa: E731
    assert engine.run("values", run) == 2 * [expected(cells)]


QUOTED = {"1.5": "1.5", " 2 ": "2.0", "Inf": "Infinity", "x": None, "1e400": None}


@pytest.mark.parametrize("beside", [pytest.param("", marks=pytest.mark.soak), "1e400"])
def test_a_number_in_quotes_is_that_number_whatever_stands_beside_it(
    engine: Embedded, tmp_path: Path, beside: str
) -> None:
    values: Values = {json.dumps(text): it for text, it in QUOTED.items()}
    values |= {beside: None} if beside else {}
    plain: Values = {'"x"': None, "1.5": "1.5"}
    shown_as = {"DOUBLE": "{}", "STRUCT<f: FLOAT>": "{{{}}}", "ARRAY<DOUBLE>": "[{}]"}
    texts = {"DOUBLE": "{}", "STRUCT<f: FLOAT>": '{{"f": {}}}', "ARRAY<DOUBLE>": "[{}]"}
    cells, plain_cells = (
        [
            Cell(kind, texts[kind].format(text), it and shown_as[kind].format(it))
            for kind in texts
            for text, it in each.items()
        ]
        for each in (values, plain)
    )
    run = lambda spark: [  # noqa: E731
        from_json(_in(spark, "UTC"), tmp_path, each) for each in (cells, plain_cells)
    ]
    assert engine.run("values", run) == [2 * [expected(each)] for each in (cells, plain_cells)]


@pytest.mark.parametrize("zone", thinned(IN_ZONES, len(IN_ZONES)))
def test_an_hour_that_a_zone_skips_or_has_twice_is_no_instant(
    engine: Embedded, tmp_path: Path, zone: str
) -> None:
    is_first = zone == NEW_YORK  # each way with one zone, and each zone with two ways
    cells = cells_of({"TIMESTAMP": IN_ZONES[zone]})

    def run(spark: Any) -> list[Found]:
        there, utc = _in(spark, zone), _in(spark, "UTC")
        option = {"timezone": zone}
        file = tmp_path / "a.csv"
        csv = from_csv(there, tmp_path, cells)
        ways = [*csv] if is_first else [next(csv)]
        if is_first:
            ways += from_json(there, tmp_path, cells_of_json({"TIMESTAMP": IN_ZONES[zone]}, "{}"))
            file.write_text(_lines_of_csv(cells, columns_of(cells), ""))
        form = ReadFormat("csv", "k INT, v0 TIMESTAMP, s STRING", tolerant=True, options=option)
        return [*ways, read(utc, form, file)]

    assert engine.run("values", run) == (6 if is_first else 2) * [expected(cells)]


def test_a_time_of_another_zone_than_the_sessions_is_an_instant_whatever_its_clocks_do(
    engine: Embedded, tmp_path: Path
) -> None:
    times: Values = {
        "2026-07-01 12:00:00": "2026-07-01 12:00:00",
        "1582-10-10": "1582-10-10 00:00:00",
    }
    cells = cells_of({"TIMESTAMP": times})
    option = {"timezone": "UTC"}
    form = ReadFormat("csv", "k INT, v0 TIMESTAMP, s STRING", options=option, proves=False)
    file = tmp_path / "a.csv"
    file.write_text(_lines_of_csv(cells, columns_of(cells), ""))
    found = engine.run("values", lambda spark: read(_in(spark, NEW_YORK), form, file))
    assert found == expected(cells)


def test_nested_values_of_json_are_values_of_their_types(engine: Embedded, tmp_path: Path) -> None:
    types = {each: TYPES[each] for each in ("DOUBLE", "TIMESTAMP", "DATE")}
    _, *shapes = NESTED
    cells = [each for within in shapes for each in cells_of_json(types, within)]

    def run(spark: Any) -> list[set[int]]:
        return [{*each} for each in from_json(_in(spark, "UTC"), tmp_path, cells)]

    assert engine.run("values", run) == 2 * [{*expected(cells)}]


def test_an_integer_of_json_is_a_time_in_seconds_and_no_finer_number(
    engine: Embedded, tmp_path: Path
) -> None:
    seconds = (
        "0",
        "-1",
        "86400",
        "1700000000",
        "2026",
        *(f"1700000000{n * '000'}" for n in (1, 2, 3)),
    )
    lines = [f'{{"k": {number}, "v": {text}}}\n' for number, text in enumerate(seconds)]
    (tmp_path / "a.json").write_text("".join(lines))
    form = ReadFormat("json", "k INT, v TIMESTAMP", tolerant=True)
    run = lambda spark: read(_in(spark, "UTC"), form, tmp_path / "a.json")  # noqa: E731
    assert engine.run("values", run) == {
        0: "1970-01-01 00:00:00",
        1: "1969-12-31 23:59:59",
        2: "1970-01-02 00:00:00",
        3: "2023-11-14 22:13:20",
    }


@pytest.mark.parametrize(
    ("kind", "text", "hint"),
    [
        ("TIMESTAMP", "2026-03-08 02:30:00", f"clocks of {NEW_YORK} have not, or have twice"),
        ("DOUBLE", "1e400", ""),
        ("DATE", "2026-01-05 garbage", ""),
    ],
)
@pytest.mark.parametrize("fmt", thinned(["csv", "json"], 2))
def test_a_text_that_is_no_value_ends_the_job_with_file_column_and_text(  # a table
    engine: Embedded, tmp_path: Path, fmt: str, kind: str, text: str, hint: str
) -> None:
    lines = {"csv": f"k,v\n1,{text}\n", "json": f'{{"k": 1, "v": {in_json(text, kind)}}}\n'}
    file = tmp_path / f"a.{fmt}"
    file.write_text(lines[fmt])
    form = ReadFormat(fmt, f"k INT, v {kind}")
    with pytest.raises(TaskError) as told:
        engine.run("values", lambda spark: read(_in(spark, NEW_YORK), form, file))
    assert f'{file} column `v` ({kind}): For input string: "{text}"{hint and ", a time"}' in str(
        told.value
    )
    assert hint in str(told.value)
