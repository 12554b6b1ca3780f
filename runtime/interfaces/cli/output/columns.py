"""The widths of columns on a terminal, and cells that are folded to them.

If a table is wider than the terminal, those columns are narrowed whose cells then need the fewest
lines more. A cell is folded at blanks, or else behind a mark as it stands in names, paths and
addresses.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import zip_longest
from typing import Final
from unicodedata import combining, east_asian_width

GAP: Final = 2
"""Spaces between columns."""
_MARKS: Final = ".-_/,:="


def width_of(text: str) -> int:
    """Return how many columns of a terminal a text takes."""
    if text.isascii():
        return len(text)
    return sum(
        0 if combining(each) else 1 + (east_asian_width(each) in {"W", "F"}) for each in text
    )


def fit_widths(
    cells: Sequence[Sequence[str]], least: Sequence[int], limit: int
) -> list[int] | None:
    """Return the widths of columns, which together are not wider than `limit`; None: impossible.

    `cells` are the rows. A column is not made narrower than its width in `least`.
    """
    lengths = [Counter(map(width_of, column)) for column in zip(*cells, strict=True)]
    whole = [max(each) for each in lengths]
    room = limit - GAP * (len(whole) - 1)
    if sum(whole) <= room:
        return whole
    fewest: dict[int, tuple[int, list[int]]] = {0: (0, [])}
    """The number of lines, and the widths of the first columns, by the sum of these."""
    for counts, smallest in zip(lengths, least, strict=True):
        further: dict[int, tuple[int, list[int]]] = {}
        for used, (lines, widths) in fewest.items():
            for more, width in _widths_by_lines(counts, smallest, room).items():
                total = used + width
                if total <= room and (total not in further or lines + more < further[total][0]):
                    further[total] = lines + more, [*widths, width]
        fewest = further
    if not fewest:
        return None
    _, widths = min(fewest.values())
    while sum(widths) < room:  # what is left makes folded cells shorter
        at = max(range(len(widths)), key=lambda each: whole[each] / max(widths[each], 1))
        widths[at] += 1
    return widths


def _widths_by_lines(lengths: Counter[int], smallest: int, room: int) -> dict[int, int]:
    """Return the smallest width of a column for each number of lines that its cells may take.

    It is not larger than `room`, however long a cell is.
    """
    whole = max(lengths)
    return {
        sum(count * -(-max(length, 1) // max(width, 1)) for length, count in lengths.items()): width
        for width in range(min(whole, room), min(whole, smallest) - 1, -1)
    }


def fold(line: str, width: int) -> list[str]:
    """Return the lines of a line that is too long."""
    if width_of(line) <= width:
        return [line]
    from textwrap import wrap  # noqa: PLC0415  # most lines are short

    most = max(width, 1)
    parts = wrap(line, most, break_long_words=False, break_on_hyphens=False) or [""]
    return [piece for part in parts for piece in _cut(part, most)]


def _cut(word: str, most: int) -> Iterator[str]:
    """Yield the pieces of a word that is too long, cut behind a mark if that is not too early.

    A word may have megabytes: only what a piece needs is looked at.
    """
    start = 0
    while start < max(len(word), 1):
        end = start + most
        while width_of(word[start:end]) > most and end > start + 1:
            end -= 1
        if end < len(word):
            behind = 1 + max(word.rfind(mark, start, end) for mark in _MARKS)
            end = behind if behind > start + most // 2 else end
        yield word[start:end]
        start = end


def join_cells(row: Sequence[str], widths: Sequence[int], styles: Sequence[str]) -> Iterator[str]:
    """Yield the lines of a row; `styles` has an escape sequence of the terminal for each cell."""
    folded = (fold(cell, width) for cell, width in zip(row, widths, strict=True))
    for parts in zip_longest(*folded, fillvalue=""):
        padded = (
            f"{paint(part, style)}{' ' * (width - width_of(part))}"
            for part, width, style in zip(parts, widths, styles, strict=True)
        )
        yield (" " * GAP).join(padded).rstrip()


def paint(text: str, style: str) -> str:
    """Return a text in a style of the terminal; without one, as it is."""
    return f"\x1b[{style}m{text}\x1b[0m" if style and text else text
