# pyright: basic
"""One broker and one node with Kafka's own connectors; each test has names of its own."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from fairlead_tests.java_peer import NoPeer
from fairlead_tests.kafka.broker import Broker
from fairlead_tests.kafka.topics import Topics
from fairlead_tests.plugins.bad_tasks import write_bad_tasks
from fairlead_tests.plugins.beside import OF_BOTH, Beside, worker_beside
from fairlead_tests.plugins.connect_node import ConnectNode, connect_node
from fairlead_tests.plugins.installed import CONNECT_FILE, installation, plugin_path
from fairlead_tests.plugins.leased_provider import PROVIDER as LEASED
from fairlead_tests.plugins.leased_provider import write_leased_provider
from fairlead_tests.plugins.mirror import write_mirror_plugin
from fairlead_tests.plugins.scripted_plugin import write_scripted_plugin

PROVIDER = "org.apache.kafka.common.config.provider.FileConfigProvider"


@pytest.fixture(scope="package")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    """The broker; tests that bring it down bring it up again."""
    try:
        broker = Broker(tmp_path_factory.mktemp("kafka"))
        broker.up()
    except NoPeer as reason:
        pytest.skip(f"Kafka cannot be had: {reason}")
    yield broker
    broker.kill()


@pytest.fixture(scope="package")
def node(broker: Broker, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ConnectNode]:
    """A node whose sources write exactly once, with Kafka's connectors of files and of topics."""
    installation()
    folder = tmp_path_factory.mktemp("node")
    plugins = plugin_path(folder / "plugins", CONNECT_FILE)
    write_mirror_plugin(plugins / "mirror")
    write_bad_tasks(plugins / "bad-tasks")
    write_leased_provider(plugins / "leased")
    (folder / "secrets").mkdir()
    settings = {
        "exactly.once.source.support": "enabled",
        "scheduled.rebalance.max.delay.ms": 0,
        "config.providers": "props,leased",
        "config.providers.leased.class": LEASED,
        "config.providers.props.class": PROVIDER,
        "config.providers.props.param.allowed.paths": folder / "secrets",
    }
    with connect_node(folder, broker.bootstrap, plugins, settings, has_spark=False) as node:
        yield node


@pytest.fixture
def topics(broker: Broker) -> Topics:
    return Topics(broker.bootstrap)


@pytest.fixture(scope="package")
def scripted(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of plugins: Connect's file connectors, and the tests' own source."""
    installation()
    folder = plugin_path(tmp_path_factory.mktemp("scripted"), CONNECT_FILE)
    write_scripted_plugin(folder / "scripted")
    return folder


@pytest.fixture(scope="package")
def beside(
    broker: Broker, scripted: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Beside]:
    """A node and a real worker, on the same jars, plugins, properties and broker."""
    folder = tmp_path_factory.mktemp("beside")
    with (
        connect_node(folder / "node", broker.bootstrap, scripted, OF_BOTH) as node,
        worker_beside(node, broker.bootstrap, scripted, folder, OF_BOTH) as beside,
    ):
        yield beside
