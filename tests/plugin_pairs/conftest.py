"""A plugin host with the tests' own source and sink, and what drives a task between them."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from fairlead.runtime.pipeline.plugins.running.hosts import TaskHosts
from fairlead.runtime.pipeline.spi.context import Shared
from fairlead_tests.plugins.pair_driver import PairDriver
from fairlead_tests.plugins.replayed_source import write_replayed_source
from fairlead_tests.plugins.source_driver import hosts_of
from fairlead_tests.plugins.told_sink import write_told_sink
from fairlead_tests.tasks.memory_ledger import MemoryLedger


@pytest.fixture(scope="module")
def ledger() -> MemoryLedger:
    return MemoryLedger()


@pytest.fixture(scope="module")  # other tests know their host by being the only one
def hosts(ledger: MemoryLedger, tmp_path_factory: pytest.TempPathFactory) -> Iterator[TaskHosts]:
    plugins = tmp_path_factory.mktemp("both")
    write_told_sink(plugins / "told")
    write_replayed_source(plugins / "replayed")
    often = {"offset.flush.interval.ms": "100"}
    with hosts_of(plugins, tmp_path_factory.mktemp("host"), ledger, often) as hosts:
        yield hosts


@pytest.fixture
def driver(hosts: TaskHosts, ledger: MemoryLedger, tmp_path: Path) -> Iterator[PairDriver]:
    yield from driver_of(hosts, ledger, tmp_path)


@pytest.fixture
def patient_driver(ledger: MemoryLedger, tmp_path: Path) -> Iterator[PairDriver]:
    """One whose host asks plugins for offsets once an hour."""
    plugins = tmp_path / "plugins"
    write_told_sink(plugins / "told")
    write_replayed_source(plugins / "replayed")
    seldom = {"offset.flush.interval.ms": "3600000"}
    with hosts_of(plugins, tmp_path, ledger, seldom) as hosts:
        yield from driver_of(hosts, ledger, tmp_path)


def driver_of(hosts: TaskHosts, ledger: MemoryLedger, folder: Path) -> Iterator[PairDriver]:
    """Yield a driver with a log of its own, and close it."""
    shared = Shared()
    shared.get(TaskHosts, lambda: hosts)
    driver = PairDriver(shared, folder / "told", ledger=ledger)
    yield driver
    driver.close()
