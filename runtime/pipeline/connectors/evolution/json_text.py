# pyright: basic, reportAttributeAccessIssue=false
"""What no reader may be given of texts in JSON: it would lose something, or end its process.

Spark makes a question mark of a lone surrogate. Arrow's parser takes minutes for values that are
nested thousands of times, and runs over its stack a little deeper; Spark's refuses them at 1,000,
and types of columns at some hundreds.
"""

import re
from collections.abc import Iterator
from typing import Final, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

DEEPEST: Final = 100
"""How deep a value may be nested: an object of numbers is one deep."""

LONE: Final = "escapes a lone surrogate (half of a letter, as `\\ud83d` alone), which is no text"
DEEP: Final = f"has values nested more than {DEEPEST} deep, which is too deep to be read"

_SURROGATE: Final = re.compile(rb"\\u[dD][89a-fA-F]")
_ESCAPES: Final = re.compile(
    rb"\\u[dD][89abAB]..\\u[dD][c-fC-F]..|(?P<lone>\\u[dD][89a-fA-F])|\\.", re.S
)
"""Matches whole escapes, of which those of a letter beyond 16 bits are two, and lone ones."""
_STRINGS: Final = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+(?:"|\\?\Z)', re.S)
"""Matches strings, the last to its end if it is cut off; never goes back, however long they are."""
_MAY_BE_FLAWED: Final = rf"(?s){_SURROGATE.pattern.decode()}|(?:[\[{{][^\[{{]*){{{DEEPEST + 1}}}"
_OPENERS: Final = b"[{"
_BUT_OPENERS: Final = bytes(each for each in range(256) if each not in b"[{\n")
_BUT_BRACKETS: Final = bytes(each for each in range(256) if each not in b"[]{}")
_BUT_MARKS: Final = _BUT_BRACKETS.replace(b"\r", b"")
_RETURN: Final = ord("\r")


class Flaw(NamedTuple):
    """Why a text is not to be read, and at which byte."""

    at: int
    why: str


def find_flaw(text: bytes, *, is_one: bool = False) -> Flaw | None:
    """Return the first flaw of lines that are values each, or of one value (`is_one`)."""
    lone, deep = _surrogate_at(text), next(_deep_lines(text, is_one=is_one), (-1, b""))[0]
    if deep >= 0 and not 0 <= lone < deep:
        return Flaw(deep, DEEP)
    return Flaw(lone, LONE) if lone >= 0 else None


def without_deep(text: bytes) -> bytes:
    """Return lines without those that Arrow's parser must not be given."""
    deep = {line for _, line in _deep_lines(text, is_one=False)}
    return b"\n".join(each for each in text.split(b"\n") if each not in deep) if deep else text


def flaws_of(values: pa.ChunkedArray) -> pa.Array:
    """Return why each value of bytes is not to be read, null for those that are."""
    may = pc.match_substring_regex(values, _MAY_BE_FLAWED)
    if not pc.any(may).as_py():
        return pa.nulls(len(values), pa.string())
    pairs = zip(values.to_pylist(), may.to_pylist(), strict=True)
    return pa.array([_why(value) if is_likely else None for value, is_likely in pairs], pa.string())


def _why(value: bytes) -> str | None:
    flaw = find_flaw(value, is_one=True)
    return flaw.why if flaw else None


def _surrogate_at(text: bytes) -> int:
    """Return where a lone surrogate is escaped; -1: nowhere."""
    if not _SURROGATE.search(text):
        return -1
    lone = (each for each in _ESCAPES.finditer(text) if each["lone"])
    return next((each.start() for each in lone), -1)


def _deep_lines(text: bytes, *, is_one: bool) -> Iterator[tuple[int, bytes]]:
    """Yield the lines that are nested too deep, each with where it begins."""
    opened = text.translate(None, _BUT_OPENERS)
    counts = [len(opened)] if is_one else [*map(len, opened.split(b"\n"))]
    if max(counts) <= DEEPEST:  # too few are opened at all: so it is nearly always
        return
    lines, begin = [text] if is_one else text.split(b"\n"), 0
    for line, count in zip(lines, counts, strict=True):
        if count > DEEPEST and _depth(line, is_one=is_one) > DEEPEST:
            yield begin, line
        begin += len(line) + 1


def _depth(text: bytes, *, is_one: bool) -> int:
    """Return how deep a line is nested, brackets in its strings aside.

    It may be several to readers, for which a carriage return ends a line as well.
    """
    deepest = depth = 0
    for each in _STRINGS.sub(b"", text).translate(None, _BUT_BRACKETS if is_one else _BUT_MARKS):
        if each in _OPENERS:
            depth += 1
            deepest = max(deepest, depth)
        else:
            depth = 0 if each == _RETURN else max(0, depth - 1)
    return deepest
