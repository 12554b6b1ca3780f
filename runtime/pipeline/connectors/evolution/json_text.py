# pyright: basic, reportAttributeAccessIssue=false
"""What no reader may be given of texts in JSON: it would lose something, or end its process.

Spark makes a question mark of half of a letter. Arrow's parser takes minutes for values that are
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

HALF: Final = "escapes half of a letter (a lone surrogate, as `\\ud83d` alone), which is no text"
DEEP: Final = f"has values nested more than {DEEPEST} deep, which is too deep to be read"

_HALF: Final = re.compile(rb"\\u[dD][89a-fA-F]")
_ESCAPES: Final = re.compile(
    rb"\\u[dD][89abAB]..\\u[dD][c-fC-F]..|(?P<half>\\u[dD][89a-fA-F])|\\.", re.S
)
"""Matches whole escapes, of which those of a letter beyond 16 bits are two, and halves of these."""
_STRINGS: Final = re.compile(rb'"(?:[^"\\]|\\.)*"', re.S)
_OPENERS: Final = b"[{"
_BUT_OPENERS: Final = bytes(each for each in range(256) if each not in b"[{\n")
_BUT_BRACKETS: Final = bytes(each for each in range(256) if each not in b"[]{}")


class Flaw(NamedTuple):
    """Why a text is not to be read, and at which byte."""

    at: int
    why: str


def find_flaw(text: bytes, *, is_one: bool = False) -> Flaw | None:
    """Return the first flaw of lines that are values each, or of one value (`is_one`)."""
    half, deep = _half_at(text), next(_deep_lines(text, is_one=is_one), (-1, b""))[0]
    if deep >= 0 and not 0 <= half < deep:
        return Flaw(deep, DEEP)
    return Flaw(half, HALF) if half >= 0 else None


def without_deep(text: bytes) -> bytes:
    """Return lines without those that Arrow's parser must not be given."""
    deep = {line for _, line in _deep_lines(text, is_one=False)}
    return b"\n".join(each for each in text.split(b"\n") if each not in deep) if deep else text


def flaws_of(values: pa.ChunkedArray) -> pa.Array:
    """Return why each value of bytes is not to be read, null for those that are."""
    opened = pc.add(*(pc.count_substring(values, each) for each in "[{"))
    has_half = pc.match_substring_regex(values, _HALF.pattern.decode())
    may = pc.or_kleene(has_half, pc.greater(opened, DEEPEST))
    pairs = zip(values.to_pylist(), may.to_pylist(), strict=True)
    return pa.array([_why(value) if is_likely else None for value, is_likely in pairs], pa.string())


def _why(value: bytes) -> str | None:
    flaw = find_flaw(value, is_one=True)
    return flaw.why if flaw else None


def _half_at(text: bytes) -> int:
    """Return where half a letter is escaped; -1: nowhere."""
    if not _HALF.search(text):
        return -1
    halves = (each for each in _ESCAPES.finditer(text) if each["half"])
    return next((each.start() for each in halves), -1)


def _deep_lines(text: bytes, *, is_one: bool) -> Iterator[tuple[int, bytes]]:
    """Yield the lines that are nested too deep, each with where it begins."""
    opened = text.translate(None, _BUT_OPENERS)
    counts = [len(opened)] if is_one else [*map(len, opened.split(b"\n"))]
    if max(counts) <= DEEPEST:  # too few are opened at all: so it is nearly always
        return
    lines, begin = [text] if is_one else text.split(b"\n"), 0
    for line, count in zip(lines, counts, strict=True):
        if count > DEEPEST and _depth(line) > DEEPEST:
            yield begin, line
        begin += len(line) + 1


def _depth(text: bytes) -> int:
    """Return how deep a value is nested, brackets in its strings aside."""
    deepest = depth = 0
    for each in _STRINGS.sub(b"", text).translate(None, _BUT_BRACKETS):
        depth += 1 if each in _OPENERS else -1
        deepest = max(deepest, depth)
    return deepest
