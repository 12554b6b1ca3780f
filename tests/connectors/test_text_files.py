# pyright: basic
"""A text file is looked through before Spark reads it: its encoding, line ends and header."""

import bz2
import csv
import errno
import gzip
import io
import os
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from fairlead.runtime.pipeline.formats.csv.line_ends import LineEndScan
from fairlead.runtime.pipeline.formats.csv.style import CsvStyle
from fairlead.runtime.pipeline.spi.errors import BadInput, SourceAway
from fairlead.runtime.pipeline.stores.files import compression
from fairlead.runtime.pipeline.stores.files.copies import Copies
from fairlead.runtime.pipeline.stores.files.source import text as text_files
from fairlead.runtime.pipeline.stores.files.source.text import survey_csv

PLAIN = CsvStyle(header=False)
BACKSLASH = CsvStyle(header=False, escape="\\")
VALUES = st.text(st.sampled_from('a,"\n\r\\ '), max_size=4)
TABLES = st.lists(st.lists(VALUES, min_size=2, max_size=2), max_size=6)


def looked_at(folder: Path, text: bytes, style: CsvStyle = PLAIN) -> tuple[bytes, str]:
    """Return what Spark is given of a file, and the line end that it is told."""
    file = folder / "a.csv"
    file.write_bytes(text)
    found = survey_csv(file, style, copies := Copies(), str(folder))
    given = found.path.read_bytes()
    assert (found.path == file) is not bool(copies.originals)
    copies.clear()
    return given, found.line_end


def records(text: bytes, style: CsvStyle) -> list[list[str]]:
    stream = io.StringIO(text.decode(), newline="")
    escape = style.escape or None
    return list(csv.reader(stream, doublequote=not escape, escapechar=escape))


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_a_file_of_one_line_end_is_read_as_it_is(tmp_path: Path, end: str) -> None:
    text = f'a,"x\ny"{end}b,"x\r\ny\r"{end}'.encode()
    assert looked_at(tmp_path, text) == (text, end)


@pytest.mark.parametrize("chunk", [1, 2, 3, 7, 1 << 20])
@pytest.mark.parametrize("style", [PLAIN, BACKSLASH], ids=["doubled", "escaped"])
@given(tables=st.lists(st.tuples(TABLES, st.sampled_from(["\n", "\r\n", "\r"])), max_size=3))
def test_line_ends_become_one_and_values_stay(
    tmp_path_factory: pytest.TempPathFactory,
    chunk: int,
    style: CsvStyle,
    tables: list[tuple[list[list[str]], str]],
) -> None:
    text = io.StringIO(newline="")
    escape = style.escape or None
    for rows, end in tables:
        csv.writer(
            text,
            lineterminator=end,
            doublequote=not escape,
            escapechar=escape,
            quoting=csv.QUOTE_ALL,
        ).writerows(rows)
    written = text.getvalue().encode()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(text_files, "_CHUNK", chunk)
        seen, end = looked_at(tmp_path_factory.mktemp("text"), written, style)
    assert records(seen, style) == [row for rows, _ in tables for row in rows]
    rest = seen.decode().replace("\\\\", "").replace('\\"', "") if escape else seen.decode()
    outside = rest.split('"')[::2]
    assert {each for each in outside if each.strip(",")} <= {end}


@given(
    text=st.text(st.sampled_from('a,"\n\r \t'), max_size=14),
    chunk=st.integers(1, 5),
)
@example(text='a,"b', chunk=1)
def test_a_file_is_read_by_lines_only_where_each_of_them_is_a_record(text: str, chunk: int) -> None:
    scan = LineEndScan(",", '"', "")
    data = text.encode()
    for at in range(0, len(data), chunk):
        scan.feed(data[at : at + chunk])
    scan.feed(b"", is_last=True)
    assert not (scan.is_by_lines and scan.may_be_open)
    if scan.is_by_lines:
        lines = [each for each in text.split(scan.line_end) if each]
        assert [next(csv.reader([each])) for each in lines] == [*filter(None, records(data, PLAIN))]
        assert all(each.strip("".join(map(chr, range(33)))) for each in lines)


def test_a_quote_in_the_middle_of_a_value_opens_nothing(tmp_path: Path) -> None:
    text = b'5" pipe,x\r\n6"" pipe,"y\r\nz"\n7,"u""\r\n""v"\r\n'
    seen, end = looked_at(tmp_path, text)
    assert (seen, end) == (b'5" pipe,x\n6"" pipe,"y\r\nz"\n7,"u""\r\n""v"\n', "\n")


