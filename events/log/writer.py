"""The durable event log of one group, as its single owner sees it (LOG.md §2, §4).

An append is durable when it returns, and only then may anyone hear of it. Three fences keep a
second writer out: the lock that dies with its owner, and, inside every write transaction, the
owner's epoch and the log's end with its chain. Nothing here knows what a record means.

A write that fails has an unknown outcome: the owner exits, and a new one reloads. After a crash
the log may hold one commit more than was acknowledged, never one less.

A trim makes no data file smaller: LMDB keeps freed pages for reuse. `shrink_log` does. It writes a
compact copy beside the file, checked and flushed, and puts it in its place by one rename. So the
log is as before or as after, whatever ends the process, and the same log either way: its end, its
chain and its owner epoch do not change, and the mark stays true. A process that has the log open
would go on with the former file and see nothing new any more. So it is done while none has: the
owner's lock keeps writers out, and LMDB's lock file, locked as LMDB does it, tells of readers. That
file goes with the former data file, as it has the numbers of that file's transactions; a reader
that waited for it opens the log again (`environment.py`).
"""

import fcntl
import os
import shutil
from collections.abc import Callable, Generator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import ClassVar, Final, NamedTuple, Self, TypeVar

import lmdb

from .environment import MAP_BYTES, open_environment, translate_error, translated_errors
from .errors import (
    BackupError,
    LogFailedError,
    OffsetConflictError,
    OwnedError,
    OwnerFencedError,
)
from .files import DATA_NAME, Mark, MarkWriter, data_bytes, make_directory, mark_of, sync_path
from .frame import CHECKSUM_BYTES, OFFSET, LogCommit, NewEntry, next_chain, pack_commit, seal
from .owner import Claim, OwnerLock, claim_log, require_log
from .reader import LogReader, ReadableLog
from .space import LMDB_LOCK_NAME, RESERVE_BYTES, DiskSpace, disk_space_at, require_space
from .tables import (
    EPOCH_KEY,
    POSITION_KEY,
    LogKind,
    Summarize,
    Transaction,
    end_of,
    number,
    trim_entries,
    view_key,
)

COMMITS_PER_READER_CHECK: Final = 1_000
TRIM_CHUNK: Final = 2_000
COPY_NAME: Final = ".smaller"
"""The folder in that of the log, with the copy until it takes the file's place."""

_T = TypeVar("_T")


class Append(NamedTuple):
    """One append, sealed: rows of `events`, rows of `view`, the commit, and the bytes in all."""

    events: list[tuple[bytes, bytes]]
    view: dict[bytes, bytes]
    commit: LogCommit
    size: int


