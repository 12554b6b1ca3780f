"""Reading a log: what its owner and everyone else share, and a reader for the others.

Every read is one short transaction that sees whole, durable commits only; nothing is yielded
from within, for a transaction left open keeps old pages alive and the file growing.
"""

import errno
import os
from collections.abc import Collection, Generator, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from operator import itemgetter
from pathlib import Path
from threading import Lock
from typing import Final, NamedTuple, Self

import lmdb

from .check import Report, check, check_last_commit
from .environment import MAP_BYTES, ReadTransaction, open_environment, translated_errors
from .errors import (
    ClosedLogError,
    CorruptLogError,
    ForkedError,
    NoLogError,
    TrimmedError,
)
from .files import check_mark, mark_of, read_mark, write_backup
from .frame import OFFSET, Entry, unseal
from .tables import (
    LOW_KEY,
    LogKind,
    Tables,
    Transaction,
    Trimmed,
    check_identity,
    commit_base,
    end_of,
    is_blank,
    number,
    open_tables,
    trimmed,
    view_key,
    viewed_entry,
)

ENTRIES_PER_READ: Final = 1_000
BYTES_PER_READ: Final = 4 << 20
NO_LIMIT: Final = 1 << 62


class Slice(NamedTuple):
    """Entries in offset order, and the durable end of the log when they were read."""

    entries: list[Entry]
    end: int


class Newer(NamedTuple):
    """The latest entries of some keys, in offset order, and the durable end as it was then."""

    entries: list[Entry]
    gone: list[bytes]
    """Keys of which the log shows nothing any more."""
    end: int


class ReadableLog:
    """An open log, as far as reading goes; not to be used behind a fork.

    Several threads may read: each read is a turn of its own, and so is the closing.
    """

    def __init__(self, path: Path, env: lmdb.Environment, tables: Tables, log_id: str) -> None:
        self.path = path
        self.log_id = log_id
        self._env = env
        self._tables = tables
        self._pid = os.getpid()
        """The process that opened it: in a fork it must not be used."""
        self._turn = Lock()
        """Held by the thread that reads, or closes."""
        self._closed = False

    def low(self) -> int:
        """Return the offset of the first entry that was not trimmed."""
        with self._snapshot() as txn:
            return number(txn, self._tables, LOW_KEY)

    def trimmed(self) -> Trimmed:
        """Return where the log begins, and the summary of what was trimmed."""
        with self._snapshot() as txn:
            return trimmed(txn, self._tables)

    def commit_base(self, offset: int) -> int:
        """Return the offset at which the commit of an entry begins, as far as it is left."""
        with self._snapshot() as txn:
            return max(number(txn, self._tables, LOW_KEY), commit_base(txn, self._tables, offset))

    def entry_bytes(self) -> int:
        """Return how many bytes of the file the entries take that are not trimmed."""
        with self._snapshot() as txn:
            use = txn.stat(self._tables.events)
        pages = use["branch_pages"] + use["leaf_pages"] + use["overflow_pages"]
        return int(use["psize"] * pages)

    def load(self) -> Slice:
        """Return the latest entry of every key, tombstones included, in offset order.

        Folding these gives what folding all entries gives, if an entry says all about its key.
        """
        with self._snapshot() as txn:
            low = number(txn, self._tables, LOW_KEY)
            end = end_of(txn, self._tables)
            rows = self._rows(txn, b"")
            rows.sort(key=itemgetter(1))  # by offset, which values begin with
            entries = [viewed_entry(txn, self._tables, *row) for row in rows]
        # The last entry of all is the last of its key; it leaves the view only by a trim.
        if low < end and (not entries or entries[-1].offset != end - 1):
            raise CorruptLogError(f"{self.path}: the view does not reach the log's end {end}")
        return Slice(entries, end)

    def read(self, start: int, limit: int = NO_LIMIT, size_limit: int = NO_LIMIT) -> Slice:
        """Return up to `limit` entries from offset `start` on; raises `TrimmedError`.

        With the entry that reaches `size_limit`, in bytes, it ends.
        """
        return self._read(start, limit, size_limit)

    def get(self, kind: int, key: bytes) -> Entry | None:
        """Return the latest entry of a type and key; None if there is none, or it was deleted."""
        packed = view_key(kind, key)
        with self._snapshot() as txn:
            value = txn.get(packed, db=self._tables.view)
            if value is None:
                return None
            entry = viewed_entry(txn, self._tables, packed, value)
        return None if entry.value is None else entry

    def scan(self, kind: int, key_prefix: bytes = b"") -> list[Entry]:
        """Return the latest entries of a type with this key prefix, in key order, none deleted."""
        with self._snapshot() as txn:
            rows = self._rows(txn, view_key(kind, key_prefix))
            found = [viewed_entry(txn, self._tables, *row) for row in rows]
        return [entry for entry in found if entry.value is not None]

    def newer(self, offsets: Mapping[bytes, int], fresh: Collection[bytes], since: int) -> Newer:
        """Return the view's latest entries whose offsets differ from the given ones.

        -1 stands for a key without an entry. The offsets are those as of the end `since`, but for
        those of the `fresh` keys, which are looked up. For the others, either the entries from
        `since` on are looked through, or each key is looked up, whichever is less.
        """
        with self._snapshot() as txn:
            end = end_of(txn, self._tables)
            is_near = number(txn, self._tables, LOW_KEY) <= since and end - since < len(offsets)
            changed = (
                self._find_written(txn, since, end) & offsets.keys() if is_near else offsets.keys()
            )
            rows = dict(txn.cursor(self._tables.view).getmulti([*changed, *fresh]))
            entries = [
                viewed_entry(txn, self._tables, key, row)
                for key, row in rows.items()
                if OFFSET.unpack_from(row)[0] != offsets[key]
            ]
        gone = [key for key in changed if key not in rows and offsets[key] >= 0]
        return Newer(sorted(entries, key=itemgetter(0)), gone, end)

    def verify(self) -> Report:
        """Check every entry, commit and key; raises `CorruptLogError` at the first flaw.

        Use `probe` on a log that is suspected to be damaged: LMDB may kill the process.
        """
        with self._snapshot() as txn:
            return check(txn, self._tables)

    def backup(self, target: Path) -> None:
        """Make a compact copy of the log, checked and flushed, the directory `target`."""
        self._check_usable()
        write_backup(self.path, Path(target), self._copy)

    def close(self) -> None:
        """Close the environment; a second time does nothing."""
        if os.getpid() == self._pid:
            with self._turn:
                if not self._closed:
                    self._env.close()
        self._closed = True

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _rows(self, txn: Transaction, prefix: bytes) -> list[tuple[bytes, bytes]]:
        """Return the rows of the view with this key prefix."""
        rows: list[tuple[bytes, bytes]] = []
        cursor = txn.cursor(self._tables.view)
        if not (cursor.set_range(prefix) if prefix else cursor.first()):
            return rows
        previous = b""
        for row in cursor:
            if not row[0].startswith(prefix):
                break
            if row[0] <= previous:  # else a damaged page might lead around in circles
                raise CorruptLogError(f"{self.path}: the view's keys are out of order")
            previous = row[0]
            rows.append(row)
        return rows

    def _read(self, start: int, limit: int, size_limit: int) -> Slice:
        entries: list[Entry] = []
        with self._snapshot() as txn:
            low = number(txn, self._tables, LOW_KEY)
            end = end_of(txn, self._tables)
            if start < low:
                raise TrimmedError(
                    f"{self.path}: the entries before {low} were trimmed, {start} was asked for:"
                    f" bootstrap by load()",
                    low,
                )
            cursor = txn.cursor(self._tables.events)
            stop, size, offset = min(end, start + limit), 0, start
            rows = iter(cursor) if cursor.set_range(OFFSET.pack(start)) else iter(())
            for key, frame in rows:
                if offset >= stop or size >= size_limit:
                    break
                if key != OFFSET.pack(offset):
                    raise CorruptLogError(f"{self.path}: entry {offset} is missing")
                entries.append(unseal(offset, frame))
                size += len(frame)
                offset += 1
            if offset < stop and size < size_limit:
                raise CorruptLogError(f"{self.path}: entry {offset} is missing")
        return Slice(entries, end)

    def _find_written(self, txn: Transaction, start: int, end: int) -> set[bytes]:
        """Return the view's keys of the entries from one offset up to another."""
        keys: set[bytes] = set()
        for offset in range(start, end):
            frame = txn.get(OFFSET.pack(offset), db=self._tables.events)
            if frame is None:
                raise CorruptLogError(f"{self.path}: entry {offset} is missing")
            entry = unseal(offset, frame)
            keys.add(view_key(entry.type, entry.key))
        return keys

    def _copy(self, directory: Path) -> None:
        try:
            self._env.copy(str(directory), compact=True)
        except lmdb.Error as error:
            raise OSError(errno.ENOSPC if error.code == errno.ENOSPC else 0, str(error)) from error

    @contextmanager
    def _snapshot(self) -> Generator[Transaction]:
        self._check_usable()  # behind a fork nobody might be left to end a turn
        with self._turn:
            self._check_usable()
            with ReadTransaction(self._env, self.path) as txn:
                yield txn

    def _check_usable(self) -> None:
        if os.getpid() != self._pid:
            raise ForkedError(
                f"{self.path} was opened by process {self._pid} and is used in its fork: open it"
                " in a process that was spawned instead; the log is unharmed"
            )
        if self._closed:
            raise ClosedLogError(f"{self.path} was closed")


