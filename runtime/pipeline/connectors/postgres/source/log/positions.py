"""Places in the server's log: a commit, and how many changes of it; spelled as PostgreSQL does.

A change is the n-th of a transaction whose commit lies at an LSN, n from 1. A place is reached if
it is not before the change: the place `(end, 0)` behind a commit has all of its transaction, the
place `(commit, n)` the first n changes of it. So a transaction that is larger than a batch is read
in parts, and everything is read once.
"""

from typing import Any, NamedTuple, Self

from .......events.commits import Document
from ...tables.snapshots import parse_lsn, spell_lsn


class Position(NamedTuple):
    """All changes up to it are read; compared as it stands."""

    lsn: int
    seq: int = 0

    @classmethod
    def parse(cls, offset: Document) -> Self:
        """Return what an offset says; raises `ValueError`."""
        get: Any = offset.get
        return cls(parse_lsn(str(get("lsn"))), int(get("seq") or 0))

    @property
    def document(self) -> Document:
        """The offset."""
        bare: dict[str, str | int] = {"lsn": spell_lsn(self.lsn)}
        return {**bare, "seq": self.seq} if self.seq else bare


def slot_partition(slot: str) -> Document:
    """Return the source partition of all that a slot gives."""
    return {"slot": slot}


def table_partition(slot: str, table: str) -> Document:
    """Return that of one table, where it is ahead of the others."""
    return {"slot": slot, "table": table}
