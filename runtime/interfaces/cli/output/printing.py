"""The output of commands, as tables for users or as JSON and YAML for programs, and their errors.

Text from a cluster or a log may contain anything, so control characters are escaped: a terminal
would execute them.
"""

import json
import os
import sys
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from shutil import get_terminal_size
from typing import Final

from msgspec import to_builtins

from .columns import GAP, fit_widths, fold, join_cells, paint, width_of

PROGRAM: Final = "fairlead"
FAILED = 1
MISUSED = 2
UNREACHABLE = 3


class Output(StrEnum):
    """The output format of a command."""

    TABLE = "table"
    JSON = "json"
    YAML = "yaml"


class Failed(Exception):  # noqa: N818  # what happened
    """The command failed; the message says what was kept and what to do."""

    status: int = FAILED


class Misused(Failed):
    """The command line is invalid; nothing was done."""

    status = MISUSED


class Unreachable(Failed):
    """No cluster answered; if a command had been sent, its outcome is unknown."""

    status = UNREACHABLE


WIDTH: Final = 100
"""The width of text without a terminal, in columns."""

BRIEF: Final = 60
"""The width of a `brief` cell on a terminal."""

FOLDED: Final = 10
"""The minimum width of a folded cell."""

BOLD, GREEN, YELLOW, RED, BOLD_RED = "1", "32", "33", "31", "1;31"
STYLES: Final = {
    "RUNNING": GREEN,
    "Stable": GREEN,
    "STABLE": GREEN,
    "running": GREEN,
    "healthy": GREEN,
    "unhealthy": BOLD_RED,
    "degraded": YELLOW,
    "sound": GREEN,
    "ok": GREEN,
    "warn": YELLOW,
    "fail": BOLD_RED,
    "FAILED": BOLD_RED,
    "unsound": BOLD_RED,
    "missing": BOLD_RED,
    "backing-off": RED,
    "ended": RED,
    "UNASSIGNED": YELLOW,
    "RESTARTING": YELLOW,
    "starting": YELLOW,
    "leaving": YELLOW,
    "UNREVOKED": YELLOW,
    "UNRELEASED": YELLOW,
    "Assigning": YELLOW,
    "CompletingRebalance": YELLOW,
    "Reconciling": YELLOW,
}
"""The style of each state on a terminal."""

_ESCAPED: Final = {code: f"\\x{code:02x}" for code in (*range(0x20), *range(0x7F, 0xA0))}
_ESCAPED_IN_JSON: Final = {code: f"\\u{code:04x}" for code in range(0x7F, 0xA0)}


@dataclass(frozen=True, slots=True)
class Table:
    """Rows under headings; `empty` is printed if there are no rows.

    If the terminal is too narrow, the cells of some columns are folded: of those that `folded`
    names, or else of those with long cells, but for a `rigid` first column. If that is not enough,
    all long cells may be folded, and if not even that is, each row is printed as a list of facts.
    Cells of `brief` columns are truncated on a terminal only.
    """

    columns: Sequence[str]
    rows: Sequence[Sequence[str]]
    empty: str = "none"
    title: str = ""
    rigid: bool = False
    folded: Collection[str] = ()
    brief: Collection[str] = ()
    has_headings: bool = True


@dataclass(frozen=True, slots=True)
class FactList:
    """A list of names and values; empty values are omitted."""

    pairs: Sequence[tuple[str, str]]
    title: str = ""


Section = Table | FactList


def show(output: Output, data: object, sections: Sequence[Section]) -> None:
    """Print `data` as JSON or YAML, or its `sections` as tables."""
    if output is Output.TABLE:
        show_sections(sections)
    elif output is Output.JSON:
        sys.stdout.write(format_json(to_builtins(data), indent=2) + "\n")
    else:
        sys.stdout.write(format_yaml(to_builtins(data)))


def say(line: str) -> None:
    """Print one line, with control characters escaped."""
    sys.stdout.write(escape_controls(line) + "\n")


def say_aside(line: str) -> None:
    """Print one line to standard error, which is no part of a verb's answer."""
    sys.stderr.write(f"{PROGRAM}: {escape_controls(line)}\n")


def format_json(data: object, indent: int | None = None) -> str:
    """Return JSON with control characters escaped."""
    return json.dumps(data, indent=indent, ensure_ascii=False).translate(_ESCAPED_IN_JSON)


