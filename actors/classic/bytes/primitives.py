"""Kafka's primitive types, read and written within bounds.

Integers are big-endian. A string is an int16 length and UTF-8, bytes are an int32 length and data,
an array is an int32 count and its elements; a negative length or count is null. What is read comes
from anybody: a length or a count is held against the bytes that are left before anything is made,
so that a value takes no more memory than a constant times its bytes.

Readers are as lenient as those of Kafka's own classes, so that no group that works with these
fails here: bytes after the last field are ignored, and invalid UTF-8 becomes U+FFFD. (An encoded
surrogate becomes several of these here and one in Java; all else was measured to be the same.)
"""

import struct
from collections.abc import Sequence

from ....events.model import Resource

LONGEST_METADATA = 262_144
"""Bytes of the metadata with which a member joins: a consumer's names its topics once for each
protocol that it offers."""

LONGEST_ASSIGNMENT = 1_048_576
"""Bytes of one assignment: alone it may be all that a SyncGroup carries."""

LONGEST_STRING = 32_767
"""Bytes of a string: the largest number in its length field."""

INT16, INT32, INT64 = (struct.Struct(form) for form in (">h", ">i", ">q"))


class UnreadableError(ValueError):
    """The bytes of a client do not follow its protocol; the message says where."""


class UnwritableError(ValueError):
    """A value is not encodable: it is null, too long or too large for its field."""


class Reader:
    """Reads one field after the other; each method raises UnreadableError."""

    def __init__(self, data: bytes | memoryview, longest: int) -> None:
        """Start at the first byte; more than `longest` bytes are refused."""
        if len(data) > longest:
            raise UnreadableError(f"{len(data)} bytes where at most {longest} are read")
        self._data = memoryview(data)
        self._at = 0
        """The position of the next byte."""

    @property
    def has_more(self) -> bool:
        """Whether bytes are left: fields of newer versions may be missing at the end."""
        return self._at < len(self._data)

    def int16(self) -> int:
        """Read a whole number of 16 bits."""
        return self._integer(INT16)

    def int32(self) -> int:
        """Read a whole number of 32 bits."""
        return self._integer(INT32)

    def int64(self) -> int:
        """Read a whole number of 64 bits."""
        return self._integer(INT64)

    def version(self) -> int:
        """Read the leading version, of any number."""
        version = self.int16()
        if version < 0:
            raise UnreadableError(f"there is no version {version}")
        return version

    def string(self) -> str:
        """Read a string that may not be null."""
        text = self.nullable_string()
        if text is None:
            raise UnreadableError("null where a string must be")
        return text

    def nullable_string(self) -> str | None:
        """Read a string, or null."""
        length = self.int16()
        return None if length < 0 else str(self._take(length), "utf-8", "replace")

    def nullable_bytes(self) -> memoryview | None:
        """Read bytes, or null; they are not copied."""
        length = self.int32()
        return None if length < 0 else self._take(length)

    def strings(self) -> Sequence[str]:
        """Read an array of strings."""
        return tuple(self.string() for _ in range(self._count(INT16.size)))

    def resources(self, *, nullable: bool = False) -> Sequence[Resource]:
        """Read an array of names, each with an array of int32: tasks, or partitions of a topic."""
        resources: list[Resource] = []
        for _ in range(self._count(INT16.size + INT32.size, nullable=nullable)):
            name = self.string()
            resources += [Resource(name, number) for number in self._integers()]
        return tuple(resources)

    def _count(self, least: int, *, nullable: bool = False) -> int:
        """Read a count of elements of at least this size; -1 if null is allowed."""
        count, left = self.int32(), len(self._data) - self._at
        if count < 0 and not nullable:
            raise UnreadableError("null where an array must be")
        if count * least > left:
            raise UnreadableError(f"an array of {count} elements in {left} bytes")
        return max(count, 0)

    def _integers(self) -> Sequence[int]:
        count = self._count(INT32.size)
        return struct.unpack(f">{count}i", self._take(count * INT32.size))

    def _integer(self, form: struct.Struct) -> int:
        number: int
        (number,) = form.unpack(self._take(form.size))
        return number

    def _take(self, length: int) -> memoryview:
        taken = self._data[self._at : self._at + length]
        if len(taken) < length:
            raise UnreadableError(f"a field of {length} bytes, of which {len(taken)} are there")
        self._at += length
        return taken


class Writer:
    """Writes one field after the other; each method raises UnwritableError."""

    def __init__(self, longest: int) -> None:
        """Start empty, with a limit in bytes."""
        self._out = bytearray()
        self._longest = longest
        """How many bytes may be written."""

    def written(self) -> bytes:
        """Return all that was written."""
        return bytes(self._out)

    def int16(self, number: int) -> None:
        """Write a whole number of 16 bits."""
        self._integers(INT16, number)

    def int32(self, number: int) -> None:
        """Write a whole number of 32 bits."""
        self._integers(INT32, number)

    def int64(self, number: int) -> None:
        """Write a whole number of 64 bits."""
        self._integers(INT64, number)

    def string(self, text: str | None) -> None:
        """Write a string that may not be null."""
        if text is None:
            raise UnwritableError("null where a string must be")
        self.nullable_string(text)

    def nullable_string(self, text: str | None) -> None:
        """Write a string, or null."""
        if text is None:
            return self.int16(-1)
        try:
            data = text.encode()
        except UnicodeEncodeError as error:
            raise UnwritableError(f"{text!r} holds a lone surrogate") from error
        if len(data) > LONGEST_STRING:
            raise UnwritableError(f"a string of {len(data)} bytes; {LONGEST_STRING} have room")
        self.int16(len(data))
        return self._add(data)

    def nullable_bytes(self, data: bytes | None) -> None:
        """Write bytes, or null."""
        if data is None:
            return self.int32(-1)
        self.int32(len(data))
        return self._add(data)

    def strings(self, texts: Sequence[str]) -> None:
        """Write an array of strings."""
        self.int32(len(texts))
        for text in texts:
            self.string(text)

    def resources(self, resources: Sequence[Resource]) -> None:
        """Write an array of names with their numbers; names in the order of first mention."""
        by_name: dict[str, list[int]] = {}
        for name, number in resources:
            by_name.setdefault(name, []).append(number)
        self.int32(len(by_name))
        for name, numbers in by_name.items():
            self.string(name)
            self.int32(len(numbers))
            self._integers(struct.Struct(f">{len(numbers)}i"), *numbers)

    def _integers(self, form: struct.Struct, *numbers: int) -> None:
        try:
            data = form.pack(*numbers)
        except struct.error as error:
            size = form.size // len(numbers)
            raise UnwritableError(f"of {numbers[:3]} not all fit into {size} bytes") from error
        self._add(data)

    def _add(self, data: bytes) -> None:
        if len(self._out) + len(data) > self._longest:
            raise UnwritableError(f"more than {self._longest} bytes")
        self._out += data
