"""The output of commands, as tables for users or as JSON and YAML for programs, and their errors.

Text from a cluster or a log may contain anything, so control characters are escaped: a terminal
would execute them.
"""

import json
import os
import sys
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Final
from unicodedata import combining, east_asian_width

from msgspec import to_builtins

if TYPE_CHECKING:
    from rich.console import Console


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

GAP: Final = 2
"""Spaces between columns."""

FOLDED: Final = 10
"""The minimum width of a folded cell."""

STYLES: Final = {
    "RUNNING": "green",
    "Stable": "green",
    "STABLE": "green",
    "running": "green",
    "healthy": "green",
    "unhealthy": "bold red",
    "degraded": "yellow",
    "sound": "green",
    "FAILED": "bold red",
    "unsound": "bold red",
    "missing": "bold red",
    "backing-off": "red",
    "ended": "red",
    "UNASSIGNED": "yellow",
    "RESTARTING": "yellow",
    "starting": "yellow",
    "leaving": "yellow",
    "UNREVOKED": "yellow",
    "UNRELEASED": "yellow",
    "Assigning": "yellow",
    "CompletingRebalance": "yellow",
    "Reconciling": "yellow",
}
"""The terminal style of each state."""

_ESCAPED: Final = {code: f"\\x{code:02x}" for code in (*range(0x20), *range(0x7F, 0xA0))}
_ESCAPED_IN_JSON: Final = {code: f"\\u{code:04x}" for code in range(0x7F, 0xA0)}


@dataclass(frozen=True, slots=True)
class Table:
    """Rows under headings; `empty` is printed if there are no rows.

    If the terminal is too narrow, the cells of some columns are folded: of those that `folded`
    names, or else of those with long cells, but for a `rigid` first column. If that is not enough,
    each row is printed as a list of facts. Cells of `brief` columns are truncated on a terminal
    only.
    """

    columns: Sequence[str]
    rows: Sequence[Sequence[str]]
    empty: str = "none"
    title: str = ""
    rigid: bool = False
    folded: Collection[str] = ()
    brief: Collection[str] = ()


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
    """Print sections with an empty line between them."""
    is_cut = any(isinstance(each, Table) and each.brief for each in sections)
    is_limited = sys.stdout.isatty() or ("COLUMNS" in os.environ and not is_cut)
    lines = _rich_lines(sections) if is_limited else _plain_lines(sections)
    sys.stdout.writelines(f"{line}\n" for line in lines)


def _plain_lines(sections: Sequence[Section]) -> Iterator[str]:
    """Yield the lines for no terminal: a row is one line, for grep."""
    for number, section in enumerate(sections):
        if number:
            yield ""
        if section.title:
            yield escape_controls(section.title)
        if isinstance(section, FactList):
            pairs = [(escape_controls(name), value) for name, value in section.pairs]
            yield from map(escape_controls, _fact_lines(pairs, WIDTH))
        elif section.rows:
            rows = [[*map(escape_controls, row)] for row in section.rows]
            yield from _table_lines(section.columns, rows)
        else:
            yield section.empty


