"""Headers of every answer of REST, in the syntax of Connect, and the origins of pages."""

import re
from collections.abc import Iterable
from typing import Final, NamedTuple
from urllib.parse import urlsplit

ACTIONS: Final = ("set", "add", "setDate", "addDate")
"""What may be done with a header, as Jetty's filter calls it; a date is that many ms from now."""
ANY: Final = "*"
METHODS: Final = ("GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS")
USUAL_METHODS: Final = ("GET", "POST", "HEAD")
"""What pages of other origins may use if nothing is said, as in Connect."""

_TOKEN: Final = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_RULE: Final = re.compile(r'\s*("[^"]*"|[^",]*)\s*(?:,|$)')
_ORIGIN_HOST: Final = re.compile(r"[A-Za-z0-9.*-]+|\[[0-9A-Fa-f:.]+\]")


class HeaderRule(NamedTuple):
    """One header of every answer."""

    action: str
    name: str
    value: str


def parse_header_rules(text: str) -> tuple[HeaderRule, ...]:
    """Parse `add X-XSS-Protection: 1; mode=block, set …`; raises `ValueError` with the reason.

    A rule with a comma in its value is written in double quotes.
    """
    rules: list[HeaderRule] = []
    position = 0
    while position < len(text):
        part = _RULE.match(text, position)
        if part is None:
            raise ValueError("a double quote is not closed, or stands within a rule")
        rules.append(_parse_rule(part[1].strip().strip('"')))
        position = part.end()
    return tuple(rules)


def _parse_rule(text: str) -> HeaderRule:
    action, _, header = text.strip().partition(" ")
    name, colon, value = (each.strip() for each in header.partition(":"))
    if action not in ACTIONS or not colon:
        raise ValueError(f"{text!r} is not ACTION NAME: VALUE, with {', '.join(ACTIONS)}")
    if not _TOKEN.fullmatch(name):
        raise ValueError(f"{name!r} is not the name of a header")
    if action.endswith("Date") and not re.fullmatch(r"-?\d{1,14}", value):
        raise ValueError(f"{value!r} is not a number of milliseconds from now on")
    if not (value.isascii() and value.isprintable()):
        raise ValueError(f"{value!r} is not the value of a header")
    return HeaderRule(action, name, value)


def check_origin(text: str) -> str:
    """Return an origin, which may have `*` for parts of its host; raises `ValueError`."""
    parts = urlsplit(text)
    is_bare = f"{parts.scheme}://{parts.netloc}" == text and "@" not in text
    host = parts.netloc.rpartition(":")[0] if parts.port is not None else parts.netloc
    if text != ANY and not (is_bare and parts.scheme and _ORIGIN_HOST.fullmatch(host)):
        raise ValueError(f"{text!r} is not an origin such as https://ui.example")
    return text


def pattern_of(origins: Iterable[str]) -> "re.Pattern[str]":
    """Return the pattern of some origins, without that of all."""
    named = [each for each in origins if each != ANY]
    host = "[A-Za-z0-9.-]*"
    return re.compile("|".join(re.escape(each).replace(r"\*", host) for each in named) or r"(?!)")
