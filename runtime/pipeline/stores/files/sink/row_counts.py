# pyright: basic
"""How many rows are in staged files, which must be as many as were written (DATA_PLANE §4).

Anybody may remove, cut or replace a staged file before the manifest names it. Parquet tells its
rows. The lines of json are counted, and the records of csv: line ends outside of quotes. Text of a
form in which other bytes stand for these is not counted.
"""

import errno
import zlib
from collections.abc import Callable, Generator, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import pyarrow as pa
import pyarrow.parquet as papq

from ....formats.spark.options import ENCODING
from ....spi.errors import SinkAway
from ..compression import CODECS
from ..sink_folder.publishing import RowsOf
from ..sink_folder.root import OpenRoot
from ..sink_folder.staging import STAGING
from .writing import WriteFormat, WrittenRows

_CHUNK: Final = 1 << 20
_OF_HADOOP: Final = frozenset({"lz4", "snappy"})
"""Compressed files that only Hadoop reads, by option and by ending."""
_AS_ASCII: Final = frozenset({"utf-8", "utf8", "us-ascii", "iso-8859-1", "windows-1252"})
"""Encodings in which quotes and line ends have the bytes of ASCII, and no others have them."""
_CHANGED: Final = frozenset({None, errno.ENOENT, errno.ENOTDIR})
"""The numbers of errors at files that are gone, or are not whole; None: of pyarrow."""


def counter_of(form: WriteFormat) -> RowsOf | None:
    """Return what counts the rows in a file of a format; None: its rows cannot be counted.

    It returns -1 for a file that turns out to be one of those.
    """
    if form.name == "parquet":
        return lambda file: int(papq.read_metadata(file).num_rows)
    options = form.options
    is_ascii = all(options.get(each, "utf-8").lower() in _AS_ASCII for each in ENCODING)
    is_hidden = options.get("compression", options.get("codec", "")).lower() in _OF_HADOOP
    is_pretty = options.get("pretty", "false").lower() == "true"  # each row has many lines
    if not is_ascii or is_hidden or is_pretty or options.get("linesep", "\n") != "\n":
        return None
    count = _lines if form.name == "json" else _records_of(options)
    if count is None:
        return None
    return lambda file: -1 if file.suffix[1:] in _OF_HADOOP else count(_chunks(file))


def _lines(chunks: Iterator[bytes]) -> int:
    return sum(each.count(b"\n") for each in chunks)


def _records_of(options: Mapping[str, str]) -> Callable[[Iterator[bytes]], int] | None:
    """Return what counts the records in the text of a csv file; None: they cannot be counted."""
    quote = options.get("quote", '"').encode()
    is_doubled = options.get("escape", "\\").encode() == quote
    is_always_quoted = options.get("escapequotes", "true").lower() == "true"
    if len(quote) != 1 or quote == b"\0" or not is_doubled or not is_always_quoted:
        return None
    titles = int(options.get("header", "false").lower() == "true")
    return lambda chunks: max(0, _records(chunks, quote) - titles)


def _records(chunks: Iterator[bytes], quote: bytes) -> int:
    """Count the line ends outside of quotes; a doubled quote leaves and enters them at once."""
    count, is_quoted = 0, False
    for chunk in chunks:
        if quote not in chunk:  # to count is twice as fast as to split
            count += 0 if is_quoted else chunk.count(b"\n")
            continue
        pieces = chunk.split(quote)
        count += sum(each.count(b"\n") for each in pieces[is_quoted::2])
        is_quoted ^= len(pieces) % 2 == 0
    return count


def _chunks(file: Path) -> Iterator[bytes]:
    """Yield the text of a file, uncompressed; raises `OSError` if it is cut off."""
    if file.suffix == ".deflate":
        yield zlib.decompress(file.read_bytes())
        return
    with pa.input_stream(str(file), compression=CODECS.get(file.suffix)) as stream:
        while chunk := stream.read(_CHUNK):
            yield chunk


@contextmanager
def whole_files(root: OpenRoot, where: str) -> Generator[Callable[[WrittenRows, int], None]]:
    """Yield what compares written rows with those found; raises `SinkAway` if files were changed.

    `where` is the folder of the batch, relative to the root.
    """

    def compare(written: WrittenRows, found: int) -> None:
        if found != written.rows:
            raise _changed(root, where, f"of {written.rows} rows its files have {found}")

    try:
        yield compare
    except (pa.ArrowInvalid, OSError, zlib.error) as error:
        if getattr(error, "errno", None) not in _CHANGED:
            raise
        raise _changed(root, where, f"its files are not whole ({error})") from error


def _changed(root: OpenRoot, where: str, what: str) -> SinkAway:
    if not root.is_current():
        return SinkAway(f"{root.place.root} was unmounted or replaced during a batch")
    told = f"{root.place.root}/{where} was changed after it was written: {what}"
    return SinkAway(
        f"{told}. Nothing of the batch counts, and it is written again. Keep whatever cleans up "
        f"away from {root.place.root}/{STAGING}".replace(str(root.path), str(root.place.root))
    )
