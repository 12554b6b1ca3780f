"""One engine for all tests of this folder; one that a test brought down is opened again."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from fairlead.runtime.pipeline.spark.embedded import Embedded
from fairlead.runtime.pipeline.spark.engine import EngineState


@pytest.fixture(scope="session")
def the_engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Embedded]:
    engine = Embedded(tmp_path_factory.mktemp("engine"), cores=2)
    yield engine
    engine.close(20)


@pytest.fixture
def engine(the_engine: Embedded) -> Embedded:
    if the_engine.state is not EngineState.WARM:
        the_engine.open()
        assert the_engine.wait_warm(120), the_engine.detail
    return the_engine


@pytest.fixture
def signs(tmp_path: Path) -> Path:
    """A folder in which executors leave signs for the test."""
    folder = tmp_path / "signs"
    folder.mkdir()
    return folder
