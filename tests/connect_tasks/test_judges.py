"""Connectors that others have written, unchanged, in the plugin hosts of a node.

Their plugins are fetched from Maven Central, which may take a while. What they have written is
counted in the target itself.
"""
# pyright: basic

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import fastavro
import pyarrow.parquet as pq
import pytest

from fairlead.runtime.pipeline.plugins.catalogue.installing.fetching import fetch_parts
from fairlead.runtime.pipeline.plugins.catalogue.installing.refusals import PluginRefused
from fairlead.runtime.pipeline.plugins.catalogue.installing.store import PluginPart, PluginStore
from fairlead.runtime.pipeline.plugins.ivy import Coordinates, Ivy
from fairlead_tests.java_peer import SPARK_JARS
from fairlead_tests.kafka.broker import Broker
from fairlead_tests.kafka.topics import Topics
from fairlead_tests.plugins.connect_node import ONE_REPLICA, ConnectNode, connect_node, until
from fairlead_tests.plugins.installed import installation, java_here
from fairlead_tests.postgres_server import PASSWORD, Database, NoServer, PostgresServer, started

pytestmark = [
    pytest.mark.cluster,
    pytest.mark.spark,
    pytest.mark.xdist_group("connect_tasks"),
    pytest.mark.soak,
    pytest.mark.timeout(1800),  # what is fetched for the first time takes long
]

JSON = "org.apache.kafka.connect.json.JsonConverter"
BYTES = "org.apache.kafka.connect.converters.ByteArrayConverter"
AS_JSON = {"key.converter": JSON, "value.converter": JSON}
PLAIN = {"key.converter.schemas.enable": "false", "value.converter.schemas.enable": "false"}
FETCHED = {
    "debezium": ["io.debezium:debezium-connector-postgres:3.6.1.Final"],
    "jdbc": ["io.debezium:debezium-connector-jdbc:3.3.1.Final"],
    "mirror": ["org.apache.kafka:connect-mirror:4.3.0"],
    "iceberg": [
        f"org.apache.iceberg:iceberg-{each}:1.12.0" for each in ("kafka-connect", "parquet", "data")
    ],
}


def add_plugin(store: PluginStore, name: str, *coordinates: str) -> str:
    """Add a plugin as `fairlead plugins fetch` does; return why that did not succeed."""
    wanted = [Coordinates.parse(each) for each in coordinates]
    # Iceberg's POM leaves out Hadoop, which its catalogs of files need: Spark has it.
    beside = [*SPARK_JARS.glob("hadoop-client-*.jar")] if name == "iceberg" else []
    try:
        parts = fetch_parts(Ivy(java_here()), wanted, may_be_archive=True)
        store.add(name, [*parts, *map(PluginPart, beside)], ",".join(coordinates))
    except PluginRefused as refused:
        return f"{name} could not be had: {refused}"
    return ""


@pytest.fixture(scope="module")
def missing() -> dict[str, str]:
    """Why a plugin is not there, of those that could not be had."""
    return {}


