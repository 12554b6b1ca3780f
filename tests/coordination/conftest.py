"""The fixture of these tests."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from fairlead_tests.coordination.driver import CoordinatorDriver


@pytest.fixture
def driver(tmp_path: Path) -> Iterator[CoordinatorDriver]:
    """A coordinator of a group that is empty."""
    found = CoordinatorDriver.at(tmp_path)
    yield found
    found.close()
