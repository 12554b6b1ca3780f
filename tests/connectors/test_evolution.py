# pyright: basic
"""What becomes of columns and types that the schema has not: nothing is left out without a word."""

import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as papq
import pytest
from connectors.conftest import Run
from pyspark.sql.types import (
    ArrayType,
    DataType,
    DateType,
    DecimalType,
    DoubleType,
    FloatType,
    IntegerType,
    LongType,
    NullType,
    ShortType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from fairlead.events.model import ErrorClass
from fairlead.runtime.pipeline.formats.evolution.rules import unite_schemas, widen_type
from fairlead.runtime.pipeline.formats.json.columns import JsonColumns
from fairlead.runtime.pipeline.formats.json.flaws import DEEP, find_flaw
from fairlead.runtime.pipeline.spi.errors import BadInput
from fairlead.runtime.pipeline.stores.files.copies import Copies
from fairlead.runtime.pipeline.stores.files.source import file_survey
from fairlead.runtime.pipeline.stores.files.source.file_survey import survey_file
from fairlead.runtime.pipeline.stores.files.source.formats import ReadFormat
from fairlead.runtime.pipeline.tasks.reports import Warned
from fairlead_tests.tasks.numbers import Reports

Config = dict[str, str]
Row = Mapping[str, Any]
Later = Callable[..., Reports]


def struct(**columns: DataType) -> StructType:
    return StructType([StructField(name, kind) for name, kind in columns.items()])


@pytest.mark.parametrize(
    ("one", "other", "both"),
    [
        (IntegerType(), ShortType(), IntegerType()),
        (IntegerType(), LongType(), LongType()),
        (LongType(), DecimalType(10, 2), DecimalType(22, 2)),
        (DecimalType(10, 2), DecimalType(8, 4), DecimalType(12, 4)),
        (FloatType(), DoubleType(), DoubleType()),
        (DateType(), TimestampType(), TimestampType()),
        (NullType(), StringType(), StringType()),
        (LongType(), DoubleType(), None),
        (LongType(), StringType(), None),
        (DecimalType(38, 0), DecimalType(38, 10), None),
    ],
)
def test_a_type_is_widened_where_no_value_is_lost(
    one: DataType, other: DataType, both: DataType | None
) -> None:
    assert (widen_type(one, other), widen_type(other, one)) == (both, both)


def test_schemas_are_united_by_names_within_structs_and_arrays_as_well() -> None:
    known = struct(a=IntegerType(), s=struct(x=ShortType()), l=ArrayType(struct(y=LongType())))
    found = struct(
        A=LongType(),
        s=struct(x=IntegerType(), z=DateType()),
        l=ArrayType(struct(y=StringType(), w=DateType())),
        n=DoubleType(),
    )
    schema, differences = unite_schemas(known, found)
    assert schema == struct(
        a=LongType(),
        s=struct(x=IntegerType(), z=DateType()),
        l=ArrayType(struct(y=LongType(), w=DateType())),
        n=DoubleType(),
    )
    assert [str(each) for each in differences] == [
        "`a`, which is INT and now BIGINT",
        "`s.x`, which is SMALLINT and now INT",
        "`s.z` DATE",
        "`l.y`, which is BIGINT and now STRING",
        "`l.w` DATE",
        "`n` DOUBLE",
    ]


@pytest.mark.parametrize("tail", ['{"a": 2}', ' [{"a": 2}]', " x"])
@pytest.mark.parametrize("head", ['{"a": 1}', '[{"a": 1}]', '{"a": "x", "b": {}}'])
def test_a_line_of_json_that_goes_on_after_its_first_value_is_refused_with_its_number(
    tmp_path: Path, head: str, tail: str
) -> None:
    file = tmp_path / "a.json"
    file.write_text('{"a": 1}\r\n\n{"a": 1},\n[{"a": 1}]\n12 {"a": 1}\n' + head + tail + "\n")
    form = ReadFormat("json", "a INT", grown=struct(a=IntegerType()))
    with pytest.raises(BadInput, match=rf"^{file}: line 6 has text after its first value"):
        survey_file(form, file, Copies(), None)


def test_several_lines_of_plain_objects_are_counted_by_what_is_in_them(tmp_path: Path) -> None:
    file = tmp_path / "a.json"
    form = ReadFormat("json", "a INT", grown=struct(a=IntegerType()))
    file.write_text('{"a": 1}\n\n{"a": 2}{"a": 3}\n')
    with pytest.raises(BadInput, match=rf"^{file}: line 3 has text after its first value"):
        survey_file(form, file, Copies(), None)
    file.write_text('{"a": 1}\n{"a": 2}\n')
    many = replace(form, options={"multiline": "true"})
    with pytest.raises(
        BadInput, match=rf"^{file}: there is text after .* `source\.option\.multiLine`"
    ):
        survey_file(many, file, Copies(), None)


def test_lines_are_not_counted_where_the_user_says_what_ends_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "a.json"
    file.write_text('{"a": 1}|{"a": 2}')
    monkeypatch.setattr(file_survey, "parse_ddl", lambda _: struct())
    form = ReadFormat("json", "a INT", options={"linesep": "|"}, grown=struct(a=IntegerType()))
    assert survey_file(form, file, Copies(), None).path == file


def test_lines_of_one_value_or_of_an_array_have_nothing_after_it() -> None:
    numbers: list[int] = []
    columns = JsonColumns(struct(a=IntegerType()), refuse=numbers.append)
    columns.feed(b'{"a": 1}\n\n{"a": 2} ,\n[{"a": 3}, {"a": 4}]\n{"a": 5}')
    assert columns.end().names == ["a"]
    assert numbers == []


@pytest.mark.parametrize(
    "text",
    [
        *(
            b'null\n{"a": 1}',
            b' null \n{"a": 1}',
            b'\r\n\tnull\r\n{"a": 1}',
            b'null null\n{"a": 1}',
        ),
        *(b'\xef\xbb\xbfnull\n{"a": 1}', b'nullx\n{"a": 1}', b'[null]\n{"a": 1}', b'1\n{"a": 1}'),
    ],
)
@pytest.mark.parametrize("is_file", [True, False])
def test_a_block_whose_first_value_is_no_object_is_kept_from_the_parser_that_it_would_end(
    text: bytes, is_file: bool
) -> None:
    columns = JsonColumns(struct(), refuse=(lambda _: None) if is_file else None)
    columns.feed(text)
    assert columns.end() == pa.schema([pa.field("a", pa.int64())])


@pytest.mark.parametrize("half", ["\\ud83d", "\\uDE00", "\\ud83d\\ud83d\\ude00", "\\ud83dx"])
def test_a_lone_surrogate_is_refused_with_its_line_since_no_utf8_holds_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, half: str
) -> None:
    monkeypatch.setattr(file_survey, "parse_ddl", lambda _: struct())
    file = tmp_path / "a.json"
    form = ReadFormat("json", "a STRING", grown=struct(a=StringType()))
    whole = '{"a": "\\ud83d\\ude00"}\n\r\n{"a": "\\\\ud83d"}\n'
    file.write_text(whole, newline="")
    assert survey_file(form, file, Copies(), None).path == file
    file.write_text(whole + f'{{"a": "{half}"}}\n', newline="")
    with pytest.raises(BadInput, match=rf"^{file}: line 4 escapes a lone surrogate"):
        survey_file(form, file, Copies(), None)


