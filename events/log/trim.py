"""Forgetting the beginning of a log; the latest value of every key stays in the view.

A tombstone is forgotten only behind every value of its key, which are older and go with it
or went before: nothing that was deleted comes back. `events/restore.py` says why the state
is the same, wherever the cut lies, within a commit as well.
"""

from .frame import OFFSET, unpack_commit, unseal
from .tables import CHAIN_KEY, LOW_KEY, Tables, Transaction, number, view_key


def trim_entries(txn: Transaction, tables: Tables, upto: int, chunk: int) -> int:
    """Remove at most `chunk` entries before `upto`; return the new low mark.

    An entry that is still the latest of its key moves into the view, unless it is a tombstone:
    that leaves the view as well. Commits that
    end before the low mark go too, except for the log's last; the chain before the first one
    kept is noted, so that it can still be checked from there.
    """
    low = number(txn, tables, LOW_KEY)
    stop = min(upto, low + chunk)
    if stop <= low:
        return low
    cursor = txn.cursor(tables.events)
    cursor.first()
    for offset in range(low, stop):
        frame = cursor.value()
        entry = unseal(offset, frame)
        key, packed = view_key(entry.type, entry.key), OFFSET.pack(offset)
        if txn.get(key, db=tables.view) == packed:
            if entry.value is None:
                txn.delete(key, db=tables.view)
            else:
                txn.put(key, packed + frame, db=tables.view)
        cursor.delete()
    txn.put(LOW_KEY, OFFSET.pack(stop), db=tables.meta)
    _trim_commits(txn, tables, stop)
    return stop


def _trim_commits(txn: Transaction, tables: Tables, low: int) -> None:
    cursor = txn.cursor(tables.commits)
    cursor.last()
    last = cursor.key()
    cursor.first()
    chain: bytes | None = None
    while cursor.key() != last:
        commit = unpack_commit(OFFSET.unpack(cursor.key())[0], cursor.value())
        if commit.end > low:
            break
        chain = commit.chain
        cursor.delete()
    if chain is not None:
        txn.put(CHAIN_KEY, chain, db=tables.meta)
