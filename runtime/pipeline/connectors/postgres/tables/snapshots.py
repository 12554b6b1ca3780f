"""What a snapshot sees that is read beside the log: each row comes from one side alone.

A table's rows are read in chunks, each in a transaction of its own, for as long as that takes. They
all take what one snapshot S saw, by the transaction that wrote a row; of the log those transactions
are applied that S did not see. S is taken when all have ended that were open before the slot and
the publication were there: so what S does not see is in the log as a whole.

`pg_current_snapshot` does not name subtransactions that are open, but rows do that these wrote. So
S has the number of each transaction that is in progress, asked one by one, and counts if none ended
meanwhile: else it is taken again.
"""

from collections.abc import Sequence
from typing import Any, Final, NamedTuple, Self

import psycopg
from psycopg import sql

from .cursors import written_before, written_within
from .session import Horizon

_TRIES: Final = 100
_WIDEST: Final = 1 << 20
"""So many transactions behind the oldest open one are asked for, one by one."""
_BITS: Final = 1 << 32

_CURRENT: Final = """
SELECT pg_snapshot_xmin(s)::text::int8, pg_snapshot_xmax(s)::text::int8,
    ARRAY(SELECT x::text::int8 FROM pg_snapshot_xip(s) x) FROM pg_current_snapshot() s"""
_IN_PROGRESS: Final = """
SELECT coalesce(array_agg(x), '{}') FROM generate_series(%s::int8, %s::int8 - 1) x
WHERE pg_xact_status(x::text::xid8) = 'in progress'"""


class LogSnapshot(NamedTuple):
    """One snapshot S: it sees what is before `lo`, and what is before `hi` but not `open`."""

    lo: int
    hi: int
    open: tuple[int, ...]
    """Transactions and subtransactions that were in progress."""
    lsn: int
    """The place in the log to begin at."""

    @classmethod
    def parse(cls, text: str) -> Self:
        """Return what `str` made; raises `ValueError`."""
        snapshot, _, lsn = text.partition("@")
        lo, hi, others = snapshot.split(":")
        return cls(
            int(lo), int(hi), tuple(map(int, filter(None, others.split(",")))), parse_lsn(lsn)
        )

    def __str__(self) -> str:
        return f"{self.lo}:{self.hi}:{','.join(map(str, self.open))}@{spell_lsn(self.lsn)}"

    @classmethod
    def take(cls, connection: "psycopg.Connection[Any]", lsn: int) -> Self:
        """Take one, after which the log is read from an LSN."""
        seen = _look(connection)
        tries = 0
        while True:
            tries += 1
            lo, hi, tops = seen
            found = connection.execute(_IN_PROGRESS, (max(lo, hi - _WIDEST), hi)).fetchone()
            seen = _look(connection)
            if tries == _TRIES or {*tops} <= {*seen[2]}:
                known = {*tops, *(found[0] if found else ())}
                return cls(lo, hi, tuple(sorted(known)), lsn)

    def sees(self, xid: int) -> bool:
        """Tell whether it sees what a transaction wrote, by all 64 bits of its number."""
        return xid < self.lo or (xid < self.hi and xid not in self.open)

    def condition(self, seen: Horizon) -> sql.Composed:
        """Return the condition that it sees a row, looked at by a later snapshot."""
        shape = "({} OR ({} AND xmin::text::int8 <> ALL ({}::int8[])))"
        others = sql.Literal([each % _BITS for each in self.open])
        within = written_within(self.lo, self.hi)
        return sql.SQL(shape).format(written_before(self.lo, seen), within, others)


def parse_lsn(text: str) -> int:
    """Return an LSN as a number, 0/16B3748; raises `ValueError`."""
    high, found, low = text.partition("/")
    if not found:
        raise ValueError(f"{text!r} is no LSN: 0/16B3748")
    return (int(high, 16) << 32) + int(low, 16)


def spell_lsn(lsn: int) -> str:
    """Return an LSN as PostgreSQL spells it."""
    return f"{lsn >> 32:X}/{lsn & 0xFFFFFFFF:X}"


def _look(connection: "psycopg.Connection[Any]") -> tuple[int, int, Sequence[int]]:
    row = connection.execute(_CURRENT).fetchone()
    if row is None:
        raise RuntimeError("a SELECT without a row")
    return row[0], row[1], row[2]


def oldest_open(connection: "psycopg.Connection[Any]") -> Horizon:
    """Return the oldest transaction that is open, and the one that begins next."""
    lo, hi, _ = _look(connection)
    return Horizon(lo, hi)


def whole_xid(xid: int, around: int) -> int:
    """Return all 64 bits of a transaction's number, by one that is less than 2^31 away.

    What the log tells may be newer than what a snapshot knows: a commit is written before its
    transaction counts as ended.
    """
    found = around - around % _BITS + xid
    if found - around > _BITS // 2:
        return found - _BITS
    return found + _BITS if around - found > _BITS // 2 else found
