# pyright: reportUnknownArgumentType=false, reportUnknownMemberType=false
"""The way from a config to files."""

import faulthandler
import os
import subprocess
import threading
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pytest
from py4j import java_gateway, protocol

from fairlead.events.model import Resource, Token
from fairlead.projections.launches import Launch
from fairlead.runtime.config.references.redaction import Redaction
from fairlead.runtime.pipeline.connectors.plugins import find_plugins
from fairlead.runtime.pipeline.engines.embedded.engine import Embedded
from fairlead.runtime.pipeline.engines.queries import query_check as checks
from fairlead.runtime.pipeline.engines.queries.query_check import QueryCheck
from fairlead.runtime.pipeline.stores.files.source.listing import walk
from fairlead.runtime.pipeline.tasks.reports import TaskConfigsChanged
from fairlead.runtime.pipeline.tasks.runner import Runner
from fairlead_tests.connectors.sinks import Mount, may_mount
from fairlead_tests.tasks.memory_ledger import MemoryLedger
from fairlead_tests.tasks.numbers import Reports

Run = Callable[[Mapping[str, str]], Reports]


@pytest.fixture(scope="module", autouse=True)
def patient_checks() -> Iterator[None]:
    """Have queries be checked for as long as it takes on a busy machine."""
    with pytest.MonkeyPatch.context() as patience:
        patience.setattr(checks, "LONGEST_SECONDS", 120.0)
        yield


@pytest.fixture
def plain_py4j(monkeypatch: pytest.MonkeyPatch) -> None:
    """Py4J as it is where no session is: PySpark's errors ask the JVM of the session about all."""
    monkeypatch.setattr(java_gateway, "get_return_value", protocol.get_return_value)


@pytest.fixture(scope="session")
def query_check() -> Iterator[QueryCheck]:
    check = QueryCheck()
    yield check
    check.close()


@pytest.fixture
def spark(query_check: QueryCheck, plain_py4j: None) -> QueryCheck:  # noqa: ARG001
    """Spark as a node asks it about SQL, without a session."""
    return query_check


@pytest.fixture
def folders(tmp_path: Path) -> dict[str, str]:
    """The part of a config that says where from and where to."""
    (tmp_path / "in").mkdir()
    return {
        "name": "c",
        "connector.class": "SparkPipeline",
        "source.path": str(tmp_path / "in"),
        "sink.path": str(tmp_path / "out"),
        "source.min.age.ms": "0",
        "task.restart.budget": "0",
    }


@pytest.fixture
def ledger() -> MemoryLedger:
    return MemoryLedger()


@pytest.fixture
def redaction() -> Redaction:
    """What takes secrets out of what tasks say; it knows none yet."""
    return Redaction()


@pytest.fixture
def run(engine: Embedded, ledger: MemoryLedger, redaction: Redaction) -> Run:
    """Run a connector with all its tasks until every file is read, or one has failed."""

    def run(config: Mapping[str, str]) -> Reports:
        reports = Reports()
        runner = Runner(engine, ledger, find_plugins(), reports, hide=redaction.hide)
        token = Token(len(ledger.accepted) + 1, 0)
        runner.start(Launch(Resource("c"), token, config, config))
        try:
            made = reports.wait(lambda each: isinstance(each, TaskConfigsChanged) or _failed(each))
            if isinstance(made, TaskConfigsChanged):
                for task, task_config in enumerate(made.configs):
                    runner.start(Launch(Resource("c", task), token, config, task_config))
                files = len(list(walk(Path(config["source.path"]), config.get("source.glob", "*"))))
                _wait(reports, lambda: len(ledger.offsets("c")) >= files)
        finally:
            assert runner.close(60) == frozenset()
        return reports

    return run


@pytest.fixture
def mount(tmp_path: Path) -> Iterator[Mount]:
    if os.geteuid() != 0 or not may_mount(tmp_path):
        pytest.skip("mounts need root and the right to mount")
    mount = Mount(tmp_path)
    mount.attach()
    yield mount
    if mount.is_there:
        mount.detach()


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A disk of one MiB."""
    if os.geteuid() != 0 or not may_mount(tmp_path):
        pytest.skip("mounts need root and the right to mount")
    disk = tmp_path / "disk"
    disk.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", disk], check=True)
    yield disk
    subprocess.run(["umount", "-l", disk], check=True)


def _wait(reports: Reports, done: Callable[[], bool]) -> None:
    pause = threading.Event()
    for _ in range(600):
        if done() or any(map(_failed, reports.told)):
            return
        pause.wait(0.1)
    faulthandler.dump_traceback()  # what hangs is seen in no report
    raise AssertionError(reports.told)


def _failed(report: object) -> bool:
    state = getattr(report, "state", None)
    return state is not None and state.value == "FAILED"
