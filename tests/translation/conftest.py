"""The fixture of these tests."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from fairlead_tests.translation.driver import MixedDriver


@pytest.fixture
def driver(tmp_path: Path) -> Iterator[MixedDriver]:
    """The process of a group that is empty; connectors A and B have five tasks in all."""
    found = MixedDriver.at(tmp_path)
    assert isinstance(found, MixedDriver)
    found.configure("A A-0 A-1 A-2 B B-0 B-1")
    yield found
    found.close()
