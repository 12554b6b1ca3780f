# pyright: basic
"""Real file sinks without Spark: a double of its writer, which creates missing folders as well.

`Log` has the logged commits of one task; `Flow` is a task that writes numbers into a folder.
"""

import shutil
import subprocess
import threading
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from uuid import uuid4

import pyarrow as pa
import pyarrow.parquet as papq
from pyspark.sql.types import LongType, StructField, StructType

from fairlead.events.commits import Commit, CommitId
from fairlead.events.model import Resource, RunState, Token
from fairlead.projections.launches import Launch
from fairlead.runtime.pipeline.batches.counting import RowCount
from fairlead.runtime.pipeline.connectors import pipeline_keys as keys
from fairlead.runtime.pipeline.spi.connector import Pace, Pipeline
from fairlead.runtime.pipeline.spi.context import Context
from fairlead.runtime.pipeline.spi.sink import TaskOwnership
from fairlead.runtime.pipeline.spi.source import Limit
from fairlead.runtime.pipeline.stores.files import keys as files
from fairlead.runtime.pipeline.stores.files.sink.sink import FileSink
from fairlead.runtime.pipeline.stores.files.sink.writing import WriteFormat
from fairlead.runtime.pipeline.stores.files.sink_folder.root import FolderKeys, claim_sink
from fairlead.runtime.pipeline.tasks.task import Task, TaskHost
from fairlead_tests.tasks.memory_ledger import MemoryLedger
from fairlead_tests.tasks.numbers import CountingSource, Hooks, LocalEngine, Reports

NAME, TASK = "c", Resource("c", 0)
FIRST, SECOND = Token(1, 1), Token(2, 1)
FILES = 3
PATIENCE_S = 90.0


class Rows:
    """A frame of numbers, and its writer; each batch becomes `FILES` files, in two folders."""

    def __init__(
        self,
        numbers: Sequence[int],
        before: Callable[[Path], object] | None = None,
        after: Callable[[Path], object] | None = None,
    ) -> None:
        self._numbers = list(numbers)
        self._before = before
        self._after = after
        self._form = ""
        self._mode = ""

    @property
    def sparkSession(self) -> Any:  # noqa: N802  # as Spark spells it
        return SimpleNamespace(
            conf={},  # Spark writes these rows: nobody knows how
            sparkContext=SimpleNamespace(defaultParallelism=2, master="local[2]"),
        )

    @property
    def schema(self) -> StructType:
        return StructType([StructField("n", LongType())])

    def coalesce(self, _: int) -> "Rows":
        return self

    @property
    def count(self) -> int:
        return len(self._numbers)

    @property
    def write(self) -> "Rows":
        return self

    def mode(self, name: str) -> "Rows":
        self._mode = name
        return self

    def format(self, name: str) -> "Rows":
        self._form = name
        return self

    def options(self, **_: str) -> "Rows":
        return self

    def partitionBy(self, *_: str) -> "Rows":  # noqa: N802  # Spark's name
        return self

    def save(self, target: str) -> None:
        folder = Path(target.removeprefix("file:"))
        if self._before:
            self._before(folder)
        gone = folder if self._mode == "overwrite" else folder / "_temporary"
        shutil.rmtree(gone, ignore_errors=True)
        uuid = uuid4()
        for number in range(FILES):
            share = self._numbers[number::FILES]
            part = folder / f"k={number % 2}" / f"part-{number:05d}-{uuid}.c000.{self._form}"
            part.parent.mkdir(parents=True, exist_ok=True)
            if self._form == "parquet":
                papq.write_table(pa.table({"n": pa.array(share, pa.int64())}), part)
            else:
                part.write_text("".join(f"{each}\n" for each in share))
        if self._after:
            self._after(folder)


class Counted(RowCount):
    """Counts the rows of a frame as they are written, of a double as well."""

    def on(self, frame: Any, *beside: Any) -> Any:
        if not isinstance(frame, Rows):
            return super().on(frame, *beside)
        self.values = {"rows": frame.count}
        return frame


class Log:
    """The log of one task: its last commit, and its unpublished commits."""

    place = "here"

    def __init__(self) -> None:
        self.last: CommitId | None = None
        self.unpublished: list[Commit] = []

    def copy(self) -> "Log":
        other = Log()
        other.last, other.unpublished = self.last, list(self.unpublished)
        return other


def config(root: Path, **more: str) -> dict[str, str]:
    return {
        "name": NAME,
        "connector.class": "SparkPipeline",
        "source.format": "csv",
        "source.path": "/nowhere",
        "sink.format": "csv",
        "sink.path": str(root),
        **{key.replace("_", "."): value for key, value in more.items()},
    }


def claimed(
    root: Path, cluster: str = "a", before: dict[str, str] | None = None, **more: str
) -> dict[str, str]:
    """Return a task config as a connector creates it."""
    given = config(root, **more)
    claim = claim_sink(keys.keys_of(given).parse(given), cluster, NAME, before)
    return {**given, files.TASK_CLAIM: str(claim)}


def sink_of(
    task_config: dict[str, str], cluster: str = "a", told: list[str] | None = None
) -> FileSink:
    settings = keys.task_keys_of(task_config).parse(task_config)
    place = FolderKeys().place(Context(TASK, print, cluster_id=cluster), settings)
    name = settings.text(files.SINK_FORMAT)
    form = WriteFormat(name, options={"escape": '"'} if name == "csv" else {})
    warn = (told if told is not None else []).append
    return FileSink(place, form, warn, count=Counted)


