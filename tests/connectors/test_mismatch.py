# pyright: basic
"""What is not proved in a csv text is found by its line and its column."""

import io

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql.types import (
    BinaryType,
    DataType,
    DoubleType,
    IntegerType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from fairlead.runtime.pipeline.formats.csv import proof
from fairlead.runtime.pipeline.formats.csv.grammar import PlainForm
from fairlead.runtime.pipeline.formats.csv.mismatch import find_flaw, find_mismatch
from fairlead.runtime.pipeline.formats.csv.proof import prove
from fairlead.runtime.pipeline.formats.csv.style import CsvStyle

STYLE = CsvStyle()


def form_of(*kinds: DataType, style: CsvStyle = STYLE, **options: str) -> PlainForm:
    fields = [StructField(name, kind) for name, kind in zip("abcdef", kinds, strict=False)]
    return PlainForm(StructType(fields), style, options, "UTC", is_inferred=False)


FORM = form_of(IntegerType(), DoubleType(), StringType(), TimestampType())
ZONED, LOCAL = "2013-01-01T10:00:00Z", "2013-01-01T10:00:00"


def found_in(text: str, form: PlainForm = FORM) -> str:
    return find_mismatch(io.BytesIO(text.encode()), form, form.columns.names)


@pytest.mark.parametrize(
    ("line", "where"),
    [
        (f"1,2.5,x,{ZONED}", ""),
        (f"+1,2.5,x,{ZONED}", "line 3, column `a`: `+1`"),
        (f"1,NaN,x,{ZONED}", "line 3, column `b`: `NaN`"),
        (f'1,"12D",x,{ZONED}', "line 3, column `b`: `12D`"),
        ("1,2.5,x,yesterday", "line 3, column `d`: `yesterday`"),
        (f"1,2.5,{ZONED}", "line 3 is no record of 4 plain values"),
        (f'1,2.5,"x,{ZONED}', "line 3 is no record of 4 plain values"),
        (f'1,2.5,"x\ny",{ZONED}', "line 3 is no record of 4 plain values"),
        (f"{'1' * 90},1,x,{ZONED}", f"line 3, column `a`: `{'1' * 40}`"),
        ("", "line 3 is no record of 4 plain values"),
    ],
)
@pytest.mark.parametrize("end", ["\n", "\r\n"])
@pytest.mark.parametrize("mark", ["", "\ufeff"])
def test_the_first_line_that_is_not_plain_is_found(
    line: str, where: str, end: str, mark: str
) -> None:
    plain = f"1,2,x,{ZONED}"
    text = mark + "".join(f"{each}{end}" for each in ("a,b,c,d", plain, line, plain))
    assert found_in(text) == where


def test_a_line_far_behind_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(proof, "_CHUNK", 100)
    plain = f"1,2,x,{ZONED}\n"
    assert found_in(f"a,b,c,d\n{plain * 50}1,2,x,{LOCAL}\n{plain}") == (
        "line 52 has a time without a zone, unlike those before"
    )


def test_times_with_a_zone_and_without_in_the_same_lines_are_named() -> None:
    lines = f"1,2,x,{ZONED}\n1,2,x,{LOCAL}\n"
    assert found_in(f"a,b,c,d\n{lines}") == "lines 2 to 3: times with a zone and without"


def test_a_header_with_other_columns_is_named() -> None:
    assert found_in("a,b,c,z\n") == "its header has other columns than the schema"
    headless = form_of(IntegerType(), StringType(), style=CsvStyle(header=False))
    assert found_in("1,x\nx,1\n", headless) == "line 2, column `a`: `x`"


def test_a_value_is_found_without_quotes() -> None:
    form = form_of(IntegerType(), IntegerType(), style=CsvStyle(quote="", separator=";"))
    assert found_in('a;b\n1;"2"\n', form) == 'line 2, column `b`: `"2"`'


@given(st.lists(st.sampled_from([f"1,2,x,{ZONED}", f"1,2,x,{LOCAL}", "1", "+1,2,x,", ",,,"])))
def test_nothing_is_found_exactly_in_what_arrow_may_read(lines: list[str]) -> None:
    text = "a,b,c,d\n" + "".join(f"{line}\n" for line in lines)
    proof = prove(io.BytesIO(text.encode()), FORM, FORM.columns.names)
    may_read = proof is not None and proof.has_zones is not None
    assert (found_in(text) == "") is may_read


def test_what_no_text_can_prove_is_told_without_one() -> None:
    assert find_flaw(FORM) == ""
    assert find_flaw(form_of(IntegerType(), BinaryType())) == (
        "only Spark reads column `b` of type BINARY"
    )
    dialects = form_of(IntegerType()), form_of(IntegerType(), StringType(), mode="PERMISSIVE")
    assert {find_flaw(each) for each in dialects} == {
        "only Spark reads this dialect of csv, or follows one of its options"
    }
