"""Scanners for csv text: line ends outside of quotes, open quotes, comments, complete records.

They process a text chunk by chunk. A character whose meaning depends on the next one (a carriage
return, an escape) at the end of a chunk is held back until the next chunk.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Final

_CONTEXT: Final = 4
"""The most bytes of one character in UTF-8."""
_BLANK_LINE: Final = re.compile(rb"[\r\n][\x00-\x09\x0b\x0c\x0e-\x20]+(?:[\r\n]|\Z)")
"""Matches a line of characters that Java trims, or the beginning of one at the end of a chunk."""
_BLANK_STARTS: Final = (b"\n ", b"\n\t", b"\r ", b"\r\t")
_CONTROLS: Final = bytes({*range(0x20)} - {*b"\t\n\r"})


class LineEndScan:
    """Finds the line end, open quotes and other properties of a csv text, chunk by chunk."""

    def __init__(self, separator: str, quote: str, escape: str) -> None:
        self._quote = quote.encode()
        self._escape = escape.encode()
        self._held = b""
        """The last bytes of a chunk if their meaning depends on the next chunk."""
        self._tail = b"\n"
        """The end of the scanned text, for patterns that span two chunks."""
        self._inside = 0
        """1 within quotes, 0 outside."""
        self._outside_ends = Counter[str]()
        """The number of line ends outside of quotes, by kind."""
        self._all_ends = Counter[str]()
        """The number of all line ends, by kind."""
        mark, between = re.escape(self._quote), re.escape(separator.encode())
        edge = b"(?:%s|\r|\n)" % between
        self._empty = re.compile(b"%s%s%s(?=%s|\\Z)" % (edge, mark, mark, edge))
        """Matches an empty value in quotes."""
        self._letter = re.compile(
            b"(?<!%s)(?<!%s)(?<![\r\n])%s(?!%s|%s|[\r\n])" % (between, mark, mark, between, mark)
        )
        """Matches a literal quote, which neither opens nor closes a value."""
        self._has_letters = False
        """Whether there may be a literal quote."""
        self._has_blank_lines = False
        """Whether a line has only blanks, and at least one."""
        self.quotes_nothing = False
        """Whether a value may be `""`."""

    @property
    def line_end(self) -> str:
        """The line end of the text; empty if it has, or may have, several kinds."""
        # After a literal quote, inside and outside of quotes are mixed up.
        ends = [*(self._all_ends if self._has_letters else self._outside_ends)]
        return "\n" if not ends else ends[0] if len(ends) == 1 else ""

    @property
    def may_be_open(self) -> bool:
        """Whether the text may end within quotes, by the number of quotes."""
        return self._has_letters or bool(self._inside)

    @property
    def is_by_lines(self) -> bool:
        """Whether each line is a record, with a line end of one byte, and no line is blank.

        Spark's line reader would skip blank lines.
        """
        is_plain = not self.may_be_open and self._all_ends == self._outside_ends
        return is_plain and len(self.line_end) == 1 and not self._has_blank_lines

    def feed(self, chunk: bytes, *, is_last: bool = False) -> None:
        """Scan the next chunk."""
        data, self._held = _held_back(self._held + chunk, self._escape, is_last=is_last)
        # Patterns are slow, and most files have no match.
        if self._quote in data and self._quote and not self.quotes_nothing:
            self.quotes_nothing = bool(self._empty.search(self._tail + data))
        if not self._has_blank_lines:
            self._has_blank_lines = _has_blank_line(self._tail[-_CONTEXT:] + data)
        self._tail = (self._tail + data)[-3 * _CONTEXT :]
        if self._escape:
            data = data.replace(2 * self._escape, b"").replace(self._escape + self._quote, b"")
        if self._quote in data and self._quote and not self._has_letters:
            self._has_letters = bool(self._letter.search(data))
        ends, outside = _ends(data), self._outside(data)
        self._all_ends += ends
        self._outside_ends += ends if outside is data else _ends(outside)

    def _outside(self, data: bytes) -> bytes:
        if not self._quote or (self._quote not in data and not self._inside):
            return data
        pieces = data.split(self._quote)
        outside = self._quote.join(pieces[self._inside :: 2])
        self._inside ^= (len(pieces) - 1) & 1
        return outside


class LineEndUnifier:
    """Replaces line ends outside of quotes by line feeds, chunk by chunk."""

    def __init__(self, separator: str, quote: str, escape: str) -> None:
        self._quote = quote.encode()
        self._escape = escape.encode()
        self._openers = (separator.encode(), b"\r", b"\n")
        """The characters before a quote that opens a value."""
        pair = [re.escape(self._escape) + b"."] if escape else []
        mark = [re.escape(self._quote)] if quote else []
        self._token = re.compile(b"|".join([*pair, *mark, b"\r\n?"]), re.S)
        """Matches an escaped character, a quote or a line end."""
        self._held = b""
        """The last byte of a chunk if its meaning depends on the next chunk."""
        self._before = b"\n"
        """The end of the text before the chunk."""
        self._inside = False
        """Whether the position is within quotes."""
        self._closed_at = -1
        """The offset in the chunk after the last closing quote; -1: none in this chunk."""
        self._done = 0
        """The number of bytes before the chunk."""
        self._opened_at = 0
        """The offset of the last opening quote in the whole text."""

    @property
    def open_since(self) -> int:
        """The offset of the opening quote if the text is within quotes; -1: it is not."""
        return self._opened_at if self._inside else -1

    def feed(self, chunk: bytes, *, is_last: bool = False) -> bytes:
        """Return the chunk with line feeds; its last character may be held back."""
        data, self._held = _held_back(self._held + chunk, self._escape, is_last=is_last)
        unified = self._token.sub(self._replace, data)
        if data:
            self._before = (self._before + data)[-_CONTEXT:]
            self._closed_at = 0 if self._closed_at == len(data) else -1
            self._done += len(data)
        return unified

    def _replace(self, match: "re.Match[bytes]") -> bytes:
        token = match[0]
        if token == self._quote:
            self._pass_quote(match)
        elif token.startswith(b"\r") and not self._inside:
            return b"\n"
        return token

    def _pass_quote(self, match: "re.Match[bytes]") -> None:
        """Open or close a quoted value; a quote within an unquoted value is literal."""
        if self._inside:
            self._inside = False
            self._closed_at = match.end()
            return
        start = match.start()
        before = match.string[max(0, start - _CONTEXT) : start] or self._before
        goes_on = self._closed_at == start
        self._inside = goes_on or before.endswith(self._openers)
        if not goes_on:
            self._opened_at = self._done + start


class CommentFilter:
    """Removes comment lines from one text: lines outside of quotes that begin with a character."""

    def __init__(self, letter: str, separator: str, quote: str, escape: str) -> None:
        """Begin a text of a csv dialect; `letter` begins a comment, empty: there are none."""
        self._letter = letter.encode()
        self._quote = quote.encode()
        self._quotes = LineEndUnifier(separator, quote, escape)
        """Tells whether a line ends within quotes; it gets only lines with quotes."""
        self._inside = False
        """Whether the position is within quotes."""
        self.found = False
        """Whether there was a comment so far."""

    def without(self, chunks: Iterable[bytes]) -> Iterator[bytes]:
        """Yield the chunks of a text without comment lines."""
        if not self._letter:
            yield from chunks
            return
        left = b""
        for chunk in chunks:
            lines, left = (left + chunk).splitlines(keepends=True), b""
            if lines and not lines[-1].endswith(b"\n"):
                left = lines.pop()  # incomplete, or before the second half of a line end
            yield b"".join(each for each in lines if self._is_text(each))
        if left and self._is_text(left):
            yield left

    def _is_text(self, line: bytes) -> bool:
        if not self._inside and line.startswith(self._letter):
            self.found = True
            return False
        if self._inside or (self._quote and self._quote in line):
            self._quotes.feed(line)
            self._inside = self._quotes.open_since >= 0
        return True


def whole_records(sample: bytes, quote: str, escape: str) -> bytes:
    """Return the complete records of a sample; empty if the first one is incomplete."""
    mark, before = quote.encode(), escape.encode()
    unescaped = (
        sample.replace(2 * before, b"  ").replace(before + mark, b"  ") if before else sample
    )
    inside = unescaped.count(mark) % 2 if mark else 0
    end = len(sample)
    while end:
        at = max(unescaped.rfind(b"\n", 0, end), unescaped.rfind(b"\r", 0, end - 1))
        if mark:
            inside ^= unescaped.count(mark, max(at, 0), end) % 2
        if not inside:
            return sample[: at + 1]
        end = max(at, 0)
    return b""


def _held_back(data: bytes, escape: bytes, *, is_last: bool) -> tuple[bytes, bytes]:
    """Split off a last character whose meaning depends on the next one: CR, or an escape."""
    escapes = len(data) - len(data.rstrip(escape)) if escape else 0
    if not is_last and (data.endswith(b"\r") or escapes % 2):
        return data[:-1], data[-1:]
    return data, b""


def _has_blank_line(data: bytes) -> bool:
    likely = (each for each in _BLANK_STARTS if all(letter in data for letter in each))
    is_likely = any(each in data for each in likely)
    if not is_likely and len(data.translate(None, _CONTROLS)) == len(data):
        return False
    return bool(_BLANK_LINE.search(data))


def _ends(data: bytes) -> Counter[str]:
    """Count the line ends of each kind."""
    if b"\r" not in data:  # counting one byte is ten times as fast as two
        return +Counter({"\n": data.count(b"\n")})
    both = data.count(b"\r\n")
    return +Counter({"\r\n": both, "\r": data.count(b"\r") - both, "\n": data.count(b"\n") - both})
