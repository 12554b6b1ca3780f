"""Regular expressions in configs, run by RE2: its time is linear in the text, whatever the pattern.

Python's `re`, as Java's, can take for ever over sixty letters, and holds the interpreter meanwhile.
RE2 has neither backreferences nor lookaround. A lookahead at the beginning, as in `(?!test_).*`, is
taken all the same: it is another pattern, which the text must match, or must not.
"""

import re
from collections.abc import Iterator
from functools import lru_cache
from typing import Any, Final, NamedTuple

LONGEST_PATTERN: Final = 20_000
"""The maximum length of a pattern, in characters: it may name many topics one by one."""
_MOST_MEMORY: Final = 16 << 20
"""The maximum memory of a compiled pattern, in bytes."""
_BEGIN: Final = re.compile(r"\(\?[ims]+\)|\^|\\A")
_LOOKAHEAD: Final = re.compile(r"\(\?([=!])")
_ESCAPED: Final = re.compile(r"\\(.)", re.DOTALL)


class PatternRefused(ValueError):  # noqa: N818  # says what happened to it
    """A pattern that RE2 does not take; the message says why."""


class Pattern(NamedTuple):
    """A compiled pattern."""

    whole: Any
    """What the whole text must match."""
    conditions: tuple[tuple[Any, bool], ...]
    """Patterns of the text's beginning, and whether it must match each."""

    def matches(self, text: str) -> bool:
        """Return whether a whole text matches."""
        try:
            is_match = self.whole.fullmatch(text) is not None
        except UnicodeEncodeError:  # a lone surrogate, which no name has
            return False
        return is_match and all(
            (each.match(text) is not None) is wanted for each, wanted in self.conditions
        )


@lru_cache(maxsize=1_000)
def compile_pattern(text: str) -> Pattern:
    """Return a pattern, ready to match; raises `PatternRefused`."""
    if len(text) > LONGEST_PATTERN:
        raise PatternRefused(f"it has more than {LONGEST_PATTERN} characters")
    rest, flags = text, ""
    conditions: list[tuple[Any, bool]] = []
    while True:
        if begin := _BEGIN.match(rest):
            flags += begin[0] if begin[0].startswith("(") else ""
            rest = rest[begin.end() :]
        elif (ahead := _LOOKAHEAD.match(rest)) and (end := _closing(rest)):
            conditions.append((_compiled(flags + rest[ahead.end() : end]), ahead[1] == "="))
            rest = rest[end + 1 :]
        elif conditions and any(not depth and each == "|" for _, depth, each in signs(rest)):
            _compiled(text)  # the lookahead is of the first choice only, which RE2 refuses
            raise AssertionError("RE2 has lookahead")
        else:
            return Pattern(_compiled(flags + rest), tuple(conditions))


def _closing(text: str) -> int:
    """Return where the group ends with which a text begins; 0: nowhere."""
    return next((place for place, depth, letter in signs(text) if not depth and letter == ")"), 0)


def signs(text: str) -> Iterator[tuple[int, int, str]]:
    """Yield the parentheses and bars of a pattern, with their places and the depth after them."""
    depth, is_escaped, in_class = 0, False, False
    for place, letter in enumerate(text):
        if is_escaped or letter == "\\":
            is_escaped = not is_escaped
        elif in_class or letter == "[":
            in_class = letter != "]" or text[place - 1] in "[^"
        elif letter in "()|":
            depth += {"(": 1, ")": -1}.get(letter, 0)
            yield place, depth, letter


def _compiled(text: str) -> Any:  # noqa: ANN401  # the library has no types
    from ....actors.consumer.patterns import RE2  # noqa: PLC0415  # few processes need the library

    options = RE2.Options()
    options.log_errors = False
    options.max_mem = _MOST_MEMORY
    try:  # \Z of Python and Java is \z there
        return RE2.compile(_ESCAPED.sub(lambda m: r"\z" if m[1] == "Z" else m[0], text), options)
    except UnicodeEncodeError:
        raise PatternRefused("it holds a lone surrogate, which is no Unicode") from None
    except RE2.error as error:
        why = b"".join(error.args).decode(errors="replace")
        raise PatternRefused(
            f"{why}; patterns are those of RE2, without backreferences, with lookahead only at "
            "their beginning"
        ) from None
