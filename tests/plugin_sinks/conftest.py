"""A plugin host with the tests' own sink, and what drives a task of it."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from fairlead.runtime.pipeline.plugins.running.hosts import TaskHosts
from fairlead.runtime.pipeline.spi.context import Shared
from fairlead_tests.plugins.sink_driver import Driver
from fairlead_tests.plugins.source_driver import hosts_of
from fairlead_tests.plugins.told_sink import write_told_sink
from fairlead_tests.tasks.memory_ledger import MemoryLedger


@pytest.fixture(scope="module")  # other tests know their host by being the only one
def hosts(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TaskHosts]:
    plugins = tmp_path_factory.mktemp("told")
    write_told_sink(plugins / "told")
    often = {"offset.flush.interval.ms": "100"}
    with hosts_of(plugins, tmp_path_factory.mktemp("host"), MemoryLedger(), often) as hosts:
        yield hosts


@pytest.fixture
def driver(hosts: TaskHosts, tmp_path: Path) -> Iterator[Driver]:
    shared = Shared()
    shared.get(TaskHosts, lambda: hosts)
    driver = Driver(shared, tmp_path / "told")
    yield driver
    driver.close()