class GroupLog(ReadableLog):
    """An open log that this process owns; see `ReadableLog` for reads."""

    is_copy: ClassVar = False
    """Whether what it has is durable elsewhere."""

    def __init__(
        self, path: Path, env: lmdb.Environment, claim: Claim, lock: OwnerLock, reserve_bytes: int
    ) -> None:
        super().__init__(path, env, claim.tables, claim.log_id)
        self._lock = lock
        self._set_epoch(claim.epoch)
        self._reserve_bytes = reserve_bytes
        self._mark = MarkWriter(path)
        self._failed = False
        """Whether a write has an unknown outcome: nothing more may be written."""
        self._commits = 0
        """Since the log was opened."""
        self._set_last(claim.last)

    @classmethod
    def open_writer(
        cls,
        path: Path,
        log_id: str,
        kind: LogKind | None = None,
        *,
        reserve_bytes: int = RESERVE_BYTES,
        map_bytes: int = MAP_BYTES,
    ) -> Self:
        """Claim the log at `path`, and create it if there is none.

        Appends are refused while fewer than `reserve_bytes` are free. Raises `OwnedError`,
        `AlreadyOpenError`, `WrongLogError`, `UnknownFormatError`, `CorruptLogError`,
        `LowSpaceError`, `DiskFullError`.
        """
        with translated_errors(path), ExitStack() as undo:
            make_directory(path)
            lock = OwnerLock.claim(path)
            undo.callback(lock.release)
            env = open_environment(path, map_bytes=map_bytes, readonly=False, is_copy=cls.is_copy)
            undo.callback(env.close)
            log = cls(path, env, claim_log(path, env, log_id, kind), lock, reserve_bytes)
            undo.pop_all()
        return log

    @property
    def end(self) -> int:
        """The offset that the next entry gets."""
        return self._end

    @property
    def space(self) -> DiskSpace:
        """The space left for writes; asks the disk, which takes microseconds."""
        return disk_space_at(self.path, self._reserve_bytes)

    @property
    def store_mark(self) -> bytes:
        """Where it stands in the store that it is a copy of, by that one's name; empty: in none."""
        with self._snapshot() as txn:
            return txn.get(POSITION_KEY, b"", db=self._tables.meta)

    def append(
        self,
        expected_offset: int,
        entries: Sequence[NewEntry],
        timestamp_ms: int,
        *,
        into_reserve: bool = False,
    ) -> int:
        """Write the entries as one atomic, durable commit and return the next offset.

        No entries, no write. Entries that may not wait for space go `into_reserve`. Raises, with
        nothing written, `OffsetConflictError`, `OwnerFencedError`, `InvalidEntryError`,
        `LowSpaceError`; and `LogFailedError` when the outcome is unknown: exit and reload.
        """
        self._check_writable()
        if expected_offset != self._end:
            raise self._conflict(expected_offset, self._end)
        if not entries:
            return expected_offset
        batch = self._seal(entries, timestamp_ms)
        count = len(batch.events)
        require_space(self.space, count, batch.size, into_reserve=into_reserve)
        self._settle(batch)
        self._set_last(batch.commit)
        self._commits += 1
        if self._commits % COMMITS_PER_READER_CHECK == 0:
            self.check_readers()
        return self._end

    def trim(self, upto: int, chunk: int = TRIM_CHUNK, summarize: Summarize | None = None) -> int:
        """Forget at most `chunk` entries before `upto`, in one commit; return the new low mark.

        Call it again, between appends, until it returns `upto` (or the end). The latest value of
        every key stays in the view; tombstones leave it. What `summarize` returns is written in
        the same commit, so it is always of just what was trimmed. Raises as `append` does.
        """
        self._check_writable()

        def remove(txn: Transaction) -> int:
            return trim_entries(txn, self._tables, min(upto, self._end), chunk, summarize)

        return self._write(remove)

    def check_readers(self) -> int:
        """Free the slots of readers that died, which keep old pages alive; return how many.

        Appending does so now and then; an owner that only waits should, every half minute or so.
        """
        self._check_usable()
        return self._env.reader_check()

    def close(self) -> None:
        """Release the log, so that another process may own it; a second time does nothing."""
        if not self._closed:
            super().close()
            self._mark.close()
            self._lock.release()

    def _seal(self, entries: Sequence[NewEntry], timestamp_ms: int) -> Append:
        events: list[tuple[bytes, bytes]] = []
        view: dict[bytes, bytes] = {}
        for offset, entry in enumerate(entries, self._end):
            key = OFFSET.pack(offset)
            frame = seal(key, entry, timestamp_ms)
            events.append((key, frame))
            view[view_key(entry.type, entry.key)] = key
        checksums = b"".join([frame[:CHECKSUM_BYTES] for _, frame in events])
        commit = LogCommit(self._end, len(events), self.epoch, timestamp_ms, b"")
        chain = next_chain(self._chain, commit, checksums)
        size = sum([len(frame) for _, frame in events])
        return Append(events, view, commit._replace(chain=chain), size)

    def _settle(self, batch: Append) -> None:
        """Make an append durable."""

        def put(txn: Transaction) -> None:
            self._check_end(txn)
            self._put(txn, batch)

        self._write(put)

    def _put(self, txn: Transaction, batch: Append) -> None:
        tables, commit = self._tables, batch.commit
        _, added = txn.cursor(tables.events).putmulti(batch.events, append=True)
        kept = txn.put(
            OFFSET.pack(commit.base), pack_commit(commit), append=True, db=tables.commits
        )
        if added != len(batch.events) or not kept:
            raise self._conflict(commit.base, end_of(txn, tables))
        txn.cursor(tables.view).putmulti(batch.view.items())

    def _check_end(self, txn: Transaction) -> None:
        cursor = txn.cursor(self._tables.commits)
        if (cursor.item() if cursor.last() else None) != self._last_row:
            raise self._conflict(self._end, end_of(txn, self._tables))

    def _write(self, change: Callable[[Transaction], _T]) -> _T:
        """Run a change as one durable transaction of the owner that still is one."""
        try:
            try:
                return self._attempt(change)
            except lmdb.MapFullError:  # a clean abort: LMDB knows it before it writes anything
                self._env.set_mapsize(2 * self._env.info()["map_size"])
                return self._attempt(change)
        except lmdb.DiskError as error:
            self._failed = True
            raise translate_error(error, self.path) from error
        except (lmdb.Error, OSError, MemoryError) as error:
            self._failed = True
            raise LogFailedError(
                f"{self.path}: a write failed ({error}), whether it took place is unknown. Exit"
                " and open the log again; everything acknowledged is intact"
            ) from error

    def _attempt(self, change: Callable[[Transaction], _T]) -> _T:
        with self._env.begin(write=True, db=self._tables.events) as txn:
            if txn.get(EPOCH_KEY, db=self._tables.meta) != self._packed_epoch:
                epoch = number(txn, self._tables, EPOCH_KEY)
                raise OwnerFencedError(
                    f"{self.path} has an owner of epoch {epoch}, this one is of {self.epoch}:"
                    " nothing was written; exit"
                )
            return change(txn)

    def _set_epoch(self, epoch: int) -> None:
        self.epoch = epoch
        """The owner epoch that this process has claimed."""
        self._packed_epoch = OFFSET.pack(epoch)

    def _set_last(self, commit: LogCommit | None) -> None:
        mark = mark_of(commit)
        self._end, self._chain = mark
        self._last_row = None if commit is None else (OFFSET.pack(commit.base), pack_commit(commit))
        self._write_mark(mark)

    def _write_mark(self, mark: Mark) -> None:
        """Note outside of the log how far it is durable."""
        self._mark.write(mark)

    def _check_writable(self) -> None:
        self._check_usable()
        if self._failed:
            raise LogFailedError(f"{self.path}: a write failed before; exit and open the log again")

    def _conflict(self, expected: int, end: int) -> OffsetConflictError:
        return OffsetConflictError(
            f"{self.path} ends at {end}, offset {expected} was expected (or its history differs):"
            " nothing was written; reload"
        )