@pytest.mark.parametrize("depth", [101, 100_000])
def test_what_is_nested_too_deep_is_refused_with_its_line_before_any_parser_sees_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, depth: int
) -> None:
    monkeypatch.setattr(file_survey, "parse_ddl", lambda _: struct())
    file = tmp_path / "a.json"
    form = ReadFormat("json", "a STRING", grown=struct(a=StringType()))
    whole = '{"a": "' + "[{" * 200 + '\\"[["}\n' + '{"b": ' + "[" * 99 + "]" * 99 + "}\n"
    wide = '{"c": [' + '{"d": []}, ' * 200 + "{}]}\n"
    file.write_text(whole + wide)
    assert survey_file(form, file, Copies(), None).path == file
    file.write_text(whole + wide + '{"e": ' + "[" * (depth - 1) + "]" * (depth - 1) + "}\n")
    with pytest.raises(BadInput, match=rf"^{file}: line 4 has values nested more than 100 deep"):
        survey_file(form, file, Copies(), None)


@pytest.mark.parametrize(
    ("text", "is_deep"),
    [
        (b'{"a":' + b"[" * 101 + b'"' + b'\\"' * 500_000, True),
        (b'{"a": [' + b"[]," * 150 + b'"' + b"x" * 20_000_000 + b'"]}', False),
        (b"[" + b"]" * 900 + b"\r" + b"[" * 101, True),
        (b'{"a": "cut\r' * 101, False),
    ],
    ids=["escaped quotes without an end", "a long text", "carriage returns", "rows cut off"],
)
def test_how_deep_a_text_is_nested_is_seen_in_one_pass_whatever_it_is(
    text: bytes, is_deep: bool
) -> None:
    flaw = find_flaw(text)
    assert (flaw is not None and flaw.why == DEEP) is is_deep


