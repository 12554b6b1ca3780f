# pyright: basic
"""A proved file may be read in any parts: each chunk is read once, and is whole records."""

import io
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import chain, pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from pyspark.sql.types import DataType, IntegerType, StringType, StructField, StructType

from fairlead.runtime.pipeline.batches.frames import arrow_schema_of
from fairlead.runtime.pipeline.formats.csv import proof
from fairlead.runtime.pipeline.formats.csv.arrow_reader import (
    CsvReading,
    TextChangedError,
    TextRange,
    read_ranges,
)
from fairlead.runtime.pipeline.formats.csv.grammar import PlainForm
from fairlead.runtime.pipeline.formats.csv.proof import CsvProof, prove
from fairlead.runtime.pipeline.formats.csv.style import CsvStyle
from fairlead.runtime.pipeline.stores.files.source.parts import split

INT, TEXT = IntegerType(), StringType()
NAMES = "abcdefgh"


def form_of(*kinds: DataType, style: CsvStyle | None = None) -> PlainForm:
    columns = StructType([*map(StructField, NAMES, kinds)])
    return PlainForm(columns, style or CsvStyle(), {}, "UTC", is_inferred=False)


def proved(form: PlainForm, text: bytes) -> CsvProof | None:
    """Return the proof of a text that Arrow may read."""
    found = prove(io.BytesIO(text), form, form.columns.names)
    return found if found and found.has_zones is not None else None


def range_of(path: Path, found: CsvProof) -> TextRange:
    return TextRange(str(path), found.cuts, tuple(found.columns.names), bool(found.has_zones))


def read(form: PlainForm, ranges: Sequence[TextRange]) -> list[tuple[Any, ...]]:
    style = form.style
    how = CsvReading(arrow_schema_of(form.columns), style.separator, style.quote, style.nulls)
    rows = chain.from_iterable(each.to_pylist() for each in read_ranges(how, ranges))
    return [tuple(each.values()) for each in rows]


LINES = {
    "1,x": (1, "x"),
    ",": (None, None),
    '"2","y, z"': (2, "y, z"),
    '"3",': (3, None),
    '4,""': (4, ""),
    '"",""': (None, ""),
    '5,"a ""b"""': (5, 'a "b"'),
    f"6,{'w' * 90}": (6, "w" * 90),
    "7,\u00e9\U0001f600": (7, "\u00e9\U0001f600"),
}


@dataclass(frozen=True)
class Text:
    """Lines, and how they stand in a file."""

    lines: list[str]
    end: str
    is_ended: bool
    has_mark: bool
    has_header: bool

    def __bytes__(self) -> bytes:
        text = self.end.join([*(["a,b"] if self.has_header else []), *self.lines])
        is_ended = self.is_ended or not self.lines
        return ("\ufeff" * self.has_mark + text + self.end * is_ended).encode()


@given(
    text=st.builds(
        Text,
        st.lists(st.sampled_from([*LINES]), max_size=12),
        st.sampled_from(["\n", "\r\n"]),
        *(st.booleans() for _ in range(3)),
    ),
    chunk=st.integers(1, 60),
    apart=st.integers(1, 80),
    most=st.integers(1, 9),
)
def test_rows_are_the_same_wherever_a_text_is_cut(
    tmp_path_factory: pytest.TempPathFactory, text: Text, chunk: int, apart: int, most: int
) -> None:
    assume(text.has_header or text.lines)  # a blank line is no record
    data = bytes(text)
    form = form_of(INT, TEXT, style=CsvStyle(header=text.has_header))
    path = tmp_path_factory.mktemp("cut") / "a.csv"
    path.write_bytes(data)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(proof, "_CHUNK", chunk)
        patch.setattr(proof, "_APART", apart)
        found = proved(form, data)
    assert found is not None
    parts = split([range_of(path, found)], most)
    assert [row for each in parts for row in read(form, each)] == [
        LINES[each] for each in text.lines
    ]


def chunks_of(ranges: Sequence[TextRange]) -> list[tuple[str, int, int]]:
    return [(each.path, *cut) for each in ranges for cut in pairwise(each.cuts)]


CUTS = st.lists(st.integers(0, 50), min_size=2, max_size=9).map(
    lambda sizes: tuple(sum(sizes[:number]) for number in range(1, len(sizes) + 1))
)


