"""Stores in a PostgreSQL server of the tests."""

from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, LiteralString

from psycopg import Connection

from fairlead.events.stores.postgres import PostgresStore
from fairlead_tests.postgres_server import PASSWORD, Database, PostgresServer, wait_until

TABLES: tuple[LiteralString, ...] = ("owners", "commits", "snapshots")


@dataclass
class PostgresEngine:
    """A database with the schema of the stores."""

    database: Database

    def store(self, log: str) -> PostgresStore:
        return self.store_at(self.database.server.port, log)

    def store_at(self, port: int, log: str) -> PostgresStore:
        """Return a store that connects to another port of this machine."""
        url = f"postgresql://postgres:{PASSWORD}@127.0.0.1:{port}/{self.database.name}"
        return PostgresStore(log, url)

    def empty(self, log: str) -> None:  # noqa: ARG002  # there is only one in the database
        self.database.run("DROP SCHEMA fairlead CASCADE")

    def save(self, log: str) -> Callable[[], None]:  # noqa: ARG002
        self.database.run("DROP SCHEMA IF EXISTS saved CASCADE")
        self.database.run("CREATE SCHEMA saved")
        for table in TABLES:
            self.database.run(f"CREATE TABLE saved.{table} AS TABLE fairlead.{table}")
        return self._restore

    def _restore(self) -> None:
        for table in TABLES:
            self.database.run(f"DELETE FROM fairlead.{table}")
            self.database.run(f"INSERT INTO fairlead.{table} TABLE saved.{table}")


@contextmanager
def without_standby(server: PostgresServer) -> Generator[Connection[Any]]:
    """Have each commit wait for a standby that there is not, with its locks; yield a session."""
    admin = server.asked()
    admin.execute("ALTER SYSTEM SET synchronous_standby_names = 'nobody'")
    admin.execute("SELECT pg_reload_conf()")
    try:
        wait_until(lambda: admin.execute("SHOW synchronous_standby_names").fetchone() != ("",))
        yield admin
    finally:
        admin.execute("ALTER SYSTEM RESET synchronous_standby_names")
        admin.execute("SELECT pg_reload_conf()")


def waiting_for_standby(admin: Connection[Any]) -> bool:
    """Whether a commit waits for it."""
    query = "SELECT 1 FROM pg_stat_activity WHERE wait_event = 'SyncRep'"
    return admin.execute(query).fetchone() is not None
