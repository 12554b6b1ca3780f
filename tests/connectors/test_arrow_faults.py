# pyright: basic
"""Whatever befalls a batch that Arrow reads and writes in tasks of Spark, each row comes once."""

import errno
import os
import random
import signal
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import psutil
import pyarrow as pa
import pyarrow.parquet as papq
import pytest
from pyspark.errors import PySparkException

from fairlead.events.model import Resource, RunState, Token
from fairlead.projections.launches import Launch
from fairlead.runtime.pipeline.connectors.plugins import find_plugins
from fairlead.runtime.pipeline.engines.embedded.engine import Embedded
from fairlead.runtime.pipeline.formats.csv.arrow_reader import (
    CsvReading,
    TextChangedError,
    TextRange,
    read_ranges,
    state_of,
)
from fairlead.runtime.pipeline.spi.context import Context
from fairlead.runtime.pipeline.spi.rows import LaneCount
from fairlead.runtime.pipeline.stores.files.sink.arrow_parts import write_part, write_parts
from fairlead.runtime.pipeline.stores.files.sink.sink import FileSink
from fairlead.runtime.pipeline.stores.files.source.formats import ReadFormat
from fairlead.runtime.pipeline.stores.files.source.reading import Reading
from fairlead.runtime.pipeline.tasks.reports import Stopped, TaskConfigsChanged
from fairlead.runtime.pipeline.tasks.runner import Runner
from fairlead_tests.connectors.held_parts import HeldParts
from fairlead_tests.connectors.sinks import Mount, fill, staged
from fairlead_tests.soaks import thinned
from fairlead_tests.spark_engine.signs import gone
from fairlead_tests.tasks.memory_ledger import MemoryLedger
from fairlead_tests.tasks.numbers import Reports

TASK = Resource("c", 0)
FILES, ROWS = 2, 3_000
BY_ARROW, BY_SPARK = {"parquet-cpp-arrow"}, {"parquet-mr"}
TEXT = "x" * 1_000
"""A row is as long, so that a file has some chunks."""


class Scene:
    """A task that reads a folder; the parts of its first batch are held in the middle."""

    def __init__(
        self, engine: Embedded, ledger: MemoryLedger, config: Mapping[str, str], held: HeldParts
    ) -> None:
        self.engine, self.held = engine, held
        self._ledger = ledger
        self._config = config
        self.folder, self.out = Path(config["source.path"]), Path(config["sink.path"])
        self._token = Token(0, 0)
        self._files = 0
        self.reports: Reports
        self.runner: Runner

    def land(self) -> None:
        """Move a file in."""
        rows = range(self._files * ROWS, (self._files + 1) * ROWS)
        hidden = self.folder / ".hidden"
        hidden.write_text("n,s\n" + "".join(f"{each},{TEXT}\n" for each in rows))
        hidden.rename(self.folder / f"{self._files}.csv")
        self._files += 1

    def start(self) -> Token:
        """Start the task under a new token."""
        self.reports = Reports()
        self.runner = Runner(self.engine, self._ledger, find_plugins(), self.reports)
        self._token = Token(self._token.grant_epoch + 1, 0)
        self._ledger.grant(TASK, self._token)
        self.runner.start(Launch(Resource("c"), self._token, self._config, self._config))
        made = self.reports.wait(lambda each: isinstance(each, TaskConfigsChanged))
        assert isinstance(made, TaskConfigsChanged)
        self.runner.start(Launch(TASK, self._token, self._config, made.configs[0]))
        return self._token

    def begin(self) -> None:
        """Land a batch, and start the task."""
        for _ in range(FILES):
            self.land()
        self.start()

    def hold(self) -> int:
        """Begin; return the process that holds a part of the batch."""
        self.begin()
        return self.held.wait()

    def ends_well(self, writers: set[str] = BY_ARROW) -> None:
        """Let the batch go on, which `writers` come to write, and see that the next one is Arrow's.

        Each row must have come once, and nothing be left.
        """
        self.held.go()
        self.reports.wait_batches(1)
        self.land()
        self.reports.wait_batches(2)
        assert [each.trace for each in self.reports.statuses if each.trace] == []
        assert [self.writers(batch) for batch in range(2)] == [writers, BY_ARROW]
        assert (self.wrong(), staged(self.out)) == ({}, [])

    def writers(self, batch: int) -> set[str]:
        """Return who wrote the files of a batch."""
        parts = self.reports.commits[batch].manifest.parts
        told = [papq.read_metadata(self.out / each.path).created_by for each in parts]
        return {each.split()[0] for each in told}

    def wrong(self) -> dict[int, int]:
        """Return the numbers that come more often than in the files, or less often (negative)."""
        found = Counter[int]()
        for each in self.out.glob("*.parquet"):
            found.update(papq.read_table(each)["n"].to_pylist())
        for each in self.folder.glob("*.csv"):
            found.subtract(
                int(line.partition(",")[0]) for line in each.read_text().splitlines()[1:]
            )
        return {number: more for number, more in found.items() if more}