def test_what_only_spark_takes_for_a_number_hides_no_column_beside_it() -> None:
    columns = JsonColumns(struct(a=DoubleType()))
    columns.feed(b'{"a": -INF, "b": 1}\n{"a": [+Infinity], "c": "x +INF"}\n')
    assert columns.end().names == ["a", "b", "c"]


def test_every_line_of_json_has_a_say_in_its_columns_those_that_are_none_have_not() -> None:
    known = struct(a=IntegerType(), f=FloatType(), s=struct(x=ShortType()))
    columns = JsonColumns(known)
    lines = [
        '{"a": 1, "f": 1.5, "nothing": null, "empty": {}, "s": {"x": 1}, "at": "2026-01-01"}',
        '{"a": 2, "new": 1}\n{"a": 3, "new": 1.5, "s": {"y": true}}',
        '{"a": "x", "mixed": 1}\n{"a": 4, "mixed": "x"}\n{broken\n[{"listed": 1}]',
    ]
    for each in "\n".join(lines).splitlines(keepends=True):
        columns.feed(each.encode())
    found = {field.name: field.type for field in columns.end()}
    assert found.pop("s") == pa.struct([("y", pa.bool_())])
    assert found == {
        "a": pa.string(),
        "at": pa.string(),
        "new": pa.float64(),
        "mixed": pa.string(),
        "listed": pa.int64(),
    }


@pytest.fixture
def config(folders: Config) -> Config:
    return {**folders, "sink.format": "json", "sink.auto.evolve": "true", "tasks.max": "1"}


def put(folder: Path, name: str, *rows: Row) -> None:
    """Write rows as the format that the name tells; columns are those of the first."""
    file = folder / name
    if file.suffix == ".parquet":
        table = pa.Table.from_pylist(list(rows))
        if rows[0]["n"] < 1 << 31:
            table = table.set_column(0, "n", table["n"].cast(pa.int32()))
        papq.write_table(table, file)
    elif file.suffix == ".json":
        file.write_text("".join(json.dumps(each) + "\n" for each in rows))
    else:
        lines = [list(rows[0]), *([str(value) for value in each.values()] for each in rows)]
        file.write_text("".join(",".join(line) + "\n" for line in lines))


def rows(folder: Path) -> list[Row]:
    files = [each for each in folder.rglob("part-*.json") if "_fairlead" not in each.parts]
    found = [json.loads(line) for each in files for line in each.read_text().splitlines()]
    return sorted(found, key=lambda each: each["n"])


