# pyright: basic
"""Files that are packed, by the ends of their names: what is in them, where that can be told."""

import bz2
import gzip
import io
import zlib
from pathlib import Path
from typing import IO, Any, Final, cast

import pyarrow as pa

_CHUNK: Final = 1 << 20
_PACKED: Final = frozenset({".gz", ".bz2", ".deflate", ".zst"})
_OPAQUE: Final = frozenset({".lz4", ".lzo", ".snappy"})
"""What Hadoop compresses in ways of its own: Spark reads it, and nobody looks at it before."""


def is_packed(file: Path) -> bool:
    """Tell whether a file may hold far more than its size says."""
    return file.suffix.lower() in _PACKED


def is_opaque(file: Path) -> bool:
    """Tell whether only Spark can look into a file."""
    return file.suffix.lower() in _OPAQUE


def unpacked(file: Path, stream: IO[bytes]) -> IO[bytes]:
    """Return what a file that is open unpacks to; it is closed by whoever opened it."""
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
    """What one stream of zlib or several, one after the other, unpack to."""

    def __init__(self, stream: IO[bytes]) -> None:
        self._stream = stream
        self._unpack = zlib.decompressobj()
        self._is_within = False
        """Whether a stream has begun that has not ended yet."""
        self._left = b""
        """What was read, and not unpacked yet."""

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
            raise EOFError("it ends before what was compressed does")
        return 0
