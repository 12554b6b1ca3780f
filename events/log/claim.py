"""How a process becomes the owner of a log, or makes a new one."""

from pathlib import Path
from typing import NamedTuple

import lmdb

from .check import check_last_commit
from .errors import NoLogError
from .files import check_mark, data_bytes, mark_of, read_mark, sync_path
from .frame import OFFSET, LogCommit
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


class Claim(NamedTuple):
    """What a new owner has found and been given."""

    tables: Tables
    log_id: str
    epoch: int
    last: LogCommit | None


def make_directory(path: Path) -> None:
    """Make the log's directory and those above it, so that they outlive a power cut."""
    if path.is_dir():
        return
    make_directory(path.parent)
    path.mkdir(mode=0o700, exist_ok=True)
    sync_path(path.parent)


def require_log(path: Path) -> None:
    """Raise `NoLogError` unless there is a log at `path`, where one is known to have been."""
    if data_bytes(path) == 0:
        raise NoLogError(
            f"the log {path} was there and is gone: no new one was made in its place, and nothing"
            " was changed; put it back, from a backup if need be (is its disk mounted?)"
        )


def claim_log(path: Path, env: lmdb.Environment, log_id: str, kind: LogKind | None) -> Claim:
    """Take the next owner epoch of the log, checked and durable, and make the log if it is new.

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
