"""The databases of a log, and what one transaction can do with them (LOG.md §3, §10).

`events`: offset -> frame. `commits`: base offset -> commit. `view`: type and key -> offset of the
key's latest entry, and behind it the frame if that was trimmed. `meta`: format, log id, kind, owner
epoch, low mark, the chain before the first commit that was kept, and a summary of what was trimmed.
Offsets are 8 bytes, types 2, both big endian.

The view points at entries instead of repeating them: its rows lie scattered over its pages, so
small rows mean that a commit rewrites few of them.

A trim forgets the beginning of a log; the latest value of every key stays in the view. A tombstone
is forgotten only behind every value of its key, which are older and go with it or went before:
nothing that was deleted comes back. `events/entries/codec.py` says why the state is the same,
wherever the cut lies, within a commit as well.
"""

import struct
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final, NamedTuple, TypeAlias
from zlib import crc32

import lmdb

from .errors import CorruptLogError, UnknownFormatError, WrongLogError
from .frame import FIRST_CHAIN, OFFSET, Entry, LogCommit, unpack_commit, unseal

FORMAT: Final = 1
FORMAT_KEY: Final = b"format"
LOG_ID_KEY: Final = b"log-id"
KIND_KEY: Final = b"kind"
EPOCH_KEY: Final = b"epoch"
LOW_KEY: Final = b"low"
CHAIN_KEY: Final = b"chain-before"
SUMMARY_KEY: Final = b"summary"
POSITION_KEY: Final = b"store-position"

_KIND = struct.Struct(">H")

_CHECKSUM = struct.Struct(">I")

Transaction: TypeAlias = "lmdb.Transaction[bytes]"
Table: TypeAlias = "lmdb._Database"  # noqa: SLF001  (its only name)


Summarize: TypeAlias = Callable[[bytes | None, Sequence[Entry]], bytes]
"""Returns the summary of what was trimmed before, and of these entries, which follow that."""


class Trimmed(NamedTuple):
    """The beginning of a log that was trimmed: where it ended, and its summary."""

    low: int
    """The offset of the first entry that is left."""
    summary: bytes | None
    """The summary of all before it; None if there is none."""


class LogKind(NamedTuple):
    """The purpose of a log in a group: control or offsets."""

    name: str
    other: str
    """The name of the kind that it could be mistaken for."""
    foreign: frozenset[int]
    """The types of entries that only the other kind has: they tell where a log of an earlier
    version does not say its kind."""


class Tables(NamedTuple):
    """The handles of a log's databases."""

    meta: Table
    events: Table
    commits: Table
    view: Table


def open_tables(
    env: lmdb.Environment, txn: "Transaction | None" = None, *, create: bool = False
) -> Tables:
    """Return the databases; new ones are lost unless the write transaction commits.

    They are made all at once: raises `CorruptLogError` if one is missing and not to be made.
    """
    try:
        return Tables(*(env.open_db(name.encode(), txn, create=create) for name in Tables._fields))
    except lmdb.NotFoundError as error:
        raise CorruptLogError(
            f"{env.path()} is damaged, or not a log: a database is missing"
        ) from error


def is_blank(txn: Transaction) -> bool:
    """Return whether no earlier transaction ever wrote to the environment."""
    return txn.stat()["entries"] == 0 and txn.id() <= 1


def view_key(kind: int, key: bytes) -> bytes:
    """Return the view's key: the type goes first, so that two types never collide."""
    return _KIND.pack(kind) + key


def unpack_view_key(packed: bytes) -> tuple[int, bytes]:
    """Return the type and the key in a key of the view."""
    return int(_KIND.unpack_from(packed)[0]), packed[_KIND.size :]


def check_identity(
    path: Path, txn: Transaction, tables: Tables, log_id: str | None, kind: LogKind | None
) -> str:
    """Return the log's id, after a check of its format, kind and id.

    Raises `UnknownFormatError`, `WrongLogError`, and `CorruptLogError` if it bears no id.
    """
    format_ = txn.get(FORMAT_KEY, db=tables.meta)
    packed_id = txn.get(LOG_ID_KEY, db=tables.meta)
    if format_ is None or packed_id is None:
        raise CorruptLogError(f"{path} is damaged, or not a log: it bears no format or no id")
    if format_ != OFFSET.pack(FORMAT):
        raise UnknownFormatError(
            f"{path} is in format {int.from_bytes(format_)}, this version knows {FORMAT}: nothing"
            " was changed; open it with the version that wrote it"
        )
    stored_id = packed_id.decode(errors="replace")
    if log_id is not None and log_id != stored_id:
        raise WrongLogError(f"{path} is the log {stored_id!r}, not {log_id!r}: nothing was changed")
    found_kind = kind and _kind_of(txn, tables, kind)
    if kind is not None and found_kind != kind.name:
        raise WrongLogError(
            f"{path} is the {found_kind} log of {stored_id!r}, where its {kind.name} log belongs:"
            f" the folders {kind.name} and {kind.other} were swapped, or one was copied over the"
            " other. Nothing was changed: put each back into its place, from a backup if need be"
        )
    return stored_id


