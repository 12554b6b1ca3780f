"""One server for all tests of this folder, and an empty database for each of them."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack

import adbc_driver_manager
import pytest

from fairlead.runtime.pipeline.stores.postgres import poll_pause
from fairlead.runtime.pipeline.stores.postgres.source.log import source as log_source
from fairlead.runtime.pipeline.stores.postgres.tables import source
from fairlead_tests.postgres_pipes import KnownDatabases, Reading
from fairlead_tests.postgres_server import Database, NoServer, PostgresServer, started

AS_EVER = ("test_connecting.py", "test_hang_detection.py", "test_pipeline.py")
"""Where ADBC learns the types of a database for each session, as in a worker."""


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


@pytest.fixture(scope="session")
def known() -> KnownDatabases:
    """The databases as ADBC knows them."""
    return KnownDatabases()


@pytest.fixture
def database(
    server: PostgresServer,
    known: KnownDatabases,
    request: pytest.FixtureRequest,
    monkeypatch: pytest.MonkeyPatch,
) -> Database:
    """Return an empty database, as the tests before left nothing in it."""
    made = server.empty("test")
    if request.path.name not in AS_EVER:
        monkeypatch.setattr(adbc_driver_manager, "AdbcDatabase", known.of(made))
    return made


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


@pytest.fixture
def read_log(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Callable[..., Reading]]:
    """Return what reads the log by a config, without a rest; its sessions end with the test."""
    monkeypatch.setattr(log_source, "_SETTLED_S", 0.0)
    made: list[Reading] = []

    def of(**given: str) -> Reading:
        made.append(Reading.of(database, mode="log", **given))
        return made[-1]

    yield of
    for each in made:
        each.close()
