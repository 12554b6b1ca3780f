# pyright: basic
"""A worker's jobs in a session of its own on a Spark Connect server."""

import json
import os
import signal
import threading
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from pyspark.sql.functions import udf

from fairlead.events.model import Resource, RunState
from fairlead.runtime.pipeline.connectors.spark_pipeline import SparkPipeline
from fairlead.runtime.pipeline.engines.connect.engine import ConnectEngine
from fairlead.runtime.pipeline.engines.engine import Cancelled, EngineDown, EngineState
from fairlead.runtime.pipeline.engines.executors.cluster import SparkCluster
from fairlead.runtime.pipeline.spi.config import ConfigInvalid
from fairlead.runtime.pipeline.spi.context import Context
from fairlead.runtime.pipeline.stores.files.sink_folder.staging import STAGING
from fairlead_tests.spark_engine.connect_server import ConnectServerProcess
from fairlead_tests.spark_engine.runs import has_failed, has_read, run
from fairlead_tests.tasks.numbers import Reports

pytestmark = pytest.mark.spark

LONG = "SELECT sum(a.id * b.id) FROM range(0, 100000, 1, 1) a CROSS JOIN range(0, 1000000, 1, 1) b"
"""A job that goes on until it is cancelled, on one of the server's two cores."""
FILES = {"name": "c", "connector.class": "SparkPipeline", "source.min.age.ms": "0"}


def lines(folder: Path) -> list[dict[str, Any]]:
    files = [each for each in folder.rglob("part-*.json") if "_fairlead" not in each.parts]
    return [json.loads(line) for each in files for line in each.read_text().splitlines()]


@pytest.fixture
def config(shared: Path, request: pytest.FixtureRequest) -> dict[str, str]:
    folder = shared / request.node.name
    (folder / "in").mkdir(parents=True)
    ends = {"source.path": str(folder / "in"), "sink.path": str(folder / "out")}
    form = {"source.format": "csv", "source.schema": "n INT, s STRING", "sink.format": "json"}
    return {**FILES, **ends, **form, "task.restart.budget": "0"}


def query(text: str) -> dict[str, str]:
    return {"transforms": "t", "transforms.t.type": "sql", "transforms.t.query": text}


def test_files_go_to_files_and_rows_that_do_not_fit_become_dead_letters(
    on_server: ConnectEngine, config: dict[str, str]
) -> None:
    folder = Path(config["source.path"]).parent
    (folder / "in" / "1.csv").write_text("n,s\n1,{a}\n2,b\nx,c\n4,d\n")
    bad = {"errors.tolerance": "all", "errors.deadletterqueue.path": str(folder / "bad")}
    twice = "SELECT 10 DIV (n - 2) AS n, s || '{}' AS s, hour(timestamp_seconds(0)) h FROM input"
    zone = {"spark.conf.spark.sql.session.timeZone": "Asia/Tokyo"}
    reports = run(on_server, config | bad | zone | query(twice), has_read(4))
    assert not has_failed(reports), reports.statuses
    found = sorted(lines(folder / "out"), key=lambda each: each["s"])
    assert found == [{"n": 5, "s": "d{}", "h": 9}, {"n": -10, "s": "{a}{}", "h": 9}]
    divided, typed = sorted(each["reason"] for each in lines(folder / "bad"))
    assert divided.startswith("[DIVIDE_BY_ZERO] Division by zero.")
    assert typed == 'column `n` (INT): For input string: "x"'
    assert list((folder / "out").rglob("*.crc")) == []


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("SELECT * FROM csv.`/etc/passwd`", "is not its input"),
        # As on any engine, in each test run: tests/connectors/test_sql_rules.py.
        pytest.param(
            "SELECT reflect('java.lang.System', 'getProperty', 'user.name')",
            "any method of Java",
            marks=pytest.mark.soak,
        ),
        pytest.param(
            "SELECT n, session_user FROM input",
            "reveals details of the node",
            marks=pytest.mark.soak,
        ),
        ("SELECT TRANSFORM (n) USING 'cat' FROM input", "runs a program"),
    ],
)
def test_a_query_that_looks_beyond_its_input_is_refused_before_it_is_sent(
    on_server: ConnectEngine, config: dict[str, str], text: str, reason: str
) -> None:
    Path(config["source.path"], "1.csv").write_text("n,s\n1,a\n")
    reports = run(on_server, config | query(text), has_failed)
    (told,) = {each.reason for each in reports.statuses if each.state is RunState.FAILED}
    assert reason in told
    assert reports.batches == []


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("SELECT '{}' FROM input", "Spark refuses the query at line 1, position 13 (PARSE_"),
        ("SELECT {} FROM input", "Spark refuses the query (UNRESOLVED_COLUMN"),
        ("SELECT * FROM {}", "the query uses what the SQL of a transform may not"),
    ],
)
def test_no_word_of_a_secret_in_a_query_is_told_when_it_is_refused(
    on_server: ConnectEngine, config: dict[str, str], text: str, why: str
) -> None:
    secret = "k' v r" if "'" in text else "kings castle"
    context = Context(Resource("c", 0), print, hide=lambda told: told.replace(secret, "${env:S}"))
    given = config | {"task.schema": "a INT"} | query(text.format(secret))
    (transform,) = SparkPipeline().pipeline(context, given).transforms
    with pytest.raises(ConfigInvalid) as refused:
        on_server.run("t", lambda spark: transform.apply(spark.sql("SELECT 1 AS a")))
    told = str(refused.value)
    assert told.startswith(why)
    assert told.endswith("; its words are not told, since it holds a secret")


