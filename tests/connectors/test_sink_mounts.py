# pyright: reportPrivateUsage=false
"""A task whose sink goes away, fills up or is tampered with says so, and loses nothing."""

import random
import shutil
import subprocess
import threading
import time
from pathlib import Path

import pytest

from fairlead.events.model import Resource, RunState, Token
from fairlead.projections.launches import Launch
from fairlead.runtime.pipeline.connectors.plugins import find_plugins
from fairlead.runtime.pipeline.engines.embedded.engine import Embedded
from fairlead.runtime.pipeline.tasks.reports import TaskConfigsChanged
from fairlead.runtime.pipeline.tasks.runner import Runner
from fairlead_tests.connectors.sinks import TASK, Flow, Mount, claimed, fill, published, staged
from fairlead_tests.tasks.memory_ledger import MemoryLedger
from fairlead_tests.tasks.numbers import Reports

CLUSTER = MemoryLedger.cluster_id
LAST = 300


@pytest.mark.parametrize(
    "under", [pytest.param("mount point", marks=pytest.mark.soak), "folder in it"]
)
def test_a_mount_that_goes_and_comes_back_costs_no_row_and_nothing_is_written_beneath(
    mount: Mount, under: str
) -> None:
    root = mount.point if under == "mount point" else mount.point / "a" / "b"
    flow = Flow(claimed(root, CLUSTER, sink_format="parquet"), LAST)
    dice, pause = random.Random(7), threading.Event()
    with flow.running():
        for _ in range(6):
            pause.wait(dice.uniform(0, 0.3))
            mount.detach()
            pause.wait(dice.uniform(0, 0.8))
            assert mount.beneath == []
            mount.attach()
        flow.finished()
    assert published(root) == list(range(LAST))
    assert staged(root) == []


def test_a_task_whose_mount_is_away_waits_with_a_reason_and_goes_on_by_itself(
    mount: Mount,
) -> None:
    flow = Flow(claimed(mount.point, CLUSTER, sink_format="parquet"), 30)
    flow.hooks.at["plan"] = lambda: mount.detach() if mount.is_there else None
    with flow.running():
        told = flow.reports.wait_status(
            "waiting for the sink", str(mount.point), state=RunState.RUNNING
        )
        assert "is it not mounted" in told.reason
        assert mount.beneath == []
        flow.hooks.at.clear()
        mount.attach()
        flow.finished()
    assert published(mount.point) == list(range(30))


def test_a_full_disk_is_named_and_waited_for(small_disk: Path) -> None:
    root = small_disk / "out"
    flow = Flow(claimed(root, CLUSTER, sink_format="parquet"), 30)
    with flow.running():
        flow.reports.wait_batches(2)
        ballast = fill(small_disk)
        told = flow.reports.wait_status("no space left", str(root), state=RunState.RUNNING)
        assert "MiB are free now" in told.reason
        ballast.unlink()
        flow.finished()
    assert published(root) == list(range(30))
    assert staged(root) == []


@pytest.mark.spark
def test_spark_writes_nothing_beneath_an_absent_mount_and_waits_for_room_on_a_full_disk(
    small_disk: Path,
    tmp_path: Path,
    folders: dict[str, str],
    engine: Embedded,
    ledger: MemoryLedger,
) -> None:
    mount = Mount(tmp_path)
    mount.attach()
    rows = "".join(f"{number},{random.Random(number).random()}\n" for number in range(2000))
    config = folders | {
        "source.format": "csv",
        "source.schema": "n INT, x DOUBLE",
        "sink.format": "parquet",
        "sink.path": str(mount.point / "out"),
    }
    reports = Reports()
    runner = Runner(engine, ledger, find_plugins(), reports)
    token = Token(1, 0)
    runner.start(Launch(Resource("c"), token, config, config))
    made = reports.wait(lambda each: isinstance(each, TaskConfigsChanged))
    assert isinstance(made, TaskConfigsChanged)
    ballast = fill(small_disk)
    (tmp_path / "in" / "a.csv").write_text(f"n,x\n{rows}")
    runner.start(Launch(TASK, token, config, made.configs[0]))
    try:
        reports.wait(lambda each: "no space left on the disk of" in getattr(each, "reason", ""))
        mount.detach()
        reports.wait(lambda each: f"{mount.point / 'out'} is gone" in getattr(each, "reason", ""))
        assert mount.beneath == []
        mount.attach()
        ballast.unlink()
        assert reports.wait_batches(1)[0].commit.manifest.rows == 2000
    finally:
        assert runner.close(60) == frozenset()
        mount.detach()
    assert len(published(small_disk / "out")) == 2000


def test_a_disk_that_becomes_read_only_is_waited_for(small_disk: Path) -> None:
    root = small_disk / "out"
    ledger, is_read_only = MemoryLedger(), threading.Event()
    accept = ledger._accept

    def accept_then(commit: object) -> None:
        if ledger.accepted:
            is_read_only.wait()  # no file is being written meanwhile
        accept(commit)  # type: ignore[arg-type]

    ledger._accept = accept_then  # type: ignore[method-assign]
    flow = Flow(claimed(root, CLUSTER, sink_format="parquet"), 30, ledger)
    with flow.running():
        flow.reports.wait_batches(1)
        while subprocess.run(["mount", "-o", "remount,ro", small_disk], check=False).returncode:
            time.sleep(0.01)  # the first batch's staging is just being removed
        is_read_only.set()
        flow.reports.wait_status(
            "waiting for the sink", str(root), "read-only", state=RunState.RUNNING
        )
        subprocess.run(["mount", "-o", "remount,rw,size=1m", small_disk], check=True)
        flow.finished()
    assert published(root) == list(range(30))


def test_staged_rows_that_were_removed_with_their_marks_fail_the_task_by_batch_and_file(
    tmp_path: Path,
) -> None:
    """A foreign file is in the way, then what is staged is removed, then the foreign file."""
    root, ledger = tmp_path / "out", MemoryLedger()
    config = claimed(root, CLUSTER, sink_format="parquet")
    foreign: list[Path] = []

    def get_in_the_way() -> None:
        if foreign:
            return
        part = ledger.accepted[next(iter(ledger.accepted))].manifest.parts[0]
        foreign.append(root / part.path)
        foreign[0].parent.mkdir()
        foreign[0].write_text("foreign")

    flow = Flow(config, 9, ledger)
    accept = ledger._accept

    def accept_and_spoil(commit: object) -> None:
        accept(commit)  # type: ignore[arg-type]
        get_in_the_way()

    ledger._accept = accept_and_spoil  # type: ignore[method-assign]
    with flow.running():
        told = flow.reports.wait_status("exists already", state=RunState.FAILED)
        assert str(foreign[0]) in told.reason
        shutil.rmtree(root / "_fairlead")
        told = flow.reports.wait_status(
            "has lost _fairlead", "batch 0 of c-0", "sink.adopt=true", state=RunState.FAILED
        )
        assert str(foreign[0].relative_to(root)) in told.reason
        foreign[0].unlink()
    assert published(root) == []
    assert [each.batch for each in ledger.to_publish] == [0]
    again = Flow(
        claimed(root, CLUSTER, config, sink_adopt="true", sink_format="parquet"), 9, ledger
    )
    with again.running():
        again.finished()
    assert published(root) == list(range(3, 9))
