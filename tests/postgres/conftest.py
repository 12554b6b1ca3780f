"""One server for all tests of this folder, and an empty database for each of them."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack

import pytest

from fairlead.runtime.pipeline.connectors.postgres import poll_pause
from fairlead.runtime.pipeline.connectors.postgres.tables import source
from fairlead_tests.postgres_pipes import Reading
from fairlead_tests.postgres_server import Database, NoServer, PostgresServer, started


@pytest.fixture(scope="session")
def server() -> Iterator[PostgresServer]:
    """The server; tests that bring it down bring it up again."""
    with ExitStack() as stack:
        try:
            made = stack.enter_context(started())
        except NoServer as reason:
            pytest.skip(f"PostgreSQL cannot be had: {reason}")
        yield made


@pytest.fixture(autouse=True)
def no_rest(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have sources look again at once, however long their last look took that found nothing."""
    monkeypatch.setattr(poll_pause, "_REST_SHARE", 0)
    monkeypatch.setattr(source, "_SETTLED_S", 0.0)


@pytest.fixture
def database(server: PostgresServer) -> Database:
    """Return an empty database, as the tests before left nothing in it."""
    return server.empty("test")


@pytest.fixture
def read(database: Database) -> Iterator[Callable[..., Reading]]:
    """Return what reads tables by a config; its sessions end with the test."""
    made: list[Reading] = []

    def of(**given: str) -> Reading:
        made.append(Reading.of(database, **given))
        return made[-1]

    yield of
    for each in made:
        each.close()
