"""What the tests of groups that share a process share."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from fairlead_tests.actor_system import actor_system
from fairlead_tests.shards.driver import ShardDriver

__all__ = ["actor_system"]


@pytest.fixture
def driver(tmp_path: Path) -> Iterator[ShardDriver]:
    driver = ShardDriver(tmp_path)
    yield driver
    driver.close()
