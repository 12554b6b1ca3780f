# pyright: basic
"""A schema fits all files, not the one that happens to be looked at first."""

import gzip
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as papq
import pytest

from fairlead.runtime.pipeline.formats.csv.style import CsvStyle
from fairlead.runtime.pipeline.spi.errors import BadInput, NotReady
from fairlead.runtime.pipeline.stores.files.source import inference
from fairlead.runtime.pipeline.stores.files.source.inference import MULTILINE_JSON, infer_schema

PLAIN = CsvStyle(header=True, separator=",", quote='"', nulls=("NA",))
MUCH = 1 << 20


def files(folder: Path, *texts: str) -> list[Path]:
    made = [folder / f"{number}.txt" for number in range(len(texts))]
    for file, text in zip(made, texts, strict=True):
        file.write_text(text)
    return made


def test_a_null_in_one_days_file_does_not_make_a_number_a_text(tmp_path: Path) -> None:
    found = files(tmp_path, "n,t\n1,2013-01-01 05:00:00\n", "n,t\nNA,NA\n", "n,t\n1.5,\n")
    assert infer_schema("csv", found, PLAIN, MUCH) == "`n` DOUBLE, `t` TIMESTAMP"


def test_types_that_nothing_spans_become_a_text(tmp_path: Path) -> None:
    found = files(tmp_path, "a,b\n1,x\n", "a,b\nyes,2\n")
    assert infer_schema("csv", found, PLAIN, MUCH) == "`a` STRING, `b` STRING"


def test_columns_without_a_header_have_sparks_names(tmp_path: Path) -> None:
    style = CsvStyle(header=False, separator="\t", quote="'", nulls=())
    found = files(tmp_path, "1\t'a\tb'\ttrue\n")
    assert infer_schema("csv", found, style, MUCH) == "`_c0` BIGINT, `_c1` STRING, `_c2` BOOLEAN"


def test_marks_beyond_ascii_separate_and_enclose(tmp_path: Path) -> None:
    style = CsvStyle(header=True, separator="é", quote="«", nulls=())
    (file,) = files(tmp_path, "aébéc\n1é«xéy«étrue\n")
    assert infer_schema("csv", [file], style, MUCH) == "`a` BIGINT, `b` STRING, `c` BOOLEAN"
    used = bytes(range(1, 32)).decode()
    (file,) = files(tmp_path, f"aéb\n1é{used}\n")
    with pytest.raises(BadInput, match=r"^.*: set `source.schema`: Arrow does not take 'é' here$"):
        infer_schema("csv", [file], style, MUCH)


def test_files_with_other_columns_are_named(tmp_path: Path) -> None:
    found = files(tmp_path, "a,b\n1,2\n", "b,a\n1,2\n")
    with pytest.raises(BadInput, match=rf"^{found[1]}: its columns are \(b, a\), .* \(a, b\)"):
        infer_schema("csv", found, PLAIN, MUCH)


@pytest.mark.parametrize(
    ("evolution", "schema"),
    [
        ("add-columns", "`a` BIGINT, `b` STRING, `c` BOOLEAN"),
        ("widen", "`a` BIGINT, `b` STRING, `c` BOOLEAN"),
        ("dead-letter", "`a` BIGINT, `b` STRING"),
    ],
)
def test_files_with_other_columns_are_taken_in_as_the_evolution_of_the_schema_says(
    tmp_path: Path, evolution: str, schema: str
) -> None:
    found = files(tmp_path, "a,b\n1,x\n", "c,b,a\ntrue,y,2\n")
    assert infer_schema("csv", found, PLAIN, MUCH, evolution=evolution) == schema


def test_a_file_that_ends_with_its_header_says_nothing_of_types(tmp_path: Path) -> None:
    assert (
        infer_schema("csv", files(tmp_path, "a,b", "a,b\n1,x"), PLAIN, MUCH)
        == "`a` BIGINT, `b` STRING"
    )


def test_a_long_file_is_read_to_its_last_whole_line_within_the_sample(tmp_path: Path) -> None:
    long = tmp_path / "long.csv.gz"
    with gzip.open(long, "wt") as stream:
        stream.write("n\n" + "12345\n" * 100_000 + "far away\n")
    assert infer_schema("csv", [long], PLAIN, 1) == "`n` BIGINT"