@pytest.fixture
def scene_at(
    engine: Embedded,
    ledger: MemoryLedger,
    folders: dict[str, str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> Iterator[Callable[[Path], Scene]]:
    """Make a scene with its sink at a place."""
    (signs := tmp_path / "signs").mkdir()
    given = {
        "source.format": "csv",
        "source.schema": "n INT, s STRING",
        "sink.format": "parquet",
        "task.restart.budget": "9",
        "task.restart.backoff.initial.ms": "10",
    }
    held, made = HeldParts(signs, monkeypatch), list[Scene]()

    def scene_at(sink: Path) -> Scene:
        config = folders | given | {"sink.path": str(sink)}
        made.append(Scene(engine, ledger, config, held))
        return made[-1]

    yield scene_at
    held.go()
    for each in made:
        assert each.runner.close(60) == frozenset()


@pytest.fixture
def scene(scene_at: Callable[[Path], Scene], tmp_path: Path) -> Scene:
    return scene_at(tmp_path / "out")


@pytest.mark.spark
def test_a_killed_python_worker_leaves_its_batch_to_spark_and_the_next_one_is_arrows(
    scene: Scene,
) -> None:
    os.kill(scene.hold(), signal.SIGKILL)
    scene.ends_well(BY_SPARK)
    (told,) = {each.reason for each in scene.reports.statuses if each.reason}
    assert "read by Spark, not by Arrow: Arrow could not read them: " in told


@pytest.mark.soak
@pytest.mark.spark
def test_whenever_python_workers_are_killed_all_rows_come_once_and_no_attempt_fails(
    scene: Scene,
) -> None:
    scene.held.go()
    scene.begin()
    scene.reports.wait_batches(1)
    dice, is_over, jvm = random.Random(29), threading.Event(), psutil.Process(scene.engine.pid)

    def kill_some() -> None:
        while not is_over.wait(dice.uniform(0.05, 0.6)):
            below = [each for each in jvm.children(recursive=True) if each.name() != "java"]
            if below:
                with suppress(psutil.NoSuchProcess):
                    dice.choice(below).kill()

    killer = threading.Thread(target=kill_some)
    killer.start()
    try:
        for batch in range(2, 60):
            scene.land()
            scene.reports.wait_batches(batch)
    finally:
        is_over.set()
        killer.join()
    assert [each.trace for each in scene.reports.statuses if each.trace] == []
    writers = [*map(scene.writers, range(59))]
    assert BY_ARROW in writers
    assert BY_SPARK in writers
    assert (scene.wrong(), staged(scene.out)) == ({}, [])


@pytest.mark.spark
def test_parts_go_on_without_the_process_that_python_workers_are_forked_from(scene: Scene) -> None:
    forked_from = psutil.Process(scene.hold()).parent()
    assert forked_from is not None
    assert forked_from.cmdline()[2].endswith("python_daemon")
    forked_from.kill()
    scene.ends_well()


@pytest.mark.soak
@pytest.mark.spark
def test_a_batch_whose_jvm_was_killed_is_read_again_by_arrow(
    scene: Scene, engine_to_end: Embedded
) -> None:
    writer, jvm = scene.hold(), engine_to_end.pid
    assert jvm is not None
    os.kill(jvm, signal.SIGKILL)
    assert gone([writer])
    engine_to_end.open()
    assert engine_to_end.wait_warm(120)
    scene.ends_well()


@pytest.mark.spark
def test_a_cancelled_batch_leaves_nothing_and_its_next_owner_reads_it(scene: Scene) -> None:
    scene.hold()
    scene.runner.abandon()
    scene.reports.wait(lambda each: isinstance(each, Stopped) and each.resource == TASK)
    assert (staged(scene.out), scene.reports.batches) == ([], [])
    assert scene.runner.close(60) == frozenset()
    scene.start()
    scene.ends_well()


@pytest.mark.spark
def test_a_staging_folder_that_was_removed_amid_a_part_is_told_and_the_batch_written_again(
    scene: Scene, tmp_path: Path
) -> None:
    scene.hold()
    # A folder to which others write cannot be removed at once.
    (scene.out / "_fairlead/staging").rename(tmp_path / "cleaned")
    told = scene.reports.wait_status("vanished from", state=RunState.RUNNING)
    assert told.reason == (
        f"waiting for the sink: files of a batch vanished from {scene.out}/_fairlead/staging while "
        "Spark wrote them. Nothing of the batch counts, and it is written again. Keep whatever "
        f"cleans up away from {scene.out}/_fairlead/staging"
    )
    scene.ends_well()


@pytest.mark.spark
def test_a_disk_that_fills_up_amid_a_part_is_waited_for(
    small_disk: Path, scene_at: Callable[[Path], Scene]
) -> None:
    scene = scene_at(small_disk / "out")
    scene.hold()
    ballast = fill(small_disk)
    scene.held.go()
    told = scene.reports.wait_status("no space left on the disk of", state=RunState.RUNNING)
    assert f"{scene.out} (0 of 1 MiB are free now)" in told.reason
    assert [*scene.out.glob("*.parquet")] == []
    ballast.unlink()
    scene.ends_well()


@pytest.mark.spark
def test_a_sink_that_is_unmounted_amid_a_part_is_waited_for(
    mount: Mount, scene_at: Callable[[Path], Scene]
) -> None:
    scene = scene_at(mount.point / "out")
    scene.hold()
    mount.detach()
    scene.held.go()
    scene.reports.wait_status("waiting for the sink", str(scene.out), state=RunState.RUNNING)
    assert mount.beneath == []
    mount.attach()
    scene.ends_well()


def cut(file: Path) -> None:
    os.truncate(file, file.read_bytes().rfind(b"\n", 0, file.stat().st_size // 2) + 1)


def grow(file: Path) -> None:
    with file.open("a") as stream:
        stream.write("-1,a\n")


def replace(file: Path) -> None:
    (other := file.with_name(".other")).write_text('n,s\n-1,"a ""b"" c"\n-2,"x"y\n')
    other.rename(file)


@pytest.mark.spark
@pytest.mark.parametrize("harm", thinned([cut, grow, replace, Path.unlink], 2))
def test_a_file_that_changes_amid_a_part_counts_as_it_is_now(
    scene: Scene, harm: Callable[[Path], None]
) -> None:
    scene.hold()
    file = scene.folder / "0.csv"
    harm(file)
    scene.held.go()
    words = "changed while it was read" if file.exists() else "gone, or behind a link"
    scene.reports.wait_status(str(file), words, state=RunState.FAILED)
    scene.reports.wait(lambda _: not scene.wrong())
    assert scene.runner.close(60) == frozenset()
    assert (scene.wrong(), staged(scene.out)) == ({}, [])


def test_a_file_that_took_the_place_of_a_proved_one_is_not_read(tmp_path: Path) -> None:
    file, other = tmp_path / "a.csv", tmp_path / "b.csv"
    for each in (file, other):
        each.write_text("n\n1\n")
    with file.open("rb") as stream:
        proved = TextRange(str(file), (2, 4), ("n",), has_zones=True, state=state_of(stream))
    how = CsvReading(pa.schema({"n": pa.int32()}), ",", '"', ())
    assert [each.to_pylist() for each in read_ranges(how, [proved])] == [[{"n": 1}]]
    other.rename(file)
    with pytest.raises(TextChangedError, match=r"a\.csv changed after it was proved"):
        next(read_ranges(how, [proved]))


def shorten(part: Path) -> None:
    papq.write_table(papq.read_table(part).slice(1), part)


@pytest.mark.spark
@pytest.mark.parametrize(
    ("harm", "words"),
    thinned(
        [
            (cut, "its files are not whole"),
            (shorten, f"of {FILES * ROWS} rows its files have {FILES * ROWS - 1}"),
            (Path.unlink, f"of {FILES * ROWS} rows its files have"),
        ],
        2,
    ),
)
def test_a_staged_part_that_was_changed_before_its_manifest_is_told_and_written_again(
    scene: Scene, monkeypatch: pytest.MonkeyPatch, harm: Callable[[Path], object], words: str
) -> None:
    scene.held.go()
    harmed = list[Path]()

    def write_and_harm(*given: Any, **more: Any) -> Any:
        written = write_parts(*given, **more)
        if not harmed:
            harmed.append(staged(scene.out)[0])
            harm(harmed[0])
        return written

    monkeypatch.setattr(f"{FileSink.__module__}.write_parts", write_and_harm)
    scene.begin()
    scene.reports.wait_status("was changed after it was written", words, state=RunState.RUNNING)
    scene.ends_well()


@pytest.mark.parametrize(
    ("told", "again"),
    [
        (
            "Job aborted due to stage failure: Lost task 0.0: Python worker exited unexpectedly",
            True,
        ),
        (
            "Job aborted due to stage failure: Lost task 1.0: SocketException: Connection reset",
            True,
        ),
        ("Job 7 cancelled part of cancelled job tags c/1", False),
        (
            "Job aborted due to stage failure: Lost task 0.0: [FAILED_READ_FILE.NO_HINT] "
            "Encountered error while reading file file:///in/a.csv. SQLSTATE: KD001",
            False,
        ),
    ],
)
def test_what_ends_the_tasks_of_parts_leaves_them_to_spark_unless_it_would_end_sparks_too(
    tmp_path: Path, told: str, *, again: bool
) -> None:
    files = Reading(tmp_path, ReadFormat("csv", "n INT"), Context(Resource("c", 0), print))
    assert not files.narrow(PySparkException(told)), "Arrow has read nothing"
    files.lanes.last = LaneCount(1)
    assert files.narrow(PySparkException(told)) is again


def test_a_part_ends_when_its_file_is_gone(tmp_path: Path) -> None:
    table = pa.table({"n": [1]})
    read = list[int]()

    def tables() -> Iterator[Any]:
        for number in range(9):
            if number == 3:
                next(tmp_path.iterdir()).unlink()
            read.append(number)
            yield table

    failed, path, number, _ = write_part(tables, 7, str(tmp_path), table.schema)
    assert (failed, Path(path).parent, number) == ("written", tmp_path, errno.ENOENT)
    assert Path(path).name.startswith("part-00007-")
    assert read == [0, 1, 2, 3]
