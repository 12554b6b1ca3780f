"""Debezium's connector moves from a real Connect to a node and back, under load.

It keeps its slot and its offsets: each row is in its topic once, whoever has read it.
"""
# pyright: basic

import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from plugin_sources.test_debezium import Writer, reading

from connect_tasks.test_import import connect_beside
from fairlead_tests.kafka.broker import Broker
from fairlead_tests.kafka.topics import Topics
from fairlead_tests.plugins.connect_node import ONE_REPLICA, connect_node, until
from fairlead_tests.plugins.importing import ImportCommand
from fairlead_tests.plugins.installed import DEBEZIUM, installation, plugin_path
from fairlead_tests.postgres_server import NoServer, PostgresServer, started

pytestmark = [
    pytest.mark.cluster,
    pytest.mark.spark,
    pytest.mark.xdist_group("connect_tasks"),
    pytest.mark.soak,
    pytest.mark.timeout(900),
]
NAME = "shop"
TOPIC = f"{NAME}.public.items"
JSON = "org.apache.kafka.connect.json.JsonConverter"
AS_CONNECT = {
    "group.id": "connect",
    "offset.storage.topic": "shop-offsets",
}


@pytest.fixture
def server() -> Iterator[PostgresServer]:
    try:
        with started() as server:
            yield server
    except NoServer as reason:
        pytest.skip(f"PostgreSQL cannot be had: {reason}")


def seen(topics: Topics) -> Counter[int]:
    """Return how often each row is in the topic."""
    if TOPIC not in topics.admin.list_topics(timeout=10).topics:
        return Counter()
    return Counter(json.loads(each)["id"] for each in topics.values(TOPIC))


def test_a_connector_of_debezium_moves_to_the_node_and_back_and_each_row_is_there_once(
    broker: Broker, topics: Topics, server: PostgresServer, tmp_path: Path
) -> None:
    installation()
    plugins = plugin_path(tmp_path / "of-node", DEBEZIUM)
    settings = {
        "exactly.once.source.support": "enabled",
        "scheduled.rebalance.max.delay.ms": 0,
        "offset.storage.topic": AS_CONNECT["offset.storage.topic"],
    }
    shop = server.empty(NAME)
    shop.run("CREATE TABLE items (id bigserial PRIMARY KEY, name text)")
    config = {
        **reading(shop, NAME),
        **ONE_REPLICA,
        "value.converter": JSON,
        "value.converter.schemas.enable": "false",
    }

    def flow() -> None:
        before = seen(topics).total()
        until(lambda: seen(topics).total() > before + 20, "rows arrive")

    with (
        connect_node(tmp_path / "node", broker.bootstrap, plugins, settings) as node,
        connect_beside(broker, tmp_path, AS_CONNECT, 1, DEBEZIUM) as (connect, properties),
    ):
        command = ImportCommand(node, properties)
        answer = connect.post("/connectors", json={"name": NAME, "config": config})
        assert answer.is_success, answer.text
        writer = Writer(
            lambda turn: shop.run("INSERT INTO items (name) VALUES (%s)", f"turn {turn}")
        )
        try:
            flow()
            command.run("--yes")
            assert node.status(NAME)["tasks"][0]["state"] == "RUNNING"
            assert (
                connect.get(f"/connectors/{NAME}/status").json()["connector"]["state"] == "STOPPED"
            )
            flow()
            command.run("--back", "--yes")
            assert node.rest.get("/connectors").json() == []
            flow()
        finally:
            writer.close()
        rows = {row[0] for row in shop.run("SELECT id FROM items")}
        until(lambda: seen(topics).keys() == rows, "all rows are there")
        assert seen(topics) == Counter(rows), "each is there once"
        assert shop.run("SELECT slot_name FROM pg_replication_slots") == [(NAME,)]