class LogReader(ReadableLog):
    """A log that is only read; its owner may be writing, or dead."""

    @classmethod
    def open(
        cls,
        path: Path,
        log_id: str | None = None,
        kind: LogKind | None = None,
        *,
        map_bytes: int = MAP_BYTES,
    ) -> Self:
        """Open the log at `path`, if it has this id and is of this kind.

        Raises `NoLogError` while it does not exist, `WrongLogError`, `UnknownFormatError`,
        `CorruptLogError`, `AlreadyOpenError` in its owner's process, `LowSpaceError`.
        """
        if not path.is_dir():
            raise NoLogError(f"there is no log at {path} yet: its owner makes it; try again")
        with translated_errors(path), ExitStack() as undo:
            env = open_environment(path, map_bytes=map_bytes, readonly=True)
            undo.callback(env.close)
            with env.begin() as txn:
                if is_blank(txn):
                    raise NoLogError(f"the owner of {path} has not finished making it; try again")
            tables = open_tables(env)
            mark = read_mark(path)  # first the mark: the log only moves on from there
            with ReadTransaction(env, path) as txn:
                found_id = check_identity(path, txn, tables, log_id, kind)
                check_mark(path, mark, mark_of(check_last_commit(txn, tables)))
            undo.pop_all()
        return cls(path, env, tables, found_id)

    def end(self) -> int:
        """Return the offset behind the last durable entry."""
        with self._snapshot() as txn:
            return end_of(txn, self._tables)

    def tail(self, start: int) -> Iterator[list[Entry]]:
        """Yield entries from offset `start` to the present end, in batches.

        A batch has at most 1000 entries or about 4 MiB, and none is empty. Raises `TrimmedError`
        if the log was trimmed beyond the next offset: bootstrap by `load()`.
        """
        while entries := self._read(start, ENTRIES_PER_READ, BYTES_PER_READ).entries:
            start = entries[-1].offset + 1
            yield entries
