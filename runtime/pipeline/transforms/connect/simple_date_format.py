"""Java's SimpleDateFormat in UTC, as SQL expressions, for Connect's transforms.

Spark's own patterns are those of another Java class (a fraction is not a number of milliseconds, a
month 13 and trailing text are errors), and depend on the session's time zone. So a pattern is
parsed here: each letter has an expression that formats it, and a regular expression and an
expression that parse it. Times are milliseconds since 1970, as in Connect.

Like SimpleDateFormat, parsing accepts any number of digits unless digits follow, carries over large
values (month 13), and ignores trailing text. Differences:

* Names of days and months, AM and PM are English, wherever the node runs.
* The calendar is Gregorian for all times, as in all of Spark; Java's is Julian before 1582.
* Letters that depend on the locale's weeks (`Y`, `w`, `W`) are refused, and years have no sign.
* Of time zones, offsets with digits, `Z`, `UTC` and `GMT` are parsed, but no other names.
"""

import calendar
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final, NamedTuple

from ...engines.spelling import literal, refusal

_MONTHS: Final = tuple(calendar.month_name)[1:]
_DAYS: Final = tuple(calendar.day_name)
DAY_MS: Final = 86_400_000
_NUMBERS: Final = "yMLdDHkKhmsSuF"
_NAMES: Final = "EaGzZX"
_LONG_NAME: Final = 4
_SHORT_NAME: Final = 3
_LONGEST_X: Final = 3
_CENTURY_BACK: Final = 80
"""How far a two-digit year may be in the past."""


class PatternLetter(NamedTuple):
    """A run of one letter in a pattern."""

    letter: str
    length: int

    @property
    def is_number(self) -> bool:
        """Whether it is formatted as digits."""
        is_name = self.letter in "ML" and self.length >= _SHORT_NAME
        return self.letter in _NUMBERS and not is_name


@dataclass(frozen=True, slots=True)
class SimpleDateFormat:
    """A pattern; raises `ValueError` if it is invalid or not supported."""

    pattern: str

    def __post_init__(self) -> None:
        """Refuse unknown letters."""
        for each in self._parts():
            if isinstance(each, PatternLetter) and each.letter not in _NUMBERS + _NAMES:
                raise ValueError(f"the letter {each.letter} of the pattern is not known here")
            if isinstance(each, PatternLetter) and each.letter == "X" and each.length > _LONGEST_X:
                raise ValueError("the pattern has more than three X")

    def formatted(self, millis: str) -> str:
        """Return the expression that formats a time."""
        written = (
            _written(each, millis) if isinstance(each, PatternLetter) else literal(each)
            for each in self._parts()
        )
        return f"concat({', '.join(written)})"

    def parsed(self, text: str) -> str:
        """Return the expression that parses a text; an invalid text fails the job."""
        parts = list(self._parts())
        places = [n for n, each in enumerate(parts) if isinstance(each, PatternLetter)]
        regex = literal("\\A" + "".join(_regex(parts, n) for n in range(len(parts))))
        fields: dict[str, str] = {}
        for group, n in enumerate(places, start=1):
            part = parts[n]
            assert isinstance(part, PatternLetter)  # noqa: S101  # by how the places were found
            fields[_field_of(part)] = _read(part, f"regexp_extract({text}, {regex}, {group})")
        pattern = literal(f") does not match pattern ({self.pattern})")
        error = refusal("'Could not parse timestamp: value ('", text, pattern)
        return f"IF({text} IS NULL OR {text} RLIKE {regex}, {_millis(fields)}, {error})"

    def _parts(self) -> Iterator[PatternLetter | str]:
        """Yield runs of letters, and the literal texts between them."""
        for found in _PARTS.finditer(self.pattern):
            quote, run = found["quote"], found["run"]
            if run:
                yield PatternLetter(run[0], len(run))
            elif quote is None:
                yield found[0]
            elif len(quote) == 1 or not quote.endswith("'"):
                raise ValueError("a quote of the pattern is not closed")
            else:
                yield quote[1:-1].replace("''", "'") or "'"


_PARTS: Final = re.compile(
    r"(?P<quote>'(?:[^']|'')*'?)|(?P<run>(?P<letter>[A-Za-z])(?P=letter)*)|[^A-Za-z']+"
)


def day_of(millis: str) -> str:
    """Return the expression of a time's date."""
    return f"date_from_unix_date(CAST(({millis} - pmod({millis}, {DAY_MS})) div {DAY_MS} AS INT))"


def _written(part: PatternLetter, millis: str) -> str:
    """Return the expression that formats one part of the pattern."""
    letter, length = part
    day = day_of(millis)
    if (letter in "ML" and not part.is_number) or letter == "E":
        long = "MMMM" if letter in "ML" else "EEEE"
        return f"date_format({day}, '{long if length >= _LONG_NAME else long[:3]}')"
    if letter in _FIXED:
        return literal(_FIXED[letter][length >= _LONG_NAME])
    if letter == "a":
        return f"IF(pmod({millis}, {DAY_MS}) < 43200000, 'AM', 'PM')"
    number = _NUMBER_OF[letter].format(day=day, clock=f"pmod({millis}, {DAY_MS})")
    if letter == "y" and length == 2:  # noqa: PLR2004
        number = f"pmod({number}, 100)"
    return f"format_string('%0{length}d', CAST({number} AS BIGINT))"