def format_yaml(data: object) -> str:
    """Return YAML with the keys in their order."""
    import yaml  # noqa: PLC0415  # rarely used

    return yaml.safe_dump(data, sort_keys=False, allow_unicode=True, width=WIDTH)


def escape_controls(line: str) -> str:
    """Return a text with its control characters escaped."""
    return line.translate(_ESCAPED)


def show_sections(sections: Sequence[Section]) -> None:
    """Print sections with an empty line between them.

    For no terminal a row is one line, for grep.
    """
    is_cut = any(isinstance(each, Table) and each.brief for each in sections)
    is_limited = sys.stdout.isatty() or ("COLUMNS" in os.environ and not is_cut)
    width = get_terminal_size().columns if is_limited else None
    styles = STYLES if _is_coloured() else {}
    heading = BOLD if styles else ""
    for number, section in enumerate(sections):
        if number:
            sys.stdout.write("\n")
        if section.title:
            sys.stdout.write(f"{paint(escape_controls(section.title), heading)}\n")
        lines = (
            _fact_lines(section, width, styles)
            if isinstance(section, FactList)
            else _table_lines(section, width, styles, heading)
        )
        sys.stdout.writelines(f"{line}\n" for line in lines)


def _is_coloured() -> bool:
    """Return whether the terminal shows colours, as no-color.org and force-color.org have it."""
    if os.environ.get("NO_COLOR") or os.environ.get("TERM") in {"dumb", "unknown"}:
        return False
    return sys.stdout.isatty() or bool(os.environ.get("FORCE_COLOR"))


def _table_lines(
    section: Table, width: int | None, styles: Mapping[str, str], heading: str
) -> Iterator[str]:
    """Yield the lines of a table that is not wider than `width`; None: as wide as it is."""
    if not section.rows:
        yield section.empty
        return
    rows = [[*map(escape_controls, row)] for row in section.rows]
    if width is not None:
        brief = [column in section.brief for column in section.columns]
        rows = [
            [
                _cut_short(cell) if is_brief else cell
                for cell, is_brief in zip(row, brief, strict=True)
            ]
            for row in rows
        ]
    cells = [section.columns, *rows] if section.has_headings else rows
    widths = _fit(section, cells, sys.maxsize if width is None else width)
    if widths is None:
        for number, row in enumerate(rows):
            if number:
                yield ""
            pairs = FactList([*zip(section.columns, row, strict=True)])
            yield from _fact_lines(pairs, width, styles)
        return
    if section.has_headings:
        yield from join_cells(section.columns, widths, [heading] * len(widths))
    for row in rows:
        yield from join_cells(row, widths, [styles.get(cell, "") for cell in row])


def _cut_short(cell: str) -> str:
    return cell if len(cell) <= BRIEF else cell[: BRIEF - 1] + "…"


def _fit(section: Table, cells: Sequence[Sequence[str]], width: int) -> list[int] | None:
    """Return the widths of the columns of a table; None if it does not fit into `width`."""
    columns = [*zip(*cells, strict=True)]
    is_long = [max(map(width_of, column)) > FOLDED for column in columns]
    preferred = [
        name in section.folded if section.folded else is_long[at] and (at or not section.rigid)
        for at, name in enumerate(section.columns)
    ]
    least = [max(FOLDED, width_of(name)) for name in section.columns]
    for may_fold in (preferred, is_long):
        smallest = [each if may else sys.maxsize for each, may in zip(least, may_fold, strict=True)]
        if widths := fit_widths(cells, smallest, width):
            return widths
    return None


def _fact_lines(section: FactList, width: int | None, styles: Mapping[str, str]) -> Iterator[str]:
    """Yield `Name:  value` for each value that is not empty, folded below `width` columns.

    On a terminal names do not take more than half of it: longer ones have a line of their own.
    """
    told = [(f"{escape_controls(name)}:", value) for name, value in section.pairs if value]
    widest = max((width_of(name) for name, _ in told), default=0)
    if width is not None and widest > width // 2:
        widest = width // 3
    indent = widest + GAP
    for name, value in told:
        style = styles.get(value, "")
        lines = [escape_controls(line) for line in value.expandtabs(4).splitlines()]
        folded = [part for line in lines for part in fold(line, (width or WIDTH) - indent)]
        before = name
        if width_of(name) > widest:
            yield name
            before = ""
        for part in folded:
            yield f"{before}{' ' * (indent - width_of(before))}{paint(part, style)}".rstrip()
            before = ""