@pytest.mark.soak  # as on any engine: tests/connectors/test_sql_rules.py
def test_a_column_may_have_the_name_of_a_function_that_is_refused(
    on_server: ConnectEngine, config: dict[str, str]
) -> None:
    Path(config["source.path"], "1.csv").write_text("n,user\n1,a\n")
    named = {"source.schema": "n INT, user STRING"}
    run(on_server, config | named | query("SELECT user FROM input"), has_read(1))
    assert lines(Path(config["sink.path"])) == [{"user": "a"}]


@pytest.mark.soak  # any engine's value: tests/connectors/test_dead_letters.py
def test_a_value_too_long_to_name_a_folder_keeps_no_other_row_waiting(
    on_server: ConnectEngine, config: dict[str, str]
) -> None:
    bad = Path(config["source.path"]).parent / "bad"
    Path(config["source.path"], "1.csv").write_text(f"n,s\n1,x\n2,{'y' * 300}\n3,z\n")
    tolerant = {"errors.tolerance": "all", "errors.deadletterqueue.path": str(bad)}
    reports = run(on_server, config | tolerant | {"sink.partition.by": "s"}, has_read(3))
    assert not has_failed(reports), reports.statuses
    assert sorted(each["n"] for each in lines(Path(config["sink.path"]))) == [1, 3]
    (letter,) = lines(bad)
    assert letter["reason"] == "a value of `sink.partition.by` is too long to name a folder"


def test_python_code_of_a_job_runs_at_the_server(on_server: ConnectEngine) -> None:
    @udf("string", useArrow=False)
    def place(number: int) -> str:
        return f"{number} by {os.getppid()}"

    told = on_server.run("python", lambda spark: spark.range(3).select(place("id")).collect())
    assert [row[0].partition(" ")[0] for row in told] == ["0", "1", "2"]
    assert str(os.getpid()) not in str(told)


def test_a_job_is_cancelled_by_its_tag_and_another_one_goes_on(on_server: ConnectEngine) -> None:
    begun, ended = threading.Event(), list[object]()

    def job(spark: SparkSession) -> None:
        begun.set()
        spark.sql(LONG).collect()

    def work() -> None:
        try:
            on_server.run("long", job)
        except Cancelled as cancelled:
            ended.append(cancelled)

    thread = threading.Thread(target=work)
    thread.start()
    begun.wait(60)
    on_server.cancel("other")
    on_server.cancel("long")
    thread.join(60)
    assert len(ended) == 1
    assert on_server.run("short", lambda spark: spark.range(3).count()) == 3


@pytest.mark.soak  # as on any engine: tests/spark_engine/test_jobs.py
def test_a_small_job_does_not_wait_for_a_large_one_of_another_pool(
    on_server: ConnectEngine,
) -> None:
    steps = "aggregate(sequence(1, 2000000 + id), 0L, (sum, each) -> sum + each)"
    large = f"SELECT sum({steps}) FROM range(0, 1000, 1, 1000)"
    ended = list[object]()

    def work() -> None:
        try:
            on_server.run("large", lambda spark: spark.sql(large).collect(), "one")
        except Cancelled as cancelled:
            ended.append(cancelled)

    thread = threading.Thread(target=work)
    thread.start()
    while not on_server._runs:
        thread.join(0.01)
    thread.join(1)
    small = on_server.run("small", lambda spark: spark.range(0, 4, 1, 4).count(), "other")
    assert not ended, "the large one takes more than a minute"
    on_server.cancel("large")
    thread.join(60)
    assert small == 4
    assert len(ended) == 1


