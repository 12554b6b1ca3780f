"""Tables and lists of facts that are declared: each column is a heading and a field of the row.

`GROUP: group_id, PID: process.pid, REASON` are three columns: of a row's field, of a field's field,
which may be None, and of the whole row, whose format makes the cell.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field
from typing import Any, Generic, TypeVar, cast

from .printing import FactList, Section, Table

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class TableLayout(Generic[T]):
    """The columns of a table whose rows are of one type."""

    rows: type[T]
    columns: str
    """Headings and fields, as above."""
    formats: Mapping[str, Callable[[Any], object]] = field(
        default_factory=dict[str, Callable[[Any], object]]
    )
    """What makes a text, a number or several texts of a field's value, by heading."""
    _: KW_ONLY
    shown_if: Mapping[str, Callable[[Sequence[object]], bool]] = field(
        default_factory=dict[str, Callable[[Sequence[object]], bool]]
    )
    """Whether a column is shown, given all its values; one that is not named always is."""
    empty: str = "none"
    title: str = ""
    rigid: bool = False
    folded: Sequence[str] = ()
    brief: Sequence[str] = ()

    def lay_out(self, rows: Iterable[T], title: str = "") -> Table:
        """Return the table of some rows."""
        there = [*rows]
        shown: dict[str, list[str]] = {}
        for heading, path in self._columns():
            values = [self._value(heading, path, row) for row in there]
            if heading not in self.shown_if or self.shown_if[heading](values):
                shown[heading] = [*map(_format_cell, values)]
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

    def lay_out_facts(self, row: T, title: str = "") -> FactList:
        """Return one row as a list of facts."""
        values = {name: self._value(name, path, row) for name, path in self._columns()}
        return FactList([(name, _format_cell(each)) for name, each in values.items()], title)

    def _columns(self) -> Iterator[tuple[str, str]]:
        for column in self.columns.split(", "):
            heading, _, path = column.partition(": ")
            yield heading, path

    def _value(self, heading: str, path: str, value: object) -> object:
        for name in path.split(".") if path else ():
            value = None if value is None else getattr(value, name)
        is_formatted = value is not None and heading in self.formats
        return self.formats[heading](value) if is_formatted else value


def _format_cell(value: object) -> str:
    if isinstance(value, list | tuple):
        return ",".join(str(each) for each in cast("Sequence[object]", value) if each)
    return "" if value is None else str(value)
