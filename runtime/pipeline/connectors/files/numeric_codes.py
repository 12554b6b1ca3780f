# pyright: basic, reportAttributeAccessIssue=false
"""Finds numeric codes such as `01234` and `+1` (ZIP codes, phone numbers) in csv text.

A column with such a text in the sample is not inferred as a number. A code after the sample, or in
a later file, would lose its zeros silently: this scan finds the files that may have one.
"""

from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

NUMERIC_CODE: Final = r"^(\+|-?0[0-9])"
"""Matches the beginning of a text that loses characters as a number."""
_EDGES: Final = b"\r\n"
_BLANKS: Final = b" \t"
_REACH: Final = 3
"""The length of the pattern less one: a match may span two chunks."""
_OFFSET_BYTES: Final = 8


class NumericCodeScan:
    """Searches a text for numeric codes, chunk by chunk."""

    def __init__(self, separator: str, quote: str, *, trims: bool) -> None:
        edges = separator.encode() + quote.encode() + _EDGES + (_BLANKS if trims else b"")
        within = "".join(f"\\x{each:02x}" for each in edges)
        self._pattern = rf"[{within}](\+|-?0[0-9])"
        self._tail = b"\n"
        """The end of the scanned text, for a match that spans two chunks."""
        self.found = False
        """Whether a value may be a code; a part of a longer text may look like one."""

    def feed(self, chunk: bytes) -> None:
        """Scan the next chunk, unless a code was found."""
        if self.found:
            return
        # Arrow's regular expressions are ten times as fast as Python's, and release the GIL.
        self.found = self._is_in(self._tail + chunk[:_REACH]) or self._is_in(chunk)
        self._tail = (self._tail + chunk)[-_REACH:]

    def _is_in(self, data: bytes) -> bool:
        ends = b"".join(each.to_bytes(_OFFSET_BYTES, "little") for each in (0, len(data)))
        buffers = [None, pa.py_buffer(ends), pa.py_buffer(data)]
        text = pa.Array.from_buffers(pa.large_binary(), 1, buffers)  # without a copy
        return pc.match_substring_regex(text, self._pattern)[0].as_py() is True
