"""A connector without Spark: it counts, and writes what it counted where real sinks do."""

import os
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, ClassVar, TypeVar

from fairlead.events.commits import Advance, Commit, CommitId, Document, Manifest, identity
from fairlead.events.model import Resource, RunState, Token
from fairlead.projections.launches import Launch
from fairlead.runtime.pipeline.connectors.plugins import Plugin, Plugins
from fairlead.runtime.pipeline.engines.engine import Cancelled, EngineDown, EngineState, JvmHeap
from fairlead.runtime.pipeline.spi.config import ConfigDef
from fairlead.runtime.pipeline.spi.connector import Connector, Pace, Pipeline
from fairlead.runtime.pipeline.spi.context import Context
from fairlead.runtime.pipeline.spi.keys.common import COMMON
from fairlead.runtime.pipeline.spi.sink import Sink
from fairlead.runtime.pipeline.spi.source import BatchPlan, Limit, Source
from fairlead.runtime.pipeline.spi.transform import Transform
from fairlead.runtime.pipeline.stores.files.sink_folder import publishing, staging
from fairlead.runtime.pipeline.stores.files.sink_folder.root import SinkLocation, open_root
from fairlead.runtime.pipeline.tasks.reports import BatchDone, Report, StatusChanged, Stopped

T = TypeVar("T")
PATIENCE_S = 120.0


class Hooks:
    """What a test does at a named point of a batch: `plan`, `read`, `stage`, `publish`."""

    def __init__(self) -> None:
        self.at: dict[str, Callable[[], None]] = {}
        self.sequences: list[int] = []
        """The numbers that batches were published under, call by call."""

    def pass_by(self, name: str) -> None:
        if name in self.at:
            self.at[name]()


class Gate:
    """A point that a thread waits at until the test opens it."""

    def __init__(self) -> None:
        self.reached = threading.Event()
        self.opened = threading.Event()

    def __call__(self) -> None:
        self.reached.set()
        assert self.opened.wait(PATIENCE_S)


class CountingSource(Source[range]):
    """One partition whose offset is the next number; three numbers make a batch."""

    def __init__(self, last: int, hooks: Hooks) -> None:
        self._last = last
        self._hooks = hooks

    def plan(self, offsets: Mapping[str, Document], limit: Limit) -> BatchPlan[range]:
        del limit
        self._hooks.pass_by("plan")
        start = offsets.get(identity({"numbers": "all"}))
        begin = int(start["next"] or 0) if start else 0
        end = min(begin + 3, self._last)
        if begin >= end:
            return BatchPlan()
        advance = Advance({"numbers": "all"}, start, {"next": end})
        return BatchPlan(
            (range(begin, end),), (advance,), 8 * (end - begin), end - begin, end < self._last
        )

    def read(self, spark: Any, ranges: Sequence[range]) -> Any:
        del spark
        self._hooks.pass_by("read")
        return [number for each in ranges for number in each]


class LineSink(Sink[Any]):
    """One file per batch, a number per line, staged and published as files are."""

    def __init__(self, root: Path, hooks: Hooks) -> None:
        self._root = root
        self._hooks = hooks

    @property
    def counts_rows(self) -> bool:
        return True

    def stage(self, rows: Any, commit_id: CommitId, input_bytes: int) -> Manifest:
        del input_bytes
        where = staging.batch_folder(commit_id)
        folder = self._root / where
        folder.mkdir(parents=True)
        part = folder / "part-00000-12345678-1234-1234-1234-123456789abc-c000.txt"
        part.write_text("".join(f"{number}\n" for number in rows))
        self._hooks.pass_by("stage")
        staging.make_durable(self._root, folder)
        bare = Manifest(str(self._root), where, len(rows), part.stat().st_size, 1)
        parts = publishing.parts_of(self._root, bare, commit_id, publishing.unknown_row_count)
        return replace(bare, parts=parts)

    def publish(self, manifest: Manifest, commit_id: CommitId, sequence: int) -> None:
        self._hooks.sequences.append(sequence)
        self._hooks.pass_by("publish")
        with open_root(SinkLocation(self._root, "", "", None)) as root:
            publishing.publish(root.path, manifest, commit_id)

    def discard(self, commit_id: CommitId) -> None:
        staging.discard(self._root, commit_id)

    def sweep(self, resource: Resource, token: Token) -> None:
        staging.sweep(self._root, resource, token)


class Numbers(Connector):
    """Counts to `last` into the folder `root`; a test reaches into it by `hooks`."""

    hooks: ClassVar[Hooks] = Hooks()

    @classmethod
    def config(cls) -> ConfigDef:
        return COMMON

    def start(self, context: Context, config: Mapping[str, str]) -> None:
        del context
        self._config = config
        self.hooks.pass_by("start")

    def task_configs(self, max_tasks: int) -> Sequence[Mapping[str, str]]:
        self.hooks.pass_by("task_configs")
        return [{**self._config, "share": str(task)} for task in range(max_tasks)]

    def pipeline(self, context: Context, task_config: Mapping[str, str]) -> Pipeline:
        del context
        source = CountingSource(int(task_config["last"]), self.hooks)
        chain: tuple[Transform, ...] = ()
        sink = LineSink(Path(task_config["root"]), self.hooks)
        return Pipeline(
            source, chain, sink, Pace(Limit(10, 1 << 20, 10), poll_interval_s=0.05, linger_s=0.05)
        )


