"""Jobs on the executors of a cluster: a real master and a real worker, which ask for a secret."""

import subprocess
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest
from pyspark.sql import SparkSession

from fairlead.runtime.pipeline.spark.cluster import NotShared, SparkCluster
from fairlead.runtime.pipeline.spark.embedded import Embedded
from fairlead.runtime.pipeline.spark.settings import SettingRefused
from fairlead_tests.spark_engine.standalone import Standalone

pytestmark = pytest.mark.spark


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("seen-by-all")


@pytest.fixture(scope="module")
def hidden(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("seen-by-one")


@pytest.fixture(scope="module")
def standalone(tmp_path_factory: pytest.TempPathFactory, hidden: Path) -> Iterator[Standalone]:
    if subprocess.run(["unshare", "--mount", "true"], check=False).returncode:
        pytest.skip("only root can hide a folder from executors")
    made = Standalone(tmp_path_factory.mktemp("cluster"), hidden)
    yield made
    made.close()


@pytest.fixture
def on_cluster(
    standalone: Standalone, the_engine: Embedded, shared: Path, tmp_path: Path
) -> Iterator[Embedded]:
    """Return an engine whose jobs run on the cluster's one executor."""
    the_engine.close(20)  # PySpark knows one JVM at a time
    cluster = SparkCluster(standalone.master, (shared,))
    conf = {"spark.executor.memory": "512m", "spark.authenticate.secret": standalone.secret}
    made = Embedded(tmp_path / "work", cores=2, conf=conf, cluster=cluster)
    made.open()
    assert made.wait_warm(120), made.detail
    yield made
    made.close(20)


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

    executor.kill()
    assert on_cluster.run("again", lambda spark: spark.range(9).repartition(2).count()) == 9


def test_without_a_secret_there_is_no_cluster(tmp_path: Path) -> None:
    cluster = SparkCluster("spark://127.0.0.1:7077", (tmp_path,))
    with pytest.raises(SettingRefused, match=r"needs spark\.conf\.spark\.authenticate\.secret"):
        Embedded(tmp_path, cores=1, cluster=cluster)
