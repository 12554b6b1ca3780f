"""Tables and lists of facts as plain text, for what is read by programs, files and pagers.

They look as Rich's do. Without it a verb starts a third sooner.
"""

from collections.abc import Iterator, Sequence
from unicodedata import combining, east_asian_width

GAP = "  "
"""What stands between two columns."""


def table_lines(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[str]:
    """Yield the headings and the rows, each column as wide as its widest cell."""
    cells = [columns, *rows]
    widths = [max(map(width_of, column)) for column in zip(*cells, strict=True)]
    for row in cells:
        padded = (
            f"{cell}{' ' * (width - width_of(cell))}"
            for cell, width in zip(row, widths, strict=True)
        )
        yield GAP.join(padded).rstrip()


def fact_lines(pairs: Sequence[tuple[str, str]], width: int) -> Iterator[str]:
    """Yield `Name:  value` for each value that is not empty, folded below `width` columns."""
    told = [(f"{name}:", value.expandtabs(4).splitlines()) for name, value in pairs if value]
    widest = max((width_of(name) for name, _ in told), default=0)
    for name, lines in told:
        folded = [part for line in lines for part in _fold(line, width - widest - len(GAP))]
        for before, part in zip([name, *[""] * (len(folded) - 1)], folded, strict=True):
            yield f"{before}{' ' * (widest - width_of(before))}{GAP}{part}".rstrip()


def _fold(line: str, width: int) -> list[str]:
    """Return the lines of a line that is too long, broken at blanks where there are some."""
    if width_of(line) <= width:
        return [line]
    from textwrap import wrap  # noqa: PLC0415  # most lines are short

    most = max(width, 1)
    parts = wrap(line, most, break_long_words=False, break_on_hyphens=False) or [""]
    return [part[at : at + most] for part in parts for at in range(0, max(len(part), 1), most)]


def width_of(text: str) -> int:
    """Return how many columns of a terminal a text takes."""
    if text.isascii():
        return len(text)
    return sum(
        0 if combining(each) else 1 + (east_asian_width(each) in {"W", "F"}) for each in text
    )
