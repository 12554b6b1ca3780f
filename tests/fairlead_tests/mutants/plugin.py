"""What pytest does for mutants: notes which lines each test executes, or tries mutations.

`MUTANTS_NOTES`: the folder to note in. `MUTANTS_TRIALS`: a file of trials, whose results are
written to the descriptor `MUTANTS_RESULTS`. Tests that need a server are left out: each trial would
start one.
"""

import json
import os
from collections.abc import Generator
from pathlib import Path

import coverage
import pytest

import fairlead
from fairlead_tests.postgres_server import started

from .trials import try_all

SERVERS = {"broker", "jars", "server"}
"""The fixtures of Kafka's and PostgreSQL's servers."""


class WithoutServers:
    """Leaves out the tests that need a server."""

    @pytest.hookimpl(tryfirst=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        items[:] = [each for each in items if not _needs_server(each)]


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
        name = _name(item)
        self._lines.switch_context(name)
        try:
            return (yield)
        finally:
            self._lines.switch_context("")
            if not self._has_failed:
                with self._seconds.open("a") as file:
                    file.write(json.dumps([name, self._took]) + "\n")

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self._has_failed |= not report.passed
        self._took += report.duration

    def pytest_sessionfinish(self) -> None:
        self._lines.stop()
        self._lines.save()


class Trials:
    """Tries mutations in forks of the process that has collected the tests."""

    def __init__(self, file: Path, results: int) -> None:
        os.set_inheritable(results, False)
        self._trials = json.loads(file.read_text())
        self._results = results

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        for number, failed in try_all(session, self._trials):
            os.write(self._results, f"{json.dumps([number, failed])}\n".encode())
        return True


def _needs_server(item: pytest.Item) -> bool:
    """Tell whether a test has a server by a fixture, or starts one of its own."""
    if SERVERS.intersection(getattr(item, "fixturenames", ())):
        return True
    if not isinstance(item, pytest.Function):
        return False
    known = item.function.__globals__
    return any(known.get(each) is started for each in item.function.__code__.co_names)


def _name(item: pytest.Item) -> str:
    """Return the id of a test by itself: xdist appends the row in which it runs."""
    row = item.get_closest_marker("xdist_group")
    return item.nodeid.removesuffix(f"@{row.args[0]}") if row else item.nodeid


def pytest_configure(config: pytest.Config) -> None:
    config.pluginmanager.register(WithoutServers())
    is_controller = config.getoption("dist", "no") != "no" and not hasattr(config, "workerinput")
    if (folder := os.environ.get("MUTANTS_NOTES")) and not is_controller:
        config.pluginmanager.register(Notes(Path(folder)))
    if file := os.environ.get("MUTANTS_TRIALS"):
        results = int(os.environ["MUTANTS_RESULTS"])
        config.pluginmanager.register(Trials(Path(file), results))
