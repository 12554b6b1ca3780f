"""A run of OpenLineage whose process was killed is ended by the next one of its job."""

import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import cast

import pytest
from openlineage.client.event_v2 import RunEvent, RunState

from fairlead.events.commits import Commit, CommitId, Manifest
from fairlead.events.model import Resource, Token
from fairlead.runtime.pipeline.lineage.open_runs import OpenRuns
from fairlead.runtime.pipeline.lineage.run import RunLineage
from fairlead.runtime.pipeline.lineage.sending import EventSender
from fairlead.runtime.pipeline.spi.context import Context
from fairlead.runtime.pipeline.spi.lineage import Dataset, RunEnd

URL = "http://marquez:5000"
RUN = "0193b0f5-0000-7000-8000-000000000000"


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Have temporary files of this process and of its children in a folder of their own."""
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr(tempfile, "tempdir", None)
    yield tmp_path
    tempfile.tempdir = None


def open_and_die(job: str = "orders") -> None:
    """Open a run in a process that is gone without a word."""
    program = f"""
import os
from fairlead.runtime.pipeline.lineage.open_runs import OpenRuns
OpenRuns({URL!r}, "fairlead", {job!r}).open({RUN!r})
os.kill(os.getpid(), 9)
"""
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == -9


def test_a_run_is_found_once_by_the_next_one_of_its_job_if_its_process_is_gone() -> None:
    open_and_die()
    ours = OpenRuns(URL, "fairlead", "orders")
    ours.open("0193b0f5-0000-7000-8000-000000000001")
    assert list(OpenRuns(URL, "fairlead", "others").take_abandoned()) == []
    assert list(OpenRuns("http://other:5000", "fairlead", "orders").take_abandoned()) == []
    assert list(ours.take_abandoned()) == [RUN]
    assert list(ours.take_abandoned()) == []


def test_nothing_is_taken_from_a_folder_that_others_write_to(folder: Path) -> None:
    open_and_die()
    (runs,) = folder.glob("fairlead-runs-*")
    (runs / "no-json").write_text("{")
    runs.chmod(0o777)
    assert list(OpenRuns(URL, "fairlead", "orders").take_abandoned()) == []
    runs.chmod(0o700)
    assert list(OpenRuns(URL, "fairlead", "orders").take_abandoned()) == [RUN]


class Sender:
    """Keeps the events that it is to send."""

    def __init__(self) -> None:
        self.told: list[tuple[RunState | None, str]] = []

    def send(self, event: RunEvent) -> None:
        """Keep an event."""
        self.told.append((event.eventType, event.run.runId))

    def close(self) -> None:
        """Do nothing: none waits."""


def test_the_run_that_takes_over_aborts_the_old_one_and_leaves_none_of_its_own(
    folder: Path,
) -> None:
    open_and_die()
    sender = Sender()
    runs = OpenRuns(URL, "fairlead", "orders")
    run = RunLineage(
        Dataset("fairlead", "orders"),
        lambda: cast(EventSender, sender),
        runs,
        lambda _: (frozenset(), frozenset()),
        Context(Resource("orders", 0), print),
    )
    commit_id = CommitId("orders", 0, Token(2, 0), 0)
    run.batch(Commit(commit_id, (), Manifest("", "", 0, 0, 0), 0))
    run.end(RunEnd.COMPLETE)
    assert sender.told[0] == (RunState.ABORT, RUN)
    assert [state for state, _ in sender.told[1:]] == [RunState.START, RunState.COMPLETE]
    assert [*next(folder.glob("fairlead-runs-*")).iterdir()] == []
