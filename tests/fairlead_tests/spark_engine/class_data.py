"""Class data sharing: JVMs of a test run map the classes that one of them has loaded before.

A cold JVM spends half of its time on loading and compiling Spark's classes, and a run of all
tests starts some fifteen. The archive lies beside the packages that it is made of. To write it
takes most of a minute, so `make test` does that before the tests, whose time is limited:

    python -m fairlead_tests.spark_engine.class_data

Where Java writes no archive, JVMs start as slowly as a user's.
"""

import sys
from fcntl import LOCK_EX, flock
from pathlib import Path
from tempfile import TemporaryDirectory

from pyspark.sql import SparkSession

from fairlead.runtime.pipeline.spark.embedded import Embedded
from fairlead.runtime.pipeline.spark.java import find_java, spark_home

_QUICK = "-XX:TieredStopAtLevel=1"
"""Only the quick compiler, as the JVM that writes the archive does little else."""

_ROOMY = "-XX:MetaspaceSize=256m -XX:ParallelGCThreads=1"
"""No collection for room that classes take, and by one thread: there is always other work."""

_SCHEMA = "id BIGINT, amount BIGINT"


def shared_options() -> str:
    """Return the options of a JVM that shares; the archive is written unless it is there."""
    java, folder = find_java(), Path(sys.prefix) / "spark-classes"
    folder.mkdir(exist_ok=True)
    made_of = f"{java.version}-{(spark_home() / 'jars').stat().st_mtime_ns}"
    archive = folder / f"spark-{made_of}.jsa"
    with (folder / "writes").open("w") as writes:
        flock(writes, LOCK_EX)  # another process of this run may be writing it
        if not archive.exists():
            with TemporaryDirectory(dir=folder) as work:
                _write_archive(archive, Path(work))
    # An archive that does not fit is passed over; silently, since readers of its output wait.
    return f"-XX:SharedArchiveFile={archive} -Xlog:disable {_QUICK} {_ROOMY}"


def _write_archive(archive: Path, work: Path) -> None:
    """Run the usual work of tests; the JVM then writes its loaded classes to the archive."""
    written = work / "classes.jsa"
    options = f"-XX:ArchiveClassesAtExit={written} {_QUICK}"
    engine = Embedded(work, cores=2, conf={"spark.driver.extraJavaOptions": options})
    engine.open()
    assert engine.wait_warm(120), engine.detail
    engine.run("load classes", lambda spark: _use_formats(spark, work))
    engine.close(60)
    if written.exists():
        written.replace(archive)


def _use_formats(spark: SparkSession, work: Path) -> None:
    (work / "in.csv").write_text("1,2\n")
    (work / "in.json").write_text('{"id": 1, "amount": 2}\n')
    spark.read.schema(_SCHEMA).csv(str(work / "in.csv")).createOrReplaceTempView("input")
    rows = spark.sql("SELECT id, amount, 2 * amount AS twice FROM input")
    rows.write.parquet(str(work / "parquet"))
    spark.read.parquet(str(work / "parquet")).collect()
    spark.read.json(str(work / "in.json")).write.partitionBy("id").csv(str(work / "csv"))
    spark.sparkContext.parallelize([1], 1).map(int).collect()


if __name__ == "__main__":
    shared_options()
