r"""The names of users from the subjects of certificates: Kafka's `ssl.principal.mapping.rules`.

`RULE:^CN=(.*?),OU=it.*$/$1/L,DEFAULT`: the first rule whose pattern matches the whole subject
counts; `$1` is its first group, L and U make the name lower and upper case. DEFAULT is the subject
itself. Patterns are those of RE2, and a slash in a rule is escaped as `\/`.
"""

import re
from collections.abc import Sequence
from typing import Any, Final, NamedTuple

import re2

RE2: Final[Any] = re2
"""It has no types of its own."""
_RULE: Final = re.compile(
    r"\s*(?:(DEFAULT)|RULE:((?:\\.|[^\\/])*)/((?:\\.|[^\\/])*)/([LU]?))\s*(?:,|\n|$)"
)
_GROUP: Final = re.compile(r"\$(\d)")
DEFAULT: Final = "DEFAULT"


class MappingRule(NamedTuple):
    """One rule; without a pattern it is DEFAULT."""

    pattern: str
    replacement: str
    case: str
    """L, U or nothing."""

    def apply(self, subject: str) -> str | None:
        """Return the name for a subject; None: the rule does not match."""
        if not self.pattern:
            return subject
        match = RE2.fullmatch(self.pattern, subject)
        if match is None:
            return None
        name = _GROUP.sub(lambda group: match[int(group[1])] or "", self.replacement)
        return name.lower() if self.case == "L" else name.upper() if self.case == "U" else name


def parse_mapping(text: str) -> Sequence[MappingRule]:
    """Parse rules; raises `ValueError`."""
    rules, at = list[MappingRule](), 0
    while at < len(text.rstrip()):
        match = _RULE.match(text, at)
        if match is None or (not match[1] and not match[2]):
            raise ValueError(f"no rule begins at {text[at : at + 40]!r}")
        pattern, replacement = ((part or "").replace(r"\/", "/") for part in match.group(2, 3))
        _check(pattern, replacement)
        rules.append(MappingRule(pattern, replacement, match[4] or ""))
        at = match.end()
    if not rules:
        raise ValueError("there is no rule")
    return rules


def map_subject(rules: Sequence[MappingRule], subject: str) -> str | None:
    """Return the name for the subject of a certificate; None: no rule matches."""
    names = (rule.apply(subject) for rule in rules)
    return next((name for name in names if name is not None), None)


def _check(pattern: str, replacement: str) -> None:
    try:
        groups = RE2.compile(pattern).groups
    except RE2.error as error:
        raise ValueError(f"{pattern!r} is no pattern of RE2: {error}") from None
    if any(int(number) > groups for number in _GROUP.findall(replacement)):
        raise ValueError(f"{replacement!r} names a group that {pattern!r} does not have")
