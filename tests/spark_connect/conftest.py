# pyright: basic
"""One server of Spark Connect for all tests of this folder, on loopback, which asks for a token."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from py4j import java_gateway, protocol

from fairlead.runtime.pipeline.engines.connect.engine import ConnectEngine
from fairlead.runtime.pipeline.engines.embedded.engine import Embedded
from fairlead.runtime.pipeline.engines.executors.cluster import SparkCluster
from fairlead_tests.spark_engine.connect_server import ConnectServerProcess

_lent: list[ConnectServerProcess] = []
"""The server, as long as it is there: it goes with the last test of this folder."""


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> ConnectServerProcess:
    """The server; tests that bring it down bring it up again."""
    made = ConnectServerProcess(tmp_path_factory.mktemp("server"))
    _lent.append(made)
    made.start()
    return made


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder that the engine shares with the server."""
    return tmp_path_factory.mktemp("shared")


@pytest.fixture(scope="module")
def on_server(
    server: ConnectServerProcess, shared: Path, the_engine: Embedded
) -> Iterator[ConnectEngine]:
    """A worker's engine, warm, whose jobs the server runs."""
    the_engine.close(20)  # PySpark's functions are for a JVM or for a server
    made = ConnectEngine(shared / "worker", SparkCluster(server.master, (shared,)))
    with pytest.MonkeyPatch.context() as process:
        # As in a process that never had a JVM, PySpark converts no error of the check's one.
        process.setattr(java_gateway, "get_return_value", protocol.get_return_value)
        made.open()
        assert made.wait_warm(180), made.detail
        yield made
        made.close(20)


@pytest.hookimpl(trylast=True)
def pytest_runtest_teardown(nextitem: pytest.Item | None) -> None:
    """End the server before tests elsewhere: it would only take memory from them."""
    if nextitem is None or Path(__file__).parent not in nextitem.path.parents:
        while _lent:
            _lent.pop().kill()
