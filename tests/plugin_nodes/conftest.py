"""One node that knows no Kafka, with Connect's connectors of files and the tests' own plugins."""

from collections.abc import Iterator

import pytest

from fairlead_tests.plugins.connect_node import ConnectNode, connect_node
from fairlead_tests.plugins.installed import CONNECT_FILE, installation, plugin_path
from fairlead_tests.plugins.leased_provider import PROVIDER, write_leased_provider
from fairlead_tests.plugins.replayed_source import write_replayed_source
from fairlead_tests.plugins.told_sink import write_told_sink

NOBODY = "127.0.0.1:1"


@pytest.fixture(scope="package")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ConnectNode]:
    installation()
    folder = tmp_path_factory.mktemp("node")
    plugins = plugin_path(folder / "plugins", CONNECT_FILE)
    write_replayed_source(plugins / "replayed")
    write_told_sink(plugins / "told")
    write_leased_provider(plugins / "leased")
    settings = {
        "scheduled.rebalance.max.delay.ms": 0,
        "config.providers": "leased",
        "config.providers.leased.class": PROVIDER,
    }
    with connect_node(folder, NOBODY, plugins, settings) as node:
        yield node
