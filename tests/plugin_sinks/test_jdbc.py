"""PostgreSQL's changes, read by fairlead, are written by Debezium's JDBC sink, amid deaths.

Nothing of Kafka's runs. The plugin is fetched from Maven Central, which may take a while. Rows are
counted in the target itself.
"""

from collections.abc import Iterator

import pytest
from connect_tasks.test_judges import FETCHED, add_plugin

from fairlead.runtime.pipeline.plugins.catalogue.installing.store import PluginStore
from fairlead_tests.plugins.connect_node import ConnectNode, connect_node
from fairlead_tests.plugins.followed_table import live_through
from fairlead_tests.plugins.installed import installation
from fairlead_tests.postgres_server import PASSWORD, NoServer, PostgresServer, started

pytestmark = [
    pytest.mark.cluster,
    pytest.mark.spark,
    pytest.mark.xdist_group("plugin_nodes"),
    pytest.mark.soak,
    pytest.mark.timeout(3600),
]
NAME = "followed"


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ConnectNode]:
    installation()
    folder = tmp_path_factory.mktemp("jdbc")
    folder.chmod(0o700)
    (folder / "plugins").mkdir()
    if why := add_plugin(PluginStore(folder / "data"), "jdbc", *FETCHED["jdbc"]):
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


def following(server: PostgresServer, origin: str, target: str) -> dict[str, str]:
    """Return the config of a connector that writes the changes of one database to another."""
    return {
        "connector.class": "io.debezium.connector.jdbc.JdbcSinkConnector",
        "topics": "public.items",
        "connection.url": f"jdbc:postgresql://127.0.0.1:{server.port}/{target}",
        "connection.username": "postgres",
        "connection.password": PASSWORD,
        "insert.mode": "upsert",
        "delete.enabled": "true",
        "primary.key.mode": "record_key",
        "sink.key.columns": "id",
        "schema.evolution": "basic",
        "collection.name.format": "copied",
        "transforms": "plain",
        "transforms.plain.type": "org.apache.kafka.connect.transforms.ReplaceField$Value",
        "transforms.plain.exclude": "__op,__lsn,__seq,__ts_ms,__deleted",
        "source.type": "postgres",
        "source.mode": "log",
        "source.connection.url": f"postgresql://127.0.0.1:{server.port}/{origin}",
        "source.connection.user": "postgres",
        "source.connection.password": PASSWORD,
        "source.table.include.list": "public[.]items",
        "source.slot.name": NAME,
    }


def test_a_table_is_the_same_in_another_database_whatever_dies(
    node: ConnectNode, server: PostgresServer
) -> None:
    live_through(node, server, NAME, following(server, "origin", "target"))
