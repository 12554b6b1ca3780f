"""What workers measure reaches a scrape, whatever becomes of them."""
# pyright: basic

import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from shutil import copy

import pytest
from prometheus_client.metrics_core import Metric
from prometheus_client.parser import text_string_to_metric_families as parse

from fairlead.events.model import ErrorClass
from fairlead.projections.metrics import files as figure_files
from fairlead.projections.metrics.exposition import Exposition
from fairlead.projections.metrics.files import FEW, WorkerFiles
from fairlead.projections.metrics.processes import (
    PHASES,
    ListenerMetrics,
    RequestMetrics,
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
    assert len(list(tmp_path.iterdir())) == 8


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


@pytest.mark.parametrize("workers", [1, FEW + 1])
def test_what_went_through_arrow_and_through_spark_is_counted(tmp_path: Path, workers: int) -> None:
    with closing(ListenerMetrics(tmp_path)) as listener:
        listener.count_request("JoinGroup")
    for number in range(workers):
        with closing(WorkerMetrics(tmp_path, f"w{number}")) as metrics:
            metrics.count_lane("arrow", 2, 30)
            metrics.count_lane("arrow", 1, 10)
            metrics.count_lane("spark", 1, 5)
    page, _ = Exposition("1.2.3", RequestMetrics(), tmp_path).write("", ())
    samples = [sample for family in parse(page.decode()) for sample in family.samples]
    counted = {
        (each.name, each.labels["lane"]): each.value for each in samples if "lane" in each.labels
    }
    assert counted == {
        ("fairlead_task_ranges_total", "arrow"): 3 * workers,
        ("fairlead_task_rows_total", "arrow"): 40 * workers,
        ("fairlead_task_ranges_total", "spark"): workers,
        ("fairlead_task_rows_total", "spark"): 5 * workers,
    }
    assert [each.value for each in samples if each.name == "fairlead_kafka_requests_total"] == [1]


def test_where_no_worker_has_measured_anything_a_page_is_there_all_the_same(tmp_path: Path) -> None:
    assert scraped(tmp_path / "missing") == {}


def test_what_a_worker_starts_measures_nothing_by_its_files(tmp_path: Path) -> None:
    WorkerMetrics(tmp_path, "w1").close()
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
        with closing(WorkerMetrics(tmp_path, f"w{number}")) as metrics:
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
        with closing(WorkerMetrics(tmp_path, f"w{number}")) as metrics:
            metrics.observe_batch(dict.fromkeys(PHASES, 0.25))
    merged = list[list[str]]()

    def note(files: Sequence[Path]) -> list[Metric]:
        assert all(each.exists() for each in files)
        merged.append([each.name for each in files])
        return []

    monkeypatch.setattr(figure_files, "_merge", note)
    assert [*WorkerFiles(tmp_path).collect()] == []
    kinds = ("histogram", "counter", "gauge_livesum", "gauge_livemax")
    assert merged == [[f"{kind}_sum.db" for kind in kinds]]
    assert {each.stat().st_size for each in tmp_path.iterdir()} == {1 << 16}


def counted(folder: Path, requests: RequestMetrics, *prefixes: str) -> dict[tuple[str, ...], float]:
    """Return the samples of a scrape whose names begin so, by name and values of labels."""
    page, _ = Exposition("1.2.3", requests, folder).write("", ())
    families = [*parse(page.decode())]
    names = [family.name for family in families]
    assert len(names) == len({*names}), "no family is there twice"
    return {
        (sample.name.removeprefix("fairlead_"), *sample.labels.values()): sample.value
        for family in families
        for sample in family.samples
        if sample.name.startswith(tuple(f"fairlead_{each}" for each in prefixes))
    }


def test_what_the_listener_counts_reaches_a_scrape_beside_what_rest_counts(tmp_path: Path) -> None:
    requests = RequestMetrics()
    requests.count_failure("basic")
    requests.count_denial("GET /connectors")
    with closing(ListenerMetrics(tmp_path)) as listener:
        for api in ("JoinGroup", "JoinGroup", "other"):
            listener.count_request(api)
        listener.count_refusal("length")
        listener.count_connection(2)
        listener.count_failed_authentication("PLAIN")
        listener.count_denial("JoinGroup")
        listener.count_failed_handshake()
        for end in (1e9, 2e9):
            listener.tell_certificate_end(end)
    listener.count_request("JoinGroup")  # it is closed
    listener.count_connection(-2)
    assert counted(tmp_path, requests, "kafka_", "auth_", "tls_", "certificate_") == {
        ("kafka_requests_total", "JoinGroup"): 2,
        ("kafka_requests_total", "other"): 1,
        ("kafka_refused_total", "length"): 1,
        ("kafka_connections",): 2,
        ("auth_failures_total", "rest", "basic"): 1,
        ("auth_failures_total", "kafka", "PLAIN"): 1,
        ("auth_denials_total", "rest", "GET /connectors"): 1,
        ("auth_denials_total", "kafka", "JoinGroup"): 1,
        ("tls_failed_handshakes_total", "kafka"): 1,
        ("certificate_not_after_timestamp_seconds", "kafka"): 2e9,
    }


@pytest.mark.parametrize("workers", [1, FEW + 1])
def test_errors_fenced_tasks_and_batches_that_run_or_wait_are_summed_up(
    tmp_path: Path, workers: int
) -> None:
    for number in range(workers):
        with closing(WorkerMetrics(tmp_path, f"w{number}")) as metrics:
            metrics.count_error(ErrorClass.OUTSIDE)
            metrics.count_fenced()
            metrics.tell_slots(4, 2)
            metrics.tell_open_batch(10.0 + number)
            metrics.observe_batch({}, 50)
        metrics.tell_slots(0, 0)  # it is closed
    told = counted(tmp_path, RequestMetrics(), "task_", "engine_")
    rows = {each[1]: told[each] for each in told if each[0] == "task_batch_rows_bucket"}
    assert (rows["10.0"], rows["100.0"], rows["+Inf"]) == (0, workers, workers)
    assert {key: told[key] for key in told if "batch_rows" not in key[0] and told[key]} == {
        ("task_open_batch_seconds",): 10 + workers - 1,
        ("task_errors_total", "outside"): workers,
        ("task_fenced_total",): workers,
        ("engine_running_batches",): 4 * workers,
        ("engine_waiting_batches",): 2 * workers,
    }
    with closing(WorkerMetrics(tmp_path, "w0")):
        told = counted(tmp_path, RequestMetrics(), "engine_")
    assert told["engine_running_batches",] == 4 * (workers - 1), "one that begins has none"


def test_the_files_of_figures_are_closed_with_them(tmp_path: Path) -> None:
    def opened() -> list[str]:
        links = Path("/proc/self/fd").iterdir()
        return [each for link in links if (each := os.path.realpath(link)).endswith(".db")]

    before = opened()
    listener, worker = ListenerMetrics(tmp_path), WorkerMetrics(tmp_path, "w1")
    for number in range(5):
        listener.count_request(str(number))
    assert len(opened()) == len(before) + 12, "each file, and the map of it"
    listener.close()
    worker.close()
    assert opened() == before