@given(files=st.lists(CUTS, max_size=5), most=st.integers(1, 12))
def test_each_chunk_is_in_one_part_and_parts_differ_by_less_than_two_chunks(
    files: list[tuple[int, ...]], most: int
) -> None:
    ranges = [TextRange(str(at), cuts, (), has_zones=True) for at, cuts in enumerate(files)]
    parts = split(ranges, most)
    chunks = [[(each.path, *cut) for each in some for cut in pairwise(each.cuts)] for some in parts]
    assert [*chain(*chunks)] == [
        (each.path, *cut) for each in ranges for cut in pairwise(each.cuts)
    ]
    sizes = [sum(end - begin for _, begin, end in some) for some in chunks]
    longest = max((end - begin for _, begin, end in chain(*chunks)), default=0)
    share = sum(sizes) / most
    assert len(parts) <= most
    assert all(abs(size - share) <= longest for size in sizes if len(parts) == most)


def test_a_record_may_be_longer_than_a_chunk_and_not_longer_than_is_held(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(proof, "_CHUNK", 16)
    monkeypatch.setattr(proof, "_LONGEST", 200)
    form = form_of(INT, TEXT)
    found = proved(form, b"a,b\n1," + 150 * b"x" + b"\n2,y")
    assert found is not None
    assert (found.cuts[0], found.cuts[-1]) == (4, 160)
    assert proved(form, b"a,b\n1," + 300 * b"x" + b"\n2,y") is None


def test_a_file_that_became_shorter_is_told(tmp_path: Path) -> None:
    form, path = form_of(INT, TEXT), tmp_path / "a.csv"
    path.write_bytes(b"a,b\n1,x\n2,y\n")
    found = proved(form, path.read_bytes())
    assert found is not None
    path.write_bytes(b"a,b\n1,x\n")
    with pytest.raises(TextChangedError, match=r"a\.csv became shorter while it was read"):
        read(form, [range_of(path, found)])


@pytest.mark.parametrize(
    "text",
    [
        b"a,b\n1,\xff\n",
        b"a,b\n1,\xc3\n2,\xa9\n",
        b"a,\xff\n1,x\n",
        b'a,b\n1,"x\n',
        b'a,b\n1,"x\n2,y"\n',
        b'a,"b\n1,x\n',
        b"a,b\n1,x\n\n2,y\n",
        b"\na,b\n1,x\n",
        b"a,b\n1,x\n\n",
        b"a,b\r1,x\r",
        b"a,b\n1,x\ry\n",
        b"a,b\r\n1,x\n",
        b"a,b\n1,x\r\n",
        b"a,c\n1,x\n",
        b"a,b,c\n1,x,y\n",
        b"a,b\n1\n",
        b"a,b\n1,x,y\n",
        b"1,x\n",
        b"",
        b"\xef\xbb\xbf",
        b"a,b",
    ],
)
def test_a_text_of_other_records_is_not_proved(text: bytes) -> None:
    assert proved(form_of(INT, TEXT), text) is None


@pytest.mark.parametrize(
    "change",
    [
        {"separator": "\u00e9"},
        {"separator": "||"},
        {"quote": ","},
        {"separator": "-"},
        {"encoding": "latin-1"},
        {"comment": "#"},
        {"trim": True},
        {"nulls": ("x,y",)},
    ],
    ids=str,
)
def test_a_text_of_other_dialects_is_not_proved(change: dict[str, Any]) -> None:
    style = replace(CsvStyle(header=False), **change)
    assert proved(form_of(INT, TEXT, style=style), f"1{style.separator}x\n".encode()) is None


@pytest.mark.parametrize(("count", "is_proved"), [(1, False), (2, True), (200, True), (201, False)])
def test_one_column_and_very_many_are_not_proved(count: int, *, is_proved: bool) -> None:
    columns = StructType([StructField(f"c{at}", INT) for at in range(count)])
    form = replace(form_of(), columns=columns)
    text = (",".join(columns.names) + "\n" + ",".join(["1"] * count) + "\n").encode()
    assert (proved(form, text) is not None) is is_proved


def test_an_empty_value_at_the_end_is_null_whatever_stands_before_it(tmp_path: Path) -> None:
    form, path = form_of(TEXT, TEXT), tmp_path / "a.csv"
    path.write_bytes(b'a,b\n"x",\n"x",')
    found = proved(form, path.read_bytes())
    assert found is not None
    assert read(form, [range_of(path, found)]) == [("x", None), ("x", None)]


def test_a_mark_of_byte_order_within_a_text_is_a_letter_of_its_value(tmp_path: Path) -> None:
    form, path = form_of(TEXT, TEXT), tmp_path / "a.csv"
    path.write_bytes("a,b\n\ufeffx,y\n".encode())
    found = proved(form, path.read_bytes())
    assert found is not None
    assert read(form, [range_of(path, found)]) == [("\ufeffx", "y")]
