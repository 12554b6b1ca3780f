"""Regular expressions of consumers: those of RE2, which cost time in proportion to their input.

Python's own can take for ever on what a client sends (KIP-848 names RE2 for that reason).
"""

from collections.abc import Iterable
from functools import lru_cache
from typing import Any, Final, Protocol

import re2

LONGEST_PATTERN: Final = 1_000
"""Characters of a pattern."""

MOST_MEMORY: Final = 1 << 20
"""Bytes that a compiled pattern may take."""


RE2: Final[Any] = re2
"""The library; it comes without types."""


class _Compiled(Protocol):
    def fullmatch(self, text: str) -> object | None: ...


def flaw_in_pattern(pattern: str) -> str:
    """Return why a text is no regular expression of RE2, or nothing."""
    if len(pattern) > LONGEST_PATTERN:
        return f"it is longer than {LONGEST_PATTERN} characters"
    try:
        _compile(pattern)
    except UnicodeEncodeError:
        return "it holds a lone surrogate, which is no Unicode"
    except RE2.error as error:
        return b"".join(error.args).decode(errors="replace")
    return ""


def find_matches(pattern: str, names: Iterable[str]) -> tuple[str, ...]:
    """Return which names a good pattern matches as a whole, sorted."""
    matches = _compile(pattern).fullmatch
    return tuple(sorted(name for name in names if matches(name)))


@lru_cache(maxsize=1_000)
def _compile(pattern: str) -> _Compiled:
    options = RE2.Options()
    options.log_errors = False
    options.max_mem = MOST_MEMORY
    compiled: _Compiled = RE2.compile(pattern, options)
    return compiled
