# pyright: basic
"""PostgreSQL as source and sink: a table with late commits, and a table for each pair.

The sinks' tables, and all that is staged for them, lie in a tablespace that may fill up.
"""

import os
import time
from collections import Counter
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, ClassVar, LiteralString

import psycopg
from psycopg import sql

from fairlead_tests.matrix.ends import Room, SinkEnd, SourceEnd, Tally
from fairlead_tests.postgres_server import PASSWORD, Database, PostgresServer

WRITERS = 4
_PREPARED = ("kafka", "log")
"""Sources whose batches wait in prepared transactions; the others' wait in tables."""
_UPSERTED = "changes"
_UPSERTS = {
    "sink.insert.mode": "upsert",
    "sink.pk.mode": "record_value",
    "sink.pk.fields": "id",
    "sink.delete.enabled": "true",
}
LATEST_S = 3.0
"""The maximum duration of a writer's transaction."""


@dataclass
class _Session:
    """One writer: its connection, and when its transaction ends, if one is open."""

    connection: "psycopg.Connection[Any] | None" = None
    ends_at: float | None = None


class PostgresSource(SourceEnd):
    """A table; ids are taken when a row is written, and rows are seen whenever that commits."""

    kind: ClassVar[str] = "postgres"
    mode: ClassVar[str] = "xmin"
    away = (psycopg.OperationalError, psycopg.InterfaceError)

    def __init__(self, server: PostgresServer, seed: int, pause_s: float) -> None:
        super().__init__(seed, pause_s / WRITERS)
        self._database = server.empty(f"source_{self.kind}")
        self._database.run("CREATE TABLE orders (id bigserial PRIMARY KEY, amount bigint NOT NULL)")
        self._sessions = [_Session() for _ in range(WRITERS)]

    def config(self, pair: str) -> Mapping[str, str]:
        del pair
        return {
            "source.type": "postgres",
            "source.connection.url": self._database.url,
            "source.connection.password": PASSWORD,
            "source.table.include.list": r"public\.orders",
            "source.mode": self.mode,
            "source.table.poll.interval.ms": "3600000",
        }

    def write(self) -> None:
        session = self._dice.choice(self._sessions)
        try:
            if session.ends_at is None:
                self._begin(session)
            elif time.monotonic() >= session.ends_at:
                self._end(session)
        except self.away:  # the outcome of the commit is unknown: the table has it
            self._lose(session)
            raise

    def settle(self) -> None:
        """End all transactions, then commit a last one."""
        for each in self._sessions:
            with suppress(*self.away):
                self._end(each)
            self._lose(each)
        with suppress(*self.away):
            self._database.run("INSERT INTO orders (amount) VALUES (0)")

    def rows(self) -> Mapping[int, int]:
        return dict(self._database.run("SELECT id, amount FROM orders"))

    def _begin(self, session: _Session) -> None:
        if session.connection is None:
            session.connection = psycopg.connect(self._database.url, password=PASSWORD)
        written = "INSERT INTO orders (amount) SELECT unnest(%s::bigint[])"
        session.connection.execute(written, (self.amounts(),))
        session.ends_at = time.monotonic() + self._dice.uniform(0, LATEST_S)

    def _end(self, session: _Session) -> None:
        if session.connection is None:
            return
        if self._dice.random() < 0.2:
            session.connection.rollback()
        else:
            session.connection.commit()
        session.ends_at = None

    def _lose(self, session: _Session) -> None:
        if session.connection is not None:
            with suppress(*self.away):
                session.connection.close()
        session.connection = session.ends_at = None


class PostgresLogSource(PostgresSource):
    """Such a table, whose changes are read from the server's log."""

    kind: ClassVar[str] = "log"
    mode: ClassVar[str] = "log"


class PostgresChangesSource(PostgresLogSource):
    """Such a table, in which rows are also updated and deleted."""

    kind: ClassVar[str] = _UPSERTED
    only_adds: ClassVar[bool] = False

    def _begin(self, session: _Session) -> None:
        super()._begin(session)
        assert session.connection is not None
        for change in ("UPDATE orders SET amount = amount + 1", "DELETE FROM orders"):
            # Rows of open transactions are passed over: the same thread will commit those.
            chosen = "SELECT id FROM orders WHERE id %% %s = 0 LIMIT 10 FOR UPDATE SKIP LOCKED"
            session.connection.execute(
                f"{change} WHERE id IN ({chosen})", (self._dice.randint(2, 50),)
            )


class PostgresSink(SinkEnd):
    """A table for each pair."""

    kind: ClassVar[str] = "postgres"

    def __init__(self, server: PostgresServer, room: Room) -> None:
        self._database = server.empty("sink")
        place = room.sinks / "tablespace"
        place.mkdir()
        owner = server.data.stat()
        os.chown(place, owner.st_uid, owner.st_gid)
        with server.connected() as admin:
            make = sql.SQL("CREATE TABLESPACE room LOCATION {}")
            admin.execute(make.format(sql.Literal(str(place))))
            admin.execute("ALTER DATABASE sink SET default_tablespace = room")

    @property
    def database(self) -> Database:
        return self._database

    def config(self, pair: str) -> Mapping[str, str]:
        return {
            "sink.type": "postgres",
            "sink.connection.url": self._database.url,
            "sink.connection.password": PASSWORD,
            "sink.table.name.format": _table(pair),
            "sink.auto.create": "true",
            "sink.stage.with": "prepared" if pair.startswith(_PREPARED) else "table",
            **(_UPSERTS if pair.startswith(_UPSERTED) else {}),
        }

    def tally(self, pair: str) -> Tally:
        found = self._ask(pair, "count(*), count(DISTINCT id), sum(id), sum(amount)", "")
        return Tally.told(found[0] if found else (0, 0, 0, 0))

    def ids(self, pair: str) -> Counter[int]:
        return Counter(dict(self._ask(pair, "id, count(*)", "GROUP BY id")))

    def _ask(self, pair: str, what: LiteralString, more: LiteralString) -> list[tuple[Any, ...]]:
        """Ask the table of a pair; there may be none yet."""
        parts = (sql.SQL(what), sql.Identifier(_table(pair)), sql.SQL(more))
        query = sql.SQL("SELECT {} FROM {} {}").format(*parts)
        with self._database.server.connected(self._database.name) as asked:
            try:
                return asked.execute(query).fetchall()
            except psycopg.errors.UndefinedTable:
                return []


def _table(pair: str) -> str:
    return pair.replace("-", "_")