def failures(reports: Reports) -> list[str]:
    return [each.reason for each in reports.statuses if each.state.value == "FAILED"]


@pytest.fixture(params=["csv", "json", "parquet"])
def later(request: pytest.FixtureRequest, config: Config, run: Run, tmp_path: Path) -> Later:
    """Read one file, which makes the schema, and then a file with more in it."""
    suffix = request.param
    config["source.format"] = suffix

    def later(*more: Row, **keys: str) -> Reports:
        config.update({key.replace("_", "."): value for key, value in keys.items()})
        put(tmp_path / "in", f"1.{suffix}", {"n": 1, "s": "a"})
        assert failures(run({**config, "source.schema": "n INT, s STRING"})) == []
        put(tmp_path / "in", f"2.{suffix}", *more)
        put(tmp_path / "in", f"3.{suffix}", {"n": 3, "s": "c"})
        return run({**config, "source.schema": "n INT, s STRING"})

    return later


pytestmark = pytest.mark.spark


def test_columns_that_are_new_are_refused_by_name_and_nothing_is_read(
    later: Later, config: Config, tmp_path: Path
) -> None:
    (told,) = failures(later({"n": 2, "s": "b", "x": 5}, source_schema_evolution="fail"))
    assert f"{tmp_path}/in/2." in told
    assert "source.schema.evolution=add-columns" in told
    assert "CSV header" in told if config["source.format"] == "csv" else "`x` BIGINT" in told
    assert [each["n"] for each in rows(tmp_path / "out")] == [1]


def test_columns_that_are_new_are_added_where_that_is_asked_for(
    later: Later, tmp_path: Path
) -> None:
    mode = {"source_schema_evolution": "add-columns"}
    assert failures(later({"n": 2, "x": 5, "s": "b"}, **mode)) == []
    assert rows(tmp_path / "out") == [
        {"n": 1, "s": "a"},
        {"n": 2, "s": "b", "x": 5},
        {"n": 3, "s": "c"},
    ]


def test_columns_that_were_added_are_as_wide_as_they_come_without_another_attempt(
    config: Config, run: Run, tmp_path: Path
) -> None:
    for n, at in enumerate(("", "2026-01-02", "2026-01-02T03:04:05"), start=1):
        put(tmp_path / "in", f"{n}.csv", {"n": n, **({"at": at} if at else {})})
    config |= {"source.format": "csv", "source.schema": "n INT", "source.max.files.per.batch": "1"}
    assert failures(run({**config, "source.schema.evolution": "add-columns"})) == []
    assert [(each["n"], str(each.get("at"))[:19]) for each in rows(tmp_path / "out")] == [
        (1, "None"),
        (2, "2026-01-02"),
        (3, "2026-01-02T03:04:05"),
    ]


@pytest.mark.parametrize("mode", ["add-columns", pytest.param("widen", marks=pytest.mark.soak)])
def test_a_column_is_added_with_the_first_value_that_it_has_and_not_before(
    config: Config, run: Run, tmp_path: Path, mode: str
) -> None:
    config |= {"source.format": "csv", "source.schema": "n INT", "source.schema.evolution": mode}
    config |= {"source.max.files.per.batch": "1"}
    # Each is another attempt, which has forgotten what the one before it took for a type.
    for name, text in {
        "1": "n,x,t\n",
        "2": 'n,x,t\n1,,\n,,""\n',
        "3": "n,t,x\n2,,5\n",
        "4": "n,x\n3,6\n4,\n",
    }.items():
        (tmp_path / "in" / f"{name}.csv").write_text(text)
        assert failures(run(config)) == []
    found = sorted((each.get("n", 0), each.get("x"), each.get("t")) for each in every(tmp_path))
    assert found == [
        (0, None, ""),
        (1, None, None),
        (2, 5, None),
        (3, 6, None),
        (4, None, None),
    ]


