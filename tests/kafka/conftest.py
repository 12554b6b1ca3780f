# pyright: basic
"""One broker for all tests of this folder; each has topics of its own."""

from collections.abc import Iterator

import pytest

from fairlead_tests.java_peer import NoPeer
from fairlead_tests.kafka.broker import Broker
from fairlead_tests.kafka.topics import Topics
from fairlead_tests.kafka_clients.jars import classpath
from fairlead_tests.kafka_listener.live import served
from fairlead_tests.kafka_listener.node import ListenerNode


@pytest.fixture(scope="session")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    """The broker; tests that bring it down bring it up again."""
    try:
        broker = Broker(tmp_path_factory.mktemp("kafka"))
        broker.up()
    except NoPeer as reason:
        pytest.skip(f"Kafka cannot be had: {reason}")
    yield broker
    broker.kill()


@pytest.fixture(scope="session")
def jars() -> None:
    """Kafka's tools and Connect's workers can be run."""
    try:
        classpath()
    except NoPeer as reason:
        pytest.skip(f"Kafka's tools and Connect's workers cannot be had: {reason}")


@pytest.fixture(scope="session")
def node(broker: Broker, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ListenerNode]:
    """A node that serves Kafka clients, for tests that each have groups of their own."""
    with served(tmp_path_factory.mktemp("node"), broker) as node:
        yield node


@pytest.fixture
def topics(broker: Broker) -> Topics:
    return Topics(broker.bootstrap)


@pytest.fixture
def topic(topics: Topics, request: pytest.FixtureRequest) -> str:
    """A topic of one partition, which goes by the test's name."""
    name = "".join(each if each.isalnum() else "." for each in request.node.name)
    return topics.make(name[:200])
