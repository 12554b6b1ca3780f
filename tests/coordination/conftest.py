"""The fixture of these tests."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from fairlead_tests.coordination.office import Office


@pytest.fixture
def office(tmp_path: Path) -> Iterator[Office]:
    """A coordinator of a group that is empty."""
    found = Office.at(tmp_path)
    yield found
    found.close()
