"""A log in PostgreSQL: a row for its owner, a row for each commit (LOG.md §13).

The fence is the lock of the owner's row. An append shares it while it inserts its commit, if the
row still has the owner's epoch; a claim changes the row. So a claim waits for an append that is
under way, and an append that comes after it finds another epoch and inserts nothing. Each call is
one statement and one transaction, durable when it is answered.

An owner is silent by the clock of the database: an append or a beat renews the time in its row, at
most every 0.2 s, since each new version of the row stays until no transaction of the database is
older. A reader that has all waits for the notification of an append, and looks by itself every
0.3 s: one that comes before it looks is not lost, as it has listened since before its last look.

A server that is gone, or does not answer, ends a call within some seconds: the kernel gives up its
connection, or this side does.
"""

import time
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from hashlib import blake2b
from typing import Any, Final, LiteralString
from uuid import UUID, uuid4

from ..log.errors import LogError, LogFailedError, OffsetConflictError, OwnerFencedError
from . import postgres_statements as statements
from .port import (
    DIFFERS,
    Claimant,
    Claimed,
    StoreAwayError,
    StoredCommit,
    StoreDiffersError,
    StoredSlice,
    StoreOwner,
    StorePosition,
    StoreSnapshot,
)

try:
    import psycopg
    from psycopg import sql
    from psycopg.conninfo import conninfo_to_dict, make_conninfo
except ImportError:
    raise LogError(
        "a log in PostgreSQL needs psycopg: pip install 'fairlead-connect[postgres]'"
    ) from None

ANSWER_S: Final = 4.0
"""How long a call waits for its answer: a server that fails over may need some of it."""
_BYTES_PER_S: Final = 4 << 20
"""A snapshot has so much more time by its size: the server compresses it."""
_LOOK_S: Final = 0.3
"""How often a reader looks without a notification, which may be lost."""
_PAGE_COMMITS: Final = 1_000
_PAGE_BYTES: Final = 8 << 20
DURABLE: Final = frozenset({"on", "remote_apply"})
"""The values of `synchronous_commit` with which a commit is answered once it is durable."""
_SESSION: Final = {
    "connect_timeout": "2",
    "keepalives_idle": "1",
    "keepalives_interval": "1",
    "keepalives_count": "3",
    "tcp_user_timeout": "3000",
    "target_session_attrs": "read-write",
}
"""What a URL may set otherwise: a connection whose peer is gone ends after some 3 s."""
_OUTCOME: Final[Mapping[type[LogError], str]] = {
    StoreAwayError: "Nothing counted; it is asked again",
    LogFailedError: "Whether the write counts is unknown: exit, claim, and read what counts",
}


def _names(schema: str, channel: str) -> Mapping[str, sql.Composable]:
    """Return what stands in the statements in braces."""
    tables = {each: sql.Identifier(schema, each) for each in ("owners", "commits", "snapshots")}
    lock = int.from_bytes(blake2b(schema.encode(), digest_size=7).digest())
    return {
        **tables,
        "schema": sql.Identifier(schema),
        "mine": sql.SQL(statements.MINE).format(**tables),
        "lock": sql.Literal(lock),
        "channel": sql.Identifier(channel),
        "text": sql.Literal(tables["snapshots"].as_string()),
    }


class _BoundedConnection(psycopg.Connection[Any]):
    """A connection whose statements end at a deadline, and which notes the server's warnings."""

    deadline = 0.0
    """By the steady clock; 0: there is none."""
    warning = ""
    """Of the last statement."""

    def wait(self, gen: Any, *args: Any, **kwargs: Any) -> Any:  # noqa: ANN401  # as psycopg's own
        """Wait for a psycopg generator, no longer than until the deadline."""
        return super().wait(self._bounded(gen), *args, **kwargs)

    def _bounded(self, gen: Generator[Any, Any, Any]) -> Generator[Any, Any, Any]:
        try:
            wanted = next(gen)
            while True:
                ready = yield wanted
                if not ready and self.deadline and time.monotonic() > self.deadline:
                    raise psycopg.OperationalError("no answer in time")
                wanted = gen.send(ready)
        except StopIteration as end:
            return end.value

    def note(self, told: psycopg.errors.Diagnostic) -> None:
        """Note a warning: that a commit does not wait for the standby any more is one."""
        if told.severity_nonlocalized == "WARNING":
            self.warning = told.message_primary or "a warning"


