# pyright: basic
"""Jobs on the executors of a cluster: a real master and a real worker, which ask for a secret."""

import json
import platform
import subprocess
import time
from collections.abc import Generator, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import Event
from typing import Any, NamedTuple

import psutil
import pyarrow as pa
import pyarrow.parquet as papq
import pytest
from pyspark.sql import SparkSession

from fairlead.events.commits import CommitId
from fairlead.events.model import Resource, Token
from fairlead.projections.launches import Launch
from fairlead.runtime.pipeline.connectors.plugins import find_plugins
from fairlead.runtime.pipeline.engines.embedded.engine import Embedded
from fairlead.runtime.pipeline.engines.engine import TaskError
from fairlead.runtime.pipeline.engines.executors.cluster import NotShared, SparkCluster
from fairlead.runtime.pipeline.engines.sessions import may_run_arrow
from fairlead.runtime.pipeline.engines.settings import SettingRefused
from fairlead.runtime.pipeline.spi.context import AccessLimits
from fairlead.runtime.pipeline.spi.errors import SinkAway
from fairlead.runtime.pipeline.tasks.reports import TaskConfigsChanged
from fairlead.runtime.pipeline.tasks.runner import Runner
from fairlead_tests.connectors.sinks import FIRST, TASK, begun
from fairlead_tests.spark_engine.pythons import (
    ARROW,
    make_python,
    make_python_with_other_arrow,
)
from fairlead_tests.spark_engine.standalone import SHORT_LIVED, Standalone
from fairlead_tests.tasks.memory_ledger import MemoryLedger
from fairlead_tests.tasks.numbers import Reports

pytestmark = [
    pytest.mark.spark,
    # PySpark closes the socket of an encrypted `parallelize` by leaving it to be collected.
    pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning"),
]

ROWS = 100_000
"""Of a file that Arrow reads, since it is no small one."""


class OnCluster(NamedTuple):
    cluster: Standalone
    engine: Embedded


@pytest.fixture
def shared(tmp_path: Path) -> Path:
    (made := tmp_path / "seen-by-all").mkdir()
    return made


