"""Tables that are declared by their columns: a heading, and what stands below it for a row."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field
from typing import Generic, TypeVar

from .printing import Section, Table

T = TypeVar("T")


@dataclass(frozen=True)  # slots and type parameters do not go together in Python 3.11
class TableLayout(Generic[T]):
    """The columns of a table whose rows are of one type."""

    cells: Mapping[str, Callable[[T], object]]
    """What makes the cell of a row, by heading: a text, a number, several texts, or None."""
    _: KW_ONLY
    shown_if: Mapping[str, Callable[[Sequence[object]], bool]] = field(default_factory=dict)
    """Whether a column is shown, given all its values; one that is not named always is."""
    empty: str = "none"
    title: str = ""
    rigid: bool = False
    folded: Sequence[str] = ()
    brief: Sequence[str] = ()

    def lay_out(self, rows: Iterable[T], title: str = "") -> Table:
        """Return the table of some rows."""
        there = [*rows]
        values = {heading: [cell(row) for row in there] for heading, cell in self.cells.items()}
        shown = {
            heading: [*map(_format_cell, column)]
            for heading, column in values.items()
            if heading not in self.shown_if or self.shown_if[heading](column)
        }
        return Table(
            tuple(shown),
            [*zip(*shown.values(), strict=True)],
            self.empty,
            title or self.title,
            rigid=self.rigid,
            folded=tuple(each for each in self.folded if each in shown),
            brief=self.brief,
        )

    def lay_out_any(self, rows: Iterable[T]) -> list[Section]:
        """Return the table of some rows; nothing if there are none."""
        table = self.lay_out(rows)
        return [table] if table.rows else []


def _format_cell(value: object) -> str:
    if isinstance(value, list | tuple):
        return ",".join(filter(None, map(str, value)))
    return "" if value is None else str(value)
