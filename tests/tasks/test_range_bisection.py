"""A file that a batch fails for keeps no other file waiting, whoever it is that fails."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
from pyspark.errors import PySparkException

from fairlead.events.commits import CommitId, Manifest
from fairlead.events.model import ErrorClass, Resource, RunState, Token
from fairlead.runtime.pipeline.engines.engine import TaskError
from fairlead.runtime.pipeline.spi.connector import Pipeline
from fairlead.runtime.pipeline.spi.context import Context
from fairlead.runtime.pipeline.spi.errors import BadInput, SchemaRefused
from fairlead.runtime.pipeline.spi.source import Limit
from fairlead.runtime.pipeline.stores.files.source.formats import ReadFormat
from fairlead.runtime.pipeline.stores.files.source.listing import SourceFile
from fairlead.runtime.pipeline.stores.files.source.offsets import EVERYTHING, Folder
from fairlead.runtime.pipeline.stores.files.source.source import FileSource
from fairlead.runtime.pipeline.tasks.range_bisection import defer
from fairlead.runtime.pipeline.tasks.reports import Warned
from fairlead.runtime.pipeline.tasks.task import Task, TaskHost
from fairlead_tests.tasks.memory_ledger import MemoryLedger
from fairlead_tests.tasks.numbers import (
    PATIENCE_S,
    Hooks,
    LineSink,
    LocalEngine,
    Numbers,
    Reports,
    numbers_launch,
    written,
)

BAD = "never"


class LineFiles(FileSource):
    """Reads files without Spark: a number per line."""

    def read(self, spark: Any, ranges: Sequence[SourceFile]) -> Any:
        del spark
        return [line for each in ranges for line in self.text(each).split()]

    def text(self, each: SourceFile) -> str:
        return (self._folder.root / each.path).read_text()


class Strict(LineSink):
    """Fails for rows that are no numbers, as a transform, a sink or a limit does."""

    error: Exception

    def stage(self, rows: Any, commit_id: CommitId, input_bytes: int) -> Manifest:
        if BAD in rows:
            raise self.error
        return super().stage(rows, commit_id, input_bytes)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The source's folder, with a bad file among eight."""
    folder = tmp_path / "in"
    folder.mkdir()
    for number in range(8):
        (folder / f"{number}.txt").write_text(BAD if number == 2 else str(number))
    return folder


@pytest.fixture
def lines(folder: Path, root: Path, engine: LocalEngine, reports: Reports) -> Iterator[Task]:
    """A task that copies numbers out of files; it has used up its restarts at once."""
    more = {"task.restart.budget": "0", "task.restart.backoff.max.ms": "50"}
    launch = numbers_launch(root, Token(1, 0), more=more)

    def pipeline(context: Context) -> Pipeline:
        source = LineFiles(Folder(folder, "*", EVERYTHING), ReadFormat("csv", "n INT"), context)
        made = Numbers().pipeline(context, launch.config)
        return replace(made, source=source, sink=Strict(root, Hooks()))

    task = Task(launch, pipeline, TaskHost(engine, MemoryLedger(), reports))
    thread = Thread(target=task.run)
    thread.start()
    yield task
    task.halt.drain()
    thread.join(PATIENCE_S)
    assert not thread.is_alive()


def wait_written(root: Path, reports: Reports, expected: list[int]) -> None:
    reports.wait(lambda _: written(root) == expected)


@pytest.mark.parametrize(
    "error",
    [TaskError("CAST_INVALID_INPUT"), BadInput("violates positive"), SchemaRefused("no column d")],
    ids=lambda each: type(each).__name__,
)
def test_a_bad_file_that_fails_in_a_transform_or_the_sink_keeps_no_other_file_waiting(
    error: Exception,
    folder: Path,
    root: Path,
    reports: Reports,
    request: pytest.FixtureRequest,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(Strict, "error", error, raising=False)
    request.getfixturevalue("lines")
    failed = reports.wait_status(state=RunState.FAILED)
    reason = f"{folder}/2.txt, in a batch of its own: {error}"
    assert (failed.reason, failed.error) == (reason, ErrorClass.INPUT)
    (folder / "9.txt").write_text("9")
    wait_written(root, reports, [0, 1, 3, 4, 5, 6, 7, 9])
    first, *_ = (each.text for each in reports.told if isinstance(each, Warned))
    some = ", ".join(f"{folder}/{number}.txt" for number in range(3))
    assert first == f"a batch of {some} and 5 more failed, and is read again in halves: {error}"
    (folder / "2.txt").write_text("22")
    wait_written(root, reports, [0, 1, 3, 4, 5, 6, 7, 9, 22])


def test_a_batch_that_ends_with_the_session_of_its_server_says_nothing_of_its_files(
    folder: Path,
) -> None:
    context = Context(Resource("n", 0), lambda _: None)
    source = LineFiles(Folder(folder, "*", EVERYTHING), ReadFormat("csv", "n INT"), context)
    files = source.plan({}, Limit(9, 1 << 20, 2)).ranges
    error = TaskError("no session")
    error.__cause__ = PySparkException(errorClass="NO_ACTIVE_SESSION", messageParameters={})
    defer(source, files, error)
    assert (len(files), context.deferred) == (2, {})