class Shrunk(NamedTuple):
    """The size of a data file before and after, in bytes."""

    before: int
    after: int


def shrink_log(path: Path) -> Shrunk:
    """Make the data file of the log at `path` as small as its content.

    Raises `OwnedError` while it has an owner or a reader, `BackupError` where there is no room for
    the copy or it is not sound, and what opening raises; the log is as before then.
    """
    require_log(path)
    before = data_bytes(path)
    part = path / COPY_NAME
    with translated_errors(path), _owned(path):
        shutil.rmtree(part, ignore_errors=True)
        try:
            with LogReader.open(path) as log:
                log.backup(part)
            if data_bytes(part) < before:
                _replace(path, part)
        except BackupError as error:
            raise BackupError(f"the file of {path} could not be made smaller: {error}") from None
        finally:
            shutil.rmtree(part, ignore_errors=True)
    return Shrunk(before, data_bytes(path))


@contextmanager
def _owned(path: Path) -> Generator[None]:
    lock = OwnerLock.claim(path)
    try:
        yield
    finally:
        lock.release()


def _replace(path: Path, part: Path) -> None:
    """Put the copy in the place of the data file, while nobody has the log open."""
    descriptor = os.open(path / LMDB_LOCK_NAME, os.O_RDWR)
    try:
        fcntl.lockf(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB, 1)  # as LMDB locks it
        (part / DATA_NAME).rename(path / DATA_NAME)
        (path / LMDB_LOCK_NAME).unlink()
        sync_path(path)
    except BlockingIOError:
        raise OwnedError(
            f"{path} is being read by another process, which would see nothing new of a smaller"
            " file: it is as before; end that one (`fairlead log`, a backup) and try again"
        ) from None
    finally:
        os.close(descriptor)