def test_a_line_of_json_that_is_nested_too_deep_says_nothing(tmp_path: Path) -> None:
    deep = '{"b": ' + "[" * 100_000 + "]" * 100_000 + "}"
    assert (
        infer_schema("json", files(tmp_path, f'{{"a": 1}}\n{deep}\n'), PLAIN, MUCH) == "`a` BIGINT"
    )
    with pytest.raises(BadInput, match=r"no line is an object .* `source\.option\.multiLine"):
        infer_schema("json", files(tmp_path, f"{deep}\n"), PLAIN, MUCH)


def test_json_is_nested_and_its_texts_stay_texts(tmp_path: Path) -> None:
    found = files(tmp_path, '{"a": {"b": [1, null]}, "t": "2013-01-01"}\n', '{"c": true}\n')
    assert infer_schema("json", found, PLAIN, MUCH) == (
        "`a` STRUCT<`b`: ARRAY<BIGINT>>, `t` STRING, `c` BOOLEAN"
    )


def test_json_of_many_lines_is_looked_at_as_a_whole(tmp_path: Path) -> None:
    found = files(tmp_path, '{\n "a": {"b": 1},\n "s": "x"\n}\n', '[\n{"a": {"c": 2}},\n{"n": 3}]')
    told = infer_schema(MULTILINE_JSON, found, PLAIN, MUCH)
    assert told == "`a` STRUCT<`b`: BIGINT, `c`: BIGINT>, `s` STRING, `n` BIGINT"
    assert infer_schema(MULTILINE_JSON, found, PLAIN, 1) == "`a` STRUCT<`b`: BIGINT>, `s` STRING"


@pytest.mark.parametrize("text", ["12", '{"a": 1', '{"a": ' + "[" * 200 + "]" * 200 + "}"])
def test_what_is_no_object_as_a_whole_tells_no_schema(tmp_path: Path, text: str) -> None:
    with pytest.raises(BadInput, match="it is not an object with a value"):
        infer_schema(MULTILINE_JSON, files(tmp_path, text), PLAIN, MUCH)


def test_one_value_that_is_larger_than_any_sample_asks_for_a_schema(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(inference, "_LARGEST_SAMPLE", 10)
    with pytest.raises(BadInput, match=r"one value of more than .* set `source\.schema`"):
        infer_schema(MULTILINE_JSON, files(tmp_path, '{"a": 12345}'), PLAIN, MUCH)


def test_parquet_has_its_types(tmp_path: Path) -> None:
    schema = pa.schema(
        [
            ("i", pa.int32()),
            ("d", pa.decimal128(10, 2)),
            ("m", pa.map_(pa.string(), pa.float32())),
            ("z", pa.timestamp("us", "UTC")),
            ("n", pa.timestamp("us")),
            ("fine", pa.timestamp("ns")),
        ]
    )
    papq.write_table(schema.empty_table(), tmp_path / "a.parquet")
    old = pa.table({"z": pa.array([0], pa.timestamp("ns"))})
    papq.write_table(old, tmp_path / "b.parquet", use_deprecated_int96_timestamps=True)
    found = [tmp_path / "a.parquet", tmp_path / "b.parquet"]
    assert infer_schema("parquet", found, PLAIN, MUCH) == (
        "`i` INT, `d` DECIMAL(10, 2), `m` MAP<STRING, FLOAT>, `z` TIMESTAMP, `n` TIMESTAMP_NTZ, "
        "`fine` TIMESTAMP_NTZ"
    )


@pytest.mark.parametrize("fmt", ["csv", "json", "parquet"])
def test_hostile_bytes_are_named(tmp_path: Path, fmt: str) -> None:
    bad = tmp_path / "bad"
    bad.write_bytes(b'a,b\n"\x00\xff\xfe{"x\n1,2,3\n')
    with pytest.raises(BadInput, match=rf"^{bad}: cannot infer a schema from this {fmt}: "):
        infer_schema(fmt, [bad], PLAIN, MUCH)


def test_files_without_a_row_give_no_schema(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match=r"no row to infer a schema from in 1 file\(s\)"):
        infer_schema("csv", files(tmp_path, "\n"), PLAIN, MUCH)


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        (["1", "0", "-7"], "BIGINT"),
        (["1234", "01234"], "STRING"),
        (["1", "+1"], "STRING"),
        (["10", "1e5"], "STRING"),
        (["10", " 5"], "STRING"),
        (["10", "0x1F"], "STRING"),
        (["12345678901234567890"], "STRING"),
        (["0.5", "-1.50", "1e-05", "1.0E10", ".5", "NaN"], "DOUBLE"),
        (["0.5", "NaN", "-Inf", "Infinity"], "DOUBLE"),
        (["0.5", "inf"], "STRING"),
        (["0.5", "1e+400"], "STRING"),
        (["0.5", "1e-400"], "STRING"),
        (["0.5", "nan"], "STRING"),
        (["0.5", "00.5"], "STRING"),
        (["0.5", "0.12345678901234567890"], "STRING"),
        (["0.1", "0.30000000000000004"], "DOUBLE"),
        (["true", "False"], "BOOLEAN"),
        (["true", "1"], "STRING"),
        (["2013-01-01"], "DATE"),
        (["2013-01-01 05:00:00.123456"], "TIMESTAMP"),
        (["2013-01-01 05:00:00.1234567"], "STRING"),
        (["05:00"], "STRING"),
    ],
)
def test_a_column_is_a_text_where_a_type_would_change_any_of_its_values(
    tmp_path: Path, values: list[str], kind: str
) -> None:
    found = files(tmp_path, *(f"id,v\na,{value}\n" for value in ["", *values]))
    assert infer_schema("csv", found, PLAIN, MUCH) == f"`id` STRING, `v` {kind}"


