"""Alerts that fire on faults of connectors and JVMs, and end; dashboards with rows."""

import os
import signal
import threading
import time
from collections.abc import Generator, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import httpx
import psutil
import pytest

from fairlead_tests.monitoring.dashboards import queries
from fairlead_tests.monitoring.prometheus_server import Prometheus, running_prometheus
from fairlead_tests.monitoring.watched_node import WatchedNode, watched_node

pytestmark = [pytest.mark.cluster, pytest.mark.spark, pytest.mark.soak, pytest.mark.timeout(600)]
LONG_S = 180.0
WITHOUT_KAFKA = {
    "connector: Records left to read",
    "fleet: Alerts that fire",
    "group: Groups of Kafka's clients",
    "group: Their rebalances by cause",
    "group: Their requests",
    "group: Until waiting work is due",
}
"""What a node has nothing for whose workers stay, and that no client of Kafka's asks."""
QUICK = {
    "connector.class": "SparkPipeline",
    "tasks.max": "1",
    "source.format": "csv",
    "source.schema": "number INT, name STRING",
    "transforms": "doubled",
    "transforms.doubled.type": "sql",
    "transforms.doubled.query": "SELECT number * 2 AS number, name FROM input",
    "sink.format": "parquet",
    "task.restart.backoff.initial.ms": "100",
    "task.restart.backoff.max.ms": "300",
    "errors.retry.delay.max.ms": "500",
}


@pytest.fixture(scope="module")
def watched(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[WatchedNode, Prometheus]]:
    folder = tmp_path_factory.mktemp("watched")
    with watched_node(folder, "workers=1", "spark.heap=600m", quicker=60) as (node, prometheus):
        node.up()
        prometheus.comes("fairlead_engine_up == 1", LONG_S)
        yield node, prometheus


class Flow:
    """A connector, and the folder that it reads."""

    def __init__(self, node: WatchedNode, name: str, keys: Mapping[str, str]) -> None:
        self._url = f"{node.url}/connectors/{name}"
        self.name = name
        self.landing, self.target = (node.folder / name / each for each in ("in", "out"))
        self.landing.mkdir(parents=True)
        self._keys = keys
        self._files = 0

    def create(self) -> None:
        paths = {"source.path": str(self.landing), "sink.path": str(self.target)}
        answer = httpx.put(f"{self._url}/config", json={**QUICK, **paths, **self._keys}, timeout=60)
        assert answer.status_code == httpx.codes.CREATED, answer.text

    def land(self, text: str = "1,a\n2,b\n") -> Path:
        """Land a file whole."""
        self._files += 1
        path = self.landing / f"{self._files:06}.csv"
        made = path.with_name(".made")
        made.write_text(f"number,name\n{text}")
        made.rename(path)
        return path

    @contextmanager
    def landing_files(self, seconds: float) -> Generator[None]:
        """Land a file every few seconds meanwhile."""
        end = threading.Event()

        def go_on() -> None:
            while not end.wait(seconds):
                self.land()

        thread = threading.Thread(target=go_on)
        thread.start()
        try:
            yield
        finally:
            end.set()
            thread.join()

    def delete(self) -> None:
        assert httpx.delete(self._url, timeout=60).is_success


@contextmanager
def flowing(node: WatchedNode, name: str, **keys: str) -> Generator[Flow]:
    """Yield a connector that is created with a first file, and deleted at the end."""
    flow = Flow(node, name, {key.replace("_", "."): value for key, value in keys.items()})
    flow.land()
    flow.create()
    try:
        yield flow
    finally:
        flow.delete()


def hit_jvm(node: WatchedNode, number: signal.Signals) -> None:
    """Send a signal to the JVM, and to what has started it if it still runs."""
    for each in filter(is_java, node.node.processes()):
        os.kill(each.pid, number)


def is_java(process: psutil.Process) -> bool:
    try:
        return process.name() == "java"
    except psutil.NoSuchProcess:
        return False


def committed(name: str) -> str:
    return f'fairlead_connector_batches_total{{connector="{name}"}} > 0'


def test_dead_letters_are_told_of_and_every_query_of_the_dashboards_has_data(
    watched: tuple[WatchedNode, Prometheus],
) -> None:
    node, prometheus = watched
    letters = str(node.folder / "letters")
    tolerant = {"errors_tolerance": "all", "errors_deadletterqueue_path": letters}
    with flowing(node, "flights", **tolerant) as flow, flow.landing_files(2):
        prometheus.comes(committed("flights"), LONG_S)
        flow.land("x,a\n2,b\n")
        prometheus.fires("FairleadDeadLetters", LONG_S)
        flow.land("y,a\n2,b\n")
        prometheus.comes("increase(fairlead_task_dead_letters_total[10s]) > 0", LONG_S)
        now = time.time()
        empty = set[str]()
        for each in queries():
            window = {"start": str(now - 30), "end": str(now), "step": "1"}
            if not prometheus.ask("query_range", query=each.expanded(), **window)["result"]:
                empty.add(each.panel)
        prometheus.ends("FairleadDeadLetters")
    assert empty - WITHOUT_KAFKA == {"connector: Who can mend it"}


