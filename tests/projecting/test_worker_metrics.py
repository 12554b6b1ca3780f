"""What workers measure reaches a scrape, whatever becomes of them."""
# pyright: basic

import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from shutil import copy

import pytest
from prometheus_client.metrics_core import Metric
from prometheus_client.parser import text_string_to_metric_families as parse

from fairlead.projections.metrics import processes
from fairlead.projections.metrics.exposition import Exposition
from fairlead.projections.metrics.processes import (
    FEW,
    PHASES,
    ListenerMetrics,
    RequestMetrics,
    WorkerFiles,
    WorkerMetrics,
)

WORKER = """
import sys, time
from pathlib import Path
from fairlead.projections.metrics.processes import PHASES, WorkerMetrics

metrics = WorkerMetrics(Path(sys.argv[1]), sys.argv[2])
for _ in range(3):
    metrics.observe_batch(dict.fromkeys(PHASES, 0.25))
print("measured", flush=True)
time.sleep(60)
"""


def killed_worker(folder: Path, name: str) -> None:
    """Let a worker measure three batches, and kill it."""
    command = [sys.executable, "-c", WORKER, str(folder), name]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "measured\n"
        process.send_signal(signal.SIGKILL)


def scraped(folder: Path) -> dict[tuple[str, str], float]:
    """Return what a scrape tells of batches: counts, sums and the largest bucket, by phase."""
    page, _ = Exposition("1.2.3", RequestMetrics(), folder).write("", ())
    return {
        (sample.name.removeprefix("fairlead_task_batch_seconds_"), sample.labels["phase"]): (
            sample.value
        )
        for family in parse(page.decode())
        if family.name == "fairlead_task_batch_seconds"
        for sample in family.samples
        if sample.labels.get("le", "+Inf") == "+Inf"
    }


def measured(batches: int, seconds: float) -> dict[tuple[str, str], float]:
    return {
        key: value
        for phase in PHASES
        for key, value in {
            ("bucket", phase): batches,
            ("count", phase): batches,
            ("sum", phase): seconds,
        }.items()
    }


def test_workers_that_were_killed_are_counted_and_go_on_where_they_ended(tmp_path: Path) -> None:
    killed_worker(tmp_path, "w1")
    assert scraped(tmp_path) == measured(3, 0.75)
    killed_worker(tmp_path, "w1")
    killed_worker(tmp_path, "a/worker_of_mine")
    assert scraped(tmp_path) == measured(9, 2.25)
    assert len(list(tmp_path.iterdir())) == 2


def test_many_files_without_an_entry_are_no_error(tmp_path: Path) -> None:
    for number in range(FEW + 1):
        (tmp_path / f"histogram_w{number}.db").write_bytes(bytes(1 << 16))
    assert scraped(tmp_path) == {}


def test_where_a_sum_has_no_room_the_files_are_read_as_they_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    killed_worker(tmp_path, "w1")
    for number in range(FEW):
        copy(tmp_path / "histogram_w1.db", tmp_path / f"histogram_x{number}.db")
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "full"))
    assert scraped(tmp_path) == measured(3 * (FEW + 1), 0.75 * (FEW + 1))


def test_where_no_worker_has_measured_anything_a_page_is_there_all_the_same(tmp_path: Path) -> None:
    assert scraped(tmp_path / "missing") == {}


def test_what_a_worker_starts_measures_nothing_by_its_files(tmp_path: Path) -> None:
    WorkerMetrics(tmp_path, "w1")
    requests = RequestMetrics()
    requests.observe("GET", "/connectors", 200, 0.1)
    assert "PROMETHEUS_MULTIPROC_DIR" not in os.environ
    assert scraped(tmp_path) == measured(0, 0.0)


def test_a_worker_on_a_full_disk_measures_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "posix_fallocate", fail)
    WorkerMetrics(tmp_path, "w1").observe_batch(dict.fromkeys(PHASES, 1.0))
    assert scraped(tmp_path) == {}


@pytest.mark.parametrize("workers", [FEW, FEW + 1, 20])
def test_the_figures_of_many_workers_are_the_sum_of_each_also_of_another_release(
    tmp_path: Path, workers: int
) -> None:
    for number in range(workers):
        metrics = WorkerMetrics(tmp_path, f"w{number}")
        for _ in range(number):
            metrics.observe_batch(dict.fromkeys(PHASES, 0.25))
    batches = sum(range(workers))
    assert scraped(tmp_path) == measured(batches, batches * 0.25)
    file = tmp_path / "histogram_w1.db"
    other = file.read_bytes().replace(b"Time that the phases", b"Time which the phase")
    file.write_bytes(other)
    assert scraped(tmp_path) == measured(batches, batches * 0.25)


def test_the_files_of_many_workers_are_merged_as_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(FEW + 1):
        WorkerMetrics(tmp_path, f"w{number}").observe_batch(dict.fromkeys(PHASES, 0.25))
    merged = list[list[str]]()

    def note(files: Sequence[Path]) -> list[Metric]:
        assert all(each.exists() for each in files)
        merged.append([each.name for each in files])
        return []

    monkeypatch.setattr(processes, "_merge", note)
    assert [*WorkerFiles(tmp_path).collect()] == []
    assert merged == [["histogram_sum.db"]]
    assert {each.stat().st_size for each in tmp_path.iterdir()} == {1 << 16}


def test_what_the_listener_counts_reaches_a_scrape(tmp_path: Path) -> None:
    listener = ListenerMetrics(tmp_path)
    for api in ("JoinGroup", "JoinGroup", "other"):
        listener.count_request(api)
    listener.count_refusal("length")
    listener.count_connection(2)
    page, _ = Exposition("1.2.3", RequestMetrics(), tmp_path).write("", ())
    samples = (sample for family in parse(page.decode()) for sample in family.samples)
    assert {
        (each.name, *each.labels.values()): each.value
        for each in samples
        if each.name.startswith("fairlead_kafka_")
    } == {
        ("fairlead_kafka_requests_total", "JoinGroup"): 2,
        ("fairlead_kafka_requests_total", "other"): 1,
        ("fairlead_kafka_refused_total", "length"): 1,
        ("fairlead_kafka_connections",): 2,
    }
