"""Debezium's PostgreSQL connector feeds parquet files and a table, amid deaths; nothing of Kafka's.

It is fetched from Maven Central, which may take a while. Rows are counted in the target itself.
"""

import random
from collections.abc import Callable, Iterator
from pathlib import Path
from threading import Event, Thread
from typing import Any

import pyarrow.parquet as pq
import pytest
from connect_tasks.test_judges import FETCHED, add_plugin

from fairlead.runtime.pipeline.plugins.catalogue.installing.store import PluginStore
from fairlead_tests.plugins.connect_node import ConnectNode, connect_node, until
from fairlead_tests.plugins.installed import installation
from fairlead_tests.postgres_server import PASSWORD, Database, NoServer, PostgresServer, started

pytestmark = [
    pytest.mark.cluster,
    pytest.mark.spark,
    pytest.mark.xdist_group("plugin_nodes"),
    pytest.mark.soak,
    pytest.mark.timeout(1800),
]
SEED = 20
DEATHS = 8


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ConnectNode]:
    installation()
    folder = tmp_path_factory.mktemp("debezium")
    folder.chmod(0o700)
    (folder / "plugins").mkdir()
    if why := add_plugin(PluginStore(folder / "data"), "debezium", *FETCHED["debezium"]):
        pytest.skip(why)
    settings = {"scheduled.rebalance.max.delay.ms": 0}
    with connect_node(folder, "127.0.0.1:1", folder / "plugins", settings) as node:
        yield node


@pytest.fixture(scope="module")
def server() -> Iterator[PostgresServer]:
    try:
        with started() as server:
            yield server
    except NoServer as reason:
        pytest.skip(f"PostgreSQL cannot be had: {reason}")


def reading(database: Database, name: str, **more: str) -> dict[str, str]:
    """Return the config of a connector without its sink."""
    unwrap = "io.debezium.transforms.ExtractNewRecordState"
    return {
        "connector.class": "io.debezium.connector.postgresql.PostgresConnector",
        "database.hostname": "127.0.0.1",
        "database.port": str(database.server.port),
        "database.user": "postgres",
        "database.password": PASSWORD,
        "database.dbname": database.name,
        "topic.prefix": name,
        "slot.name": name,
        "publication.name": name,
        "table.include.list": "public[.].*",
        "plugin.name": "pgoutput",
        "exactly.once.support": "required",
        "transforms": "unwrap",
        "transforms.unwrap.type": unwrap,
        "transforms.unwrap.delete.tombstone.handling.mode": "rewrite",
        **more,
    }


def into(server: PostgresServer, database: str) -> dict[str, str]:
    """Return the config of a sink that has the rows of another database as they are now."""
    return {
        "sink.type": "postgres",
        "sink.connection.url": f"postgresql://127.0.0.1:{server.port}/{database}",
        "sink.connection.user": "postgres",
        "sink.connection.password": PASSWORD,
        "sink.insert.mode": "upsert",
        "sink.pk.mode": "record_value",
        "sink.pk.fields": "id",
        "sink.delete.enabled": "true",
        "sink.auto.create": "true",
    }


class Writer:
    """Writes to a table all the time, until it is closed."""

    def __init__(self, write: Callable[[int], object]) -> None:
        self._write = write
        self._over = Event()
        self._thread = Thread(target=self._run)
        self._thread.start()

    def _run(self) -> None:
        turn = 0
        while not self._over.wait(0.1):
            self._write(turn := turn + 1)

    def close(self) -> None:
        self._over.set()
        self._thread.join()


def kill_at_random(node: ConnectNode, has_moved: Callable[[], Callable[[], bool]]) -> None:
    """Kill hosts and workers, each time once something has arrived since the last death."""
    order = random.Random(SEED)  # the same deaths in each run
    for _ in range(DEATHS):
        until(has_moved(), "rows arrive")
        if order.random() < 0.7:
            for host in node.hosts():
                host.kill()
        else:
            node.worker(order.choice(["w1", "w2"])).kill()
    until(has_moved(), "rows arrive after the last death")


