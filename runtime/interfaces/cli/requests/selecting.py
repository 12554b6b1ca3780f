"""The choice of some of many connectors: by names, regular expressions, files, labels, or all.

A selector is kubectl's: `team=a,env!=test`, `env in (prod,test)`, `env notin (dev)`, `owner` for
those that have the label, `!owner` for the others; all its requirements hold at once.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Final, NamedTuple

from ..adapters.parameters import Option
from ..output.printing import Misused
from .files import Recursive, read_all_connectors

_LABEL: Final = r"[A-Za-z0-9](?:[A-Za-z0-9._/-]*[A-Za-z0-9])?"
_REQUIREMENT: Final = re.compile(
    rf"\s*(?:(?P<absent>!)\s*(?P<without>{_LABEL})"
    rf"|(?P<name>{_LABEL})(?:\s*(?P<sign>==|=|!=)\s*(?P<value>(?:{_LABEL})?)"
    r"|\s+(?P<set>in|notin)\s*\((?P<values>[^()]*)\))?)\s*",
    re.ASCII,
)


class Requirement(NamedTuple):
    """One condition on the labels of a connector."""

    name: str
    values: frozenset[str] | None = None
    """What the label may be; None: anything."""
    is_negated: bool = False

    def accepts(self, labels: Mapping[str, str]) -> bool:
        """Return whether the condition holds; one that is negated holds without the label, too."""
        value = labels.get(self.name)
        holds = value is not None and (self.values is None or value in self.values)
        return holds is not self.is_negated


def parse_selector(selector: str) -> list[Requirement]:
    """Return the conditions of a selector; raises `Misused`."""
    requirements = [*_requirements(selector)]
    if not requirements:
        raise Misused("the selector is empty: write team=a, or `team in (a,b)`")
    return requirements


def _requirements(selector: str) -> Iterator[Requirement]:
    rest = selector.strip()
    while rest:
        match = _REQUIREMENT.match(rest)
        end = match.end() if match else 0
        if match is None or (end < len(rest) and rest[end] != ",") or rest[end:] == ",":
            raise Misused(
                f"{selector!r} is no selector: write team=a,env!=test, `env in (prod,test)`,"
                " `env notin (dev)`, owner or !owner"
            )
        yield _requirement(match)
        rest = rest[end + 1 :]


def _requirement(match: re.Match[str]) -> Requirement:
    if match["absent"]:
        return Requirement(match["without"], is_negated=True)
    if match["set"]:
        values = frozenset(each.strip() for each in match["values"].split(","))
        return Requirement(match["name"], values, is_negated=match["set"] == "notin")
    if match["sign"]:
        return Requirement(match["name"], frozenset({match["value"]}), match["sign"] == "!=")
    return Requirement(match["name"])


Selector = Annotated[
    str | None,
    Option(
        "--selector",
        "-l",
        metavar="LABELS",
        help="Those with these labels: team=a,env!=test, `env in (a,b)`, owner, !owner.",
    ),
]


NamedInFiles = Annotated[
    list[Path] | None,
    Option("--filename", "-f", metavar="FILE", help="Those in files or folders; repeatable."),
]


@dataclass(frozen=True, slots=True)
class Choice:
    """How connectors are chosen, if not by their names."""

    patterns: Annotated[
        bool,
        Option("--reg-exp", "-e", help="The names are regular expressions (RE2) of whole names."),
    ] = False
    selector: Selector = None
    every: Annotated[bool, Option("--all", help="All connectors.")] = False
    files: NamedInFiles = None
    recursive: Recursive = False

    @property
    def needs_names(self) -> bool:
        """Whether connectors have to be named on the command line."""
        return self.is_by_name and not self.files

    @property
    def is_by_name(self) -> bool:
        """Whether names say which connectors are meant: words, or those in files."""
        return self.selector is None and not self.every

    def check(self, names: Sequence[str]) -> list[Requirement]:
        """Return the conditions on labels; raises `Misused` for one choice too many."""
        requirements = [] if self.selector is None else parse_selector(self.selector)
        if names and not self.is_by_name:
            raise Misused("names are not chosen by --selector or --all as well: leave out one")
        if self.files and (self.patterns or not self.is_by_name):
            raise Misused("files name connectors: leave out --reg-exp, --selector and --all")
        if self.every and self.selector is not None:
            raise Misused("--all leaves nothing to a --selector: leave out one")
        return requirements

    def read_names(self) -> list[str]:
        """Return the names of the connectors in the files; raises `Failed`, `Misused`."""
        return [*read_all_connectors(self.files or (), recursive=self.recursive)]