@pytest.fixture(scope="module")
def judged(
    broker: Broker, missing: dict[str, str], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[ConnectNode]:
    """A node with all these plugins."""
    installation()
    folder = tmp_path_factory.mktemp("judged")
    folder.chmod(0o700)
    data, empty = folder / "data", folder / "plugins"
    empty.mkdir()
    store = PluginStore(data)
    for name, coordinates in FETCHED.items():
        missing[name] = add_plugin(store, name, *coordinates)
    settings = {"exactly.once.source.support": "enabled", "workers": "1"}
    with connect_node(folder, broker.bootstrap, empty, settings) as node:
        yield node


@pytest.fixture(scope="module")
def server() -> Iterator[PostgresServer]:
    """A PostgreSQL that has logical decoding."""
    try:
        with started() as server:
            yield server
    except NoServer as reason:
        pytest.skip(f"PostgreSQL cannot be had: {reason}")


def require(missing: Mapping[str, str], *names: str) -> None:
    for name in names:
        if missing[name]:
            pytest.skip(missing[name])


def ids_of(table: Path) -> list[int]:
    """Return the ids in the current snapshot of an Iceberg table, in order."""
    metadata = table / "metadata"
    newest = f"v{(metadata / 'version-hint.text').read_text().strip()}.metadata.json"
    content = json.loads((metadata / newest).read_text())
    current = content["current-snapshot-id"]
    files = [
        entry["data_file"]["file_path"]
        for snapshot in content["snapshots"]
        if snapshot["snapshot-id"] == current  # none, before the first commit
        for manifest in entries(snapshot["manifest-list"])
        for entry in entries(manifest["manifest_path"])
    ]
    read = (pq.read_table(local(each), columns=["id"]) for each in files)
    return sorted(each for part in read for each in part.column("id").to_pylist())


def entries(place: str) -> list[dict[str, Any]]:
    """Return the records of an Avro file."""
    with local(place).open("rb") as file:
        return [each for each in fastavro.reader(file) if isinstance(each, dict)]


def local(place: str) -> Path:
    return Path(place.removeprefix("file:"))


def debezium(database: Database, name: str) -> dict[str, str]:
    """Return the config of a connector of the table `items`, after its maker's documentation."""
    return {
        "connector.class": "io.debezium.connector.postgresql.PostgresConnector",
        "database.hostname": "127.0.0.1",
        "database.port": str(database.server.port),
        "database.user": "postgres",
        "database.password": PASSWORD,
        "database.dbname": database.name,
        "plugin.name": "pgoutput",
        "slot.name": name,
        "topic.prefix": name,
        "table.include.list": "public.items",
        "publication.autocreate.mode": "filtered",
        "publication.name": name,
        **AS_JSON,
        **ONE_REPLICA,
    }


def flushed(database: Database, slot: str) -> int:
    """Return up to which byte of its log the server may forget what the slot has read."""
    ((found,),) = database.run(
        "SELECT confirmed_flush_lsn - '0/0' FROM pg_replication_slots WHERE slot_name = %s", slot
    )
    return int(found)


def changes(topics: Topics, topic: str) -> list[tuple[str, int, str | None]]:
    """Return kind, id and name of each change in a topic of Debezium's."""
    found = []
    for each in topics.read(topic):
        if each.value() is not None:
            value = json.loads(each.value())
            row = value["after"] or {**value["before"], "name": None}
            found.append((value["op"], row["id"], row["name"]))
    return found


def test_debezium_tells_each_change_once_and_the_server_forgets_what_was_told(
    judged: ConnectNode, missing: dict[str, str], server: PostgresServer, topics: Topics
) -> None:
    require(missing, "debezium")
    database = server.empty("shop")
    database.run("CREATE TABLE items (id int PRIMARY KEY, name text)")
    database.run("INSERT INTO items SELECT n, 'first ' || n FROM generate_series(1, 5) n")
    judged.create("shop", {**debezium(database, "shop"), **PLAIN})
    expected: list[tuple[str, int, str | None]] = [("r", n, f"first {n}") for n in range(1, 6)]
    topic = "shop.public.items"
    until(lambda: topic in topics.admin.list_topics(timeout=60).topics, "the topic is made")
    until(lambda: changes(topics, topic) == expected, "the first rows are there")
    before = flushed(database, "shop")
    database.run("INSERT INTO items VALUES (6, 'six'), (7, 'seven')")
    database.run("UPDATE items SET name = 'SIX' WHERE id = 6")
    database.run("DELETE FROM items WHERE id = 1")
    expected += [("c", 6, "six"), ("c", 7, "seven"), ("u", 6, "SIX"), ("d", 1, None)]
    until(lambda: changes(topics, topic) == expected, "the changes are there")
    until(lambda: flushed(database, "shop") > before, "the slot has moved on")
    told = 'debezium_postgres_connector_metrics_TotalNumberOfEventsSeen{context="streaming"'
    until(lambda: told in judged.rest.get("/metrics").text, "its own metrics are there")
    for host in judged.hosts():
        host.kill()
    database.run("INSERT INTO items SELECT n, 'later' FROM generate_series(100, 149) n")
    expected += [("c", n, "later") for n in range(100, 150)]
    until(lambda: len(changes(topics, topic)) >= len(expected), "what came later is there")
    assert changes(topics, topic) == expected
    judged.delete("shop")


def test_mirror_source_keeps_partitions_keys_and_headers(
    judged: ConnectNode, missing: dict[str, str], topics: Topics
) -> None:
    require(missing, "mirror")
    topics.make("mirrored", partitions=3)
    for number in range(3):
        key = f"key {number}"
        topics.write("mirrored", [key], partition=number, key=key, headers={"n": str(number)})
    config = {
        "connector.class": "org.apache.kafka.connect.mirror.MirrorSourceConnector",
        "source.cluster.alias": "there",
        "target.cluster.alias": "here",
        "source.cluster.bootstrap.servers": topics.bootstrap,
        "target.cluster.bootstrap.servers": topics.bootstrap,
        "topics": "mirrored",
        "tasks.max": "2",
        "replication.factor": "1",
        "offset-syncs.topic.replication.factor": "1",
        "sync.topic.acls.enabled": "false",
        "refresh.topics.interval.seconds": "1",
        "key.converter": BYTES,
        "value.converter": BYTES,
        "header.converter": BYTES,
    }
    judged.create("mirror", config, tasks=2)

    def copies() -> list[tuple[Any, ...]]:
        if "there.mirrored" not in topics.admin.list_topics(timeout=60).topics:
            return []
        found = topics.read("there.mirrored")
        return sorted(
            (each.partition(), each.key(), each.value(), each.headers()) for each in found
        )

    until(lambda: len(copies()) >= 3, "the copies are there")
    texts = [(number, f"key {number}".encode(), str(number).encode()) for number in range(3)]
    assert copies() == [(number, key, key, [("n", n)]) for number, key, n in texts]
    judged.delete("mirror")


def test_debeziums_jdbc_sink_has_the_rows_that_its_source_has(
    judged: ConnectNode, missing: dict[str, str], server: PostgresServer
) -> None:
    require(missing, "debezium", "jdbc")
    database, target = server.empty("origin"), server.empty("target")
    database.run("CREATE TABLE items (id int PRIMARY KEY, name text, price numeric(8, 2))")
    database.run("INSERT INTO items SELECT n, 'first ' || n, n FROM generate_series(1, 50) n")
    judged.create("origin", {**debezium(database, "origin"), "decimal.handling.mode": "string"})
    config = {
        "connector.class": "io.debezium.connector.jdbc.JdbcSinkConnector",
        "topics": "origin.public.items",
        "connection.url": f"jdbc:postgresql://127.0.0.1:{server.port}/target",
        "connection.username": "postgres",
        "connection.password": PASSWORD,
        "insert.mode": "upsert",
        "delete.enabled": "true",
        "primary.key.mode": "record_key",
        "schema.evolution": "basic",
        "collection.name.format": "copied",
        **AS_JSON,
    }
    judged.create("target", config)
    database.run("UPDATE items SET name = 'changed' WHERE id % 5 = 0")
    database.run("DELETE FROM items WHERE id % 7 = 0")
    expected = database.run("SELECT id, name, price::text FROM items ORDER BY id")

    def rows() -> list[tuple[Any, ...]]:
        if not target.run("SELECT 1 FROM pg_tables WHERE tablename = 'copied'"):
            return []
        return target.run("SELECT id, name, price FROM copied ORDER BY id")

    until(lambda: rows() == expected, "the rows are the same")
    judged.delete("origin", "target")


def test_icebergs_sink_elects_its_leader_and_commits_a_table(
    judged: ConnectNode, missing: dict[str, str], topics: Topics, tmp_path: Path
) -> None:
    require(missing, "iceberg")
    topics.make("events", partitions=2)
    topics.make("control-iceberg")
    for part in range(2):
        rows = range(part * 500, part * 500 + 500)
        topics.write("events", [json.dumps({"id": n, "v": f"x{n}"}) for n in rows], partition=part)
    config = {
        "connector.class": "org.apache.iceberg.connect.IcebergSinkConnector",
        "tasks.max": "2",
        "topics": "events",
        "iceberg.tables": "default.events",
        "iceberg.tables.auto-create-enabled": "true",
        "iceberg.catalog.type": "hadoop",
        "iceberg.catalog.warehouse": f"file://{tmp_path}/warehouse",
        "iceberg.control.commit.interval-ms": "3000",
        "consumer.override.auto.offset.reset": "earliest",
        "value.converter": JSON,
        **PLAIN,
    }
    judged.create("iceberg", config, tasks=2)
    table = tmp_path / "warehouse" / "default" / "events"
    until(lambda: any(table.glob("metadata/snap-*")), "a snapshot is there")
    until(lambda: len(ids_of(table)) >= 1000, "all rows are there")
    assert ids_of(table) == [*range(1000)]
    judged.delete("iceberg")