def begun(root: Path, **more: str) -> tuple[dict[str, str], FileSink, Log]:
    """Return the config of a task that has begun, its sink, and a log without commits."""
    given, log = claimed(root, "a", None, **more), Log()
    sink = sink_of(given)
    begin(sink, log)
    return given, sink, log


def begin(sink: FileSink, log: Log, token: Token = FIRST) -> None:
    """Start as a task does: acquire, publish unpublished commits, sweep."""
    known = None if log.unpublished else log.last
    sink.acquire(TaskOwnership(TASK, token, log.last, known, log.place))
    publish(sink, log)
    sink.sweep(TASK, token)


def commit(sink: FileSink, log: Log, numbers: Sequence[int], token: Token = FIRST) -> Commit:
    """Stage and commit a batch."""
    batch = log.last.batch + 1 if log.last and log.last.token == token else 0
    commit_id = CommitId(*TASK, token, batch)
    frame: Any = Rows(numbers)
    made = Commit(commit_id, (), sink.stage(frame, commit_id, 0), len(numbers))
    log.last = commit_id
    log.unpublished.append(made)
    return made


def publish(sink: FileSink, log: Log) -> None:
    while log.unpublished:
        sink.publish(log.unpublished[0].manifest, log.unpublished[0].commit_id, 0)
        del log.unpublished[0]


def write(sink: FileSink, log: Log, numbers: Sequence[int], token: Token = FIRST) -> None:
    commit(sink, log, numbers, token)
    publish(sink, log)


def published(root: Path) -> list[int]:
    """Return all visible numbers in the folder, sorted."""
    found: list[int] = []
    for file in root.rglob("part-*"):
        if "_fairlead" in file.parts:
            continue
        if file.suffix == ".parquet":
            found += papq.read_table(file)["n"].to_pylist()
        else:
            found += [int(line) for line in file.read_text().split()]
    return sorted(found)


def staged(root: Path) -> list[Path]:
    return [each for each in (root / "_fairlead/staging").rglob("*") if each.is_file()]


class Flow:
    """A real task, on a thread, that counts to `last` into a folder, three numbers a batch."""

    def __init__(
        self, task_config: dict[str, str], last: int, ledger: MemoryLedger | None = None
    ) -> None:
        self.ledger = ledger or MemoryLedger()
        self.hooks = Hooks()
        self.reports = Reports()
        self.config = task_config
        self._last = last
        self.before_save: Callable[[Path], None] | None = None
        token = Token(len(self.ledger.accepted) + 1, 0)
        self.ledger.grant(TASK, token)
        launch = Launch(TASK, token, task_config, task_config)
        self.task = Task(launch, self._pipeline, TaskHost(LocalEngine(), self.ledger, self.reports))
        self._thread = threading.Thread(target=self.task.run)

    def _pipeline(self, context: Context) -> Pipeline:
        sink = sink_of(self.config, self.ledger.cluster_id)
        source = _Source(self._last, self.hooks, self)
        del context
        return Pipeline(
            source, (), sink, Pace(Limit(10, 1 << 20, 10), poll_interval_s=0.02, linger_s=0.02)
        )

    @property
    def status(self) -> tuple[RunState, str]:
        """Return its last report."""
        told = self.reports.statuses[-1]
        return told.state, told.reason

    def finished(self) -> None:
        """Wait until all is read and published."""
        pause = threading.Event()
        for _ in range(int(PATIENCE_S * 20)):
            known = list(self.ledger.offsets(NAME).values())
            if known and known[0]["next"] == self._last and not self.ledger.to_publish:
                return
            pause.wait(0.05)
        raise AssertionError(self.reports.told[-5:])

    @contextmanager
    def running(self) -> Generator["Flow"]:
        self._thread.start()
        try:
            yield self
        finally:
            self.task.cancel()
            self._thread.join(PATIENCE_S)
            assert not self._thread.is_alive()


class _Source(CountingSource):
    def __init__(self, last: int, hooks: Hooks, flow: Flow) -> None:
        super().__init__(last, hooks)
        self._flow = flow

    def read(self, spark: Any, ranges: Sequence[range]) -> Any:
        return Rows(super().read(spark, ranges), self._flow.before_save)


class Mount:
    """A mount point with a real bind mount that can be removed and restored."""

    def __init__(self, place: Path) -> None:
        self.folder, self.point = place / "disk", place / "mnt"
        self.folder.mkdir(exist_ok=True)
        self.point.mkdir()
        self.is_there = False

    def attach(self) -> None:
        subprocess.run(["mount", "--bind", self.folder, self.point], check=True)
        self.is_there = True

    def detach(self) -> None:
        subprocess.run(["umount", "-l", self.point], check=True)
        self.is_there = False

    @property
    def beneath(self) -> list[str]:
        """Return the content of the mount point while nothing is mounted."""
        assert not self.is_there
        return sorted(str(each.relative_to(self.point)) for each in self.point.rglob("*"))


def may_mount(place: Path) -> bool:
    done = subprocess.run(["mount", "--bind", place, place], check=False, capture_output=True)
    if done.returncode == 0:
        subprocess.run(["umount", "-l", place], check=True)
    return done.returncode == 0


def fill(disk: Path) -> Path:
    """Leave no byte on a disk."""
    ballast = disk / "ballast"
    with suppress(OSError), ballast.open("wb", buffering=0) as file:
        while True:
            file.write(bytes(4096))
    return ballast
