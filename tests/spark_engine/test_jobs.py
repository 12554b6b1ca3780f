# pyright: basic
"""What a job can count on while its engine is warm."""

import ipaddress
import os
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NoReturn

import psutil
import pytest
from pyspark.sql import SparkSession
from pyspark.sql.functions import udf
from pyspark.sql.types import LongType, StringType, StructField, StructType

from fairlead.runtime.pipeline.engines import jobs
from fairlead.runtime.pipeline.engines.embedded.engine import Embedded
from fairlead.runtime.pipeline.engines.engine import Cancelled, EngineDown, TaskError
from fairlead.runtime.pipeline.engines.sessions import read_csv, reader_of
from fairlead_tests.cluster.node import eventually
from fairlead_tests.spark_engine import stranger
from fairlead_tests.spark_engine.signs import gone, runs, until_told

pytestmark = pytest.mark.spark


def listening(pid: int | None) -> set[str]:
    process = psutil.Process(pid)
    family = [process, *process.children(recursive=True)]
    open_to = [c for p in family for c in p.net_connections() if c.status == psutil.CONN_LISTEN]
    return {str(c.laddr.ip).removeprefix("::ffff:") for c in open_to}


def test_a_job_returns_what_it_computed(engine: Embedded) -> None:
    assert engine.run("count", lambda spark: spark.range(5).count()) == 5


def test_one_reader_reads_the_files_of_all_batches_with_the_same_options_in_a_session(
    engine: Embedded, tmp_path: Path
) -> None:
    (tmp_path / "one.csv").write_text("1;a\n")
    (tmp_path / "two.csv").write_text("2;b\n3;c\n")
    schema = StructType([StructField("id", LongType()), StructField("name", StringType())])

    def read(spark: SparkSession) -> object:
        reader = reader_of(spark, schema, {"sep": ";"})
        batches = (["one"], ["two"], ["one", "two"])
        paths = [[str(tmp_path / f"{name}.csv") for name in each] for each in batches]
        frames = [read_csv(spark, schema, {"sep": ";"}, each) for each in paths]
        rows = [sorted(each.collect()) for each in frames]
        others = reader_of(spark, schema, {"sep": ","}), reader_of(spark.newSession(), schema, {})
        return rows, reader_of(spark, schema, {"sep": ";"}) is reader, reader in others

    one, two = [(1, "a")], [(2, "b"), (3, "c")]
    assert engine.run("read", read) == ([one, two, one + two], True, False)


def test_a_driver_without_a_cluster_has_no_defaults_of_yarn_and_mapreduce_but_all_others(
    engine: Embedded,
) -> None:
    hadoop, committers = "org.apache.hadoop", "mapreduce.outputcommitter.factory"
    expected = {
        "yarn.resourcemanager.address": None,
        "mapreduce.job.maps": None,
        "fs.file.impl": f"{hadoop}.fs.RawLocalFileSystem",
        "fs.s3a.impl": f"{hadoop}.fs.s3a.S3AFileSystem",
        f"{committers}.scheme.s3a": f"{hadoop}.fs.s3a.commit.S3ACommitterFactory",
    }

    def told(spark: Any) -> dict[str, str | None]:
        conf = spark.sparkContext._jsc.hadoopConfiguration()
        return {each: conf.get(each) for each in expected}

    assert engine.run("ask", told) == expected


def test_the_heap_of_a_jvm_is_looked_at_while_it_runs(engine: Embedded) -> None:
    eventually(lambda: engine.heap is not None, "the heap is known")
    heap = engine.heap
    assert heap is not None
    assert 0 < heap.used <= heap.committed <= heap.max
    assert heap.gc_ms > 0


def test_jobs_of_several_threads_run_at_once_each_under_its_own_tag(engine: Embedded) -> None:
    meeting = threading.Barrier(2, timeout=60)

    def job(spark: SparkSession) -> set[str]:
        meeting.wait()
        spark.range(5).count()
        meeting.wait()
        return {tag.split("/")[0] for tag in spark.sparkContext.getJobTags()}

    with ThreadPoolExecutor(2) as threads:
        running = [threads.submit(engine.run, tag, job) for tag in ("a-0", "b-0")]
        tags = [run.result(60) for run in running]
    assert tags == [{"a-0"}, {"b-0"}]