def test_line_breaks_and_quotes_in_values_do_not_end_a_sample(tmp_path: Path) -> None:
    (file,) = files(tmp_path, "n,s\n" + '1,"x\n""y"\n' * 10_000 + '2,"' + "\n" * 200_000 + '"\n')
    assert infer_schema("csv", [file], PLAIN, 1) == "`n` BIGINT, `s` STRING"
    (file,) = files(tmp_path, 'n,s\n1,"' + "\n,3" * 200_000 + '"\n2,x\n')
    assert infer_schema("csv", [file], PLAIN, 1) == "`n` BIGINT, `s` STRING"


def test_a_column_without_a_name_has_sparks_and_blanks_are_part_of_a_name(tmp_path: Path) -> None:
    found = files(tmp_path, "\ufeff, a\n1,2\n", '"", a\n3,4\n')
    assert infer_schema("csv", found, PLAIN, MUCH) == "`_c0` BIGINT, ` a` BIGINT"


@pytest.mark.parametrize("header", ["name,id,Name", "a,id,a"])
def test_columns_that_differ_only_in_case_are_refused(tmp_path: Path, header: str) -> None:
    found = files(tmp_path, f"{header}\nx,1,y\n")
    alike = ", ".join(header.split(",")[::2])
    with pytest.raises(BadInput, match=rf"{found[0]}: .*columns \({alike}\) differ at most in"):
        infer_schema("csv", found, PLAIN, MUCH)


@pytest.mark.parametrize("evolution", ["fail", "add-columns"])
def test_headers_of_several_files_may_differ_in_case(tmp_path: Path, evolution: str) -> None:
    found = files(tmp_path, "id,name\n1,x\n", "ID,Name\n2.5,y\n")
    schema = infer_schema("csv", found, PLAIN, MUCH, evolution=evolution)
    assert schema == "`id` DOUBLE, `name` STRING"


def test_columns_of_several_files_that_differ_only_in_case_are_refused(tmp_path: Path) -> None:
    found = files(tmp_path, '{"a": 1}\n', '{"A": 1}\n')
    with pytest.raises(BadInput, match=r"^columns \(a, A\) differ at most in upper"):
        infer_schema("json", found, PLAIN, MUCH)


@pytest.mark.parametrize("encoding", ["ISO-8859-1", "UTF-16", "utf-16-le", "windows-1252"])
@pytest.mark.parametrize("fmt", ["csv", "json"])
def test_texts_of_another_encoding_are_texts(tmp_path: Path, encoding: str, fmt: str) -> None:
    file = tmp_path / "a"
    file.write_bytes(("n,ä\n1,ö\n" if fmt == "csv" else '{"n": 1, "ä": "ö"}\n').encode(encoding))
    style = CsvStyle(encoding=encoding)
    assert infer_schema(fmt, [file], style, MUCH) == "`n` BIGINT, `ä` STRING"


