"""Offsets of earlier releases for tables whose schema has a dot.

The offsets of "a.b".c and of a."b.c" had one name, a.b.c. The first one is "a.b".c in offsets now,
and offsets under the old name are its own if they have its oid.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Protocol, TypeVar

from .....events.commits import Document, identity
from ...spi.source import BatchPlan
from .names import TableName

Range = TypeVar("Range")
"""What a source reads at once."""


class NamedTable(Protocol):
    """A table with its oid, 0 if that is unknown."""

    @property
    def name(self) -> TableName:
        """The table."""
        ...

    @property
    def oid(self) -> int:
        """Its oid."""
        ...


def by_present_names(
    offsets: Mapping[str, Document], tables: Sequence[NamedTable]
) -> Mapping[str, Document]:
    """Return the offsets, keyed by partition, with those of dotted schemas under their new names.

    An offset without an oid stays where it is if another table has the old name.
    """
    dotted = {repr(str(each.name)): each for each in tables if each.name.key != str(each.name)}
    if not dotted:  # as nearly always; each batch asks
        return offsets
    names = {each.name.key for each in tables}
    renamed = dict[str, Document]()
    for partition, offset in offsets.items():
        head, _, name = partition.partition("table=")
        table = dotted.get(name)
        is_alone = table is not None and str(table.name) not in names
        if table is not None and offset.get("oid", table.oid if is_alone else None) == table.oid:
            renamed.setdefault(f"{head}table={table.name.key!r}", offset)
        else:
            renamed[partition] = offset
    return renamed


def with_logged_starts(plan: BatchPlan[Range], offsets: Mapping[str, Document]) -> BatchPlan[Range]:
    """Return a plan whose advances start at the logged offsets, whatever it was made from."""
    at = [replace(each, start=offsets.get(identity(each.partition))) for each in plan.advances]
    return replace(plan, advances=tuple(at))
