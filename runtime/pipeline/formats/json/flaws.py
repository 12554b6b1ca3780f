# pyright: basic, reportAttributeAccessIssue=false
"""Finds JSON that readers must not get: lone surrogates and deeply nested values.

Spark replaces a lone surrogate by a question mark. Arrow's parser takes minutes for values that are
nested thousands of levels deep, and overflows its stack a little deeper; Spark's parser refuses
them at 1,000 levels, and column types at some hundreds.
"""

import re
from collections.abc import Iterator
from typing import Final, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

DEEPEST: Final = 100
"""The allowed nesting depth of a value; an object of numbers has depth 1."""

LONE: Final = "escapes a lone surrogate (half of a letter, as `\\ud83d` alone), which is no text"
DEEP: Final = f"has values nested more than {DEEPEST} deep, which is too deep to be read"

_SURROGATE: Final = re.compile(rb"\\u[dD][89a-fA-F]")
_ESCAPES: Final = re.compile(
    rb"\\u[dD][89abAB]..\\u[dD][c-fC-F]..|(?P<lone>\\u[dD][89a-fA-F])|\\.", re.S
)
"""Matches complete escapes, with surrogate pairs as one, and lone surrogates."""
_STRINGS: Final = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+(?:"|\\?\Z)', re.S)
"""Matches strings, the last one even if it is cut off; possessive, so without backtracking."""
_MAY_BE_FLAWED: Final = rf"(?s){_SURROGATE.pattern.decode()}|(?:[\[{{][^\[{{]*){{{DEEPEST + 1}}}"
_OPENERS: Final = b"[{"
_BUT_OPENERS: Final = bytes(each for each in range(256) if each not in b"[{\n")
_BUT_BRACKETS: Final = bytes(each for each in range(256) if each not in b"[]{}")
_BUT_MARKS: Final = _BUT_BRACKETS.replace(b"\r", b"")
_RETURN: Final = ord("\r")


class Flaw(NamedTuple):
    """The reason why a text must not be read, and the byte offset."""

    at: int
    why: str


def find_flaw(text: bytes, *, is_one: bool = False) -> Flaw | None:
    """Return the first flaw of a text with one value per line, or of one value (`is_one`)."""
    lone, deep = _surrogate_at(text), next(_deep_lines(text, is_one=is_one), (-1, b""))[0]
    if deep >= 0 and not 0 <= lone < deep:
        return Flaw(deep, DEEP)
    return Flaw(lone, LONE) if lone >= 0 else None


def without_deep(text: bytes) -> bytes:
    """Return the lines that are not nested too deep for Arrow's parser."""
    deep = {line for _, line in _deep_lines(text, is_one=False)}
    return b"\n".join(each for each in text.split(b"\n") if each not in deep) if deep else text


def find_flaws(values: pa.ChunkedArray) -> pa.Array:
    """Return the reason why each value must not be read; null if it may."""
    may = pc.match_substring_regex(values, _MAY_BE_FLAWED)
    if not pc.any(may).as_py():
        return pa.nulls(len(values), pa.string())
    pairs = zip(values.to_pylist(), may.to_pylist(), strict=True)
    return pa.array([_why(value) if is_likely else None for value, is_likely in pairs], pa.string())


def _why(value: bytes) -> str | None:
    flaw = find_flaw(value, is_one=True)
    return flaw.why if flaw else None


def _surrogate_at(text: bytes) -> int:
    """Return the offset of the first escaped lone surrogate; -1: none."""
    if not _SURROGATE.search(text):
        return -1
    lone = (each for each in _ESCAPES.finditer(text) if each["lone"])
    return next((each.start() for each in lone), -1)


def _deep_lines(text: bytes, *, is_one: bool) -> Iterator[tuple[int, bytes]]:
    """Yield the lines that are nested too deep, with their offsets."""
    opened = text.translate(None, _BUT_OPENERS)
    counts = [len(opened)] if is_one else [*map(len, opened.split(b"\n"))]
    if max(counts) <= DEEPEST:  # the usual case: too few opening brackets at all
        return
    lines, begin = [text] if is_one else text.split(b"\n"), 0
    for line, count in zip(lines, counts, strict=True):
        if count > DEEPEST and _depth(line, is_one=is_one) > DEEPEST:
            yield begin, line
        begin += len(line) + 1


def _depth(text: bytes, *, is_one: bool) -> int:
    """Return the nesting depth of a line, without brackets in strings.

    A carriage return resets the depth, since it ends a line for readers.
    """
    deepest = depth = 0
    for each in _STRINGS.sub(b"", text).translate(None, _BUT_BRACKETS if is_one else _BUT_MARKS):
        if each in _OPENERS:
            depth += 1
            deepest = max(deepest, depth)
        else:
            depth = 0 if each == _RETURN else max(0, depth - 1)
    return deepest
