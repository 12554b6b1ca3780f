# pyright: basic
"""A server that crashes gives the numbers of transactions again that it had not written down."""

import os
import subprocess
from collections.abc import Iterator
from contextlib import suppress

import pytest

from fairlead.runtime.pipeline.spi.errors import BadInput, SourceAway
from fairlead.runtime.pipeline.spi.offsets import SeekEnd
from fairlead_tests.postgres_pipes import AMPLE, Reading
from fairlead_tests.postgres_server import PASSWORD, Database, PostgresServer, started

MODES = {
    "xmin": {"mode": "xmin"},
    "xid8": {"mode": "incrementing", "incrementing_column_name": "x"},
}
TABLE = "CREATE TABLE ev (id bigint PRIMARY KEY, x xid8 NOT NULL DEFAULT pg_current_xact_id())"


@pytest.fixture(scope="module")
def lazy(server: PostgresServer) -> Iterator[PostgresServer]:
    """A server that writes nothing to its disk before a commit asks for it."""
    del server  # which says why there is none
    with started(wal_writer_delay="10s", autovacuum="off") as made:
        yield made


@pytest.mark.parametrize("mode", MODES)
def test_rows_of_a_transaction_whose_number_was_given_before_a_crash_are_read(
    lazy: PostgresServer, mode: str
) -> None:
    database = lazy.empty(mode)
    database.run(TABLE)
    reading = Reading.of(database, table_include_list=r"public\.ev", **MODES[mode])
    assert reading.rows("id") == []
    database.run("INSERT INTO ev (id) VALUES (1)")
    _roll_back(lazy, mode)
    assert reading.rows("id") == [(1,)]
    reading.close()
    lazy.kill()
    lazy.start()
    database.run("INSERT INTO ev (id) VALUES (7)")
    reading.begin()
    assert reading.rows("id") == [(7,)]
    reading.close()


def test_rows_that_are_written_after_a_crash_are_none_of_a_snapshot_from_before(
    lazy: PostgresServer,
) -> None:
    database = lazy.empty("split")
    database.run(TABLE)
    database.run("INSERT INTO ev (id) VALUES (1)")
    _roll_back(lazy, "split")
    reading = Reading.of(database, table_include_list=r"public\.ev", mode="xmin")
    reading.begin()
    lazy.kill()
    lazy.start()
    found: list[tuple[int]] = []
    for each in (2, 3, 4):
        with suppress(SourceAway):
            found += reading.rows("id")
        database.run("INSERT INTO ev (id) VALUES (%s)", each)
    assert sorted([*found, *reading.rows("id")]) == [(1,), (2,), (3,), (4,)]
    reading.close()


@pytest.mark.soak
@pytest.mark.parametrize("mode", MODES)
def test_a_failover_to_a_standby_that_lacks_commits_is_told(mode: str) -> None:
    with started() as primary:
        database = primary.empty("test")
        database.run(TABLE)
        reading = Reading.of(database, table_include_list=r"public\.ev", **MODES[mode])
        assert reading.rows("id") == []
        standby = _standby_of(primary)
        for each in range(1, 9):
            database.run("INSERT INTO ev (id) VALUES (%s)", each)
        assert reading.rows("id") == [(each,) for each in range(1, 9)]
        primary.kill()
        standby.start()
        reading.begin()
        with pytest.raises(BadInput, match="the database knows of none"):
            reading.take()
        other = Database(standby, "test")
        for each in range(1, 20):
            other.run("INSERT INTO ev (id) VALUES (%s)", each)
        reading.begin()
        (source,) = reading.sources
        plan = source.plan(reading.offsets, AMPLE)
        assert plan.rows < 19  # the others have numbers of transactions that are read already
        assert plan.remark.startswith("the server went from timeline 1 to 2 (a failover): if")
        reading.seek(SeekEnd.EARLIEST)
        assert reading.rows("id") == [(each,) for each in range(1, 20)]
        reading.close()
        standby.stop()


def _standby_of(primary: PostgresServer) -> PostgresServer:
    """Return a standby at the primary's address, which is promoted when it starts."""
    folder = primary.folder.parent / "standby"
    folder.mkdir()
    told = f"host=127.0.0.1 port={primary.port} user=postgres password={PASSWORD}"
    command = [str(primary.bin / "pg_basebackup"), "-d", told, "-D", str(folder / "data")]
    subprocess.run([*command, "--checkpoint", "fast"], check=True)
    (folder / "data" / "recovery.signal").touch()
    owner = primary.data.stat()
    for each in (folder, *folder.rglob("*")):
        os.chown(each, owner.st_uid, owner.st_gid)
    settings = {**primary.settings, "restore_command": "false", "hot_standby": "off"}
    return PostgresServer(folder, primary.bin, primary.port, settings)


def _roll_back(server: PostgresServer, database: str) -> None:
    """Use the numbers of some transactions up, without anything that is flushed."""
    with server.connected(database) as writer:
        for each in range(10, 14):
            writer.execute("BEGIN")
            writer.execute("INSERT INTO ev (id) VALUES (%s)", (each,))
            writer.execute("ROLLBACK")
