# pyright: basic
"""Sessions of a source outlive their connections, and tell what befell a table or a server."""

from collections.abc import Iterator

import pytest
from psycopg import sql

from fairlead.runtime.pipeline.spi.errors import BadInput, SourceAway
from fairlead.runtime.pipeline.stores.postgres.connecting import Server
from fairlead.runtime.pipeline.stores.postgres.source.log.server.session import LogSession
from fairlead.runtime.pipeline.stores.postgres.tables.session import ReadSession, TableChanged
from fairlead_tests.postgres_pipes import source_config
from fairlead_tests.postgres_server import Database

PID = "SELECT pg_backend_pid()"


@pytest.fixture
def log(database: Database) -> Iterator[LogSession]:
    """Return a session for the log."""
    made = LogSession(Server.of("source", source_config(database, {"mode": "log"})), "")
    yield made
    made.close()


@pytest.fixture
def tables(database: Database) -> Iterator[ReadSession]:
    """Return a session for tables, as a role that may not read all of them."""
    database.run("DROP ROLE IF EXISTS poor")
    database.run("CREATE ROLE poor LOGIN PASSWORD 'poor-pass'")
    database.run("GRANT USAGE ON SCHEMA public TO poor")
    database.run("CREATE TABLE hidden (id int)")
    database.run("CREATE TABLE t (id int)")
    database.run("GRANT SELECT ON t TO poor")
    given = {"mode": "xmin", "connection_user": "poor", "connection_password": "poor-pass"}
    made = ReadSession(Server.of("source", source_config(database, given)))
    yield made
    made.close()


def pid_of(session: LogSession) -> int:
    with session.connected() as connection:
        row = connection.execute(PID).fetchone()
    assert row
    return int(row[0])


def test_a_connection_that_was_closed_is_opened_again(database: Database, log: LogSession) -> None:
    first = pid_of(log)
    assert pid_of(log) == first
    with log.connected() as connection:
        connection.close()  # as psycopg does when a statement finds it broken
    second = pid_of(log)
    assert second != first
    assert database.run("SELECT pg_terminate_backend(%s, 5000)", second) == [(True,)]
    with pytest.raises(SourceAway):
        pid_of(log)
    assert pid_of(log) not in {first, second}


@pytest.mark.parametrize(
    ("query", "error", "told"),
    [
        ("SELECT * FROM gone", TableChanged, 'relation "gone" does not exist'),
        ("SELECT gone FROM t", TableChanged, 'column "gone" does not exist'),
        ("SELECT * FROM hidden", BadInput, "permission denied for table hidden"),
        ("SELECT 'x'::int", BadInput, "invalid input syntax for type integer"),
        ("SELECT pg_terminate_backend(pg_backend_pid())", SourceAway, "terminating connection"),
    ],
)
def test_a_table_that_is_gone_is_told_from_what_may_not_be_read(
    tables: ReadSession, query: str, error: type[Exception], told: str
) -> None:
    with pytest.raises(error, match=told), tables.snapshot() as snapshot:
        snapshot.table(sql.SQL(query))
    with tables.snapshot() as snapshot:
        assert snapshot.row(sql.SQL("SELECT count(*)::int FROM t")) == (0,)
