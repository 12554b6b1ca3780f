"""One server for all tests of this folder, and a database of its own for each test."""

from collections.abc import Iterator
from itertools import count

import pytest

from fairlead_tests.postgres_server import Database, NoServer, PostgresServer

_NUMBERS = count()


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PostgresServer]:
    """The server; tests that bring it down bring it up again."""
    try:
        made = PostgresServer.create(tmp_path_factory.mktemp("postgres") / "cluster")
    except NoServer as reason:
        pytest.skip(f"PostgreSQL cannot be had: {reason}")
    made.start()
    yield made
    made.stop()


@pytest.fixture
def database(server: PostgresServer) -> Iterator[Database]:
    """An empty database."""
    with server.database(f"test_{next(_NUMBERS)}") as made:
        yield made
