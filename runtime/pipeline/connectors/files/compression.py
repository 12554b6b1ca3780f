# pyright: basic
"""Decompression of files, by the suffix of their names."""

import bz2
import gzip
import io
import zlib
from pathlib import Path
from typing import IO, Any, Final, cast

import pyarrow as pa

_CHUNK: Final = 1 << 20
_COMPRESSED: Final = frozenset({".gz", ".bz2", ".deflate", ".zst"})
_SPARK_ONLY: Final = frozenset({".lz4", ".lzo", ".snappy"})
"""Hadoop's own formats: only Spark can read them."""


def is_compressed(file: Path) -> bool:
    """Tell whether a file is compressed, so that its text may be much larger than the file."""
    return file.suffix.lower() in _COMPRESSED


def is_spark_only(file: Path) -> bool:
    """Tell whether only Spark can decompress a file."""
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


class _Deflated(io.RawIOBase):
    """The decompressed content of one zlib stream, or of several concatenated ones."""

    def __init__(self, stream: IO[bytes]) -> None:
        self._stream = stream
        self._unpack = zlib.decompressobj()
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
