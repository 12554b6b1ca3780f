"""A plugin that takes more memory than a worker may have fails its own task alone."""

import re
import resource
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from fairlead.actors.tether import tied
from fairlead.events.model import RunState
from fairlead.runtime.pipeline.tasks.runner import Runner
from fairlead.runtime.processes.isolation import limit_memory
from fairlead_tests.tasks.memory_ledger import MemoryLedger
from fairlead_tests.tasks.numbers import PATIENCE_S, LocalEngine, Reports, written
from fairlead_tests.tasks.wrong import Deeds, Wrong, wrong_launch, wrong_plugins

TOLD = "import resource; print(resource.getrlimit(resource.RLIMIT_DATA)[0])"


@pytest.fixture
def limit() -> Iterator[int]:
    """Return the limit of this process meanwhile: half a gigabyte more than it has."""
    before = resource.getrlimit(resource.RLIMIT_DATA)
    (held,) = re.findall(r"VmData:\s*(\d+) kB", Path("/proc/self/status").read_text())
    limit = (int(held) << 10) + (1 << 29)
    limit_memory(limit, is_for_children=False)
    yield limit
    resource.setrlimit(resource.RLIMIT_DATA, before)


@pytest.mark.usefixtures("limit")
def test_a_plugin_that_takes_too_much_memory_fails_its_task_which_goes_on_when_it_does_not(
    root: Path,
    engine: LocalEngine,
    ledger: MemoryLedger,
    reports: Reports,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    deeds = Deeds()
    monkeypatch.setattr(Wrong, "deeds", deeds)

    def take_all(right: Callable[[], Any]) -> Any:
        return right() if bytearray(1 << 30) else None

    deeds.of["c", "source.plan"] = take_all
    runner = Runner(engine, ledger, wrong_plugins(), reports)
    runner.start(wrong_launch(root, "c"))
    failed = reports.wait_status("MemoryError", state=RunState.FAILED)
    assert failed.reason.startswith("MemoryError")
    reports.wait_batches(3)
    assert runner.close(PATIENCE_S) == frozenset()
    assert written(root / "c") == list(range(9))


def test_the_limit_of_a_worker_is_not_that_of_its_jvm(limit: int) -> None:
    program = [sys.executable, "-I", "-S", "-c", TOLD]
    found = [
        int(subprocess.run(each, check=True, capture_output=True, text=True).stdout)
        for each in (program, tied(program))
    ]
    assert found == [limit, resource.getrlimit(resource.RLIMIT_DATA)[1]]
