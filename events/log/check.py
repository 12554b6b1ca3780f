"""Whether a log holds what was written: every checksum, every offset, the chain and the view.

A whole check also reads each value with `msgpack`, which had no part in writing it: what only its
writer can read would be lost with it.
"""

from collections.abc import Callable, Iterator
from typing import NamedTuple

from .errors import CorruptLogError
from .frame import CHECKSUM_BYTES, OFFSET, Entry, LogCommit, next_chain, unpack_commit, unseal
from .tables import (
    LOW_KEY,
    Tables,
    Transaction,
    chain_before,
    last_commit,
    number,
    trimmed,
    view_key,
    viewed_entry,
)


class Report(NamedTuple):
    """The result of a check: the bounds of the log, and the number of sound items of each kind."""

    low: int
    end: int
    entries: int
    commits: int
    keys: int


def check(txn: Transaction, tables: Tables) -> Report:
    """Check the whole log in one transaction; raises `CorruptLogError` at the first flaw.

    Memory grows with the number of keys, not of entries.
    """
    low = trimmed(txn, tables).low
    latest: dict[bytes, int] = {}
    end, commits = low, 0
    checksums = _checksums(txn, tables, low, latest, _value_check())
    chain = chain_before(txn, tables)
    for commit in _commits(txn, tables, low):
        _check_commit(commit, chain, low, checksums)
        chain, end, commits = commit.chain, commit.end, commits + 1
    if next(checksums, None) is not None:
        raise CorruptLogError(f"there are entries behind the last commit, which ends at {end}")
    if end < low:
        raise CorruptLogError(f"the log ends at {end}, before its low mark {low}")
    keys = _check_view(txn, tables, low, latest)
    return Report(low, end, end - low, commits, keys)


def check_last_commit(txn: Transaction, tables: Tables) -> LogCommit | None:
    """Return the newest commit when its entries and its chain are sound.

    Raises `CorruptLogError` if not. This much is checked at every opening.
    """
    commit = last_commit(txn, tables)
    low = number(txn, tables, LOW_KEY)
    end = 0 if commit is None else commit.end
    if txn.stat(tables.events)["entries"] != end - low:
        raise CorruptLogError(f"entries are missing: the log goes from {low} to {end}")
    if commit is None:
        return None
    latest: dict[bytes, int] = {}
    start = max(low, commit.base)
    checksums = _checksums(txn, tables, start, latest)
    _check_commit(commit, _chain_before_last(txn, tables), low, checksums)
    if next(checksums, None) is not None:
        raise CorruptLogError(f"there are entries behind the last commit, which ends at {end}")
    for key, offset in latest.items():
        if txn.get(key, db=tables.view) != OFFSET.pack(offset):
            raise CorruptLogError(f"the view does not show entry {offset}, the last of its key")
    return commit


def _chain_before_last(txn: Transaction, tables: Tables) -> bytes:
    cursor = txn.cursor(tables.commits)
    cursor.last()
    if not cursor.prev():
        return chain_before(txn, tables)
    return unpack_commit(OFFSET.unpack(cursor.key())[0], cursor.value()).chain


def _checksums(
    txn: Transaction,
    tables: Tables,
    start: int,
    latest: dict[bytes, int],
    check_entry: Callable[[Entry], None] | None = None,
) -> Iterator[bytes]:
    """Yield the checksum of each entry from `start` on, and note the last entry of each key."""
    cursor = txn.cursor(tables.events)
    offset = start
    if not cursor.set_range(OFFSET.pack(start)):
        return
    for key, frame in cursor:
        if key != OFFSET.pack(offset):
            raise CorruptLogError(f"entry {offset} is missing")
        entry = unseal(offset, frame)
        if check_entry is not None:
            check_entry(entry)
        latest[view_key(entry.type, entry.key)] = offset
        yield frame[:CHECKSUM_BYTES]
        offset += 1


def _value_check() -> Callable[[Entry], None]:
    """Return what raises `CorruptLogError` unless a value is one whole MessagePack value."""
    import msgpack  # noqa: PLC0415  # whoever opens a log without checking it does not need it

    def require_value(entry: Entry) -> None:
        try:
            if entry.value is not None:
                msgpack.unpackb(entry.value, strict_map_key=False)  # pyright: ignore
        except (ValueError, msgpack.UnpackException) as error:
            what = f"the value of entry {entry.offset} cannot be read as MessagePack"
            raise CorruptLogError(f"{what}: {error}") from error

    return require_value


def _commits(txn: Transaction, tables: Tables, low: int) -> Iterator[LogCommit]:
    end: int | None = None
    for key, packed in txn.cursor(tables.commits):
        commit = unpack_commit(OFFSET.unpack(key)[0], packed)
        if commit.base > low if end is None else commit.base != end:
            raise CorruptLogError(f"the commit before offset {commit.base} is missing")
        end = commit.end
        yield commit


def _check_commit(commit: LogCommit, before: bytes, low: int, checksums: Iterator[bytes]) -> None:
    kept = range(max(low, commit.base), commit.end)
    own: list[bytes] = []
    for offset in kept:
        checksum = next(checksums, None)
        if checksum is None:
            raise CorruptLogError(f"entry {offset} is missing")
        own.append(checksum)
    # Of a commit that was trimmed in part, or wholly, the chain can only be taken as it stands.
    if len(own) == commit.length and next_chain(before, commit, b"".join(own)) != commit.chain:
        raise CorruptLogError(f"the chain is broken at the commit of offset {commit.base}")


def _check_view(txn: Transaction, tables: Tables, low: int, latest: dict[bytes, int]) -> int:
    """Check that the view shows the last entry of every key; return the number of keys."""
    keys = 0
    for key, value in txn.cursor(tables.view):
        entry = viewed_entry(txn, tables, key, value)
        offset = latest.pop(key, None)
        # A key without an entry left shows one that was trimmed, and never a tombstone.
        if offset is None:
            sound = entry.offset < low and entry.value is not None
        else:
            sound = value == OFFSET.pack(offset)
        if not sound:
            raise CorruptLogError(f"the view shows entry {entry.offset}, not the last of its key")
        keys += 1
    if latest:
        raise CorruptLogError(f"{len(latest)} keys are missing from the view")
    return keys
