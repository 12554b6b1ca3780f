"""Scan of text files before Spark reads them: encoding, line ends, header.

Spark's csv reader is exact only for UTF-8 and one kind of line end. The scan, at some hundred
megabytes a second, refuses invalid bytes (Spark replaces them by U+FFFD), and copies files of
another encoding, or with mixed line ends, to UTF-8 with line feeds.
"""

import codecs
import errno
import os
import zlib
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import IO, Final

from ....formats.csv.arrow_reader import state_of
from ....formats.csv.grammar import PlainForm
from ....formats.csv.line_ends import LineEndScan, LineEndUnifier
from ....formats.csv.mismatch import find_mismatch
from ....formats.csv.proof import prove
from ....formats.csv.style import SOURCE_QUOTE, CsvStyle, header_of
from ....formats.spark.odd_texts import OddTextScan
from ....spi.errors import BadInput
from ..compression import CODECS, decompress, is_compressed, is_padded, is_spark_only
from ..copies import Copies, FileSurvey
from .listing import asking_about

_CHUNK: Final = 4 << 20
_BYTE_ORDER_MARK: Final = "\ufeff"
_OF_FILES: Final = frozenset(
    {errno.EACCES, errno.EPERM, errno.EISDIR, errno.ELOOP, errno.EFBIG, None}
)
"""The error numbers of problems with one file; others are problems of the file system."""


def is_about_file(error: BadInput) -> bool:
    """Return whether an error concerns only one file, not the file system."""
    cause = error.__cause__
    return not isinstance(cause, OSError) or cause.errno in _OF_FILES


def decode(file: Path, encoding: str, at_most: int | None = None) -> Iterator[bytes]:
    """Yield a file's text as UTF-8, decompressed and without a byte order mark.

    Chunks have whole characters. `at_most` limits the bytes to read. Raises `BadInput` with the
    offset of an invalid byte, from 0, in the decompressed file.
    """
    decoder = codecs.getincrementaldecoder(encoding)("strict")
    done = 0
    is_first = True
    with _opened(file) as stream:
        while True:
            wanted = _CHUNK if at_most is None else min(_CHUNK, at_most - done)
            data = stream.read(wanted)
            held = len(decoder.getstate()[0])
            try:
                text = decoder.decode(data, not data and at_most is None)
            except UnicodeError as error:
                raise BadInput(_undecodable(file, encoding, done - held, error)) from None
            done += len(data)
            yield (text.removeprefix(_BYTE_ORDER_MARK) if is_first else text).encode()
            is_first = is_first and not text
            if not data:
                return


def is_whole(size: int, limit: int, style: CsvStyle) -> bool:
    """Return whether `size` bytes of UTF-8, read with a limit, are the whole file."""
    # In another encoding, a character may have up to four times as many bytes.
    return size * (4 if style.needs_copy else 1) <= limit


def prove_csv(file: Path, form: PlainForm, names: Sequence[str]) -> FileSurvey | None:
    """Survey a csv file whose records are all plain; None: it has to be scanned.

    `names` are its columns if it has no header. Raises `BadInput` if it cannot be read.
    """
    if is_spark_only(file):
        return None
    with _plain(file) as plain:
        state = state_of(plain)
        with decompress(file, plain) as stream:
            proof = prove(stream, form, names)
    if proof is None or _has_padding(file, proof.cuts[-1]):
        return None
    if not proof.header and 0 < proof.cuts[-1] == proof.cuts[0]:  # see `survey_csv`
        return None
    proof = replace(proof, state=state)
    is_unpacked = file.suffix.lower() in CODECS or not is_compressed(file)
    return FileSurvey(
        file,
        proof.line_end,
        proof.line_end == "\n" and not form.style.separator.isspace(),
        proof.has_quoted_nothing,
        plain=proof.columns,
        header=proof.header,
        proof=proof if proof.has_zones is not None and is_unpacked else None,
    )


def with_text(survey: FileSurvey) -> FileSurvey:
    """Return the survey of a plain file with its text, if it may be merged; raises `BadInput`."""
    if survey.plain is None or survey.text is not None or not survey.is_by_lines:
        return survey
    chunks = decode(survey.path, "UTF-8")
    text = next(chunks)
    return survey if next(chunks, b"") else replace(survey, text=text)


def find_mismatch_in(file: Path, form: PlainForm, names: Sequence[str]) -> str:
    """Return where the text of a csv file is not proved; empty: it cannot be told."""
    try:
        with _opened(file) as stream:
            return find_mismatch(stream, form, names)
    except BadInput:  # whoever reads the file reports it
        return ""


def survey_csv(
    file: Path,
    style: CsvStyle,
    copies: Copies,
    within: str | None,
    *,
    keeps_text: bool = False,
    odd: str = "",
) -> FileSurvey:
    """Scan a csv file, and copy it if Spark cannot read it directly.

    `keeps_text`: the result has the text of a small file with one record per line. `odd` is the
    pattern of odd texts. Raises `BadInput` if a quote is never closed, since a reader
    takes all that follows for one value; and for a compression that only Spark can read, since the
    header cannot be checked.
    """
    _refuse_opaque(file, "header, encoding and line ends")
    scan = LineEndScan(style.separator, style.quote, style.escape)
    odd_texts = OddTextScan(odd)
    comments = style.comments()
    decoded = _Sized(decode(file, style.encoding))
    chunks = comments.without(iter(decoded))

    def look(chunk: bytes, *, is_last: bool = False) -> None:
        odd_texts.feed(chunk)
        scan.feed(chunk, is_last=is_last)

    head, text = _look_through(chunks, look)
    look(b"", is_last=True)
    if scan.may_be_open:
        _refuse_open_quote(file, style)
    path, line_end = file, scan.line_end
    # A byte order mark alone ends Spark's parser with an error.
    is_mark = not decoded.size and file.stat().st_size
    is_other = style.needs_copy or comments.found or not line_end or is_mark
    if is_other or _has_padding(file, decoded.size):
        path, line_end = copies.new(file, within), "\n"
        chunks = style.comments().without(decode(file, style.encoding))
        copies.write(path, _unified(chunks, style))
    header = _header_of(file, head, style) if style.header else ()
    is_by_lines = scan.is_by_lines and path == file and not style.separator.isspace()
    # If a file begins with an empty line, its header is not in the first line.
    is_small = keeps_text and is_by_lines and text and not text.startswith(line_end.encode())
    kept = text if is_small else None
    values = scan.quotes_nothing, odd_texts.found
    return FileSurvey(path, line_end, is_by_lines, *values, header=header, text=kept)


