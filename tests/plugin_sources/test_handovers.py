"""Each source of Connect's into each sink of fairlead's, through the deaths of all that takes part.

A steady writer writes values, and the target is counted: each value is there once.
"""

import os
import random
from collections.abc import Iterator
from pathlib import Path

import pytest

from fairlead_tests.java_peer import NoPeer
from fairlead_tests.kafka.broker import Broker, broker_at
from fairlead_tests.kafka.topics import Topics
from fairlead_tests.plugins.connect_node import ConnectNode, connect_node
from fairlead_tests.plugins.faults import Faults
from fairlead_tests.plugins.feeds import (
    Feed,
    Files,
    Lines,
    Origin,
    Records,
    Rows,
    Table,
    Target,
    Topic,
)
from fairlead_tests.plugins.installed import CONNECT_FILE, DEBEZIUM, installation, plugin_path
from fairlead_tests.plugins.mirror import write_mirror_plugin
from fairlead_tests.postgres_server import NoServer, PostgresServer, started

pytestmark = [
    pytest.mark.cluster,
    pytest.mark.spark,
    pytest.mark.xdist_group("plugin_nodes"),
    pytest.mark.soak,
    pytest.mark.timeout(1800),
]

EVENTS = ("kill host", "kill worker", "freeze", "drain", "restart")
HANDOVERS = int(os.environ.get("CHAOS_HANDOVERS", "20"))
SEED = os.environ.get("CHAOS_SEED", "50")
ORIGINS = ("lines", "records", "rows")
TARGETS = ("topic", "files", "table")


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    try:
        with broker_at(tmp_path_factory.mktemp("kafka") / "broker") as broker:
            yield broker
    except NoPeer as reason:
        pytest.skip(f"Kafka cannot be had: {reason}")


@pytest.fixture(scope="module")
def server() -> Iterator[PostgresServer]:
    try:
        with started(wal_sender_timeout="10s") as server:  # as it waits for who is frozen
            yield server
    except NoServer as reason:
        pytest.skip(f"PostgreSQL cannot be had: {reason}")


@pytest.fixture(scope="module")
def node(broker: Broker, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ConnectNode]:
    installation()
    folder = tmp_path_factory.mktemp("handovers")
    plugins = plugin_path(folder / "plugins", CONNECT_FILE, DEBEZIUM)
    write_mirror_plugin(plugins / "mirror")
    settings = {"scheduled.rebalance.max.delay.ms": 0}
    with connect_node(folder / "node", broker.bootstrap, plugins, settings) as node:
        yield node


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("origin", ORIGINS)
def test_each_value_is_in_the_target_once_after_many_handovers(
    node: ConnectNode,
    broker: Broker,
    server: PostgresServer,
    tmp_path: Path,
    origin: str,
    target: str,
) -> None:
    name, topics = f"{origin}_{target}", Topics(broker.bootstrap)
    source: Origin
    sink: Target
    match origin:
        case "lines":
            source = Lines(tmp_path / "lines", name)
        case "records":
            source = Records(topics, name)
        case _:
            source = Rows(server, name)
    match target:
        case "topic":
            sink = Topic(topics, source.topic)
        case "files":
            sink = Files(tmp_path / "out")
        case _:
            sink = Table(server, name)
    events = [*EVENTS]
    events += ["kill broker"] if {origin, target} & {"records", "topic"} else []
    events += ["kill server"] if {origin, target} & {"rows", "table"} else []
    dice = random.Random(f"{SEED} {name}")
    feed = Feed(node, name, source, sink)
    with feed.running():
        faults = Faults(feed, broker, f"{SEED} {name}", server)
        while faults.handovers < HANDOVERS - 1:
            for event in dice.sample(events, len(events)):
                faults.inject(event)
        faults.inject("kill node")
        assert feed.stop() == feed.values
