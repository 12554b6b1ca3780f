"""The versions of rows that changes tell: an update of the key is a delete and a create."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from ....names import TableName
from .pgoutput import UNCHANGED, Change, Operation, Value, Values


class RowVersion(NamedTuple):
    """One version of a row; an update of the key gives two."""

    change: Change
    operation: Operation
    values: Values

    @property
    def is_whole(self) -> bool:
        """Whether no value is missing."""
        return UNCHANGED not in self.values

    def with_values(self, found: Mapping[str, Any], columns: Iterable[int]) -> "RowVersion":
        """Return the version with missing values filled in, by position."""
        values = [*self.values]
        for at in columns:
            values[at] = found[f"v{at}"] if values[at] is UNCHANGED else values[at]
        return self._replace(values=tuple(values))


def versions_of(changes: Iterable[Change], key: Sequence[int]) -> Iterator[RowVersion]:
    """Yield the versions of rows, given the positions of the columns that tell rows apart."""
    for change in changes:
        old, operation = change.old, change.operation
        if old and any(old[at] != change.values[at] for at in key):
            yield RowVersion(change, Operation.DELETE, old)
            operation = Operation.CREATE
        yield RowVersion(change, operation, change.values)


def known_before(rows: Sequence[RowVersion], key: Sequence[int]) -> list[RowVersion]:
    """Return versions with unchanged values taken from earlier versions of the same key."""
    if not key or all(each.is_whole for each in rows):
        return [*rows]
    by_key: dict[tuple[Value, ...], Values] = {}
    filled: list[RowVersion] = []
    for each in rows:
        whose = tuple(each.values[at] for at in key)
        values, before = each.values, by_key.get(whose)
        if before is not None:
            pairs = zip(values, before, strict=True)
            values = tuple(was if now is UNCHANGED else now for now, was in pairs)
        if each.operation is Operation.TRUNCATE:
            by_key.clear()
        elif each.operation is Operation.DELETE:
            by_key.pop(whose, None)
        else:
            by_key[whose] = values
        filled.append(each._replace(values=values))
    return filled


def empties_a_part(change: Change, siblings: Collection[TableName]) -> bool:
    """Return whether a TRUNCATE leaves tables of the same topic as they are."""
    return change.operation is Operation.TRUNCATE and not change.emptied.issuperset(siblings)
