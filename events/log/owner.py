"""Who owns a log: one process at a time, by a lock that dies with it and an epoch (LOG.md §4).

Three fences keep a second writer out. `owner.lock` is held by flock for the owner's life and
names its pid and start, so that a second claimant can say who is in the way. A claim takes the
next owner epoch; the epoch and the expected offset, checked inside every write transaction, hold
even where the lock is lost.
"""

import fcntl
import json
import os
from pathlib import Path
from typing import Final, NamedTuple, Self
from weakref import WeakSet

import lmdb

from .check import check_last_commit
from .errors import NoLogError, OwnedError
from .files import check_mark, data_bytes, mark_of, read_mark, sync_path
from .frame import OFFSET, LogCommit
from .process import ProcessId, is_alive, start_of
from .tables import (
    EPOCH_KEY,
    FORMAT,
    FORMAT_KEY,
    KIND_KEY,
    LOG_ID_KEY,
    LogKind,
    Tables,
    Transaction,
    check_identity,
    is_blank,
    number,
    open_tables,
)

LOCK_NAME: Final = "owner.lock"
RECORD_BYTES: Final = 256  # written in one piece and always whole, so never torn for a reader


def recorded_owner(path: Path) -> ProcessId | None:
    """Return the process that last claimed the log at `path`, alive or not."""
    try:
        record = json.loads((path / LOCK_NAME).read_bytes())
        return ProcessId(int(record["pid"]), str(record["started"]))
    except (OSError, ValueError, KeyError, TypeError):
        return None


class OwnerLock:
    """The lock of one log, held by its owner; a fork's child drops it at once."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        _held.add(self)

    @classmethod
    def claim(cls, path: Path) -> Self:
        """Lock the log at `path`; raises `OwnedError` if another process has it."""
        descriptor = os.open(path / LOCK_NAME, os.O_RDWR | os.O_CREAT, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            me = {"pid": os.getpid(), "started": start_of(os.getpid())}
            os.pwrite(descriptor, json.dumps(me).encode().ljust(RECORD_BYTES), 0)
        except BlockingIOError:
            os.close(descriptor)
            raise _owned_error(path) from None
        except BaseException:
            os.close(descriptor)
            raise
        return cls(descriptor)

    def release(self) -> None:
        """Release the lock; a second time does nothing."""
        descriptor, self._descriptor = self._descriptor, -1
        if descriptor >= 0:
            os.close(descriptor)


_held: WeakSet[OwnerLock] = WeakSet()


def _release_inherited() -> None:
    # A child's copy of the descriptor would keep the lock alive when the owner has died.
    for lock in list(_held):
        lock.release()


os.register_at_fork(after_in_child=_release_inherited)


def _owned_error(path: Path) -> OwnedError:
    owner = recorded_owner(path)
    if owner is None or not is_alive(owner):
        return OwnedError(f"{path} is owned by a process that left no name; try again, or stop it")
    if owner.pid == os.getpid():
        return OwnedError(f"{path} is open for writing in this very process", owner.pid)
    return OwnedError(
        f"{path} is owned by the live process {owner.pid}: stop that one first", owner.pid
    )


class Claim(NamedTuple):
    """The log as a new owner finds it, with its owner epoch."""

    tables: Tables
    log_id: str
    epoch: int
    last: LogCommit | None


def require_log(path: Path) -> None:
    """Raise `NoLogError` unless there is a log at `path`, where one is known to have been."""
    if data_bytes(path) == 0:
        raise NoLogError(
            f"the log {path} was there and is gone: no new one was made in its place, and nothing"
            " was changed; put it back, from a backup if need be (is its disk mounted?)"
        )


def claim_log(path: Path, env: lmdb.Environment, log_id: str, kind: LogKind | None) -> Claim:
    """Claim the next owner epoch of the log, checked and durable; make the log if it is new.

    Raises a `LogError` named for the reason, or LMDB's own errors; the log is then as it was.
    """
    # An owner killed amid a commit may have left one in the page cache that no disk has seen.
    # Nothing may be read from the log, least of all served, before it is durable.
    env.sync(force=True)
    env.reader_check()
    with env.begin(write=True) as txn:
        claim = _claim(path, env, txn, log_id, kind)
    sync_path(path)  # LMDB flushes its files, never the directory that names them
    sync_path(path.parent)
    return claim


def _claim(
    path: Path, env: lmdb.Environment, txn: Transaction, log_id: str, kind: LogKind | None
) -> Claim:
    blank = is_blank(txn)
    tables = open_tables(env, txn, create=blank)
    if blank:
        txn.put(FORMAT_KEY, OFFSET.pack(FORMAT), db=tables.meta)
        txn.put(LOG_ID_KEY, log_id.encode(), db=tables.meta)
    check_identity(path, txn, tables, log_id, kind)
    if kind is not None:  # a log of an earlier version says its kind from now on
        txn.put(KIND_KEY, kind.name.encode(), db=tables.meta)
    last = check_last_commit(txn, tables)
    check_mark(path, read_mark(path), mark_of(last))
    epoch = number(txn, tables, EPOCH_KEY) + 1
    txn.put(EPOCH_KEY, OFFSET.pack(epoch), db=tables.meta)
    return Claim(tables, log_id, epoch, last)
