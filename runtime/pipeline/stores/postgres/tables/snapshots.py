"""The snapshot S in mode log, so that each row comes either from the snapshot or from the WAL.

A table is read in chunks, each in its own transaction. They all read the rows that S saw, by xmin;
from the WAL only transactions that S did not see are read. S is taken after all transactions have
ended that are older than slot and publication: so the WAL has all changes that S does not see.

`pg_current_snapshot` does not list open subtransactions, but rows have their ids. So S has the id
of each transaction in progress, checked one by one, and is valid if none ended meanwhile; otherwise
it is taken again.
"""

from collections.abc import Sequence
from typing import Any, Final, NamedTuple, Self

import psycopg
from psycopg import sql

from .cursors import written_before, written_within
from .session import Horizon

_TRIES: Final = 100
_WIDEST: Final = 1 << 20
"""The most transactions after the oldest open one to check."""
_BITS: Final = 1 << 32

_CURRENT: Final = """
SELECT pg_snapshot_xmin(s)::text::int8, pg_snapshot_xmax(s)::text::int8,
    ARRAY(SELECT x::text::int8 FROM pg_snapshot_xip(s) x) FROM pg_current_snapshot() s"""
_IN_PROGRESS: Final = """
SELECT coalesce(array_agg(x), '{}') FROM generate_series(%s::int8, %s::int8 - 1) x
WHERE pg_xact_status(x::text::xid8) = 'in progress'"""


class LogSnapshot(NamedTuple):
    """A snapshot S: it sees transactions before `lo`, and those before `hi` not in `open`."""

    lo: int
    hi: int
    open: tuple[int, ...]
    """The transactions and subtransactions in progress."""
    lsn: int
    """The LSN to read the WAL from."""

    @classmethod
    def parse(cls, text: str) -> Self:
        """Parse the text of `str`; raises `ValueError`."""
        snapshot, _, lsn = text.partition("@")
        lo, hi, others = snapshot.split(":")
        return cls(
            int(lo), int(hi), tuple(map(int, filter(None, others.split(",")))), parse_lsn(lsn)
        )

    def __str__(self) -> str:
        return f"{self.lo}:{self.hi}:{','.join(map(str, self.open))}@{spell_lsn(self.lsn)}"

    @classmethod
    def take(cls, connection: "psycopg.Connection[Any]", lsn: int) -> Self:
        """Record which transactions are open; the WAL is read from an LSN on."""
        look = _look(connection)
        tries = 0
        while True:
            tries += 1
            lo, hi, tops = look
            row = connection.execute(_IN_PROGRESS, (max(lo, hi - _WIDEST), hi)).fetchone()
            look = _look(connection)
            if tries == _TRIES or {*tops} <= {*look[2]}:
                open_xids = {*tops, *(row[0] if row else ())}
                return cls(lo, hi, tuple(sorted(open_xids)), lsn)

    def sees(self, xid: int) -> bool:
        """Return whether it sees the rows of a transaction, by its 64-bit id."""
        return xid < self.lo or (xid < self.hi and xid not in self.open)

    def condition(self, seen: Horizon) -> sql.Composed:
        """Return the condition that it sees a row, which a later snapshot (`seen`) reads."""
        shape = "({} OR ({} AND xmin::text::int8 <> ALL ({}::int8[])))"
        others = sql.Literal([each % _BITS for each in self.open])
        within = written_within(self.lo, self.hi)
        return sql.SQL(shape).format(written_before(self.lo, seen), within, others)


def parse_lsn(text: str) -> int:
    """Parse an LSN such as 0/16B3748; raises `ValueError`."""
    high, found, low = text.partition("/")
    if not found:
        raise ValueError(f"{text!r} is no LSN: 0/16B3748")
    return (int(high, 16) << 32) + int(low, 16)


def spell_lsn(lsn: int) -> str:
    """Return an LSN in PostgreSQL's format."""
    return f"{lsn >> 32:X}/{lsn & 0xFFFFFFFF:X}"


def _look(connection: "psycopg.Connection[Any]") -> tuple[int, int, Sequence[int]]:
    row = connection.execute(_CURRENT).fetchone()
    if row is None:
        raise RuntimeError("a SELECT without a row")
    return row[0], row[1], row[2]


def oldest_open(connection: "psycopg.Connection[Any]") -> Horizon:
    """Return the oldest open transaction, and the next transaction id."""
    lo, hi, _ = _look(connection)
    return Horizon(lo, hi)


def whole_xid(xid: int, around: int) -> int:
    """Return the 64-bit id of a transaction, given a reference id less than 2^31 away.

    The WAL may be ahead of a snapshot: a commit is written before its transaction becomes visible.
    """
    found = around - around % _BITS + xid
    if found - around > _BITS // 2:
        return found - _BITS
    return found + _BITS if around - found > _BITS // 2 else found
