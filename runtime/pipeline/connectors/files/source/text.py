"""Text files as they are: which encoding, which line ends, and what their header says.

Spark's CSV reader is exact for one line end at a time, and for UTF-8. So each file is looked
through before Spark reads it, at some hundred megabytes a second: bytes that are no text are an
error here (Spark puts U+FFFD in their place), and a file of another encoding, or of several
line ends, is read from a copy that has neither.
"""

import codecs
import errno
import os
import zlib
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Final

from ....spi.errors import BadInput
from .. import keys
from ..copies import Copies, Surveyed
from ..csv_style import CsvStyle, header_of
from ..line_ends import LineEndScan, LineEndUnifier
from ..number_names import NumberNameScan
from ..packed import is_opaque, unpacked

_CHUNK: Final = 4 << 20
_BYTE_ORDER_MARK: Final = "\ufeff"
_OF_FILES: Final = frozenset(
    {errno.EACCES, errno.EPERM, errno.EISDIR, errno.ELOOP, errno.EFBIG, None}
)
"""What the system says where one file cannot be read, while the others can."""


def is_about_file(error: BadInput) -> bool:
    """Tell whether it is what lies in a file that cannot be read, and not the file system."""
    cause = error.__cause__
    return not isinstance(cause, OSError) or cause.errno in _OF_FILES


def decoded(file: Path, encoding: str, at_most: int | None = None) -> Iterator[bytes]:
    """Yield a file's text as UTF-8 without a byte order mark, decompressed, in whole letters.

    `at_most` is how many bytes are read. Raises `BadInput` with the position of a byte that is
    not of the encoding, counted from 0 in the decompressed file.
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
    """Tell whether so many bytes of UTF-8 are all of a file of which so many were to be read."""
    # Of other encodings a letter may take up to four times as much in the file.
    return size * (4 if style.needs_copy else 1) <= limit


def survey(
    file: Path,
    style: CsvStyle,
    copies: Copies,
    within: str | None,
    *,
    keeps_text: bool = False,
    finds_names: bool = False,
) -> Surveyed:
    """Look through a csv file, and copy it where Spark would not read it as it is.

    `keeps_text`: what it found of a small file whose lines are records holds its text.
    `finds_names`: texts of digits that say more than their number are looked for. Raises
    `BadInput` if a quote is left open: a reader takes all that follows for one value. So it does
    for what only Spark can unpack: values would be put under wrong names without a word.
    """
    _refuse_opaque(file, "header, encoding and line ends")
    scan = LineEndScan(style.separator, style.quote, style.escape)
    names = NumberNameScan(style.separator, style.quote, trims=style.trim)
    comments = style.comments()
    chunks = comments.without(decoded(file, style.encoding))
    if finds_names:
        chunks = _shown(chunks, names.feed)
    head = text = next(chunks)
    scan.feed(head)
    for chunk in chunks:
        head, text = head or chunk, text if not chunk else b""
        scan.feed(chunk)
    scan.feed(b"", is_last=True)
    if scan.may_be_open:
        _refuse_open_quote(file, style)
    path, line_end = file, scan.line_end
    if style.needs_copy or comments.found or not line_end:
        path, line_end = copies.new(file, within), "\n"
        chunks = style.comments().without(decoded(file, style.encoding))
        _write(path, _unified(chunks, style))
    header = _header_of(file, head, style) if style.header else ()
    is_by_lines = scan.is_by_lines and path == file and not style.separator.isspace()
    # A file that begins with an empty line has its header further below.
    is_small = keeps_text and is_by_lines and text and not text.startswith(line_end.encode())
    kept = text if is_small else None
    values = scan.quotes_nothing, names.found
    return Surveyed(path, line_end, is_by_lines, *values, header, text=kept)


def transcoded(
    file: Path,
    encoding: str,
    copies: Copies,
    within: str | None,
    show: Callable[[bytes], None],
) -> Path:
    """Look through a text file, and return it, or a copy in UTF-8; `show` is given all its text."""
    _refuse_opaque(file, "columns and encoding")
    chunks = _shown(decoded(file, encoding), show)
    if not CsvStyle(encoding=encoding).needs_copy:
        for _ in chunks:
            pass
        return file
    copy = copies.new(file, within)
    _write(copy, chunks)
    return copy


def _refuse_opaque(file: Path, what: str) -> None:
    if is_opaque(file):
        raise BadInput(
            f"{file}: its {what} cannot be looked at, since text is unpacked from .gz, .bz2, "
            f".deflate and .zst, but not from {file.suffix}: compress it so, or leave it "
            "uncompressed"
        )


def _shown(chunks: Iterator[bytes], show: Callable[[bytes], None]) -> Iterator[bytes]:
    for chunk in chunks:
        show(chunk)
        yield chunk


def _write(path: Path, chunks: Iterator[bytes]) -> None:
    try:
        with path.open("wb") as stream:
            stream.writelines(chunks)
    except OSError as error:
        error.filename = str(path)  # errors of writing do not name their file
        raise


def _refuse_open_quote(file: Path, style: CsvStyle) -> None:
    unify = LineEndUnifier(style.separator, style.quote, style.escape)
    for chunk in style.comments().without(decoded(file, style.encoding)):
        unify.feed(chunk)
    unify.feed(b"", is_last=True)
    if unify.open_since >= 0:
        but = " without its comments" if style.comment else ""
        raise BadInput(
            f"{file}: the quote at byte {unify.open_since} of its text{but} is never closed, so "
            "all that follows would be one value; was the file cut off? Replace it by a whole one, "
            f"or set {keys.SOURCE_QUOTE} if quotes are letters there"
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
    """Open a file to read what it unpacks to; a link that took its place is refused."""
    try:
        plain = os.fdopen(os.open(file, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC), "rb")
        with plain, unpacked(file, plain) as stream:
            yield stream
    except (OSError, EOFError, zlib.error) as error:
        why = (isinstance(error, OSError) and error.strerror) or error
        raise BadInput(f"{file}: {why}") from error


def _undecodable(file: Path, encoding: str, before: int, error: UnicodeError) -> str:
    remedy = "give `source.encoding`, or move the file away"
    if not isinstance(error, UnicodeDecodeError):  # it has no byte order mark, say
        return f"{file}: is not {encoding}: {error}; {remedy}"
    found: Sequence[int] = error.object[error.start : error.start + 1]
    what = f"0x{found[0]:02x}" if found else "the end of the file"
    return (
        f"{file}: byte {before + error.start} ({what}) is not {encoding}: {error.reason}; {remedy}"
    )