class LocalEngine:
    """Runs jobs in the process; `lose` is the death of its driver."""

    def __init__(self, state: EngineState = EngineState.WARM) -> None:
        self.state = state
        self.detail = "a driver of the tests"
        self.pid: int | None = None
        self.heap: JvmHeap | None = None
        self.is_wanted = True
        self.cancelled: list[str] = []
        self._cut = threading.Event()
        self._life = 0

    def open(self) -> None:
        self.state = EngineState.WARM

    def wait_warm(self, seconds: float) -> bool:
        if self.state is EngineState.WARMING:
            time.sleep(min(seconds, 0.01))
        return self.state is EngineState.WARM

    def run(self, tag: str, job: Callable[[Any], T], pool: str = "") -> T:
        del pool
        if self.state is not EngineState.WARM:
            raise EngineDown("the driver is gone")
        self._cut.clear()
        life, cancelled = self._life, self.cancelled.count(tag)
        result = job(self)
        if life != self._life:
            raise EngineDown("the driver is gone")
        if self.cancelled.count(tag) > cancelled:
            raise Cancelled(tag)
        return result

    def cancel(self, tag: str) -> None:
        self.cancelled.append(tag)
        self._cut.set()

    def lose(self) -> None:
        self._life += 1
        self.state = EngineState.DOWN

    def kill(self) -> None:
        self.lose()

    def close(self, seconds: float) -> None:
        del seconds
        self.state = EngineState.COLD

    def wait_cut(self) -> None:
        assert self._cut.wait(PATIENCE_S)


@dataclass(slots=True)
class Reports:
    """What was reported, and a way to wait for a report that has not come yet."""

    told: list[Report] = field(default_factory=list[Report])
    _changed: threading.Condition = field(default_factory=threading.Condition)

    def __call__(self, report: Report) -> None:
        with self._changed:
            self.told.append(report)
            self._changed.notify_all()

    def wait(self, fits: Callable[[Report], bool]) -> Report:
        with self._changed:
            assert self._changed.wait_for(lambda: any(map(fits, self.told)), PATIENCE_S), self.told
            return next(filter(fits, self.told))

    def wait_stopped(self, token: Token) -> Stopped:
        found = self.wait(lambda each: isinstance(each, Stopped) and each.token == token)
        assert isinstance(found, Stopped)
        return found

    def wait_status(self, *words: str, state: RunState | None = None) -> StatusChanged:
        """Wait for a status that says these words, in its reason or its trace."""

        def fits(each: Report) -> bool:
            if not isinstance(each, StatusChanged) or state not in {None, each.state}:
                return False
            return all(word in each.reason or word in each.trace for word in words)

        found = self.wait(fits)
        assert isinstance(found, StatusChanged)
        return found

    def wait_batches(self, count: int) -> list[BatchDone]:
        with self._changed:
            assert self._changed.wait_for(lambda: len(self.batches) >= count, PATIENCE_S), self.told
            return self.batches

    @property
    def batches(self) -> list[BatchDone]:
        return [each for each in self.told if isinstance(each, BatchDone)]

    @property
    def commits(self) -> list[Commit]:
        return [each.commit for each in self.batches]

    @property
    def statuses(self) -> list[StatusChanged]:
        return [each for each in self.told if isinstance(each, StatusChanged)]


def numbers_launch(
    root: Path, token: Token, *, last: int = 9, task: int = 0, more: Mapping[str, str] | None = None
) -> Launch:
    """Return the launch of a task (or, with task -1, of the connector) that counts."""
    config = {
        "name": "n",
        "connector.class": "Numbers",
        "root": str(root),
        "last": str(last),
        "task.restart.backoff.initial.ms": "10",
        **(more or {}),
    }
    return Launch(Resource("n", task), token, config, config)


def numbers_plugins() -> Plugins:
    return Plugins((Plugin(Numbers),), {})


def written(root: Path) -> list[int]:
    """Return all numbers that a reader of the folder sees, sorted."""
    files = sorted(root.glob("*.txt"))
    return sorted(int(line) for file in files for line in file.read_text().split())


def staged(root: Path) -> list[str]:
    """Return the files that are staged, by their paths below the staging folder.

    What a task sweeps meanwhile counts as gone: `os.walk` passes over folders that vanish.
    """
    folder = root / staging.STAGING
    files = (Path(path, name) for path, _, names in os.walk(folder) for name in names)
    return sorted(str(file.relative_to(folder)) for file in files)