@pytest.mark.parametrize("chunk", [1, 5, 1 << 20])
@pytest.mark.parametrize(
    ("text", "at"), [('1,a\n2,"b\n3,c\n', 6), ('1,5" pipe\n2,"b\n', 12), ('1,"a""\n2,b\n', 2)]
)
def test_a_quote_that_is_never_closed_is_refused_with_its_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, at: int, chunk: int
) -> None:
    monkeypatch.setattr(text_files, "_CHUNK", chunk)
    with pytest.raises(
        BadInput, match=rf"a\.csv: the quote at byte {at} of its text is never closed"
    ):
        looked_at(tmp_path, text.encode())


@pytest.mark.parametrize("text", ['1,5"\n2,b\n', '1,a"b\n', '1,"a""b"', '1,"a"b"\n', '"",""\n'])
def test_a_quote_that_is_a_letter_or_closed_is_not(tmp_path: Path, text: str) -> None:
    assert looked_at(tmp_path, text.encode()) == (text.encode(), "\n")


@pytest.mark.parametrize(
    ("text", "may"), [('a,""\n', True), ('"",b', True), ('a,b""c\n', False), ('"a""b"\n', False)]
)
def test_a_file_with_an_empty_text_in_quotes_is_told(tmp_path: Path, text: str, may: bool) -> None:
    file = tmp_path / "a.csv"
    file.write_text(text)
    assert survey_csv(file, PLAIN, Copies(), None).quotes_nothing is may


@pytest.mark.parametrize("encoding", ["ISO-8859-1", "UTF-16", "utf-8-sig"])
def test_a_file_of_another_encoding_is_read_from_a_copy(tmp_path: Path, encoding: str) -> None:
    style = CsvStyle(header=False, encoding=encoding)
    assert looked_at(tmp_path, "ä\r\n".encode(encoding), style) == ("ä\n".encode(), "\n")


def test_copies_are_removed_together(tmp_path: Path) -> None:
    copies = Copies()
    paths = [copies.new(tmp_path / name, str(tmp_path)) for name in "ab"]
    for path in paths:
        path.write_text("x")
    copies.clear()
    assert (list(tmp_path.iterdir()), copies.originals) == ([], {})


@pytest.mark.parametrize("chunk", [1, 4, 1 << 20])
def test_a_byte_that_is_not_of_the_encoding_is_named_with_its_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, chunk: int
) -> None:
    monkeypatch.setattr(text_files, "_CHUNK", chunk)
    for text, place in ((b"abc\xc3\xa4\xe4x", r"5 \(0xe4\)"), (b"ab\xc3", r"2 \(0xc3\)")):
        with pytest.raises(BadInput, match=rf"^{tmp_path}/a.csv: byte {place} is not UTF-8"):
            looked_at(tmp_path, text)


@pytest.mark.parametrize("encoding", ["UTF-16", "UTF-32"])
def test_a_file_that_does_not_say_its_byte_order_is_named(tmp_path: Path, encoding: str) -> None:
    style = CsvStyle(header=False, encoding=encoding)
    with pytest.raises(BadInput, match=rf"^{tmp_path}/a.csv: is not {encoding}: .* with BOM; set"):
        looked_at(tmp_path, "a,b\n".encode(f"{encoding}-LE"), style)


@pytest.mark.parametrize("chunk", [3, 1 << 20])
@pytest.mark.parametrize(("suffix", "pack"), [(".gz", gzip.compress), (".bz2", bz2.compress)])
@pytest.mark.parametrize("zeros", [0, 1, 512, 10_000])
def test_zeros_behind_a_compressed_file_are_not_for_spark(  # a table
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    chunk: int,
    suffix: str,
    pack: Callable[[bytes], bytes],
    zeros: int,
) -> None:
    monkeypatch.setattr(compression, "_CHUNK", chunk)
    file = tmp_path / f"a.csv{suffix}"
    file.write_bytes(pack(b"id\n1\n") + pack(b"2\n") + pack(b"") + bytes(zeros))
    reads: tuple[Callable[[Copies], Path], ...] = (
        lambda copies: survey_csv(file, CsvStyle(), copies, None).path,
        lambda copies: text_files.to_utf8(file, "UTF-8", copies, None, lambda _: None),
    )
    for read in reads:
        copies = Copies()
        path = read(copies)
        assert (path == file) is (zeros == 0)
        assert zeros == 0 or path.read_bytes() == b"id\n1\n2\n"
        copies.clear()


