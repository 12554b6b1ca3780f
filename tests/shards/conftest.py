"""What the tests of groups that share a process share."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from fairlead_tests.actor_system import Running, isolated
from fairlead_tests.shards.driver import ShardDriver


@pytest.fixture(scope="module")
def shared_system(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """The system of all tests of a module; their actors end with it."""
    with isolated(tmp_path_factory.mktemp("shared") / "system") as running:
        yield running


@pytest.fixture
def actor_system(shared_system: Running, tmp_path: Path) -> Running:
    """Yield a real system in a separate process tree, with a folder of the test's own."""
    return replace(shared_system, folder=shared_system.folder / tmp_path.name)


@pytest.fixture
def driver(tmp_path: Path) -> Iterator[ShardDriver]:
    driver = ShardDriver(tmp_path)
    yield driver
    driver.close()
