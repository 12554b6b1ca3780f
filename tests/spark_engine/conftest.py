"""What the tests of engines have in common."""

from pathlib import Path

import pytest


@pytest.fixture
def signs(tmp_path: Path) -> Path:
    """A folder in which executors leave signs for the test."""
    folder = tmp_path / "signs"
    folder.mkdir()
    return folder
