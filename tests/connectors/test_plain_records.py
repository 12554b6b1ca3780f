# pyright: basic
"""What is proved to be plain needs no other scan, and only what has one meaning is plain."""

import io
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from pyspark.sql.types import (
    BinaryType,
    BooleanType,
    ByteType,
    DataType,
    DateType,
    DecimalType,
    DoubleType,
    FloatType,
    IntegerType,
    LongType,
    ShortType,
    StringType,
    StructField,
    StructType,
    TimestampNTZType,
    TimestampType,
)

from fairlead.runtime.pipeline.formats.csv import proof as proofs
from fairlead.runtime.pipeline.formats.csv.proof import CsvProof, prove
from fairlead.runtime.pipeline.formats.csv.style import CsvStyle
from fairlead.runtime.pipeline.stores.files.copies import Copies
from fairlead.runtime.pipeline.stores.files.source import text as text_files
from fairlead.runtime.pipeline.stores.files.source.formats import ReadFormat
from fairlead.runtime.pipeline.stores.files.source.text import prove_csv, survey_csv, with_text

TEXT = StringType()
NEW_YORK = "America/New_York"


def form_of(*kinds: DataType, zone: str = "UTC", style: CsvStyle | None = None) -> ReadFormat:
    fields = [StructField(name, kind) for name, kind in zip("abcdef", kinds, strict=False)]
    return ReadFormat("csv", "", style or CsvStyle(), grown=StructType(fields), zone=zone)


def proof_of(form: ReadFormat, text: str) -> CsvProof | None:
    return prove(io.BytesIO(text.encode()), form.plain_form(), form.names_in_files((), ()))


def is_plain(form: ReadFormat, text: str) -> bool:
    return proof_of(form, text) is not None


DAYS = ("2013-01-01", "1000-12-31", "2024-02-29", "2000-02-29", "9999-12-31")
NO_DAYS = ("2013-1-1", "2013-02-29", "1900-02-29", "2013-04-31", "0999-01-01", "12013-01-01")
LOCALS = (*DAYS, "2013-01-01 10:00", "2013-01-01T23:59:59", "2013-01-01 00:00:00.123456")
INSTANTS = (
    *("2013-01-01T10:00:00Z", "2013-01-01 10:00:00.5+02:00", "2013-01-01 10:00:00-17:59"),
    *("2013-01-01 10:00:00+00", "2013-01-01 10:00:00-0530"),
)
NO_TIMES = (
    *NO_DAYS,
    *("2013", "10:30", "2013-01-01 24:00", "2013-01-01 10", "2013-01-01 10:00:60"),
    *("2013-01-01 10:00:00.1234567", "2013-01-01 10:00Z", "2013-01-01 10:00:00+18:00"),
    *("2013-01-01 10:00:00 Z", "20130101", "2013-01-01  10:00", "1700000000"),
)
KINDS: list[tuple[DataType, Sequence[str], Sequence[str]]] = [
    (ByteType(), ("99", "-7", "00", "127"), ("128", "+1", "1.0", "-")),
    (ShortType(), ("9999", "32699"), ("32700",)),
    (IntegerType(), ("0", "-12", "999999999", "2099999999"), ("2100000000", " 1", "\u0661")),
    (LongType(), ("999999999999999999", "8999999999999999999"), ("9000000000000000000", "12D")),
    (DoubleType(), ("1", "-1.5", "1e-05", "1E+199", ".5", "1."), ("1e200", "12D", "NaN", ".")),
    (FloatType(), ("1", "-1.5e-05", "1E22"), ("1e23", "1e39", "0x1", "9" * 39)),
    (DecimalType(4, 2), ("12.25", "1", ".25", "1."), ("123", "1.005", "1e1")),
    (DecimalType(2, 2), ("0.25",), ("1.25",)),
    (DecimalType(2, 0), ("25",), ("1.2",)),
    (BooleanType(), ("true", "FALSE", "True"), ("t", "1", "yes")),
    (DateType(), DAYS, (*NO_TIMES, *LOCALS[len(DAYS) :])),
    (TimestampNTZType(), LOCALS, (*NO_TIMES, *INSTANTS)),
    (TimestampType(), (*LOCALS, *INSTANTS), NO_TIMES),
    (BinaryType(), (), ("x",)),
]