def _table_lines(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[str]:
    """Yield the headings and the rows, each column as wide as its widest cell."""
    cells = [columns, *rows]
    widths = [max(map(_width_of, column)) for column in zip(*cells, strict=True)]
    for row in cells:
        padded = (
            f"{cell}{' ' * (width - _width_of(cell))}"
            for cell, width in zip(row, widths, strict=True)
        )
        yield (" " * GAP).join(padded).rstrip()


def _fact_lines(pairs: Sequence[tuple[str, str]], width: int) -> Iterator[str]:
    """Yield `Name:  value` for each value that is not empty, folded below `width` columns."""
    told = [(f"{name}:", value.expandtabs(4).splitlines()) for name, value in pairs if value]
    widest = max((_width_of(name) for name, _ in told), default=0)
    for name, lines in told:
        folded = [part for line in lines for part in _fold(line, width - widest - GAP)]
        for before, part in zip([name, *[""] * (len(folded) - 1)], folded, strict=True):
            yield f"{before}{' ' * (widest - _width_of(before) + GAP)}{part}".rstrip()


def _fold(line: str, width: int) -> list[str]:
    """Return the lines of a line that is too long, broken at blanks where there are some."""
    if _width_of(line) <= width:
        return [line]
    from textwrap import wrap  # noqa: PLC0415  # most lines are short

    most = max(width, 1)
    parts = wrap(line, most, break_long_words=False, break_on_hyphens=False) or [""]
    return [part[at : at + most] for part in parts for at in range(0, max(len(part), 1), most)]


def _width_of(text: str) -> int:
    """Return how many columns of a terminal a text takes."""
    if text.isascii():
        return len(text)
    return sum(
        0 if combining(each) else 1 + (east_asian_width(each) in {"W", "F"}) for each in text
    )


def _rich_lines(sections: Sequence[Section]) -> Iterator[str]:
    """Return the lines for a terminal, in its width and colours."""
    from rich.console import Console  # noqa: PLC0415  # --help and programs need none

    console = Console(file=sys.stdout, highlight=False, emoji=False)
    with console.capture() as capture:
        for number, section in enumerate(sections):
            if number:
                console.print()
            if section.title:
                console.print(
                    escape_controls(section.title), style="bold", markup=False, highlight=False
                )
            if isinstance(section, FactList):
                _print_facts(console, section)
            elif section.rows and _width(section) > console.width:
                _print_rows(console, section)
            else:
                _print_table(console, section)
    # Rich pads all cells to the width of their column, even in the last column.
    return (line.rstrip() for line in capture.get().splitlines())


def _print_table(console: "Console", section: Table) -> None:
    from rich.table import Table as RichTable  # noqa: PLC0415
    from rich.text import Text  # noqa: PLC0415

    if not section.rows:
        console.print(section.empty, markup=False)
        return
    table = RichTable(box=None, pad_edge=False, header_style="bold", padding=(0, GAP, 0, 0))
    folded = _folded(section)
    for column in section.columns:
        table.add_column(column, overflow="fold", no_wrap=column not in folded)
    cut = [column in section.brief for column in section.columns]
    for row in section.rows:
        cells = (_brief(cell) if brief else cell for cell, brief in zip(row, cut, strict=True))
        table.add_row(*(Text(escape_controls(cell), style=STYLES.get(cell, "")) for cell in cells))
    console.print(table)


def _brief(cell: str) -> str:
    return cell if len(cell) <= BRIEF else cell[: BRIEF - 1] + "…"


def _folded(section: Table) -> Collection[str]:
    """Return the columns whose cells are folded if the terminal is too narrow."""
    if section.folded:
        return section.folded
    columns = list(zip(section.columns, *section.rows, strict=True))[section.rigid :]
    return {cells[0] for cells in columns if max(map(len, cells)) > FOLDED}


def _width(section: Table) -> int:
    """Return the minimum width of a table."""
    folded = _folded(section)
    widths = (
        max(map(len, cells)) if cells[0] not in folded else FOLDED
        for cells in zip(section.columns, *section.rows, strict=True)
    )
    return sum(widths) + GAP * (len(section.columns) - 1)


def _print_rows(console: "Console", section: Table) -> None:
    for number, row in enumerate(section.rows):
        if number:
            console.print()
        _print_facts(console, FactList(list(zip(section.columns, row, strict=True))))


def _print_facts(console: "Console", section: FactList) -> None:
    from rich.table import Table as RichTable  # noqa: PLC0415
    from rich.text import Text  # noqa: PLC0415

    table = RichTable.grid(padding=(0, GAP, 0, 0))
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    for name, value in section.pairs:
        if value:
            text = "\n".join(escape_controls(line) for line in value.expandtabs(4).splitlines())
            table.add_row(f"{escape_controls(name)}:", Text(text, style=STYLES.get(value, "")))
    console.print(table)