@pytest.mark.parametrize("fmt", ["csv", "json"])
def test_a_byte_that_is_not_of_the_encoding_is_named_with_its_place(
    tmp_path: Path, fmt: str
) -> None:
    file = tmp_path / "a.gz"
    text = "n,ää,\n" if fmt == "csv" else '{"ä": "'
    file.write_bytes(gzip.compress(text.encode() + b"\xe4x"))
    told = rf"^{file}: .* this {fmt}: byte 8 \(0xe4\) is not UTF-8: .* set `source.encoding`"
    with pytest.raises(BadInput, match=told):
        infer_schema(fmt, [file], PLAIN, MUCH)


@pytest.mark.parametrize("head", ["", "a,b\n1,x\n"])
def test_a_file_whose_quote_is_left_open_is_not_read_as_a_whole(
    head: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(inference, "_LARGEST_SAMPLE", 1 << 20)
    file = tmp_path / "a.csv"
    with file.open("w") as stream:
        stream.write(head + '1,"')
        stream.truncate(1 << 40)
    if head:
        assert infer_schema("csv", [file], CsvStyle(), 1) == "`a` BIGINT, `b` STRING"
        return
    with pytest.raises(BadInput, match=r"a\.csv: .*no record ends in its first \d+ bytes"):
        infer_schema("csv", [file], CsvStyle(), 1)


@pytest.mark.parametrize("fmt", ["csv", "parquet"])
def test_a_file_that_cannot_be_read_keeps_no_other_waiting_unless_the_look_is_strict(
    tmp_path: Path, fmt: str
) -> None:
    torn, whole = tmp_path / "a.gz", tmp_path / "b"
    torn.write_bytes(gzip.compress(b"n,s\n1,x\n" * 1000)[:-20])
    if fmt == "csv":
        whole.write_text("n,s\n1,x\n2\n3,y,z\n")
    else:
        papq.write_table(pa.table({"n": [1], "s": ["x"]}), whole)
    with pytest.raises(BadInput, match=f"^{torn}: "):
        infer_schema(fmt, [torn, whole], PLAIN, MUCH, strict=True)
    assert infer_schema(fmt, [torn, whole], PLAIN, MUCH, tolerant=True) == "`n` BIGINT, `s` STRING"
    with pytest.raises(BadInput, match=f"^{torn}: "):
        infer_schema(fmt, [torn], PLAIN, MUCH, tolerant=True)


@pytest.mark.parametrize(
    ("lines", "schema"),
    [
        ('{"a": 1}\n{"a": "x"}\n{"a": [2]}\n', "`a` STRING"),
        ('{"a": [1, {"b": 2}], "c": 3}\n', "`a` STRING, `c` BIGINT"),
        ('{"a": 123456789012345678901234567890}\n{"a": 1}\n', "`a` STRING"),
        ('{"a": "\\ud800", "b": 1}\n', "`a` STRING, `b` BIGINT"),
        ('[{"a": 1}, {"a": 2}]\n', "`a` BIGINT"),
        ('{"a": 1}\n{"a": 2', "`a` BIGINT"),
        ('{"a": 1}\n{"b": ' + "[" * 100_000 + "\n", "`a` BIGINT"),
    ],
)
def test_values_of_json_that_no_type_spans_become_a_text_and_bad_lines_are_the_readers(
    tmp_path: Path, lines: str, schema: str
) -> None:
    assert infer_schema("json", files(tmp_path, lines), PLAIN, MUCH) == schema


def test_types_of_parquet_that_spark_does_not_read_are_refused_with_a_way_out(
    tmp_path: Path,
) -> None:
    file = tmp_path / "a.parquet"
    for kind, way_out in {
        pa.time64("us"): "BIGINT, which is its microseconds",
        pa.time64("ns"): "BIGINT, which is its nanoseconds",
        pa.time32("ms"): "INT, which is its milliseconds",
        pa.duration("us"): "BIGINT, which is its microseconds",
        pa.float16(): "BINARY, which is its two bytes",
        pa.decimal256(45, 2): "BINARY, which is its unscaled number",
        pa.list_(pa.struct([("at", pa.time32("ms"))])): "INT, which is its milliseconds",
    }.items():
        papq.write_table(pa.table({"n": [1], "t": pa.nulls(1, kind)}), file)
        told = rf"^{file}: .*: column `t` is .*, which Spark cannot read; .*`source.schema`, .*"
        with pytest.raises(BadInput, match=told + way_out):
            infer_schema("parquet", [file], PLAIN, MUCH)


def test_times_of_a_column_of_parquet_are_all_in_utc_or_none_is(tmp_path: Path) -> None:
    inner = pa.timestamp("us")
    for name, kind in (("a", inner), ("b", pa.timestamp("us", "UTC"))):
        column = pa.nulls(1, pa.list_(pa.struct([("At", kind)])))
        papq.write_table(pa.table({"t": column}), tmp_path / name)
    told = r"b: column `t.At` has times in UTC in some files, and times without a time zone in .*"
    with pytest.raises(BadInput, match=f"{tmp_path}/{told}`source.schema`, this one as TIMESTAMP,"):
        infer_schema("parquet", [tmp_path / "a", tmp_path / "b"], PLAIN, MUCH)


def test_lists_and_bytes_of_one_size_are_lists_and_bytes(tmp_path: Path) -> None:
    file = tmp_path / "a.parquet"
    columns = {
        "l": pa.array([[1, 2]], pa.list_(pa.int32(), 2)),
        "b": pa.array([b"ab"], pa.binary(2)),
    }
    papq.write_table(pa.table(columns), file)
    assert infer_schema("parquet", [file], PLAIN, MUCH) == "`l` ARRAY<INT>, `b` BINARY"


@pytest.mark.parametrize("order", [(0, 1, 2), (2, 1, 0), (1, 2, 0)])
@pytest.mark.parametrize("fmt", ["csv", "json"])
def test_integers_that_no_double_keeps_are_a_text_beside_the_fractions_of_another_file(
    tmp_path: Path, fmt: str, order: tuple[int, ...]
) -> None:
    far, near = (1 << 53) + 1, 1 << 53
    lines = [f"{far},{near}", "1,1", "1.5,1.5"]
    texts = [f"n,m\n{each}\n" for each in lines]
    if fmt == "json":
        pairs = [each.split(",") for each in lines]
        texts = [f'{{"n": {one}, "m": {other}}}\n' for one, other in pairs]
    found = files(tmp_path, *texts)
    schema = infer_schema(fmt, [found[each] for each in order], PLAIN, MUCH)
    assert schema == "`n` STRING, `m` DOUBLE"


def test_an_object_without_anything_in_it_has_no_type_yet(tmp_path: Path) -> None:
    found = files(tmp_path, '{"e": {}, "f": [{}], "g": {"h": {}}}\n', '{"e": {"x": 1}}\n')
    assert infer_schema("json", found[:1], PLAIN, MUCH) == (
        "`e` STRING, `f` ARRAY<STRING>, `g` STRUCT<`h`: STRING>"
    )
    assert infer_schema("json", found, PLAIN, MUCH).startswith("`e` STRUCT<`x`: BIGINT>, `f`")


def test_columns_without_names_are_told_by_their_places(tmp_path: Path) -> None:
    found = files(tmp_path, 'a,,"",b\n1,x,2.5,\n', '\n\r\na,"",,b\n2,y,3,true\n')
    assert infer_schema("csv", found, PLAIN, MUCH) == (
        "`a` BIGINT, `_c1` STRING, `_c2` DOUBLE, `b` BOOLEAN"
    )


def test_texts_without_any_value_tell_no_schema_and_one_that_has_any_tells_all(
    tmp_path: Path,
) -> None:
    bare = files(tmp_path, "a,b\n", 'a,b\n,""\n')
    with pytest.raises(NotReady, match=r"^no value in 2 file\(s\) to infer a schema from; put a"):
        infer_schema("csv", bare, PLAIN, MUCH)
    (tmp_path / "one.csv").write_text("a,b\n,\n5,\n")
    assert (
        infer_schema("csv", [*bare, tmp_path / "one.csv"], PLAIN, MUCH) == "`a` BIGINT, `b` STRING"
    )