@pytest.mark.parametrize("text", [b"id\n1\n", b"id\n" + 70_000 * b"1\n", b"id\n" + bytes(253)])
@pytest.mark.parametrize("zeros", [0, 1, 2, 3, 4, 512])
def test_a_gzip_file_of_one_part_is_unpacked_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: bytes, zeros: int
) -> None:
    again: list[object] = []
    look = compression._has_zeros_behind

    def noting(*given: Any) -> bool:
        again.append(given)
        return look(*given)

    monkeypatch.setattr(compression, "_has_zeros_behind", noting)
    file = tmp_path / "a.csv.gz"
    file.write_bytes(gzip.compress(text) + bytes(zeros))
    copies = Copies()
    path = text_files.to_utf8(file, "UTF-8", copies, None, lambda _: None)
    assert ((path == file), bool(again)) == (zeros == 0, zeros > 0)
    assert zeros == 0 or path.read_bytes() == text
    copies.clear()


@pytest.mark.parametrize("chunk", [3, 1 << 20])
def test_a_deflated_file_is_looked_through(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, chunk: int
) -> None:
    monkeypatch.setattr(compression, "_CHUNK", chunk)
    text = b"b,a\r\n" + b"1,x\r\n" * 10_000
    file = tmp_path / "a.csv.deflate"
    file.write_bytes(zlib.compress(text[:10]) + zlib.compress(text[10:]))
    found = survey_csv(file, CsvStyle(), Copies(), None)
    assert (found.path, found.header, found.line_end) == (file, ("b", "a"), "\r\n")
    assert b"".join(text_files.decode(file, "UTF-8")) == text
    file.write_bytes(file.read_bytes()[:-2])
    with pytest.raises(BadInput, match=rf"^{file}: the compressed data is cut off"):
        survey_csv(file, CsvStyle(), Copies(), None)


@pytest.mark.parametrize("suffix", [".snappy", ".lz4", ".lzo"])
def test_text_that_cannot_be_looked_at_is_refused_with_what_can(
    tmp_path: Path, suffix: str
) -> None:
    file = tmp_path / f"a.txt{suffix}"
    file.write_bytes(b"x")
    told = rf"^{file}: .* is not supported for text; use \.gz, \.bz2, \.deflate, \.zst, or no"
    with pytest.raises(BadInput, match=told):
        survey_csv(file, CsvStyle(), Copies(), None)
    with pytest.raises(BadInput, match=told):
        text_files.to_utf8(file, "UTF-8", Copies(), None, lambda _: None)


def test_a_file_of_zstandard_is_looked_through_all_its_frames(tmp_path: Path) -> None:
    text = b"b,a\r\n" + b"1,x\r\n" * 10_000
    file = tmp_path / "a.csv.zst"
    codec = pa.Codec("zstd")
    file.write_bytes(b"".join(codec.compress(each, asbytes=True) for each in (text[:9], text[9:])))
    found = survey_csv(file, CsvStyle(), Copies(), None)
    assert (found.path, found.header, found.line_end) == (file, ("b", "a"), "\r\n")
    assert b"".join(text_files.decode(file, "UTF-8")) == text
    for broken in (file.read_bytes()[:-2], file.read_bytes() + b"x", b"x"):
        file.write_bytes(broken)
        with pytest.raises(BadInput, match=rf"^{file}: "):
            survey_csv(file, CsvStyle(), Copies(), None)


def test_a_link_that_took_the_place_of_a_file_is_not_opened(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("x")
    (tmp_path / "a.csv").symlink_to(tmp_path / "secret")
    with pytest.raises(BadInput, match=rf"^{tmp_path}/a.csv: "):
        survey_csv(tmp_path / "a.csv", PLAIN, Copies(), None)


@pytest.mark.parametrize(
    "number", [errno.EIO, errno.ESTALE, errno.ENOTCONN, errno.ETIMEDOUT], ids=os.strerror
)
def test_a_file_whose_file_system_does_not_answer_is_away(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    error = OSError(number, os.strerror(number))
    monkeypatch.setattr(text_files, "decompress", Mock(side_effect=error))
    (tmp_path / "a.csv").write_text("1\n")
    with pytest.raises(SourceAway) as away:
        survey_csv(tmp_path / "a.csv", PLAIN, Copies(), None)
    assert str(away.value) == f"{tmp_path}/a.csv: {os.strerror(number).lower()}"


def test_a_copy_that_finds_no_space_is_told_by_its_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "a.csv"
    file.write_bytes("ä\n".encode("latin-1"))

    def full(*_: object) -> Path:
        return Path("/dev/full")

    monkeypatch.setattr(Copies, "new", full)
    with pytest.raises(OSError, match="No space left on device: '/dev/full'"):
        survey_csv(file, CsvStyle(header=False, encoding="latin-1"), Copies(), None)
