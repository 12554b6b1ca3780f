"""A log's LMDB environment: opened with every flush in its place, and read by snapshots."""

from pathlib import Path
from types import TracebackType
from typing import Final

import lmdb

from .errors import LogError, NoLogError
from .frame import FIRST_CHAIN, LogCommit
from .mark import Mark, check_mark, read_mark
from .naming import FOREIGN, named
from .space import allocate_lock_file
from .structure import check_not_cut, data_bytes
from .tables import Tables, Transaction

ENGINE: Final = 0  # LMDB 0.9, the file format that every tool reads
MAP_BYTES: Final = 64 << 30  # address space, not disk; the same everywhere, so nobody has to remap
READERS_MAX: Final = 510


def mark_of(commit: LogCommit | None) -> Mark:
    """Return the end and chain of a log by its newest commit."""
    return Mark(0, FIRST_CHAIN) if commit is None else Mark(commit.end, commit.chain)


def open_environment(path: Path, *, map_bytes: int, readonly: bool) -> lmdb.Environment:
    """Open the environment, with every flush in its place.

    Raises `NoLogError` or `CorruptLogError` before LMDB touches a file that is missing, lost or cut
    short, `LowSpaceError` if there is no room, and LMDB's own errors.
    """
    mark = read_mark(path)
    if data_bytes(path) == 0:
        check_mark(path, mark, mark_of(None))
        if readonly:
            raise NoLogError(f"there is no log at {path} yet: its owner makes it; try again")
    check_not_cut(path)
    allocate_lock_file(path)
    env = lmdb.open(
        str(path),
        map_size=map_bytes,
        max_dbs=len(Tables._fields),
        max_readers=READERS_MAX,
        max_spare_txns=2,
        mode=0o600,
        readonly=readonly,
        create=not readonly,
        sync=True,
        metasync=True,
        writemap=False,
        map_async=False,
        lib_version=ENGINE,
    )
    flags = env.flags()
    if not flags["sync"] or not flags["metasync"] or flags["writemap"] or flags["map_async"]:
        env.close()
        raise LogError(f"{path} opened without its flushes: {flags}; nothing would be durable")
    return env


class ReadTransaction:
    """One read transaction as a context; what goes wrong inside gets the log's own names."""

    __slots__ = ("_env", "_path", "_txn")

    def __init__(self, env: lmdb.Environment, path: Path) -> None:
        self._env = env
        self._path = path

    def __enter__(self) -> Transaction:
        try:
            self._txn = self._env.begin()
        except lmdb.MapResizedError:
            self._env.set_mapsize(0)  # the owner has grown the map: adopt its size
            self._txn = self._env.begin()
        except lmdb.Error as error:
            raise named(error, self._path) from error
        return self._txn

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._txn.abort()
        if isinstance(error, FOREIGN):
            raise named(error, self._path) from error
