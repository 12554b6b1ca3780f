"""What the tests of tasks may ask for."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from fairlead.runtime.pipeline.tasks.runner import Runner
from fairlead_tests.tasks.memory_ledger import MemoryLedger
from fairlead_tests.tasks.numbers import (
    PATIENCE_S,
    Hooks,
    LocalEngine,
    Numbers,
    Reports,
    numbers_plugins,
)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """The sink's folder."""
    folder = tmp_path / "out"
    folder.mkdir()
    return folder


@pytest.fixture(autouse=True)
def hooks(monkeypatch: pytest.MonkeyPatch) -> Hooks:
    """The points at which a test reaches into the counting connector."""
    hooks = Hooks()
    monkeypatch.setattr(Numbers, "hooks", hooks)
    return hooks


@pytest.fixture
def ledger() -> MemoryLedger:
    return MemoryLedger()


@pytest.fixture
def engine() -> LocalEngine:
    return LocalEngine()


@pytest.fixture
def reports() -> Reports:
    return Reports()


@pytest.fixture
def runner(engine: LocalEngine, ledger: MemoryLedger, reports: Reports) -> Iterator[Runner]:
    """A runner that must have nothing left to run when the test is over."""
    runner = Runner(engine, ledger, numbers_plugins(), reports, grace_ms=10_000)
    yield runner
    assert runner.close(PATIENCE_S) == frozenset()