class PostgresStore:
    """A log in the tables of a schema; see `LogStore` for its calls."""

    def __init__(self, log: str, url: str, schema: str = "fairlead") -> None:
        """Name a log, and a database by a URL of libpq; connects with the first call.

        The schema and its tables are made with the first claim, unless they are there.
        """
        try:
            parts: dict[str, Any] = {**_SESSION, **conninfo_to_dict(url)}
            parts.setdefault("application_name", f"fairlead log {log}")
            self._conninfo = make_conninfo("", **parts)
        except psycopg.Error:  # whose words may have the password
            raise LogError(
                "log.store.url cannot be read: libpq does not know an option in it, or a character"
                " of it has to be written as %XX. Write postgresql://user@host:port/database;"
                " nothing was changed"
            ) from None
        self._secret = str(parts.get("password") or "")
        self._shown = f"PostgreSQL, log {log} in schema {schema}"
        channel = "fairlead_" + blake2b(f"{schema}\0{log}".encode(), digest_size=16).hexdigest()
        self._names = _names(schema, channel)
        self._channel = channel
        self._log = log
        self._line: _BoundedConnection | None = None
        self._listens = False
        self._whole_at: StorePosition | None = None
        """The position behind all that a reader found when it looked last, and listened before."""
        self._statements: dict[str, bytes] = {}
        """The statements with the names in them, by their texts."""
        self._id: UUID | None = None
        """The identity of the log, made with its first claim; None: not seen yet."""
        self._epoch = 0
        """The highest epoch seen."""

    def owner(self) -> StoreOwner | None:
        """Return the last claim, silent by the clock of the database."""
        row = self._owner_row()
        if row is None:
            return None
        _, epoch, node, address, folder, silent = row
        return StoreOwner(epoch, Claimant(node, address, folder), max(silent, 0.0))

    def claim(
        self, claimant: Claimant, silence_seconds: float, at_least: int = 1
    ) -> Claimed | None:
        """Change the owner's row, if its folder or its silence allow that."""
        values = {**claimant._asdict(), "silence": silence_seconds, "least": at_least}
        rows: Sequence[tuple[Any, ...]] = ()
        if self._owner_row() is None:
            self._make()
            rows = self._asked(statements.FIRST_CLAIM, id=uuid4(), **values)
            self._owner_row()
        rows = rows or self._asked(statements.CLAIM, id=self._id, **values)
        if not rows:
            return None
        if self._listens:  # to its own appends
            self._asked("UNLISTEN *")
            self._listens, self._whole_at = False, None
        self._epoch, stored_bytes = rows[0]
        return Claimed(self._epoch, stored_bytes)

    def append(self, epoch: int, *commits: StoredCommit) -> StorePosition:
        """Insert commits, if the owner's row has this epoch, and notify readers."""
        bases, ends, bodies = zip(*commits, strict=True)
        new = {"bases": [*bases], "ends": [*ends], "bodies": [*bodies]}
        rows = self._written(statements.APPEND, epoch=epoch, channel=self._channel, **new)
        if not rows:
            raise self._refused(epoch, bases[0])
        return StorePosition(ends[-1], rows[0][0].bytes)

    def beat(self, epoch: int) -> None:
        """Confirm that the owner's row has this epoch."""
        if not self._asked(statements.BEAT, epoch=epoch):
            raise self._refused(epoch, 0)

    def compact(self, epoch: int, snapshot: StoreSnapshot) -> None:
        """Put the snapshot into its row, and delete the commits, in one transaction."""
        rows = self._written(statements.COMPACT, epoch=epoch, end=snapshot.end, body=snapshot.body)
        if not rows:
            raise self._refused(epoch, snapshot.end)

    def read(self, position: StorePosition, wait_seconds: float) -> StoredSlice:
        """Read a page of commits; if there are none, wait for a notification."""
        deadline = time.monotonic() + wait_seconds
        if wait_seconds > 0 and self._whole_at == position:
            self._wait(min(wait_seconds, _LOOK_S))
        while True:
            has_listened = self._listens
            part = self._read(position)
            self._whole_at = part.position if part.is_whole and has_listened else None
            left = deadline - time.monotonic()
            if part.commits or part.snapshot or left <= 0:
                return part
            self._wait(min(left, _LOOK_S))

    def close(self) -> None:
        """Close the connection."""
        if self._line is not None:
            self._line.close()
        self._line, self._listens, self._whole_at = None, False, None

    def flaws(self) -> Sequence[str]:
        """Return how the server is set up to lose what it has acknowledged, as sentences."""
        ((_, _, commits, _),) = self._asked(statements.SETTINGS)
        if commits in DURABLE:
            return []
        return [f"synchronous_commit is {commits} in PostgreSQL: commits may be lost with its host"]

    def warnings(self) -> Sequence[str]:
        """Return what is lost with the server's host or disk, as sentences."""
        ((fsync, full_pages, _, standbys),) = self._asked(statements.SETTINGS)
        off = [
            f"{name} is off in PostgreSQL: all of it may be lost with its host"
            for name, value in (("fsync", fsync), ("full_page_writes", full_pages))
            if value != "on"
        ]
        if standbys:
            return off
        return [
            *off,
            "PostgreSQL has no synchronous standby (synchronous_standby_names): with the disk of"
            " its server the last commits of the log are lost",
        ]

    def _owner_row(self) -> tuple[Any, ...] | None:
        rows = self._asked(statements.OWNER)
        if rows:
            self._check_id(rows[0][0], rows[0][1])
            return rows[0]
        if self._id is not None:
            raise self._differs("it has no such log any more")
        return None

    def _check_id(self, log_id: UUID, epoch: int) -> None:
        if self._id is not None and log_id != self._id:
            raise self._differs(f"it has log {log_id}, and had {self._id}")
        if epoch < self._epoch:
            raise self._differs(f"its last owner has epoch {epoch}, and had {self._epoch}")
        self._id, self._epoch = log_id, epoch

    def _read(self, position: StorePosition) -> StoredSlice:
        page = {"from": position.end, "commits": _PAGE_COMMITS, "bytes": _PAGE_BYTES}
        rows = self._asked(statements.READ, **page)
        if not rows:
            if position != StorePosition() or self._id:
                raise self._differs(f"it has no such log, and the copy ends at {position.end}")
            return StoredSlice(None, (), position, is_whole=True)
        log_id, low, end, *_ = rows[0]
        self._check_id(log_id, self._epoch)
        self._check_position(position, log_id, end)
        if position.end < low:
            return self._from_snapshot(log_id, end)
        at, commits = position.end, [StoredCommit(*row[3:]) for row in rows if row[3] is not None]
        for commit in commits:
            if commit.base != at:
                raise self._differs(f"it has no commit that begins at {at}")
            at = commit.end
        return StoredSlice(None, commits, StorePosition(at, log_id.bytes), is_whole=at == end)

    def _check_position(self, position: StorePosition, log_id: UUID, end: int) -> None:
        if position.mark != log_id.bytes and position != StorePosition():
            raise self._differs(f"it has log {log_id}, and the copy is of another one")
        if end < position.end:
            raise self._differs(f"it ends at {end}, and the copy at {position.end}")

    def _from_snapshot(self, log_id: UUID, end: int) -> StoredSlice:
        ((low, body),) = self._asked(statements.SNAPSHOT)
        position = StorePosition(low, log_id.bytes)
        return StoredSlice(StoreSnapshot(low, body), (), position, is_whole=low == end)

    def _wait(self, seconds: float) -> None:
        if not self._listens:  # what came in between is looked for first
            self._asked("LISTEN {channel}")
            self._listens = True
            return
        with self._translated(StoreAwayError):
            line = self._connected()
            line.deadline = 0.0
            for _ in line.notifies(timeout=seconds, stop_after=1):
                pass

    def _make(self) -> None:
        if self._asked("SELECT 1 WHERE to_regclass({text}) IS NULL"):
            with self._translated(StoreAwayError):
                self._connected().execute(self._statement(statements.MAKE))

    def _refused(self, epoch: int, base: int) -> LogError:
        """Return why the owner's row did not allow a write; raises if there is no row any more."""
        row = self._owner_row()
        if row is None or row[1] == epoch:
            return OffsetConflictError(
                f"{self._shown} does not end at {base}: nothing was written, read it to its end"
            )
        _, claimed, node, address, *_ = row
        return OwnerFencedError(
            f"{self._shown}: {node} at {address} has claimed it with epoch {claimed}, after this"
            f" owner with {epoch}: nothing was written, and this owner has to exit"
        )

    def _differs(self, how: str) -> StoreDiffersError:
        return StoreDiffersError(f"{self._shown}: {how}. {DIFFERS}")

    def _asked(self, statement: LiteralString, **values: object) -> Sequence[tuple[Any, ...]]:
        """Run a statement; no table, no rows. Raises `StoreAwayError`."""
        with self._translated(StoreAwayError):
            return self._run(self._connected(), statement, values)

    def _written(self, statement: LiteralString, **values: object) -> Sequence[tuple[Any, ...]]:
        """Run one that must not run twice; raises `LogFailedError` once it was sent."""
        with self._translated(StoreAwayError):
            line = self._connected()
        with self._translated(LogFailedError):
            return self._run(line, statement, values)

    def _run(
        self, line: _BoundedConnection, statement: LiteralString, values: Mapping[str, object]
    ) -> Sequence[tuple[Any, ...]]:
        size = sum(len(each) for each in values.values() if isinstance(each, bytes))
        line.deadline = time.monotonic() + ANSWER_S + size / _BYTES_PER_S
        line.warning = ""
        try:
            with line.cursor(binary=True) as cursor:
                cursor.execute(self._statement(statement), {"log": self._log, **values})
                # `description` would describe each column, which takes longer than the rows.
                rows = cursor.fetchall() if cursor.pgresult and cursor.pgresult.nfields else []
        except psycopg.errors.UndefinedTable:
            return []
        if line.warning:
            raise psycopg.OperationalError(line.warning)
        return rows

    def _statement(self, text: LiteralString) -> bytes:
        if text not in self._statements:
            self._statements[text] = sql.SQL(text).format(**self._names).as_bytes()
        return self._statements[text]

    def _connected(self) -> _BoundedConnection:
        if self._line is None:
            line = _BoundedConnection.connect(self._conninfo, autocommit=True)
            self._line = line
            line.deadline = time.monotonic() + ANSWER_S
            line.execute(statements.DURABLE)
            line.add_notice_handler(line.note)
        return self._line

    @contextmanager
    def _translated(self, error_type: type[LogError]) -> Generator[None]:
        """Raise what goes wrong as an error of the log, without the password."""
        try:
            yield
        except psycopg.Error as error:
            self.close()
            text = " ".join(str(error).split())
            if self._secret:
                text = text.replace(self._secret, "***")
            raise error_type(f"{self._shown}: {text}. {_OUTCOME[error_type]}") from None