def test_a_task_that_cannot_read_a_row_is_told_of_until_the_row_is_gone(
    watched: tuple[WatchedNode, Prometheus],
) -> None:
    node, prometheus = watched
    with flowing(node, "strict", task_restart_budget="12") as flow:
        prometheus.comes(committed("strict"), LONG_S)
        bad = flow.land("x,a\n")
        prometheus.comes('fairlead_task_errors_total{error="input"} > 0', LONG_S)
        prometheus.fires("FairleadTaskCrashLoop", LONG_S)
        (failed,) = prometheus.fires("FairleadTaskFailed", LONG_S)
        assert failed["summary"] == "1 of the tasks of strict have failed"
        bad.unlink()
        prometheus.ends("FairleadTaskFailed", LONG_S)
        prometheus.ends("FairleadTaskCrashLoop", LONG_S)


def test_a_connector_that_can_read_none_of_its_files_is_told_of_until_it_can(
    watched: tuple[WatchedNode, Prometheus],
) -> None:
    node, prometheus = watched
    flow = Flow(node, "unread", {"source.format": "parquet", "source.schema": ""})
    bad = flow.land()
    flow.create()
    prometheus.fires("FairleadConnectorFailed", LONG_S)
    bad.unlink()
    prometheus.ends("FairleadConnectorFailed", LONG_S)
    flow.delete()


def test_a_folder_that_is_away_is_told_of_until_it_is_back(
    watched: tuple[WatchedNode, Prometheus],
) -> None:
    node, prometheus = watched
    with flowing(node, "away") as flow:
        prometheus.comes(committed("away"), LONG_S)
        elsewhere = flow.landing.with_name("elsewhere")
        flow.landing.rename(elsewhere)
        prometheus.fires("FairleadConnectorWaits", LONG_S)
        elsewhere.rename(flow.landing)
        prometheus.ends("FairleadConnectorWaits", LONG_S)


def test_a_batch_on_a_jvm_that_hangs_is_told_of_until_it_is_committed(
    watched: tuple[WatchedNode, Prometheus],
) -> None:
    node, prometheus = watched
    with flowing(node, "slow", batch_max_rows="1", rate_limit_rows_per_second="20") as flow:
        for _ in range(2_000):
            flow.land()
        prometheus.comes('fairlead_connector_lag_bytes{connector="slow"} > 0', LONG_S)
        hit_jvm(node, signal.SIGSTOP)
        try:
            prometheus.fires("FairleadNothingCommitted", LONG_S)
        finally:
            hit_jvm(node, signal.SIGCONT)
        prometheus.ends("FairleadNothingCommitted", LONG_S)


def test_a_batch_that_hangs_is_told_of_although_its_task_had_read_all_before(
    watched: tuple[WatchedNode, Prometheus],
) -> None:
    node, prometheus = watched
    with flowing(node, "small") as flow:
        prometheus.comes(committed("small"), LONG_S)
        hit_jvm(node, signal.SIGSTOP)
        flow.land()
        try:
            prometheus.fires("FairleadBatchHangs", LONG_S)
            assert not prometheus.query('fairlead_connector_lag_bytes{connector="small"} > 0')
        finally:
            hit_jvm(node, signal.SIGCONT)
        prometheus.ends("FairleadBatchHangs", LONG_S)


def test_a_jvm_that_ends_again_and_again_is_told_of_until_it_stays(
    watched: tuple[WatchedNode, Prometheus], tmp_path: Path
) -> None:
    node, _ = watched
    with running_prometheus(tmp_path, [node.address], quicker=20) as prometheus:
        prometheus.comes("fairlead_engine_up == 1", LONG_S)
        for _ in range(4):
            before = prometheus.query("fairlead_engine_restarts_total")[0]["value"][1]
            hit_jvm(node, signal.SIGKILL)
            prometheus.comes(f"fairlead_engine_restarts_total > {before}", LONG_S)
            prometheus.comes("fairlead_engine_up == 1", LONG_S)
        prometheus.fires("FairleadEngineCrashLoop")
        prometheus.ends("FairleadEngineCrashLoop", 2 * LONG_S)
