# pyright: basic, reportAttributeAccessIssue=false
"""Texts of digits that say more than their number: `01234` and `+1` are names of things.

No schema is inferred as numbers where such texts are sampled. One that stands beyond the sample, or
in a later file, would lose its zeros without a word: files that may have any are found here.
"""

from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

NUMBER_NAME: Final = r"^(\+|-?0[0-9])"
"""Matches what a text that is a number begins with, if the number does not say it."""
_EDGES: Final = b"\r\n"
_BLANKS: Final = b" \t"
_REACH: Final = 3
"""How many bytes of one may stand in one chunk, and the remainder in the next."""
_OFFSET_BYTES: Final = 8


class NumberNameScan:
    """Looks for texts of digits that say more than their number, chunk by chunk."""

    def __init__(self, separator: str, quote: str, *, trims: bool) -> None:
        edges = separator.encode() + quote.encode() + _EDGES + (_BLANKS if trims else b"")
        within = "".join(f"\\x{each:02x}" for each in edges)
        self._pattern = rf"[{within}](\+|-?0[0-9])"
        self._tail = b"\n"
        """The end of what was looked at, for a text that spans two chunks."""
        self.found = False
        """Whether any value may be one; letters of a longer text may look like it."""

    def feed(self, chunk: bytes) -> None:
        """Look through a chunk, unless any was found."""
        if self.found:
            return
        # Arrow's expressions are ten times as fast as Python's, and let other threads work.
        self.found = self._is_in(self._tail + chunk[:_REACH]) or self._is_in(chunk)
        self._tail = (self._tail + chunk)[-_REACH:]

    def _is_in(self, data: bytes) -> bool:
        ends = b"".join(each.to_bytes(_OFFSET_BYTES, "little") for each in (0, len(data)))
        buffers = [None, pa.py_buffer(ends), pa.py_buffer(data)]
        text = pa.Array.from_buffers(pa.large_binary(), 1, buffers)  # without a copy
        return pc.match_substring_regex(text, self._pattern)[0].as_py() is True