@pytest.mark.soak  # each run refuses what a zombie writes: chaos/test_matrix.py
def test_a_session_that_a_former_process_has_left_is_ended_with_its_jobs(
    server: ConnectServerProcess, on_server: ConnectEngine, shared: Path, tmp_path: Path
) -> None:
    del on_server
    former, heirs = (
        ConnectEngine(tmp_path, SparkCluster(server.master, (shared,))) for _ in range(2)
    )
    former.open()
    assert former.wait_warm(180), former.detail
    begun, ended = threading.Event(), list[EngineDown]()

    def job(spark: SparkSession) -> None:
        begun.set()
        spark.sql(LONG).collect()

    def work() -> None:
        try:
            former.run("zombie", job, "of-its-own")
        except EngineDown as down:
            ended.append(down)

    thread = threading.Thread(target=work)
    thread.start()
    begun.wait(60)
    heirs.open()
    assert heirs.wait_warm(180), heirs.detail
    with suppress(EngineDown):
        former.run("zombie", lambda spark: spark.range(3).count())
        raise AssertionError("the former session goes on")
    thread.join(60)
    assert len(ended) == 1
    assert heirs.run("heir", lambda spark: spark.range(3).count()) == 3
    for driver in (former._driver, heirs._driver):
        assert driver
        driver.jvm.kill("the test is over")


def test_a_token_that_the_server_does_not_take_is_told_without_it(
    server: ConnectServerProcess, on_server: ConnectEngine, shared: Path, tmp_path: Path
) -> None:
    del on_server
    master = f"{server.master[:-8]}00000000"
    stranger = ConnectEngine(tmp_path, SparkCluster(master, (shared,)))
    stranger.open()
    assert not stranger.wait_warm(180)
    assert stranger.state is EngineState.DOWN
    assert stranger.detail.startswith(f"sc://127.0.0.1:{server.port}: ")
    assert master.partition("token=")[2] not in stranger.detail


def is_writing(root: Path) -> bool:
    """Tell whether a task of Spark has begun to write a file of a batch, and not ended."""
    with suppress(FileNotFoundError):  # it was moved meanwhile
        return any(Path(root, STAGING).rglob("_temporary/0/_temporary/*/part-*"))
    return False


@pytest.mark.soak
def test_a_server_that_is_killed_in_a_batch_and_started_again_loses_and_doubles_no_row(
    server: ConnectServerProcess, on_server: ConnectEngine, config: dict[str, str]
) -> None:
    for number in range(3):
        rows = range(number * 100, number * 100 + 100)
        text = "n,s\n" + "".join(f"{each},x\n" for each in rows)
        Path(config["source.path"], f"{number}.csv").write_text(text)
    # A row takes some 10 ms: long enough for the server to be killed amid a batch.
    slow = "SELECT n, aggregate(sequence(1, 200000), 0L, (sum, each) -> sum + each) AS c FROM input"
    small = {"tasks.max": "1", "source.max.files.per.batch": "1"}
    root, killed = Path(config["sink.path"]), threading.Event()

    def until(reports: Reports) -> bool:
        """Kill the server after the first batch; here, as the next one ends with its thread."""
        if reports.batches and not killed.is_set() and is_writing(root):
            server.signal(signal.SIGSTOP)
            if is_writing(root):
                server.kill()
                killed.set()
                server.start()
            server.signal(signal.SIGCONT)
        if on_server.state is EngineState.DOWN:  # as a worker does
            on_server.open()
        return has_read(300)(reports)

    reports = run(on_server, config | small | query(slow), until)
    assert killed.is_set()
    assert not has_failed(reports), reports.statuses
    assert any("the engine is down" in each.reason for each in reports.statuses)
    assert sorted(each["n"] for each in lines(root)) == list(range(300))
    assert len(reports.batches) == 3
    assert server.token not in f"{reports.told}{on_server.detail}"


@pytest.mark.soak  # it waits for longer than a server keeps what nobody asks for
def test_a_session_beside_that_nothing_uses_for_long_is_there_when_it_is_used_again(
    on_server: ConnectEngine, shared: Path, tmp_path: Path
) -> None:
    del on_server
    manager = "spark.connect.session.manager"
    brief = {f"{manager}.defaultSessionTimeout": "6s", f"{manager}.maintenanceInterval": "1s"}
    server = ConnectServerProcess(tmp_path, brief)
    server.start()
    engine = ConnectEngine(tmp_path / "worker", SparkCluster(server.master, (shared,)))
    engine.open()
    assert engine.wait_warm(180), engine.detail
    for _ in range(2):
        assert engine.run("job", lambda spark: spark.range(3).count(), "of-its-own") == 3
        time.sleep(20)
    engine.close(20)
    server.kill()
