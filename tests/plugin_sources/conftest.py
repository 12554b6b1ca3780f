"""A plugin host with the tests' own source, and what drives a task of it."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from fairlead.runtime.pipeline.plugins.running.hosts import TaskHosts
from fairlead.runtime.pipeline.spi.context import Shared
from fairlead_tests.plugins.replayed_source import write_replayed_source
from fairlead_tests.plugins.source_driver import Driver, hosts_of
from fairlead_tests.tasks.memory_ledger import MemoryLedger


@pytest.fixture(scope="session")
def ledger() -> MemoryLedger:
    return MemoryLedger()


@pytest.fixture(scope="session")
def hosts(ledger: MemoryLedger, tmp_path_factory: pytest.TempPathFactory) -> Iterator[TaskHosts]:
    plugins = tmp_path_factory.mktemp("replayed")
    write_replayed_source(plugins / "replayed")
    with hosts_of(plugins, tmp_path_factory.mktemp("host"), ledger) as hosts:
        yield hosts


@pytest.fixture
def driver(hosts: TaskHosts, ledger: MemoryLedger, tmp_path: Path) -> Iterator[Driver]:
    ledger.logged.clear()
    shared = Shared()
    shared.get(TaskHosts, lambda: hosts)
    driver = Driver(shared, ledger, tmp_path / "records", tmp_path / "told")
    yield driver
    driver.source.close()