@pytest.mark.parametrize(("kind", "plain", "others"), KINDS, ids=lambda it: str(it)[:20])
def test_a_value_is_plain_if_it_has_one_meaning_only(
    kind: DataType, plain: Sequence[str], others: Sequence[str]
) -> None:
    form = form_of(TEXT, kind)
    texts = (*plain, *others)
    found = {each for each in texts if is_plain(form, f"a,b\nx,{each}\n")}
    quoted = {each for each in texts if is_plain(form, f'a,b\nx,"{each}"\n')}
    assert (found, quoted) == ({*plain}, {*plain})


def test_times_without_a_zone_are_plain_where_clocks_are_never_changed() -> None:
    found = {
        zone: [
            each
            for each in (*LOCALS, *INSTANTS)
            if is_plain(form_of(TEXT, TimestampType(), zone=zone), f"a,b\nx,{each}\n")
        ]
        for zone in ("UTC", "+02:00", NEW_YORK, "")
    }
    every = [*LOCALS, *INSTANTS]
    assert found == {"UTC": every, "+02:00": every, NEW_YORK: [*INSTANTS], "": []}


@pytest.mark.parametrize(
    ("options", "is_so"),
    [
        ({}, True),
        ({"timezone": "UTC"}, True),
        ({"timezone": NEW_YORK}, False),
        ({"timestampformat": "yyyy-MM-dd"}, False),
        ({"timestampntzformat": "yyyy-MM-dd"}, True),
        ({"linesep": "\n"}, False),
    ],
)
def test_the_options_of_the_reader_are_followed(options: dict[str, str], *, is_so: bool) -> None:
    form = replace(form_of(TEXT, TimestampType()), options=options)
    assert is_plain(form, "a,b\nx,2013-01-01\n") is is_so


def test_a_code_is_no_number_where_the_schema_is_inferred() -> None:
    form = form_of(TEXT, IntegerType())
    texts = [f"a,b\nx,{each}\n" for each in ("7", "0", "-7", "07", "-07")]
    found = [[is_plain(one, each) for each in texts] for one in (form, inferred(form))]
    assert found == [[True] * 5, [True, True, True, False, False]]


def inferred(form: ReadFormat) -> ReadFormat:
    return replace(form, is_inferred=True)


SHAPES = [
    ("a,b\n", True),
    ("a,b\n1,x\n,\n3,", True),
    ("B,A\nx,1\n", True),
    ('a,b\n"1","x, ""y"" z"\n', True),
    ('a,b\n1,""\n"",x\n', True),
    ('a,b\n1,"x\ny"\n', False),
    ('a,b\n1,x"y\n', False),
    ('a,b\n1,"x\n', False),
    ('a,"b"\n1,x\n', True),
    ("a,b\r\n1,x\r\n", True),
    ("\ufeffa,b\n1,x\n", True),
    ("a,b\r\n1,x\n", False),
    ("a,b\r1,x\r", False),
    ("a,b\n1,x\r\n", False),
    ("a,b\n1\n", False),
    ("a,b\n1,x,y\n", False),
    ("a,b\n\n1,x\n", False),
    ("\na,b\n1,x\n", False),
    ("a,c\n1,x\n", False),
    ("a,b", False),
]


@pytest.mark.parametrize(("text", "is_so"), SHAPES)
def test_a_record_is_plain_if_its_line_has_all_its_values(text: str, *, is_so: bool) -> None:
    assert is_plain(form_of(IntegerType(), TEXT), text) is is_so


@pytest.mark.parametrize(
    ("style", "text", "is_so"),
    [
        (CsvStyle(nulls=("NA",)), "a,b\nNA,NA\n", True),
        (CsvStyle(nulls=("NA",)), 'a,b\n1,""\n', False),
        (CsvStyle(nulls=("NA", "-")), "a,b\n-,NA\n", True),
        (CsvStyle(nulls=("1,2",)), "a,b\n1,2\n", False),
        (CsvStyle(separator="\t"), "a\tb\n1\tx\n", True),
        (CsvStyle(separator="\x01"), "a\x01b\n1\x01x\n", False),
        (CsvStyle(header=False, separator="||"), "1||x\n", True),
        (CsvStyle(header=False, separator="||"), "1||x|\n", False),
        (CsvStyle(separator="-"), "a-b\n1-x\n", False),
        (CsvStyle(quote=""), 'a,b\n1,x"\n', True),
        (CsvStyle(escape="\\"), 'a,b\n1,"x\\"y"\n', False),
        (CsvStyle(escape="\\"), 'a,b\n1,"x""y"\n', False),
        (CsvStyle(escape="\\"), 'a,b\n1,"x,y"\n', True),
        (CsvStyle(header=False), "1,x\n2,\u00e9\n", True),
    ],
)
def test_the_dialect_of_a_file_is_followed(style: CsvStyle, text: str, *, is_so: bool) -> None:
    assert is_plain(form_of(IntegerType(), TEXT, style=style), text) is is_so