_NUMBER_OF: Final = {
    "y": "year({day})",
    "M": "month({day})",
    "L": "month({day})",
    "d": "day({day})",
    "D": "dayofyear({day})",
    "u": "(weekday({day}) + 1)",
    "F": "((day({day}) - 1) div 7 + 1)",
    "H": "({clock} div 3600000)",
    "k": "(({clock} div 3600000 + 23) % 24 + 1)",
    "K": "({clock} div 3600000 % 12)",
    "h": "(({clock} div 3600000 + 11) % 12 + 1)",
    "m": "({clock} div 60000 % 60)",
    "s": "({clock} div 1000 % 60)",
    "S": "({clock} % 1000)",
}
_FIXED: Final = {
    "G": ("AD", "AD"),
    "z": ("UTC", "Coordinated Universal Time"),
    "Z": ("+0000", "+0000"),
    "X": ("Z", "Z"),
}
"""The constant parts, short and long."""


def _regex(parts: list[PatternLetter | str], place: int) -> str:
    """Return the regular expression of one part; letters are groups."""
    part = parts[place]
    if isinstance(part, str):
        return re.sub(r"([^\w\s])", r"\\\1", part)
    following = parts[place + 1] if place + 1 < len(parts) else ""
    if part.is_number:
        is_abutting = isinstance(following, PatternLetter) and following.is_number
        return f"[ \\t]*([0-9]{{{part.length}}})" if is_abutting else r"[ \t]*(-?[0-9]+)"
    name = _ISO_ZONE[part.length - 1] if part.letter == "X" else _NAME_OF[part.letter]
    return rf"[ \t]*((?i:{name}))"


def _either(names: Sequence[str]) -> str:
    return "|".join((*names, *(name[:3] for name in names)))


_ZONE: Final = "(?:GMT)?[+-][0-9]{1,2}:[0-9]{2}|[+-][0-9]{4}|UTC|GMT"
_ISO_ZONE: Final = ("Z|[+-][0-9]{2}", "Z|[+-][0-9]{4}", "Z|[+-][0-9]{2}:[0-9]{2}")
_NAME_OF: Final = {
    "M": _either(_MONTHS),
    "L": _either(_MONTHS),
    "E": _either(_DAYS),
    "a": "AM|PM",
    "G": "AD",
    "z": _ZONE,
    "Z": _ZONE,
}


def _field_of(part: PatternLetter) -> str:
    return {"L": "M", "z": "Z", "X": "Z"}.get(part.letter, part.letter)


def _read(part: PatternLetter, text: str) -> str:
    """Return the number that a part's text stands for."""
    match part.letter:
        case "M" | "L" if not part.is_number:
            short = f"initcap(left({text}, 3))"
            return f"array_position(array({', '.join(repr(m[:3]) for m in _MONTHS)}), {short})"
        case "a":
            return f"IF(upper({text}) = 'PM', 12, 0)"
        case "z" | "Z" | "X":
            digits = f"regexp_replace({text}, '[^0-9]', '')"
            hours = f"CAST(left(lpad({digits}, IF(length({digits}) > 2, 4, 2), '0'), 2) AS BIGINT)"
            minutes = f"IF(length({digits}) > 2, CAST(right({digits}, 2) AS BIGINT), 0)"
            span = f"({hours} * 3600000 + {minutes} * 60000)"
            return f"IF({digits} = '', 0L, IF(contains({text}, '-'), -{span}, {span}))"
        case "y" if part.length == 2:  # noqa: PLR2004
            first = datetime.now(UTC).year - _CENTURY_BACK
            year = f"CAST({text} AS BIGINT)"
            near = f"{first} + pmod({year} - {first}, 100)"
            return f"IF({text} RLIKE '^[0-9]{{2}}$', {near}, {year})"
        case _:
            return f"CAST({text} AS BIGINT)"


def _millis(fields: dict[str, str]) -> str:
    """Return the time of the parsed numbers by letter; defaults are those of 1970-01-01."""
    year, month = fields.get("y", "1970"), fields.get("M", "1")
    if "D" in fields and "d" not in fields:
        month = "1"
    day = fields.get("d", fields.get("D", "1"))
    months = f"add_months(make_date(CAST({year} AS INT), 1, 1), CAST({month} AS INT) - 1)"
    days = f"CAST(unix_date(date_add({months}, CAST({day} AS INT) - 1)) AS BIGINT)"
    if "H" in fields or "k" in fields:
        hour = fields.get("H") or f"coalesce(nullif({fields['k']}, 24), 0)"
    else:
        half = fields.get("K") or f"coalesce(nullif({fields.get('h', '0')}, 12), 0)"
        hour = f"({half} + {fields.get('a', '0')})"
    clock = (
        f"{hour} * 3600000 + {fields.get('m', '0')} * 60000 + {fields.get('s', '0')} * 1000"
        f" + {fields.get('S', '0')} - {fields.get('Z', '0')}"
    )
    return f"({days} * {DAY_MS} + {clock})"