def ids(folder: Path) -> list[int]:
    """Return the ids of all published rows, in order."""
    found = (pq.read_table(each, columns=["id"]) for each in folder.glob("*.parquet"))
    return sorted(each for part in found for each in part["id"].to_pylist())


def behind(database: Database, slot: str) -> int:
    """Return how many bytes of the log a slot holds back."""
    query = (
        "SELECT pg_wal_lsn_diff(pg_current_wal_lsn(), confirmed_flush_lsn)::bigint"
        " FROM pg_replication_slots WHERE slot_name = %s"
    )
    return int(database.run(query, slot)[0][0])


def test_the_promise_is_debeziums_word_but_amid_its_first_snapshot(
    node: ConnectNode, server: PostgresServer, tmp_path: Path
) -> None:
    database = server.empty("promised")
    database.run("CREATE TABLE t (id bigint PRIMARY KEY)")
    database.run("INSERT INTO t SELECT generate_series(1, 200000)")
    config = reading(database, "promised", **{"exactly.once.support": "requested"})
    sink = {"sink.type": "files", "sink.path": str(tmp_path / "t"), "sink.format": "parquet"}
    assert node.rest.put("/connectors/promised/config", json={**config, **sink}).is_success

    def status() -> tuple[str, str]:
        found = node.status("promised")
        return found["delivery"], "".join(each.get("reason", "") for each in found["tasks"])

    until(lambda: "takes its first snapshot" in status()[1], "its snapshot is told")
    assert status()[0] == "at-least-once"
    until(lambda: status() == ("exactly-once", ""), "its snapshot is over")
    assert ids(tmp_path / "t") == [*range(1, 200001)]
    node.delete("promised")


def test_each_row_is_in_parquet_once_and_the_slot_moves_on(
    node: ConnectNode, server: PostgresServer, tmp_path: Path
) -> None:
    database, target = server.empty("lake"), tmp_path / "out"
    database.run("CREATE TABLE items (id bigserial PRIMARY KEY, price numeric(8, 2))")
    sink = {"sink.type": "files", "sink.path": str(target), "sink.format": "parquet"}
    node.create("lake", reading(database, "lake", **sink))

    def write(_: int) -> None:
        database.run("INSERT INTO items (price) SELECT n FROM generate_series(1, 20) n")

    def has_moved() -> Callable[[], bool]:
        before = len(ids(target))
        return lambda: len(ids(target)) > before

    writer = Writer(write)
    try:
        kill_at_random(node, has_moved)
    finally:
        writer.close()
    (count,) = database.run("SELECT count(*) FROM items")[0]
    until(lambda: len(ids(target)) >= count, "all rows are there")
    assert ids(target) == [*range(1, count + 1)]
    until(lambda: behind(database, "lake") < 100_000, "the slot holds nothing back")
    node.delete("lake")


def test_a_table_is_the_same_in_another_database(node: ConnectNode, server: PostgresServer) -> None:
    database, target = server.empty("origin"), server.empty("copy")
    database.run("CREATE TABLE items (id bigserial PRIMARY KEY, name text, price numeric(8, 2))")
    sink = {**into(server, "copy"), "sink.table.name.format": "items"}
    node.create("copy", reading(database, "origin", **sink))

    def write(turn: int) -> None:
        database.run("INSERT INTO items (name) SELECT 'n' || n FROM generate_series(1, 9) n")
        database.run("UPDATE items SET name = %s WHERE id %% 7 = %s", f"turn {turn}", turn % 7)
        database.run("DELETE FROM items WHERE id %% 11 = %s", turn % 11)

    def rows(of: Database) -> list[tuple[Any, ...]]:
        if not of.run("SELECT 1 FROM pg_tables WHERE tablename = 'items'"):
            return []
        return of.run("SELECT id, name, price FROM items ORDER BY id")

    def has_moved() -> Callable[[], bool]:
        before = rows(target)[-1:]
        return lambda: rows(target)[-1:] != before

    writer = Writer(write)
    try:
        kill_at_random(node, has_moved)
    finally:
        writer.close()
    until(lambda: rows(target) == rows(database), "both have the same rows")
    node.delete("copy")


