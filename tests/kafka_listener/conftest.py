"""One node for the tests that have groups of their own."""

from collections.abc import Iterator

import pytest

from fairlead_tests.kafka_listener.node import ListenerNode, listener_node

NOWHERE = "127.0.0.1:9"


@pytest.fixture(scope="session")
def listener(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ListenerNode]:
    """A node without workers, with no broker behind it."""
    with listener_node(
        tmp_path_factory.mktemp("node") / "data",
        NOWHERE,
        session_timeout_ms=5_000,
        heartbeat_interval_ms=300,
        scheduled_rebalance_max_delay_ms=0,
    ) as node:
        yield node
