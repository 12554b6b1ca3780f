"""Which regular expressions make a matcher that backtracks, as Java's, take for ever.

Spark runs them with Java's classes, which nobody can interrupt. In `(a+)+b`, what the group matches
once it matches also in several turns: each letter doubles the ways to try. Short texts are searched
for one that RE2 says is such: what is found is a proof.
"""

import re
from collections.abc import Iterator
from functools import lru_cache
from itertools import chain, product
from typing import Final

from .patterns import Pattern, PatternRefused, compile_pattern, signs

_LONGEST: Final = 5
"""The length of the longest text that is tried."""
_MOST_LETTERS: Final = 7
_USUAL: Final = "a0.-_ "
"""Letters of the kinds that patterns tell apart, besides those in the pattern itself."""
_MOST_DOTS: Final = 5
"""The most repeats of any letter: with `n` of them a text of 249 letters has 249ⁿ divisions."""
_UNBOUNDED: Final = re.compile(r"(?:[*+]|\{\d+,(?:\d{2,})?\})(?!\+)")
_IS_LAST: Final = re.compile(r"[*+]\??\)*")
"""Matches a repeat, of which any number will do, at the end of a pattern."""
_GROUP_KIND: Final = re.compile(r"\?(?::|P?<\w+>|[a-z]+:)")
_QUOTED: Final = re.compile(r"\\Q.*?(?:\\E|$)", re.DOTALL)
_ANY: Final = re.compile(r"(?<!\\)\.(?:[*+]|\{\d+,\})(?!\+)")


@lru_cache(maxsize=1_000)
def flaw_in_backtracking(pattern: str, *, is_whole: bool = True) -> str:
    """Return why a pattern may take for ever, "" if that is not known of it.

    `is_whole`: all of a text must match. A pattern that is only searched for has its match once a
    group at its end has matched, and never tries another way.
    """
    plain = _QUOTED.sub("q", pattern)
    for body, is_last in _repeated(plain):
        if is_last and not is_whole:
            continue
        if text := _twofold(body):
            return (
                f"takes for ever over long texts: ({body}) matches {text!r} in several ways, and "
                "is repeated"
            )
    if len(_ANY.findall(plain)) > _MOST_DOTS:
        return (
            f"takes for ever over long texts: it has more than {_MOST_DOTS} times .* or .+; "
            "say what is between, as in [^.]*"
        )
    return ""


def _repeated(pattern: str) -> Iterator[tuple[str, bool]]:
    """Yield the insides of groups that are repeated without an end, and whether nothing follows."""
    begun: list[int] = []
    for place, _, sign in signs(pattern):
        if sign == "(":
            begun.append(place + 1)
        elif sign == ")" and begun:
            body = pattern[begun.pop() : place]
            if repeat := _UNBOUNDED.match(pattern, place + 1):
                kind = _GROUP_KIND.match(body)
                is_last = _IS_LAST.fullmatch(pattern, repeat.start()) is not None
                yield body[kind.end() :] if kind else body, is_last


def _twofold(body: str) -> str:
    """Return a text that a repeated group matches in two ways; empty: none is found."""
    try:
        once, more = compile_pattern(body), compile_pattern(f"(?:{body}){{2,}}")
        choices = [compile_pattern(each) for each in _choices(body)]
    except PatternRefused:
        return ""
    return next((text for text in _texts(body) if _is_twofold(text, once, more, choices)), "")


def _is_twofold(text: str, once: Pattern, more: Pattern, choices: list[Pattern]) -> bool:
    if not once.matches(text):
        return False
    return more.matches(text) or sum(each.matches(text) for each in choices) > 1


def _choices(body: str) -> list[str]:
    """Return the alternatives of a group."""
    bars = [place for place, depth, sign in signs(body) if sign == "|" and not depth]
    ends = [-1, *bars, len(body)]
    return [body[ends[n] + 1 : ends[n + 1]] for n in range(len(ends) - 1)]


def _texts(body: str) -> Iterator[str]:
    letters = "".join(dict.fromkeys(each for each in body if each.isalnum()))[: _MOST_LETTERS - 3]
    known = "".join(dict.fromkeys(letters + _USUAL))[:_MOST_LETTERS]
    lengths = (product(known, repeat=length) for length in range(1, _LONGEST + 1))
    return map("".join, chain.from_iterable(lengths))