@pytest.fixture(scope="module")
def hidden(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("seen-by-one")


@pytest.fixture(scope="module")
def standalone(tmp_path_factory: pytest.TempPathFactory, hidden: Path) -> Iterator[Standalone]:
    if subprocess.run(["unshare", "--mount", "true"], check=False).returncode:
        pytest.skip("only root can hide a folder from executors")
    folder = tmp_path_factory.mktemp("cluster")
    made = Standalone(folder, cores=2, memory="1g", hidden=hidden)
    yield made
    made.close()


@contextmanager
def warm(standalone: Standalone, folder: Path, shared: Path) -> Generator[Embedded]:
    """Yield an engine whose jobs run on a cluster's one executor."""
    cluster = SparkCluster(standalone.master, (shared,))
    conf = {
        "spark.executor.memory": "512m",
        "spark.executor.extraJavaOptions": " ".join(SHORT_LIVED),
        "spark.authenticate.secret": standalone.secret,
    }
    made = Embedded(folder, cores=2, conf=conf, cluster=cluster)
    made.open()
    assert made.wait_warm(180), made.detail
    yield made
    made.close(20)


@pytest.fixture
def on_cluster(
    standalone: Standalone, the_engine: Embedded, shared: Path, tmp_path: Path
) -> Iterator[Embedded]:
    the_engine.close(20)  # PySpark knows one JVM at a time
    with warm(standalone, tmp_path / "work", shared) as made:
        yield made


@pytest.fixture(scope="module")
def on_small_cluster(
    the_engine: Embedded, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[OnCluster]:
    """Yield a cluster that tests share; the last of them changes its Python."""
    the_engine.close(20)
    folder = tmp_path_factory.mktemp("small")
    (shared := folder / "seen-by-all").mkdir()
    cluster = Standalone(folder, cores=2, memory="512m", hidden=None)
    try:
        with warm(cluster, folder / "work", shared) as made:
            yield OnCluster(cluster, made)
    finally:
        cluster.close()


@pytest.mark.soak
def test_jobs_run_on_executors_in_folders_that_they_share_and_the_secret_is_kept(
    standalone: Standalone, on_cluster: Embedded, shared: Path, hidden: Path, tmp_path: Path
) -> None:
    (executor,) = standalone.executors()
    (shared / "in.csv").write_text("1,2\n3,4\n")

    def job(spark: SparkSession) -> int:
        read = spark.read.csv(str(shared / "in.csv"), schema="a bigint, b bigint")
        read.write.parquet(str(shared / "out"))
        return spark.read.parquet(str(shared / "out")).count()

    assert on_cluster.run("batch", job) == 2
    assert executor.is_running()
    assert list(shared.glob(".fairlead-*")) == []

    told = str([each.info["cmdline"] for each in psutil.process_iter(["cmdline"])])
    logs = [tmp_path / "work" / "logs" / "spark.log", *standalone.logs()]
    told += "".join(each.read_text() for each in logs)
    assert standalone.secret not in told

    other = SparkCluster(standalone.master, (hidden,))
    with pytest.raises(NotShared, match=f"^{hidden} of paths.allow is not shared with the exec"):
        on_cluster.run("check", other.check_folders)

    _, sink, _ = begun(hidden / "out")
    with pytest.raises(SinkAway, match="does not have the files that Spark has written"):
        on_cluster.run("w", lambda spark: sink.stage(spark.range(9), CommitId(*TASK, FIRST, 0), 0))
    (hidden / "in.csv").write_text("1\n")
    with pytest.raises(TaskError) as unread:
        on_cluster.run("r", lambda spark: spark.read.csv(str(hidden), schema="a bigint").collect())
    assert "FAILED_READ_FILE.FILE_NOT_EXIST" in str(unread.value.__cause__)

    executor.kill()
    assert on_cluster.run("again", lambda spark: spark.range(9).repartition(2).count()) == 9


@pytest.mark.timeout(600)
def test_rows_of_files_come_once_each_through_a_cluster_whose_executor_is_killed(
    on_small_cluster: OnCluster, shared: Path
) -> None:
    cluster, engine = on_small_cluster
    texts = {"a:b.csv": "n,s\n0,a\nx1,b\n", "c.csv": "n,s\r\n1,é\n2,a\n"}
    (shared / "in").mkdir()
    for name, text in texts.items():
        (shared / "in" / name).write_text(text, newline="")
    config = {
        "name": "c",
        "connector.class": "SparkPipeline",
        "source.path": str(shared / "in"),
        "source.format": "csv",
        "source.schema": "n INT, s STRING",
        "source.min.age.ms": "0",
        "sink.format": "parquet",
        "sink.path": str(shared / "out"),
        "errors.tolerance": "all",
        "errors.deadletterqueue.path": str(shared / "dead"),
        "batch.max.bytes": "1",
        "task.restart.budget": "0",
    }
    ledger = MemoryLedger()
    executors = cluster.executors()

    def kill() -> None:
        while executors:
            executors.pop().kill()

    ledger.before_commit = kill
    run(engine, ledger, config, AccessLimits(paths=(str(shared),)))
    assert len(ledger.accepted) == len(texts)
    rows = [
        row for each in shared.glob("out/*.parquet") for row in papq.read_table(each).to_pylist()
    ]
    assert sorted((row["n"], row["s"]) for row in rows) == [(0, "a"), (1, "é"), (2, "a")]
    letters = [json.loads(each.read_text()) for each in shared.glob("dead/*.json")]
    where = {"file": str(shared / "in" / "a:b.csv")}
    assert [(each["position"], each["raw"]) for each in letters] == [(where, "x1,b")]
    assert list(shared.glob(".fairlead-*")) == []


@pytest.mark.soak
@pytest.mark.timeout(600)
def test_rows_come_once_each_though_a_python_process_is_killed_in_the_middle_of_a_part(
    on_small_cluster: OnCluster, shared: Path
) -> None:
    cluster, engine = on_small_cluster
    staged = shared / "copy" / "out" / "_fairlead" / "staging"
    killed: list[str] = []

    def kill() -> None:
        """Kill what has a part open, once."""
        while not killed:
            for process in cluster.pythons():
                with suppress(psutil.Error):
                    parts = [each.path for each in process.open_files()]
                    if any(each.endswith(".parquet") for each in parts):
                        process.kill()
                        killed.extend(each for each in parts if each.endswith(".parquet"))
            time.sleep(0.001)

    with ThreadPoolExecutor(1) as threads:
        killing = threads.submit(kill)
        assert copied(engine, shared / "copy", 20 * ROWS) == ({"parquet-cpp-arrow"}, 20 * ROWS)
        killing.result(1)
    assert {Path(each).parent.name for each in killed} == {"_temporary"}
    assert [*staged.rglob("*.parquet")] == []


@pytest.mark.soak  # each run has both ways on one host: spark_engine/test_arrow_job.py
@pytest.mark.timeout(600)
def test_files_are_copied_by_arrow_where_executors_have_it_and_by_spark_elsewhere(
    on_small_cluster: OnCluster, shared: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    cluster, engine = on_small_cluster
    asked = SparkCluster(cluster.master, (shared,))

    def ask(python: Path) -> tuple[bool, str]:
        caplog.clear()
        engine.run("use", lambda spark: use(spark, python))
        engine.run("ask", asked.check_python)
        return engine.run("know", may_run_arrow), caplog.text

    may, why = ask(make_python(tmp_path / "bare", "pyspark", "py4j"))
    assert not may
    assert "(" + str(platform.node()) + ": No module named 'pyarrow'): install Python" in why
    assert copied(engine, shared / "by-spark") == ({"parquet-mr"}, ROWS)
    may, why = ask(make_python_with_other_arrow(tmp_path / "other"))
    assert not may
    assert " has pyarrow 1.0.0): install Python" in why
    assert ask(make_python(tmp_path / "arrow", *ARROW)) == (True, "")
    assert copied(engine, shared / "by-arrow") == ({"parquet-cpp-arrow"}, ROWS)

    engine.run("use", lambda spark: use(spark, tmp_path / "bare" / "bin" / "python3"))
    assert copied(engine, shared / "lost") == ({"parquet-mr"}, ROWS)
    assert "No module named 'pyarrow'" in caplog.text
    assert not engine.run("know", may_run_arrow)


def use(spark: SparkSession, python: Path) -> None:
    """Have the executors run another Python, from now on."""
    spark.sparkContext.pythonExec = str(python)


def copied(engine: Embedded, folder: Path, rows: int = ROWS) -> tuple[set[str], int]:
    """Copy a file to parquet; return who wrote that, and how many different rows it has."""
    (folder / "in").mkdir(parents=True)
    lines = "".join(f"{number},{number:060}\n" for number in range(rows))
    (folder / "in" / "a.csv").write_text(f"n,s\n{lines}")
    config = {
        "name": "c",
        "connector.class": "SparkPipeline",
        "source.path": str(folder / "in"),
        "source.format": "csv",
        "source.schema": "n INT, s STRING",
        "source.min.age.ms": "0",
        "sink.format": "parquet",
        "sink.path": str(folder / "out"),
        "task.restart.budget": "0",
    }
    run(engine, MemoryLedger(), config, AccessLimits(paths=(str(folder),)))
    files = [papq.ParquetFile(each) for each in folder.glob("out/*.parquet")]
    table = pa.concat_tables([each.read() for each in files])
    assert table.num_rows == rows
    assert {row["s"] for row in table.to_pylist()} == {f"{number:060}" for number in range(rows)}
    writers = {str(each.metadata.created_by).partition(" ")[0] for each in files}
    return writers, len(set(table.column("n").to_pylist()))


def run(
    engine: Embedded, ledger: MemoryLedger, config: Mapping[str, str], reach: AccessLimits
) -> None:
    """Run a connector of one task until the files that are there are published."""
    files = {each.name for each in Path(config["source.path"]).iterdir()}
    reports, pause = Reports(), Event()
    runner = Runner(engine, ledger, find_plugins(), reports, reach=reach)
    runner.start(Launch(Resource("c"), Token(1, 0), config, config))
    try:
        made: Any = reports.wait(lambda each: isinstance(each, TaskConfigsChanged))
        runner.start(Launch(Resource("c", 0), Token(1, 0), config, made.configs[0]))
        for _ in range(1_200):
            if len(ledger.offsets("c")) == len(files) and not ledger.to_publish:
                return
            pause.wait(0.1)
        raise AssertionError(reports.told)
    finally:
        assert runner.close(60) == frozenset()


def test_without_a_secret_there_is_no_cluster(tmp_path: Path) -> None:
    cluster = SparkCluster("spark://127.0.0.1:7077", (tmp_path,))
    with pytest.raises(SettingRefused, match=r"needs spark\.conf\.spark\.authenticate\.secret"):
        Embedded(tmp_path, cores=1, cluster=cluster)
