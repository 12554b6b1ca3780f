"""How a command ends: what it prints, for people or for programs, and its exit code.

Text from a cluster or a log may hold anything, so control characters are escaped before a
terminal can act on them.
"""

import json
import os
import sys
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Final

from msgspec import to_builtins

from .options import Output

if TYPE_CHECKING:
    from rich.console import Console


FAILED = 1
MISUSED = 2
UNREACHABLE = 3


class Failed(Exception):  # noqa: N818  # what happened
    """The command could not be carried out; the text says what is kept and what to do."""

    status: ClassVar[int] = FAILED


class Misused(Failed):
    """What was asked for makes no sense as it was written; nothing was done."""

    status: ClassVar[int] = MISUSED


class Unreachable(Failed):
    """No cluster answered; whether a command took place is unknown if it was on its way."""

    status: ClassVar[int] = UNREACHABLE


WIDTH: Final = 100
"""Columns of prose where there is no terminal to ask."""

ENDLESS: Final = 100_000
"""Columns of a table where there is none: a row is a line there, for programs to search."""

BRIEF: Final = 60
"""Characters of a brief cell on a terminal."""

GAP: Final = 2
"""Spaces between columns."""

FOLDED: Final = 6
"""Columns that a cell needs that is folded: fewer, and nobody could read it."""

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
"""How the words of states look in a terminal."""

_ESCAPED: Final = {code: f"\\x{code:02x}" for code in (*range(0x20), *range(0x7F, 0xA0))}
_ESCAPED_IN_JSON: Final = {code: f"\\u{code:04x}" for code in range(0x7F, 0xA0)}


@dataclass(frozen=True, slots=True)
class Table:
    """Rows under headings; `empty` is printed where there are none.

    Cells are folded where the terminal is too narrow, those of a `rigid` first column last.
    Where `folded` names columns, those of all others last; and where even that would leave
    nothing of them, each row is told as facts. Cells of `brief` columns are cut on a terminal;
    programs, and readers of a pipe, get them whole.
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
    """Names and what they are; those without a value are left out."""

    pairs: Sequence[tuple[str, str]]
    title: str = ""


Section = Table | FactList


def show(output: Output, data: object, sections: Sequence[Section]) -> None:
    """Print `data`, plain data or a reply, for a program, or its sections for a person."""
    if output is Output.TABLE:
        show_sections(sections)
    elif output is Output.JSON:
        sys.stdout.write(as_json(to_builtins(data), indent=2) + "\n")
    else:
        sys.stdout.write(as_yaml(to_builtins(data)))


def say(line: str) -> None:
    """Print one line as it is, except for what a terminal would act on."""
    sys.stdout.write(plain(line) + "\n")


def as_json(data: object, indent: int | None = None) -> str:
    """Return JSON that a terminal can be trusted with."""
    return json.dumps(data, indent=indent, ensure_ascii=False).translate(_ESCAPED_IN_JSON)


def as_yaml(data: object) -> str:
    """Return YAML, members in the order in which they came."""
    import yaml  # noqa: PLC0415  # seldom wanted

    return yaml.safe_dump(data, sort_keys=False, allow_unicode=True, width=WIDTH)


def plain(line: str) -> str:
    """Return a text with its control characters escaped."""
    return line.translate(_ESCAPED)


def show_sections(sections: Sequence[Section]) -> None:
    """Print sections with an empty line between them."""
    console = _console()
    with console.capture() as capture:
        for number, section in enumerate(sections):
            if number:
                console.print()
            if section.title:
                console.print(plain(section.title), style="bold", markup=False, highlight=False)
            if isinstance(section, FactList):
                _print_facts(console, section)
            elif section.rows and _width(section) > console.width:
                _print_rows(console, section)
            else:
                _print_table(console, section)
    # Rich fills cells up to their column's width, the last ones too.
    sys.stdout.writelines(f"{line.rstrip()}\n" for line in capture.get().splitlines())


def _console() -> "Console":
    from rich.console import Console  # noqa: PLC0415  # --help and programs need none

    asked = "COLUMNS" in os.environ or sys.stdout.isatty()
    return Console(file=sys.stdout, width=None if asked else ENDLESS, highlight=False, emoji=False)


def _print_table(console: "Console", section: Table) -> None:
    from rich.table import Table as RichTable  # noqa: PLC0415
    from rich.text import Text  # noqa: PLC0415

    if not section.rows:
        console.print(section.empty, markup=False)
        return
    table = RichTable(box=None, pad_edge=False, header_style="bold", padding=(0, GAP, 0, 0))
    for number, column in enumerate(section.columns):
        is_rigid = column not in section.folded if section.folded else section.rigid and not number
        table.add_column(column, overflow="fold", no_wrap=is_rigid)
    cut = [console.width != ENDLESS and column in section.brief for column in section.columns]
    for row in section.rows:
        cells = (_brief(cell) if brief else cell for cell, brief in zip(row, cut, strict=True))
        table.add_row(*(Text(plain(cell), style=STYLES.get(cell, "")) for cell in cells))
    console.print(table)


def _brief(cell: str) -> str:
    return cell if len(cell) <= BRIEF else cell[: BRIEF - 1] + "…"


def _width(section: Table) -> int:
    """Return how many columns a table takes at least; one that may be folded at will, none."""
    if not section.folded:
        return 0
    widths = (
        max(map(len, cells)) if cells[0] not in section.folded else FOLDED
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
            text = "\n".join(plain(line) for line in value.expandtabs(4).splitlines())
            table.add_row(f"{plain(name)}:", Text(text, style=STYLES.get(value, "")))
    console.print(table, width=WIDTH if console.width == ENDLESS else None)