def test_a_file_with_one_column_or_very_many_is_not_looked_at() -> None:
    many = StructType([StructField(f"c{number}", TEXT) for number in range(201)])
    wide = replace(form_of(), grown=many)
    assert not is_plain(wide, ",".join(many.names) + "\n")
    assert not is_plain(form_of(TEXT), "a\nx\n")


def test_a_text_is_cut_where_records_begin(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(proofs, "_CHUNK", 4)
    monkeypatch.setattr(proofs, "_APART", 8)
    text = "a,b\n" + "".join(f"{each},x\n" for each in range(20)) + "7," + 50 * "y"
    proof = proof_of(form_of(IntegerType(), TEXT), text)
    assert proof is not None
    assert (proof.cuts[0], proof.cuts[-1]) == (4, len(text))
    assert len(proof.cuts) > 5
    assert all(text[each - 1] == "\n" for each in proof.cuts[:-1])
    monkeypatch.setattr(proofs, "_LONGEST", 40)
    assert proof_of(form_of(IntegerType(), TEXT), text) is None


def test_arrow_reads_times_either_with_a_zone_or_without() -> None:
    local, instant = "1,2013-01-01\n", "1,2013-01-01T10:00:00Z\n"
    form = form_of(IntegerType(), TimestampType())
    texts = [f"a,b\n{each}" for each in (local, instant, local + instant)]
    found = [
        proof_of(each, text) for text in texts for each in (form, replace(form, zone="+02:00"))
    ]
    ways = [each.has_zones if each else "not proved" for each in found]
    assert ways == [False, None, True, True, None, None]


@pytest.mark.parametrize(
    "style", [CsvStyle(trim=True), CsvStyle(separator="||"), CsvStyle(quote="\u00ab")]
)
def test_some_dialects_are_plain_to_spark_alone(style: CsvStyle) -> None:
    form = form_of(IntegerType(), TEXT, style=replace(style, header=False))
    proof = proof_of(form, style.separator.join("1x") + "\n")
    assert proof is not None
    assert proof.has_zones is None


LINES = st.sampled_from(
    ["1,x", "-5,", "07,x", '"2","x,"', '3,""', '4,"', "5", "", "1e400,x", " ", '6,"x"y', '7,""""']
)
ENDS = st.sampled_from(["\n", "\n", "\n", "\r\n", "\r"])


@given(
    parts=st.lists(st.tuples(st.lists(LINES, max_size=4), ENDS), max_size=3),
    chunk=st.integers(4, 40),
    is_cut=st.booleans(),
    finds_codes=st.booleans(),
)
def test_a_proof_tells_what_the_scans_find(
    tmp_path_factory: pytest.TempPathFactory,
    parts: list[tuple[list[str], str]],
    chunk: int,
    is_cut: bool,  # of hypothesis
    finds_codes: bool,
) -> None:
    form = replace(form_of(DoubleType(), TEXT), is_inferred=finds_codes)
    text = "a,b\n" + "".join(f"{line}{end}" for lines, end in parts for line in lines)
    # A quote that ends the text, or a chunk of it, is taken for a letter by the scan of line
    # ends, to be safe.
    text = text.removesuffix("\n") if is_cut and not text.endswith('"\n') else text
    assume(all(text[end - 1] != '"' for end in range(chunk, len(text), chunk)))
    file = tmp_path_factory.mktemp("text") / "a.csv"
    file.write_text(text, newline="")
    names = form.names_in_files((), ())
    proved = prove_csv(file, form.plain_form(), names)
    if proved is None:
        return
    copies = Copies()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(text_files, "_CHUNK", chunk)
        scanned = survey_csv(file, CsvStyle(), copies, None, odd=form.odd)
    assert not scanned.is_odd
    assert proved.quotes_nothing >= scanned.quotes_nothing
    alike: Any = {"plain": None, "proof": None, "text": None, "quotes_nothing": False}
    assert replace(proved, **alike) == replace(scanned, **alike)
    assert with_text(proved).text in {None, text.encode()}