def test_a_thread_keeps_no_tag_after_its_job(engine: Embedded) -> None:
    engine.run("first", lambda spark: spark.range(5).count())
    tags = engine.run("second", lambda spark: spark.sparkContext.getJobTags())
    assert {tag.split("/")[0] for tag in tags} == {"second"}


def test_cancel_ends_the_jobs_of_its_tag_and_no_others(engine: Embedded, signs: Path) -> None:
    with ThreadPoolExecutor(2) as threads:
        hit = threads.submit(engine.run, "hit", until_told(signs, "hit"))
        spared = threads.submit(engine.run, "spared", until_told(signs, "spared"))
        worker = runs(signs, "hit")
        runs(signs, "spared")
        engine.cancel("hit")
        with pytest.raises(Cancelled, match=r"^hit was cancelled$"):
            hit.result(60)
        assert gone([worker.pid])
        assert not spared.done()
        (signs / "spared.end").touch()
        assert spared.result(60) == 1


def test_cancel_hits_a_job_that_is_between_two_spark_jobs(engine: Embedded) -> None:
    running = threading.Event()

    def job(spark: SparkSession) -> NoReturn:
        while True:
            spark.range(1).count()
            running.set()

    with ThreadPoolExecutor(1) as threads:
        endless = threads.submit(engine.run, "endless", job)
        running.wait(60)
        engine.cancel("endless")
        with pytest.raises(Cancelled):
            endless.result(60)


def test_cancel_does_not_touch_a_later_run_of_the_same_tag(engine: Embedded) -> None:
    engine.cancel("again")
    assert engine.run("again", lambda spark: spark.range(5).count()) == 5


def test_a_small_job_does_not_wait_for_a_large_one_of_another_pool(
    engine: Embedded, tmp_path: Path
) -> None:
    def part(number: int) -> None:
        (tmp_path / str(number)).touch()
        time.sleep(0.25)

    def large(spark: SparkSession) -> None:  # 5 s on two cores
        spark.sparkContext.parallelize(range(40), 40).foreach(part)

    with ThreadPoolExecutor() as threads:
        running = threads.submit(engine.run, "large", large, "one")
        while not list(tmp_path.iterdir()):
            time.sleep(0.01)
        assert engine.run("small", lambda spark: spark.range(5).count(), "other") == 5
        assert len(list(tmp_path.iterdir())) < 30, "parts of the large one are still to begin"
        engine.cancel("large")
        with pytest.raises(Cancelled):
            running.result()


def test_a_job_cancelled_at_its_very_end_returns_nothing(engine: Embedded) -> None:
    def job(spark: SparkSession) -> int:
        count = spark.range(5).count()
        engine.cancel("late")
        return count

    with pytest.raises(Cancelled):
        engine.run("late", job)


@pytest.mark.parametrize("tag", ["", "a,b"])
def test_a_tag_that_spark_cannot_carry_is_refused(engine: Embedded, tag: str) -> None:
    with pytest.raises(ValueError, match="is no tag"):
        engine.run(tag, lambda spark: spark.range(5).count())


def test_failures_in_spark_are_told_in_a_line(engine: Embedded) -> None:
    def told(job: str) -> str:
        with pytest.raises(TaskError) as failed:
            engine.run("fails", lambda spark: spark.sql(job).collect())
        return str(failed.value)

    assert [told("SELECT nope FROM range(3)"), told("SELECT assert_true(false)")] == [
        "[UNRESOLVED_COLUMN.WITH_SUGGESTION] A column, variable, or function parameter with name"
        " `nope` cannot be resolved. Did you mean one of the following? [`id`]. SQLSTATE: 42703;"
        " line 1 pos 7",
        "[USER_RAISED_EXCEPTION] 'false' is not true! SQLSTATE: P0001",
    ]


def test_failures_of_python_code_on_executors_are_told_as_python_does(engine: Embedded) -> None:
    def bad_row(number: int) -> str:
        raise ValueError(f"bad row {number}")

    def rows(spark: SparkSession) -> object:
        return spark.range(1).rdd.map(lambda row: bad_row(row.id)).collect()

    def columns(spark: SparkSession) -> object:
        def untyped(n):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202  # hints need pandas
            return bad_row(n)

        return spark.range(1).select(udf(untyped)("id")).collect()

    for job in (rows, columns):
        with pytest.raises(TaskError, match=r"^ValueError: bad row 0$"):
            engine.run("fails", job)


