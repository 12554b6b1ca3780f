# pyright: basic
"""One server of each engine for all tests of this folder; each test has a log of its own."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from fairlead.events.stores import kafka_clients
from fairlead.events.stores.port import LogStore
from fairlead_tests.java_peer import NoPeer
from fairlead_tests.kafka.broker import Broker
from fairlead_tests.kafka.topics import Topics
from fairlead_tests.postgres_server import PASSWORD, NoServer, PostgresServer, started
from fairlead_tests.stores.engine import StoreEngine
from fairlead_tests.stores.in_kafka import KafkaEngine
from fairlead_tests.stores.in_postgres import PostgresEngine
from fairlead_tests.stores.nodes import Cluster


@pytest.fixture(scope="session")
def server() -> Iterator[PostgresServer]:
    """The PostgreSQL server; tests that bring it down bring it up again."""
    with ExitStack() as stack:
        try:
            made = stack.enter_context(started())
        except NoServer as reason:
            pytest.skip(f"PostgreSQL cannot be had: {reason}")
        yield made


@pytest.fixture
def postgres(server: PostgresServer) -> PostgresEngine:
    return PostgresEngine(server.empty("test"))


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


@pytest.fixture
def kafka(broker: Broker, monkeypatch: pytest.MonkeyPatch) -> KafkaEngine:
    """Return the engine; a topic that is not found is looked for again at once."""
    monkeypatch.setattr(kafka_clients, "_LOOK_S", 0.02)
    return KafkaEngine(Topics(broker.bootstrap))


@pytest.fixture(params=["postgres", "kafka"])
def engine(request: pytest.FixtureRequest) -> StoreEngine:
    """Return each engine, one after the other."""
    found: StoreEngine = request.getfixturevalue(request.param)
    return found


@pytest.fixture
def log(request: pytest.FixtureRequest) -> str:
    """Return the name of the log of this test."""
    return str(request.node.name)


@pytest.fixture
def store(engine: StoreEngine, log: str) -> Iterator[Callable[[], LogStore]]:
    """Return what opens the log of this test once more, as another node; all are closed."""
    with ExitStack() as stack:

        def opened() -> LogStore:
            made = engine.store(log)
            stack.callback(made.close)
            return made

        yield opened


@pytest.fixture
def cluster(server: PostgresServer, tmp_path: Path) -> Cluster:
    database = server.empty("test")
    passfile = tmp_path / "passfile"
    passfile.touch(mode=0o600)
    passfile.write_text(f"*:*:*:*:{PASSWORD}\n")
    url = f"postgresql://postgres@127.0.0.1:{server.port}/{database.name}"
    store = {"log.store": "postgres", "log.store.url": url, "log.store.unsafe": "true"}
    return Cluster(tmp_path, store, {"PGPASSFILE": str(passfile)})