def make_shop(database: Database) -> None:
    database.run("CREATE TABLE people (id bigserial PRIMARY KEY, name text)")
    database.run("CREATE TABLE orders (id bigserial PRIMARY KEY, person bigint, total numeric)")
    database.run("CREATE TABLE items (id bigserial PRIMARY KEY, color text)")


def write_to_shop(database: Database, turn: int) -> None:
    """Write to all three tables; one of them has a column more from the thirtieth turn on."""
    database.run("INSERT INTO people (name) VALUES (%s)", f"p{turn}")
    database.run("INSERT INTO orders (person, total) VALUES (%s, %s)", turn, turn)
    database.run("INSERT INTO items (color) VALUES ('red')")
    if turn == 30:
        database.run("ALTER TABLE items ADD COLUMN size int")
    if turn > 30:
        database.run("UPDATE items SET size = id WHERE id %% 5 = %s", turn % 5)


def rows_of_shop(database: Database) -> list[list[tuple[Any, ...]]]:
    """Return the rows of the three tables; none before all are there."""
    tables = "SELECT tablename FROM pg_tables WHERE schemaname = 'public'"
    if not {"people", "orders", "items"} <= {each for (each,) in database.run(tables)}:
        return []
    return [
        database.run("SELECT id, name FROM people ORDER BY id"),
        database.run("SELECT id, person, total::text FROM orders ORDER BY id"),
        sorted(database.run("TABLE items")),
    ]


def test_three_tables_have_their_own_columns_which_change_meanwhile(
    node: ConnectNode, server: PostgresServer
) -> None:
    database, target = server.empty("shop"), server.empty("shops")
    make_shop(database)
    sink = {
        **into(server, "shops"),
        "sink.table.name.format": "${table}",
        "sink.auto.evolve": "true",
        "source.metadata.columns": "topic",
        "decimal.handling.mode": "string",
    }
    node.create("shop", reading(database, "shop", **sink))

    def has_moved() -> Callable[[], bool]:
        before = len((rows_of_shop(target) or [[]])[0])
        return lambda: len((rows_of_shop(target) or [[]])[0]) > before

    writer = Writer(lambda turn: write_to_shop(database, turn))
    try:
        kill_at_random(node, has_moved)
    finally:
        writer.close()
    until(lambda: rows_of_shop(target) == rows_of_shop(database), "the same rows are in all three")
    columns = "SELECT column_name FROM information_schema.columns WHERE table_name = 'orders'"
    assert {each for (each,) in target.run(columns)} == {"id", "person", "total"}
    node.delete("shop")


def test_each_table_has_a_folder_of_parquet_with_types_of_its_own(
    node: ConnectNode, server: PostgresServer, tmp_path: Path
) -> None:
    database, target = server.empty("depot"), tmp_path / "depot"
    database.run("CREATE TABLE people (id bigserial PRIMARY KEY, mark text)")
    database.run("CREATE TABLE orders (id bigserial PRIMARY KEY, mark int)")

    def write(turn: int) -> None:
        database.run("INSERT INTO people (mark) VALUES (%s)", f"m{turn}")
        database.run("INSERT INTO orders (mark) VALUES (%s)", turn)

    sink = {
        "sink.type": "files",
        "sink.path": f"{target}/of-${{table}}",
        "sink.format": "parquet",
        "source.metadata.columns": "topic",
    }
    node.create("depot", reading(database, "depot", **sink))
    folders = target / "of-people", target / "of-orders"

    def has_moved() -> Callable[[], bool]:
        before = len(ids(folders[0]))
        return lambda: len(ids(folders[0])) > before

    writer = Writer(write)
    try:
        kill_at_random(node, has_moved)
    finally:
        writer.close()
    for folder, table in zip(folders, ("people", "orders"), strict=True):
        wanted = [each for (each,) in database.run(f"SELECT id FROM {table} ORDER BY id")]
        until(lambda: len(ids(folder)) >= len(wanted), "all rows are there")  # noqa: B023
        assert ids(folder) == wanted
    files = [next(each.glob("*.parquet")) for each in folders]
    assert [str(pq.read_schema(each).field("mark").type) for each in files] == ["string", "int32"]
    node.delete("depot")
