# pyright: basic
"""Decompression of files, by the suffix of their names."""

import bz2
import gzip
import io
import zlib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import IO, Any, Final, cast

import pyarrow as pa

_CHUNK: Final = 1 << 20
_COMPRESSED: Final = frozenset({".gz", ".bz2", ".deflate", ".zst"})
CODECS: Final = {".gz": "gzip", ".bz2": "bz2", ".zst": "zstd"}
"""Arrow's names of those that it unpacks."""
_SPARK_ONLY: Final = frozenset({".lz4", ".lzo", ".snappy"})
"""Hadoop's own formats: only Spark can read them."""


def is_compressed(file: Path) -> bool:
    """Return whether a file is compressed, so that its text may be much larger than the file."""
    return file.suffix.lower() in _COMPRESSED


def is_spark_only(file: Path) -> bool:
    """Return whether only Spark can decompress a file."""
    return file.suffix.lower() in _SPARK_ONLY


def decompress(file: Path, stream: IO[bytes]) -> IO[bytes]:
    """Return the decompressed stream of an open file, which the caller must close."""
    match file.suffix.lower():
        case ".gz":
            return cast("IO[bytes]", gzip.GzipFile(fileobj=stream))
        case ".bz2":
            return bz2.BZ2File(stream)
        case ".deflate":
            return io.BufferedReader(_Deflated(stream))
        case ".zst":
            return cast("IO[bytes]", pa.CompressedInputStream(pa.PythonFile(stream, "r"), "zstd"))
        case _:
            return stream


def is_padded(stream: IO[bytes], suffix: str, text_size: int) -> bool:
    """Return whether zeros follow a .gz or .bz2 file, as tapes and block copies leave them.

    gzip, bzip2 and Python pass over them, Hadoop does not. The file is known to unpack, to so many
    bytes: with another number than theirs it is unpacked once more, to find its end.
    """
    if suffix.lower() not in _MEMBERS:
        return False
    size = stream.seek(0, io.SEEK_END)
    stream.seek(max(0, size - 4))
    end = stream.read()
    # The end of a .gz is the size of its text, or of the last part of it, modulo 2^32. It is seldom
    # smaller than the file.
    whole = (text_size & 0xFFFF_FFFF).to_bytes(4, "little")
    if suffix.lower() == ".gz" and any(whole) and end == whole:
        return False
    if not end.endswith(b"\0") or (size > _CHUNK and int.from_bytes(end, "little") >= size):
        return False
    stream.seek(0)
    return _has_zeros_behind(stream, _MEMBERS[suffix.lower()])


def _has_zeros_behind(stream: IO[bytes], member: Callable[[], Any]) -> bool:
    unpack = member()
    while packed := stream.read(_CHUNK):
        while packed:
            unpack.decompress(packed)
            packed = unpack.unused_data if unpack.eof else b""
            if unpack.eof and packed.startswith(b"\0"):
                return True
            unpack = member() if unpack.eof else unpack
    return False


_MEMBERS: Final[Mapping[str, Callable[[], Any]]] = {
    ".gz": lambda: zlib.decompressobj(zlib.MAX_WBITS | 16),
    ".bz2": bz2.BZ2Decompressor,
}


class _Deflated(io.RawIOBase):
    """The decompressed content of one zlib stream, or of several concatenated ones."""

    def __init__(self, stream: IO[bytes]) -> None:
        self._stream = stream
        self._unpack = zlib.decompressobj()
        """The decompressor of the current zlib stream."""
        self._is_within = False
        """Whether a zlib stream has begun and not ended."""
        self._left = b""
        """The bytes that were read but not decompressed."""

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:  # noqa: ANN401  # 3.11 has no type for buffers
        into = memoryview(buffer)
        while packed := self._left or self._stream.read(_CHUNK):
            if not self._is_within:
                self._unpack = zlib.decompressobj()
            data = self._unpack.decompress(packed, len(into))
            self._is_within = not self._unpack.eof
            self._left = self._unpack.unconsumed_tail or self._unpack.unused_data
            if data:
                into[: len(data)] = data
                return len(data)
        if self._is_within:
            raise EOFError("the compressed data is cut off")
        return 0
