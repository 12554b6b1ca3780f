"""Positions in the WAL: an LSN of a commit, and the number of its changes that are read.

A change is the n-th of a transaction whose commit is at an LSN, from 1. A position covers a change
if it is not before it: `(end, 0)` after a commit covers its whole transaction, and `(commit, n)`
the first n changes. So a transaction that is larger than a batch is read in parts, and each change
once.
"""

from typing import Any, NamedTuple, Self

from ........events.commits import Document
from ....tables.snapshots import parse_lsn, spell_lsn


class Position(NamedTuple):
    """All changes up to it are read; positions are ordered."""

    lsn: int
    seq: int = 0

    @classmethod
    def parse(cls, offset: Document) -> Self:
        """Parse an offset; raises `ValueError`."""
        get: Any = offset.get
        return cls(parse_lsn(str(get("lsn"))), int(get("seq") or 0))

    @property
    def document(self) -> Document:
        """The offset."""
        bare: dict[str, str | int] = {"lsn": spell_lsn(self.lsn)}
        return {**bare, "seq": self.seq} if self.seq else bare


def slot_partition(slot: str) -> Document:
    """Return the source partition of a slot."""
    return {"slot": slot}


def table_partition(slot: str, table: str) -> Document:
    """Return the source partition of a table that is ahead of the slot's."""
    return {"slot": slot, "table": table}
