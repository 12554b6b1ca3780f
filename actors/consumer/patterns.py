"""The regular expressions of consumers, with RE2, whose time is linear in the input.

Python's `re` can take exponential time on a client's pattern; KIP-848 chooses RE2 for that reason.
"""

from collections.abc import Iterable
from functools import lru_cache
from typing import Any, Final, Protocol

import re2

from ..messages.consumers import TopicRights

LONGEST_PATTERN: Final = 1_000
"""The maximum length of a pattern, in characters."""

MOST_MEMORY: Final = 1 << 20
"""The maximum memory of a compiled pattern, in bytes."""

RE2: Final[Any] = re2
"""The library; it has no type annotations."""


class _Compiled(Protocol):
    def fullmatch(self, text: str) -> object | None: ...


def flaw_in_pattern(pattern: str) -> str:
    """Return why a pattern is not a regular expression of RE2, "" if it is one."""
    if len(pattern) > LONGEST_PATTERN:
        return f"it is longer than {LONGEST_PATTERN} characters"
    try:
        _compile(pattern)
    except UnicodeEncodeError:
        return "it holds a lone surrogate, which is no Unicode"
    except RE2.error as error:
        return b"".join(error.args).decode(errors="replace")
    return ""


def find_matches(
    pattern: str, names: Iterable[str], rights: TopicRights | None = None
) -> tuple[str, ...]:
    """Return the names that a valid pattern fully matches, sorted, as far as there are rights."""
    matches = _compile(pattern).fullmatch
    matched = sorted(name for name in names if matches(name))
    return tuple(matched) if rights is None else rights.filter(matched)


@lru_cache(maxsize=1_000)
def _compile(pattern: str) -> _Compiled:
    options = RE2.Options()
    options.log_errors = False
    options.max_mem = MOST_MEMORY
    compiled: _Compiled = RE2.compile(pattern, options)
    return compiled
