"""Reading a log from another process than its owner's, or when it has no owner at all."""

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Self

from .check import check_last_commit
from .environment import MAP_BYTES, ReadTransaction, mark_of, open_environment
from .errors import NoLogError
from .frame import Entry
from .mark import check_mark, read_mark
from .naming import naming_errors
from .store import BYTES_PER_READ, ENTRIES_PER_READ, ReadableLog
from .tables import LogKind, check_identity, end_of, is_blank, open_tables


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
        with naming_errors(path), ExitStack() as undo:
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
        """Yield what was written from offset `start` on, in batches, up to the end as it is then.

        A batch has at most 1000 entries or about 4 MiB, and none is empty. Raises `TrimmedError`
        if the log was trimmed beyond the next offset: bootstrap by `load()`.
        """
        while entries := self._read(start, ENTRIES_PER_READ, BYTES_PER_READ).entries:
            start = entries[-1].offset + 1
            yield entries