def _kind_of(txn: Transaction, tables: Tables, expected: LogKind) -> str:
    """Return the kind of a log, which it states or which follows from its content."""
    said = txn.get(KIND_KEY, db=tables.meta)
    if said is not None:
        return said.decode(errors="replace")
    cursor = txn.cursor(tables.view)
    for number in sorted(expected.foreign):
        if cursor.set_range(_KIND.pack(number)) and cursor.key().startswith(_KIND.pack(number)):
            return expected.other
    return expected.name


def number(txn: Transaction, tables: Tables, key: bytes) -> int:
    """Return a number of `meta`, 0 if it was never set."""
    packed = txn.get(key, db=tables.meta)
    return 0 if packed is None else int(OFFSET.unpack(packed)[0])


def chain_before(txn: Transaction, tables: Tables) -> bytes:
    """Return the chain before the first commit that was kept."""
    return txn.get(CHAIN_KEY, FIRST_CHAIN, db=tables.meta)


def last_commit(txn: Transaction, tables: Tables) -> LogCommit | None:
    """Return the newest commit, None for a log that was never written to."""
    cursor = txn.cursor(tables.commits)
    if not cursor.last():
        return None
    key, packed = cursor.item()
    return unpack_commit(OFFSET.unpack(key)[0], packed)


def commit_base(txn: Transaction, tables: Tables, offset: int) -> int:
    """Return where the commit begins that an offset lies in; the offset itself if it is gone."""
    cursor = txn.cursor(tables.commits)
    packed = OFFSET.pack(offset)
    is_there = cursor.set_range(packed)
    if is_there and cursor.key() == packed:
        return offset
    is_there = cursor.prev() if is_there else cursor.last()
    return int(OFFSET.unpack(cursor.key())[0]) if is_there else offset


def end_of(txn: Transaction, tables: Tables) -> int:
    """Return the offset behind the last entry."""
    cursor = txn.cursor(tables.commits)
    if not cursor.last():
        return 0
    return unpack_commit(OFFSET.unpack(cursor.key())[0], cursor.value()).end


def viewed_entry(txn: Transaction, tables: Tables, key: bytes, value: bytes) -> Entry:
    """Return the entry to which a row of the view points.

    Its frame lies in `events`, or in the row itself once it was trimmed. Raises
    `CorruptLogError` if it is missing, or another key's.
    """
    packed, frame = value[: OFFSET.size], value[OFFSET.size :]
    offset = int(OFFSET.unpack(packed)[0])
    found = frame or txn.get(packed, db=tables.events)
    if found is None:
        raise CorruptLogError(f"entry {offset} is missing, which the view shows")
    entry = unseal(offset, found)
    if view_key(entry.type, entry.key) != key:
        raise CorruptLogError(f"the view shows entry {offset} under the key {key!r}")
    return entry


def trimmed(txn: Transaction, tables: Tables) -> Trimmed:
    """Return what is known of the trimmed beginning; raises `CorruptLogError` if it is damaged."""
    sealed = txn.get(SUMMARY_KEY, db=tables.meta)
    if sealed is None:
        return Trimmed(number(txn, tables, LOW_KEY), None)
    summary = sealed[_CHECKSUM.size :]
    if sealed[: _CHECKSUM.size] != _CHECKSUM.pack(crc32(summary)):
        raise CorruptLogError("the checksum of the summary of trimmed entries does not match it")
    return Trimmed(number(txn, tables, LOW_KEY), summary)


def put_summary(txn: Transaction, tables: Tables, summary: bytes) -> None:
    """Put the summary of the trimmed entries in the place of the former one."""
    txn.put(SUMMARY_KEY, _CHECKSUM.pack(crc32(summary)) + summary, db=tables.meta)


def trim_entries(
    txn: Transaction, tables: Tables, upto: int, chunk: int, summarize: Summarize | None = None
) -> int:
    """Remove at most `chunk` entries before `upto`; return the new low mark.

    An entry that is still the latest of its key moves into the view, unless it is a tombstone:
    that leaves the view as well. Commits that
    end before the low mark go too, except for the log's last; the chain before the first one
    kept is noted, so that it can still be checked from there. With `summarize` the entries are
    added to the summary.
    """
    low = number(txn, tables, LOW_KEY)
    stop = min(upto, low + chunk)
    if stop <= low:
        return low
    cursor = txn.cursor(tables.events)
    cursor.first()
    removed: list[Entry] = []
    for offset in range(low, stop):
        frame = cursor.value()
        entry = unseal(offset, frame)
        removed.append(entry)
        key, packed = view_key(entry.type, entry.key), OFFSET.pack(offset)
        if txn.get(key, db=tables.view) == packed:
            if entry.value is None:
                txn.delete(key, db=tables.view)
            else:
                txn.put(key, packed + frame, db=tables.view)
        cursor.delete()
    if summarize is not None:
        summary = summarize(trimmed(txn, tables).summary, removed)
        put_summary(txn, tables, summary)
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