def test_a_jobs_own_error_stays_what_it_is(engine: Embedded) -> None:
    with pytest.raises(FileNotFoundError):
        engine.run("fails", lambda _: Path("/nowhere/at/all").read_text())


def test_nothing_is_printed(engine: Embedded, capfd: pytest.CaptureFixture[str]) -> None:
    def noisy(spark: SparkSession) -> object:
        spark.sparkContext.parallelize([1], 1).foreach(lambda _: print("from an executor"))
        frame = spark.range(3)
        return frame.select(frame.id / 0).collect()

    with pytest.raises(TaskError):
        engine.run("noisy", noisy)
    assert capfd.readouterr() == ("", "")


def test_it_listens_on_loopback_only(engine: Embedded) -> None:
    assert engine.pid
    addresses = listening(os.getpid())
    assert addresses
    assert {ipaddress.ip_address(address).is_loopback for address in addresses} == {True}


def test_what_strangers_send_to_its_ports_is_not_deserialised(engine: Embedded) -> None:
    assert engine.pid
    engine.run("python", lambda spark: spark.sparkContext.parallelize([1], 1).map(str).first())
    messages = (stranger.call, stranger.upload)
    answers = [
        stranger.heard(place, made(place))
        for place in stranger.ports(engine.pid)
        for made in messages
    ]
    assert not [answer for answer in answers if b"ClassNotFoundException" in answer]
    refused = [answer for answer in answers if b"Unknown challenge message" in answer]
    assert len(refused) == 2 * len(messages), answers  # at the driver's port and its blocks'
    assert engine.run("after", lambda spark: spark.range(3).count()) == 3


def test_no_secret_of_a_jvm_is_told(engine: Embedded) -> None:
    jvm = psutil.Process(engine.pid)
    told = engine.run("conf", lambda spark: dict(spark.sparkContext.getConf().getAll()))
    assert told["spark.authenticate"] == told["spark.network.crypto.enabled"] == "true"
    assert {name for name in told if name.startswith("spark.authenticate.")} == set()
    assert "secret" not in " ".join([*jvm.cmdline(), *jvm.environ()]).lower()


def test_python_workers_run_this_interpreter(engine: Embedded) -> None:
    found = engine.run(
        "which",
        lambda spark: spark.sparkContext.parallelize([1], 1).map(lambda _: sys.executable).first(),
    )
    assert found == sys.executable


def test_an_open_engine_leaves_no_gateway_in_the_environment(engine: Embedded) -> None:
    assert engine.pid
    assert {name for name in os.environ if "PYSPARK" in name} == set()


def test_an_open_engine_is_not_opened_twice(engine: Embedded) -> None:
    before = engine.pid
    engine.open()
    assert engine.pid == before


def test_only_the_main_thread_may_open(engine: Embedded) -> None:
    with (
        ThreadPoolExecutor(1) as threads,
        pytest.raises(RuntimeError, match="on the main thread"),
    ):
        threads.submit(engine.open).result()


@pytest.mark.soak
def test_a_jvm_ends_in_which_cancelled_work_keeps_its_cores(
    engine: Embedded, monkeypatch: pytest.MonkeyPatch
) -> None:
    def loop(spark: SparkSession) -> None:
        spark.sql(
            "SELECT sum(sqrt(a.id * b.id)) FROM range(0, 2000000, 1, 2) AS a"
            " CROSS JOIN range(0, 1000000, 1, 1) AS b"
        ).collect()

    def tasks_at_work(spark: SparkSession) -> int:
        tracker = spark.sparkContext.statusTracker()
        stages = map(tracker.getStageInfo, tracker.getActiveStageIds())
        return sum(stage.numActiveTasks for stage in stages if stage)

    monkeypatch.setattr(jobs, "_CORE_CHECKS", 6)
    with ThreadPoolExecutor(1) as threads:
        looping = threads.submit(engine.run, "loop", loop)
        while engine.run("probe", tasks_at_work) < 2:
            time.sleep(0.05)
        engine.cancel("loop")
        with pytest.raises(Cancelled):
            looping.result(60)
        with pytest.raises(EngineDown, match="cancelled Spark tasks of loop do not end"):
            engine.run("next", lambda spark: spark.range(9).count())
