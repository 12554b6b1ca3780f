# pyright: basic
"""Files are read and written by Arrow on a server whose Python has it, and has no fairlead."""

import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pyarrow.parquet as papq
import pytest
from py4j import java_gateway, protocol
from pyspark.sql import SparkSession

from fairlead.runtime.pipeline.engines.connect.engine import ConnectEngine
from fairlead.runtime.pipeline.engines.embedded.engine import Embedded
from fairlead.runtime.pipeline.engines.engine import Cancelled
from fairlead.runtime.pipeline.engines.executors.arrow_job import run_job
from fairlead.runtime.pipeline.engines.executors.cluster import SparkCluster
from fairlead.runtime.pipeline.engines.sessions import allow_arrow, may_run_arrow, session_beside
from fairlead_tests.spark_engine.connect_server import ConnectServerProcess
from fairlead_tests.spark_engine.pythons import ARROW, make_python
from fairlead_tests.spark_engine.runs import has_read, run
from fairlead_tests.spark_engine.signs import gone, runs

pytestmark = pytest.mark.spark

ROWS = 100_000
"""Of a file that Arrow reads, since it is no small one."""


@pytest.fixture(scope="module", params=["server", pytest.param("bare", marks=pytest.mark.soak)])
def on_arrow_server(request: pytest.FixtureRequest) -> ConnectEngine:
    """An engine, warm, on the server of all tests here, or on one with a Python of its own."""
    name = "on_bare_server" if request.param == "bare" else "on_server"
    engine: ConnectEngine = request.getfixturevalue(name)
    return engine


@pytest.fixture(scope="module")
def on_bare_server(
    tmp_path_factory: pytest.TempPathFactory, shared: Path, the_engine: Embedded
) -> Iterator[ConnectEngine]:
    """An engine, warm, on a server whose Python has no more than Arrow needs."""
    the_engine.close(20)  # PySpark's functions are for a JVM or for a server
    folder = tmp_path_factory.mktemp("bare")
    server = ConnectServerProcess(folder, python=str(make_python(folder / "python", *ARROW)))
    server.start()
    made = ConnectEngine(shared / "worker", SparkCluster(server.master, (shared,)))
    with pytest.MonkeyPatch.context() as process:
        process.setattr(java_gateway, "get_return_value", protocol.get_return_value)
        made.open()
        assert made.wait_warm(180), made.detail
        yield made
        made.close(20)
    server.kill()


def test_rows_of_files_come_once_each_by_arrow(
    on_arrow_server: ConnectEngine, shared: Path
) -> None:
    (shared / "in").mkdir()
    lines = "".join(f"{number},{number:060}\n" for number in range(ROWS))
    (shared / "in" / "a.csv").write_text(f"n,s\n{lines}")
    config = {
        "name": "c",
        "connector.class": "SparkPipeline",
        "source.path": str(shared / "in"),
        "source.format": "csv",
        "source.schema": "n INT, s STRING",
        "source.min.age.ms": "0",
        "sink.format": "parquet",
        "sink.path": str(shared / "out"),
        "task.restart.budget": "0",
    }
    reports = run(on_arrow_server, config, has_read(ROWS))
    assert [each.trace for each in reports.statuses if each.trace] == []
    files = [papq.ParquetFile(each) for each in shared.glob("out/*.parquet")]
    assert {each.metadata.created_by.partition(" ")[0] for each in files} == {"parquet-cpp-arrow"}
    rows = [(row["n"], row["s"]) for each in files for row in each.read().to_pylist()]
    assert sorted(rows) == [(number, f"{number:060}") for number in range(ROWS)]


# Each run cancels such functions on one host (spark_engine/test_arrow_job.py), and another job of
# a server by its tag (test_session.py).
@pytest.mark.soak
def test_cancel_ends_functions_at_the_server(
    on_arrow_server: ConnectEngine, tmp_path: Path
) -> None:
    os.mkfifo(tmp_path / "pipe")

    def wait() -> list[int]:
        (tmp_path / "a.tmp").write_text(str(os.getpid()))
        (tmp_path / "a.tmp").rename(tmp_path / "a.pid")
        with (tmp_path / "pipe").open("rb") as pipe:
            return [*pipe.read()]

    with ThreadPoolExecutor(1) as threads:
        waiting = threads.submit(on_arrow_server.run, "wait", lambda spark: run_job(spark, [wait]))
        process = runs(tmp_path, "a")
        on_arrow_server.cancel("wait")
        with pytest.raises(Cancelled):
            waiting.result(60)
    assert gone([process.pid])


def test_sessions_beside_another_know_what_that_knows(on_arrow_server: ConnectEngine) -> None:
    def change(is_allowed: bool) -> bool:
        def job(spark: SparkSession) -> bool:
            beside = session_beside(spark, {"spark.sql.shuffle.partitions": "3"})
            allow_arrow(spark, is_allowed=is_allowed)
            return may_run_arrow(beside)

        return on_arrow_server.run("change", job)

    assert [change(False), change(True)] == [False, True]
