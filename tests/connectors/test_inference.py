# pyright: basic
"""A schema fits all files, not the one that happens to be looked at first."""

import gzip
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as papq
import pytest

from fairlead.runtime.connectors.inference import CsvStyle, infer
from fairlead.runtime.connectors.spi import BadInput

PLAIN = CsvStyle(header=True, separator=",", quote='"', nulls=("NA",))
MUCH = 1 << 20


def files(folder: Path, *texts: str) -> list[Path]:
    made = [folder / f"{number}.txt" for number in range(len(texts))]
    for file, text in zip(made, texts, strict=True):
        file.write_text(text)
    return made


def test_a_null_in_one_days_file_does_not_make_a_number_a_text(tmp_path: Path) -> None:
    found = files(tmp_path, "n,t\n1,2013-01-01 05:00:00\n", "n,t\nNA,NA\n", "n,t\n1.5,\n")
    assert infer("csv", found, PLAIN, MUCH) == "`n` DOUBLE, `t` TIMESTAMP"


def test_types_that_nothing_spans_become_a_text(tmp_path: Path) -> None:
    found = files(tmp_path, "a,b\n1,x\n", "a,b\nyes,2\n")
    assert infer("csv", found, PLAIN, MUCH) == "`a` STRING, `b` STRING"


def test_columns_without_a_header_have_sparks_names(tmp_path: Path) -> None:
    style = CsvStyle(header=False, separator="\t", quote="'", nulls=())
    found = files(tmp_path, "1\t'a\tb'\ttrue\n")
    assert infer("csv", found, style, MUCH) == "`_c0` BIGINT, `_c1` STRING, `_c2` BOOLEAN"


def test_files_with_other_columns_are_named(tmp_path: Path) -> None:
    found = files(tmp_path, "a,b\n1,2\n", "b,a\n1,2\n")
    with pytest.raises(BadInput, match=rf"^{found[1]}: its columns are \(b, a\), .* \(a, b\)"):
        infer("csv", found, PLAIN, MUCH)


def test_a_long_file_is_read_to_its_last_whole_line_within_the_sample(tmp_path: Path) -> None:
    long = tmp_path / "long.csv.gz"
    with gzip.open(long, "wt") as stream:
        stream.write("n\n" + "12345\n" * 100_000 + "far away\n")
    assert infer("csv", [long], PLAIN, 1) == "`n` BIGINT"


def test_json_is_nested_and_its_texts_stay_texts(tmp_path: Path) -> None:
    found = files(tmp_path, '{"a": {"b": [1, null]}, "t": "2013-01-01"}\n', '{"c": true}\n')
    assert infer("json", found, PLAIN, MUCH) == (
        "`a` STRUCT<`b`: ARRAY<BIGINT>>, `t` STRING, `c` BOOLEAN"
    )


def test_parquet_has_its_types(tmp_path: Path) -> None:
    schema = pa.schema(
        [
            ("i", pa.int32()),
            ("d", pa.decimal128(10, 2)),
            ("m", pa.map_(pa.string(), pa.float32())),
            ("z", pa.timestamp("us", "UTC")),
            ("n", pa.timestamp("us")),
        ]
    )
    papq.write_table(schema.empty_table(), tmp_path / "a.parquet")
    old = pa.table({"z": pa.array([0], pa.timestamp("ns"))})
    papq.write_table(old, tmp_path / "b.parquet", use_deprecated_int96_timestamps=True)
    found = [tmp_path / "a.parquet", tmp_path / "b.parquet"]
    assert infer("parquet", found, PLAIN, MUCH) == (
        "`i` INT, `d` DECIMAL(10, 2), `m` MAP<STRING, FLOAT>, `z` TIMESTAMP, `n` TIMESTAMP_NTZ"
    )


@pytest.mark.parametrize("fmt", ["csv", "json", "parquet"])
def test_hostile_bytes_are_named(tmp_path: Path, fmt: str) -> None:
    bad = tmp_path / "bad"
    bad.write_bytes(b'a,b\n"\x00\xff\xfe{"x\n1,2,3\n')
    with pytest.raises(BadInput, match=rf"^{bad}: no {fmt} that a schema can be inferred from: "):
        infer(fmt, [bad], PLAIN, MUCH)


def test_files_without_a_row_give_no_schema(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match=r"no row to infer a schema from in 1 file\(s\)"):
        infer("csv", files(tmp_path, "\n"), PLAIN, MUCH)