def test_a_column_that_nobody_has_seen_to_its_end_is_a_text(
    config: Config, run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(file_survey, "_SAMPLE", 100)
    (tmp_path / "in" / "a.csv").write_text("n,x\n" + 100 * "1,\n" + "2,5\n")
    config |= {"source.format": "csv", "source.schema": "n INT"}
    assert failures(run({**config, "source.schema.evolution": "add-columns"})) == []
    assert [each for each in every(tmp_path) if each["n"] == 2] == [{"n": 2, "x": "5"}]


def every(tmp_path: Path) -> list[Row]:
    files = (tmp_path / "out").glob("part-*.json")
    return [json.loads(line) for each in files for line in each.read_text().splitlines()]


def test_types_are_widened_where_that_is_asked_for(later: Later, tmp_path: Path) -> None:
    mode = {"source_schema_evolution": "widen"}
    assert failures(later({"n": 2 << 40, "s": "b", "x": 1.5}, **mode)) == []
    assert rows(tmp_path / "out") == [
        {"n": 1, "s": "a"},
        {"n": 3, "s": "c"},
        {"n": 2 << 40, "s": "b", "x": 1.5},
    ]


def test_files_with_more_become_dead_letters_where_that_is_asked_for(
    later: Later, tmp_path: Path
) -> None:
    queue = {"errors_deadletterqueue_path": str(tmp_path / "bad")}
    mode = {"source_schema_evolution": "dead-letter"}
    assert failures(later({"n": 2, "s": "b", "x": 5}, **mode, **queue)) == []
    assert [each["n"] for each in rows(tmp_path / "out")] == [1, 3]
    files = list((tmp_path / "bad").glob("part-*.json"))
    (letter,) = [json.loads(line) for each in files for line in each.read_text().splitlines()]
    assert "/in/2." in letter["position"]["file"]


@pytest.mark.parametrize("more", [{}, {"source.option.allowSingleQuotes": "true"}])
def test_a_line_that_is_no_json_hides_no_column_unless_somebody_asks_for_it(
    run: Run, config: Config, tmp_path: Path, more: Config
) -> None:
    (tmp_path / "in" / "a.json").write_text("{\"n\": 1}\n{'n': 2, 'x': 5}\n")
    config |= {"source.format": "json", "source.schema": "n INT"}
    told = failures(run({**config, **more, "source.schema.evolution": "fail"}))
    assert [each["n"] for each in rows(tmp_path / "out")] == ([1, 2] if more else [])
    assert [f"{tmp_path}/in/a.json: " in each for each in told] == ([] if more else [True])


@pytest.mark.parametrize("suffix", ["json", "parquet"])
def test_columns_that_a_given_schema_does_not_name_are_left_out_and_told(
    run: Run, config: Config, tmp_path: Path, suffix: str
) -> None:
    put(tmp_path / "in", f"1.{suffix}", {"n": 1, "s": "a", "x": 5})
    reports = run({**config, "source.format": suffix, "source.schema": "n INT, s STRING"})
    assert rows(tmp_path / "out") == [{"n": 1, "s": "a"}]
    (told,) = {each.text for each in reports.told if isinstance(each, Warned)}
    assert "1 columns of its files are not in source.schema, and left out (x)" in told


def test_a_wrong_schema_that_only_a_worker_sees_is_a_fault_of_the_config_and_not_quoted(
    run: Run, config: Config, tmp_path: Path
) -> None:
    put(tmp_path / "in", "1.json", {"n": 1})
    given = {"source.format": "json", "source.schema": "n kings_castle", "task.restart.budget": "9"}
    (told,) = (each for each in run({**config, **given}).statuses if each.state.value == "FAILED")
    assert (told.error, told.reason, told.trace) == (
        ErrorClass.CONFIG,
        "source.schema: Spark finds no columns in its value (UNSUPPORTED_DATATYPE); write each with"
        " its name and type, as in `id BIGINT, name STRING`",
        told.reason,
    )
