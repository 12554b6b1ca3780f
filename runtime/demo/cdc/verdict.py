"""Checks the targets of the CDC demo: a copied table, and files with the history of changes.

Both are compared with the final content of the source table. The history is replayed in log order:
the result must be the table, and no change may occur twice.
"""
# pyright: basic

from collections import Counter
from collections.abc import Mapping, Sequence
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from ..output import read_output
from ..verdict import Check, Verdict

if TYPE_CHECKING:
    import psycopg

COPY: Final = "orders_copy"
COUNT_COPY: Final = "SELECT count(*) FROM orders_copy"
FIND_IN_COPY: Final = "SELECT 1 FROM orders_copy WHERE id = %s"
_SOURCE: Final = """
SELECT count(*), coalesce(sum(quantity), 0), coalesce(sum(quantity * price), 0) FROM orders"""
_COPIED: Final = """
SELECT count(*), coalesce(sum(quantity), 0), coalesce(sum(total), 0) FROM orders_copy"""
_LOST: Final = """
SELECT id, customer, quantity, price, quantity * price FROM orders
EXCEPT SELECT id, customer, quantity, price, total FROM orders_copy"""
_STRANGE: Final = """
SELECT id, customer, quantity, price, total FROM orders_copy
EXCEPT SELECT id, customer, quantity, price, quantity * price FROM orders"""
HISTORY: Final = pa.schema(
    [
        ("id", pa.int64()),
        ("quantity", pa.int32()),
        ("price", pa.decimal128(10, 2)),
        ("__op", pa.string()),
        ("__lsn", pa.int64()),
        ("__seq", pa.int64()),
    ]
)
_EXAMPLES: Final = 3


def judge_changes(connection: "psycopg.Connection[Any]", history: Path) -> Verdict:
    """Compare the copy and the history with the source's table."""
    count, pieces, total = connection.execute(_SOURCE).fetchone() or (0, 0, 0)
    copied = connection.execute(_COPIED).fetchone() or (0, 0, 0)
    lost, strange = connection.execute(_LOST).fetchall(), connection.execute(_STRANGE).fetchall()
    read = read_output(history, HISTORY)
    changes = read.rows.to_pylist()
    state = _replayed(changes)
    twice = _twice(changes)
    return Verdict(
        (
            Check("table: rows", count, copied[0]),
            Check("table: sum of quantity", pieces, copied[1]),
            Check("table: sum of quantity * price", total, copied[2]),
            Check("table: rows lost or not as they are", 0, len(lost), _shown(lost)),
            Check("table: rows of no source", 0, len(strange), _shown(strange)),
            Check("files: unreadable", 0, len(read.unreadable), "; ".join(read.unreadable)),
            Check("files: changes that came twice", 0, len(twice), _shown(twice)),
            Check("files: rows, replayed", count, len(state)),
            Check("files: sum of quantity, replayed", pieces, sum(q for q, _ in state.values())),
            Check(
                "files: sum of quantity * price, replayed",
                total,
                sum((q * price for q, price in state.values()), Decimal(0)),
            ),
        )
    )


def _replayed(changes: Sequence[Mapping[str, Any]]) -> dict[int, tuple[int, Decimal]]:
    """Replay the history; return quantity and price of each remaining order, by its id."""
    state: dict[int, tuple[int, Decimal]] = {}
    for each in sorted(changes, key=lambda each: (each["__lsn"], each["__seq"])):
        if each["__op"] == "d":
            state.pop(each["id"], None)
        else:
            state[each["id"]] = (each["quantity"], each["price"])
    return state


def _twice(changes: Sequence[Mapping[str, Any]]) -> list[tuple[Any, ...]]:
    """Return the changes and snapshot rows that occur more than once."""
    counts = Counter(
        ("r", each["id"]) if each["__op"] == "r" else (each["__lsn"], each["__seq"])
        for each in changes
    )
    return [each for each, count in counts.items() if count > 1]


def _shown(rows: Sequence[tuple[Any, ...]]) -> str:
    return "; ".join(", ".join(map(str, each)) for each in rows[:_EXAMPLES])
