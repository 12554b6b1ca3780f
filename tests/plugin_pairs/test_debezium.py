"""Debezium's PostgreSQL connector feeds Debezium's JDBC sink, without a Kafka.

Both are fetched from Maven Central, which may take a while. Rows are counted in the target itself.
That schemas go from one plugin to the other as they are is in each run (`test_pair.py`), as are the
deaths of hosts, workers and nodes between two plugins (`plugin_nodes/test_pairs.py`).
"""

from collections.abc import Iterator
from decimal import Decimal

import pytest
from connect_tasks.test_judges import FETCHED, add_plugin

from fairlead.runtime.pipeline.plugins.catalogue.installing.store import PluginStore
from fairlead_tests.plugins.connect_node import ConnectNode, connect_node, until
from fairlead_tests.plugins.followed_table import ITEMS, counts, live_through, rows
from fairlead_tests.plugins.installed import installation
from fairlead_tests.postgres_server import PASSWORD, NoServer, PostgresServer, started

pytestmark = [
    pytest.mark.cluster,
    pytest.mark.spark,
    pytest.mark.xdist_group("connect_tasks"),
    pytest.mark.soak,
    pytest.mark.timeout(3600),  # what is fetched for the first time takes long
]
NAME = "followed"


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ConnectNode]:
    installation()
    folder = tmp_path_factory.mktemp("both")
    folder.chmod(0o700)
    (folder / "plugins").mkdir()
    for name in ("debezium", "jdbc"):
        if why := add_plugin(PluginStore(folder / "data"), name, *FETCHED[name]):
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


def copying(server: PostgresServer, name: str, **more: str) -> dict[str, str]:
    """Return the config of a connector that copies `items` of `origin` to `copied` of `target`."""
    return {
        "connector.class": "io.debezium.connector.postgresql.PostgresConnector",
        "database.hostname": "127.0.0.1",
        "database.port": str(server.port),
        "database.user": "postgres",
        "database.password": PASSWORD,
        "database.dbname": "origin",
        "topic.prefix": "shop",
        "slot.name": name,
        "publication.name": name,
        "table.include.list": "public[.]items",
        "plugin.name": "pgoutput",
        "sink.type": "connect",
        "sink.connector.class": "io.debezium.connector.jdbc.JdbcSinkConnector",
        "sink.connection.url": f"jdbc:postgresql://127.0.0.1:{server.port}/target",
        "sink.connection.username": "postgres",
        "sink.connection.password": PASSWORD,
        "sink.insert.mode": "upsert",
        "sink.delete.enabled": "true",
        "sink.primary.key.mode": "record_key",
        "sink.schema.evolution": "basic",
        "sink.collection.name.format": "copied",
        **more,
    }


def test_a_table_has_the_same_rows_and_types_in_another_database(
    node: ConnectNode, server: PostgresServer
) -> None:
    origin, target = server.empty("origin"), server.empty("target")
    origin.run(ITEMS)
    origin.run(
        "INSERT INTO items (name, price) SELECT 'n' || n, n / 4.0 FROM generate_series(1, 99) n"
    )
    node.create(NAME, copying(server, NAME))
    until(lambda: rows(target, "copied") == rows(origin, "items"), "the first rows are there")
    until(lambda: counts(node, NAME), "they count")
    for host in node.hosts():
        host.kill()
    origin.run("UPDATE items SET name = 'other' WHERE id < 9")
    origin.run("DELETE FROM items WHERE id > 90")
    origin.run("ALTER TABLE items ADD more numeric(9, 3)")
    origin.run("INSERT INTO items (name, more) VALUES ('late', 1.234)")
    until(lambda: rows(target, "copied") == rows(origin, "items"), "the changes are there")
    assert target.run("SELECT more FROM copied WHERE name = 'late'") == [(Decimal("1.234"),)]
    kind = "SELECT format_type(atttypid, atttypmod) FROM pg_attribute WHERE attname = 'price'"
    assert target.run(kind) == [("numeric(8,2)",)]
    node.delete(NAME)


def test_a_table_is_the_same_in_another_database_whatever_dies(
    node: ConnectNode, server: PostgresServer
) -> None:
    live_through(node, server, NAME, copying(server, NAME))
