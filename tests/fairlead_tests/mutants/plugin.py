"""What pytest does for mutants: notes which lines each test executes, or runs chosen tests only.

`MUTANTS_NOTES`: the folder to note in. `MUTANTS_CHOSEN`: a file with the ids of the tests to run,
in their order.
"""

import json
import os
from collections.abc import Generator
from pathlib import Path

import coverage
import pytest

import fairlead


class Notes:
    """Notes the lines that each test executes, and how long it takes if it passes."""

    def __init__(self, folder: Path) -> None:
        (house,) = fairlead.__path__
        where = str(folder / "lines")
        parts = ("actors", "events", "projections", "runtime", "tests")
        rooms = [f"{house}/{each}/*" for each in parts]
        self._lines = coverage.Coverage(where, data_suffix=True, include=rooms, config_file=False)
        self._seconds = folder / f"seconds-{os.getpid()}"
        self._took = 0.0
        self._has_failed = False
        self._lines.start()

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Generator[None, object, object]:
        self._took, self._has_failed = 0.0, False
        self._lines.switch_context(item.nodeid)
        try:
            return (yield)
        finally:
            self._lines.switch_context("")
            if not self._has_failed:
                with self._seconds.open("a") as file:
                    file.write(json.dumps([item.nodeid, self._took]) + "\n")

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self._has_failed |= not report.passed
        self._took += report.duration

    def pytest_sessionfinish(self) -> None:
        self._lines.stop()
        self._lines.save()


class Chosen:
    """Runs chosen tests only, in their order."""

    def __init__(self, file: Path) -> None:
        self._order = {name: at for at, name in enumerate(json.loads(file.read_text()))}

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        items[:] = [each for each in items if each.nodeid in self._order]
        items.sort(key=lambda each: self._order[each.nodeid])


def pytest_configure(config: pytest.Config) -> None:
    is_controller = config.getoption("dist", "no") != "no" and not hasattr(config, "workerinput")
    if (folder := os.environ.get("MUTANTS_NOTES")) and not is_controller:
        config.pluginmanager.register(Notes(Path(folder)))
    if file := os.environ.get("MUTANTS_CHOSEN"):
        config.pluginmanager.register(Chosen(Path(file)))