def _look_through(chunks: Iterator[bytes], look: Callable[[bytes], object]) -> tuple[bytes, bytes]:
    """Show each chunk; return the first one with text, and the whole text if it is in one chunk."""
    head = text = next(chunks)
    look(head)
    for chunk in chunks:
        head, text = head or chunk, text if not chunk else b""
        look(chunk)
    return head, text


def to_utf8(
    file: Path,
    encoding: str,
    copies: Copies,
    within: str | None,
    show: Callable[[bytes], None],
) -> Path:
    """Return a text file or its copy in UTF-8; `show` gets the whole text in chunks."""
    _refuse_opaque(file, "columns and encoding")
    decoded = _Sized(decode(file, encoding))
    chunks = _shown(iter(decoded), show)
    if CsvStyle(encoding=encoding).needs_copy:
        copy = copies.new(file, within)
        copies.write(copy, chunks)
        return copy
    for _ in chunks:
        pass
    if not _has_padding(file, decoded.size):
        return file
    copy = copies.new(file, within)
    copies.write(copy, decode(file, encoding))
    return copy


def _refuse_opaque(file: Path, what: str) -> None:
    if is_spark_only(file):
        raise BadInput(
            f"{file}: its {what} cannot be checked: {file.suffix} is not supported for text; use "
            ".gz, .bz2, .deflate, .zst, or no compression"
        )


class _Sized:
    """Chunks of a text, and how many bytes there were so far."""

    def __init__(self, chunks: Iterator[bytes]) -> None:
        self._chunks = chunks
        self.size = 0
        """The bytes of the chunks so far."""

    def __iter__(self) -> Iterator[bytes]:
        for chunk in self._chunks:
            self.size += len(chunk)
            yield chunk


def _shown(chunks: Iterator[bytes], show: Callable[[bytes], None]) -> Iterator[bytes]:
    for chunk in chunks:
        show(chunk)
        yield chunk


def _refuse_open_quote(file: Path, style: CsvStyle) -> None:
    unify = LineEndUnifier(style.separator, style.quote, style.escape)
    for chunk in style.comments().without(decode(file, style.encoding)):
        unify.feed(chunk)
    unify.feed(b"", is_last=True)
    if unify.open_since >= 0:
        but = " without its comments" if style.comment else ""
        raise BadInput(
            f"{file}: the quote at byte {unify.open_since} of its text{but} is never closed, so "
            "all that follows would be one value; was the file cut off? Replace it by a complete "
            f"one, or set {SOURCE_QUOTE} if quotes are literal there"
        )


def _header_of(file: Path, head: bytes, style: CsvStyle) -> tuple[str, ...]:
    try:
        return header_of(head, style)
    except BadInput as error:
        raise BadInput(f"{file}: {error}") from None


def _unified(chunks: Iterator[bytes], style: CsvStyle) -> Iterator[bytes]:
    unify = LineEndUnifier(style.separator, style.quote, style.escape)
    for chunk in chunks:
        yield unify.feed(chunk)
    yield unify.feed(b"", is_last=True)


@contextmanager
def _opened(file: Path) -> Generator[IO[bytes]]:
    """Open a file to read what it unpacks to; raises as `_plain` does."""
    with _plain(file) as plain, decompress(file, plain) as stream:
        yield stream


@contextmanager
def _plain(file: Path) -> Generator[IO[bytes]]:
    """Open a file; a link that took its place is refused, and errors of unpacking are translated.

    Raises `BadInput`, or `SourceAway` if its file system does not answer.
    """
    try:
        with asking_about(file):
            flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC
            with os.fdopen(os.open(file, flags), "rb") as plain:
                yield plain
    except (OSError, EOFError, zlib.error) as error:
        why = (isinstance(error, OSError) and error.strerror) or error
        raise BadInput(f"{file}: {why}") from error


def _has_padding(file: Path, text_size: int) -> bool:
    """Return whether zeros follow the end of a compressed file, which Spark would not pass over."""
    if not is_compressed(file):
        return False
    with asking_about(file), file.open("rb") as stream:
        return is_padded(stream, file.suffix, text_size)


def _undecodable(file: Path, encoding: str, before: int, error: UnicodeError) -> str:
    remedy = "set `source.encoding`, or move the file away"
    if not isinstance(error, UnicodeDecodeError):  # it has no byte order mark, say
        return f"{file}: is not {encoding}: {error}; {remedy}"
    found: Sequence[int] = error.object[error.start : error.start + 1]
    what = f"0x{found[0]:02x}" if found else "the end of the file"
    return (
        f"{file}: byte {before + error.start} ({what}) is not {encoding}: {error.reason}; {remedy}"
    )
