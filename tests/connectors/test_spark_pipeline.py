# pyright: basic
"""From files to files, through Spark: every row once, of the right type, in the right place."""

import json
import threading
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv as pacsv
import pyarrow.parquet as papq
import pytest
from connectors.conftest import Run

from fairlead.events.commits import Document
from fairlead.events.model import ErrorClass, Resource, RunState, Token
from fairlead.projections.launches import Launch
from fairlead.runtime.pipeline.connectors import pipeline_keys as keys
from fairlead.runtime.pipeline.connectors.plugins import find_plugins
from fairlead.runtime.pipeline.engines.embedded.engine import Embedded
from fairlead.runtime.pipeline.stores.files import keys as files
from fairlead.runtime.pipeline.stores.files.sink_folder.root import claim_sink
from fairlead.runtime.pipeline.tasks.reports import Ending, StatusChanged, Stopped
from fairlead.runtime.pipeline.tasks.runner import Runner
from fairlead_tests.tasks.memory_ledger import MemoryLedger
from fairlead_tests.tasks.numbers import Reports

pytestmark = pytest.mark.spark


def rows(folder: Path) -> list[dict[str, Any]]:
    """Return what a reader of the folder sees, as pyarrow reads it, in a fixed order."""
    found: list[dict[str, Any]] = []
    for file in sorted(folder.rglob("*")):
        parts = file.relative_to(folder).parts
        if not file.is_file() or parts[0].startswith("_"):
            continue
        values = dict(part.split("=") for part in parts[:-1])
        found += [{**row, **values} for row in read(file)]
    return sorted(found, key=repr)


def read(file: Path) -> list[dict[str, Any]]:
    found: list[dict[str, Any]]
    if file.suffix == ".parquet":
        found = papq.ParquetFile(file).read().to_pylist()
        return found
    if file.suffix == ".csv":
        found = pacsv.read_csv(file).to_pylist()
        return found
    return [json.loads(line) for line in file.read_text().splitlines()]


def staging_is_empty(folder: Path) -> bool:
    return not [each for each in (folder / "_fairlead/staging").rglob("*") if each.is_file()]


def active_jobs(spark: Any) -> list[int]:
    return list(spark.sparkContext.statusTracker().getActiveJobsIds())


def jobs(engine: Embedded) -> set[int]:
    """Return the jobs that the engine's driver remembers."""

    def known(spark: Any) -> set[int]:
        return set(spark.sparkContext.statusTracker().getJobIdsForGroup(None))

    return engine.run("jobs", known)


def failure(reports: Any) -> str:
    (failed,) = (each for each in reports.statuses if each.state is RunState.FAILED)
    assert isinstance(failed, StatusChanged)
    return failed.trace


def test_csv_with_an_inferred_schema_becomes_partitioned_parquet(
    folders: dict[str, str], run: Run, ledger: MemoryLedger, tmp_path: Path
) -> None:
    (tmp_path / "in" / "day").mkdir()
    (tmp_path / "in" / "day" / "1.csv").write_text("origin,delay,at\nJFK,2,2013-01-01T05:00:00Z\n")
    (tmp_path / "in" / "2.csv").write_text(
        "origin,delay,at\nLGA,NA,NA\nJFK,,2013-01-02T05:00:00Z\n"
    )
    (tmp_path / "in" / "3.csv").write_text('origin,delay,at\n"EWR",-7,NA\n')
    reports = run(
        folders
        | {
            "source.format": "csv",
            "source.null.values": "NA",
            "tasks.max": "2",
            "transforms": "t",
            "transforms.t.type": "select",
            "transforms.t.columns": "origin, delay, year(at) AS year",
            "sink.format": "parquet",
            "sink.partition.by": "origin",
        }
    )
    out = tmp_path / "out"
    assert rows(out) == [
        {"delay": -7, "year": None, "origin": "EWR"},
        {"delay": 2, "year": 2013, "origin": "JFK"},
        {"delay": None, "year": 2013, "origin": "JFK"},
        {"delay": None, "year": None, "origin": "LGA"},
    ]
    schemas = {papq.read_schema(file).field("delay").type for file in out.rglob("*.parquet")}
    assert schemas == {pa.int64()}
    assert (staging_is_empty(out), ledger.to_publish) == (True, [])
    assert sum(each.commit.rows_in for each in reports.batches) == 4
    assert sum(each.commit.manifest.rows for each in reports.batches) == 4


def test_a_file_that_several_readers_share_loses_and_doubles_no_row(
    folders: dict[str, str], run: Run, tmp_path: Path
) -> None:
    lines = [f"{number},{'x' * (number % 50)}" for number in range(150_000)]
    (tmp_path / "in" / "a.csv").write_text("\n".join(["n,s", *lines]))
    schema = {"source.format": "csv", "source.schema": "n INT, s STRING"}
    run(folders | schema | {"sink.format": "parquet"})
    parts = [papq.read_table(each)["n"] for each in (tmp_path / "out").glob("*.parquet")]
    assert len(parts) == 2
    assert sorted(n for part in parts for n in part.to_pylist()) == list(range(150_000))


def test_a_limit_of_a_files_bytes_makes_more_files_of_a_batch_and_loses_no_row(
    folders: dict[str, str], run: Run, tmp_path: Path
) -> None:
    (tmp_path / "in" / "a.csv").write_text("n\n" + "".join(f"{n}\n" for n in range(1_000)))
    config = {"source.format": "csv", "sink.format": "parquet", "sink.file.max.bytes": "1000"}
    run(folders | config)
    parts = [papq.read_table(each)["n"] for each in (tmp_path / "out").glob("*.parquet")]
    assert len(parts) == 4, "3,892 bytes were read"
    assert sorted(n for part in parts for n in part.to_pylist()) == list(range(1_000))


def test_json_through_a_query_becomes_csv(
    folders: dict[str, str], run: Run, tmp_path: Path
) -> None:
    lines = [{"carrier": "AA", "delay": 1}, {"carrier": "UA", "delay": 5}, {"carrier": "AA"}]
    (tmp_path / "in" / "a.json").write_text("".join(json.dumps(each) + "\n" for each in lines))
    reports = run(
        folders
        | {
            "source.format": "json",
            "transforms": "t",
            "transforms.t.type": "sql",
            "transforms.t.query": (
                "WITH late AS (SELECT * FROM input WHERE delay > 0)\n"
                "SELECT carrier, 'input' AS word, delay FROM late; -- nobody else"
            ).replace("; --", " --"),
            "sink.format": "csv",
        }
    )
    assert rows(tmp_path / "out") == [
        {"carrier": "AA", "word": "input", "delay": 1},
        {"carrier": "UA", "word": "input", "delay": 5},
    ]
    assert [(each.rows_in, each.manifest.rows) for each in reports.commits] == [(3, 2)]


def test_files_that_are_one_value_of_many_lines_have_their_schema_inferred(
    folders: dict[str, str], run: Run, tmp_path: Path
) -> None:
    (tmp_path / "in" / "a.json").write_text(json.dumps([{"n": 1}, {"n": 2, "s": "x"}], indent=2))
    (tmp_path / "in" / "b.json").write_text(json.dumps({"n": 3}, indent=2))
    config = folders | {"source.format": "json", "source.option.multiLine": "true"}
    run(config | {"sink.format": "json"})
    assert rows(tmp_path / "out") == [{"n": 1}, {"n": 2, "s": "x"}, {"n": 3}]


def test_parquet_becomes_json(folders: dict[str, str], run: Run, tmp_path: Path) -> None:
    table = pa.table({"id": pa.array([1, 2], pa.int32()), "tags": [["a"], []]})
    papq.write_table(table, tmp_path / "in" / "a.parquet")
    papq.write_table(table.drop(["tags"]), tmp_path / "in" / "b.parquet")
    reports = run(folders | {"source.format": "parquet", "sink.format": "json"})
    assert rows(tmp_path / "out") == [
        {"id": 1, "tags": ["a"]},
        {"id": 1},
        {"id": 2, "tags": []},
        {"id": 2},
    ]
    assert [(each.rows_in, each.manifest.rows) for each in reports.commits] == [(4, 4)]


def test_any_file_name_is_read_as_it_is(
    folders: dict[str, str], run: Run, ledger: MemoryLedger, tmp_path: Path
) -> None:
    names = ["a b.csv", "[1].csv", "a*?.csv", "a%20b#c.csv", "{x,y}.csv", "näh.csv", "a\\b.csv"]
    for number, name in enumerate(names):
        (tmp_path / "in" / name).write_text(f"{number}\n")
    reports = run(
        folders
        | {
            "source.format": "csv",
            "source.header": "false",
            "source.schema": "n INT",
            "sink.format": "parquet",
        }
    )
    assert [each.trace for each in reports.statuses if each.trace] == []
    assert rows(tmp_path / "out") == [{"n": number} for number in range(len(names))]
    assert len(ledger.offsets("c")) == len(names)


def test_a_batch_is_one_job_of_spark_however_many_files_it_has(
    folders: dict[str, str], run: Run, engine: Embedded, tmp_path: Path
) -> None:
    for number in range(40):
        (tmp_path / "in" / f"{number}.csv").write_text(f"n\n{number}\n")
    before = jobs(engine)
    reports = run(
        folders | {"source.format": "csv", "source.schema": "n INT", "sink.format": "parquet"}
    )
    assert [each.rows_in for each in reports.commits] == [40]
    assert len(jobs(engine) - before) == 1


def test_more_than_one_spelling_of_null(folders: dict[str, str], run: Run, tmp_path: Path) -> None:
    (tmp_path / "in" / "a.csv").write_text("n,`\n1,x\nNA,-\n-,NA\n,y\n")
    run(folders | {"source.format": "csv", "source.null.values": "NA,-", "sink.format": "parquet"})
    assert rows(tmp_path / "out") == [
        {"n": 1, "`": "x"},
        {"n": None, "`": "y"},
        {"n": None, "`": None},
        {"n": None, "`": None},
    ]


def test_a_batch_without_rows_moves_the_offsets_and_writes_nothing(
    folders: dict[str, str], run: Run, ledger: MemoryLedger, tmp_path: Path
) -> None:
    (tmp_path / "in" / "a.csv").write_text("n\n1\n")
    reports = run(
        folders
        | {
            "source.format": "csv",
            "transforms": "t",
            "transforms.t.type": "sql",
            "transforms.t.query": "SELECT * FROM input WHERE n > 1",
            "sink.format": "csv",
        }
    )
    assert (rows(tmp_path / "out"), staging_is_empty(tmp_path / "out")) == ([], True)
    assert [(each.manifest.rows, each.manifest.files) for each in reports.commits] == [(0, 0)]
    assert len(ledger.offsets("c")) == 1


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("n,s\n1,x\nfoo,y\n", 'For input string: "foo"'),
        ("n,s\n1\n", "Malformed CSV record: 1"),
        ("s,n\nx,1\n", "CSV header does not conform to the schema. Header: s, n Schema: n, s"),
    ],
    ids=["value", "columns", "header"],
)
def test_a_malformed_file_is_named_with_the_reason(
    folders: dict[str, str], run: Run, ledger: MemoryLedger, tmp_path: Path, text: str, reason: str
) -> None:
    bad = tmp_path / "in" / "bad one.csv"
    bad.write_text(text)
    config = {"source.format": "csv", "source.schema": "n INT, s STRING", "sink.format": "json"}
    told = failure(run(folders | config))
    assert (told[: len(str(bad)) + 2], reason in told) == (f"{bad}: ", True)
    assert "\tat " not in told
    assert (rows(tmp_path / "out"), staging_is_empty(tmp_path / "out")) == ([], True)
    assert ledger.offsets("c") == {}


def put_row(file: Path, fmt: str, number: int) -> None:
    if fmt == "csv":
        file.write_text(f"n,s\n{number},x\n")
    else:
        papq.write_table(pa.table({"n": pa.array([number], pa.int32()), "s": ["x"]}), file)


@pytest.mark.parametrize(
    ("fmt", "bad"),
    [
        pytest.param("csv", b"n,s\nfoo,y\n", id="no number"),
        pytest.param("csv", b'n,s\n1,"y\n', id="open quote", marks=pytest.mark.soak),
        pytest.param("csv", b"n,s\n1,\xe9\n", id="no UTF-8", marks=pytest.mark.soak),
        pytest.param(
            "csv", b"n,%s\n1,y\n" % (b"s" * 131_073), id="long name", marks=pytest.mark.soak
        ),
        pytest.param("parquet", b"PAR1 that is cut off", id="cut off", marks=pytest.mark.soak),
    ],
)
def test_a_file_that_fails_its_task_keeps_none_waiting_that_is_there_or_comes_later(
    folders: dict[str, str],
    engine: Embedded,
    ledger: MemoryLedger,
    tmp_path: Path,
    fmt: str,
    bad: bytes,
) -> None:
    (tmp_path / "in" / f"a.{fmt}").write_bytes(bad)
    put_row(tmp_path / "in" / f"b.{fmt}", fmt, 1)
    config = folders | {
        "source.format": fmt,
        "task.schema": "n INT, s STRING",
        "sink.format": "json",
        "task.restart.backoff.max.ms": "50",
    }
    settings = keys.keys_of(config).parse(config)
    config[files.TASK_CLAIM] = str(claim_sink(settings, ledger.cluster_id, "c", None))
    reports, out, pause = Reports(), tmp_path / "out", threading.Event()
    runner = Runner(engine, ledger, find_plugins(), reports)
    runner.start(Launch(Resource("c", 0), Token(1, 0), config, config))
    try:
        for number in (1, 2):
            while len(list(out.glob("*.json"))) < number:
                pause.wait(0.05)
            failed = reports.wait_status(state=RunState.FAILED)
            put_row(tmp_path / "in" / f"c.{fmt}", fmt, 2)
    finally:
        assert runner.close(60) == frozenset()
    assert rows(out) == [{"n": 1, "s": "x"}, {"n": 2, "s": "x"}]
    assert failed.reason.startswith(str(tmp_path / "in" / f"a.{fmt}"))
    assert failed.error is ErrorClass.INPUT


def test_rows_that_do_not_fit_are_dropped_where_that_is_wanted(
    folders: dict[str, str], run: Run, tmp_path: Path
) -> None:
    (tmp_path / "in" / "bad.csv").write_text("n\n1\nfoo\n2\n")
    run(
        folders
        | {
            "source.format": "csv",
            "source.schema": "n INT",
            "errors.tolerance": "all",
            "sink.format": "parquet",
        }
    )
    assert rows(tmp_path / "out") == [{"n": 1}, {"n": 2}]


def test_another_number_of_tasks_moves_files_but_not_progress(
    folders: dict[str, str], run: Run, ledger: MemoryLedger, tmp_path: Path
) -> None:
    config = folders | {"source.format": "csv", "source.schema": "n INT", "sink.format": "parquet"}
    for number in range(6):
        (tmp_path / "in" / f"{number}.csv").write_text(f"n\n{number}\n")
    run(config | {"tasks.max": "3"})
    before: dict[str, Document] = dict(ledger.offsets("c"))
    for number in range(6, 9):
        (tmp_path / "in" / f"{number}.csv").write_text(f"n\n{number}\n")
    run(config | {"tasks.max": "2"})
    assert rows(tmp_path / "out") == [{"n": number} for number in range(9)]
    assert dict(ledger.offsets("c")) | before == dict(ledger.offsets("c"))
    assert len(ledger.offsets("c")) == 9


def test_a_query_that_takes_too_long_is_cut_short_and_does_not_count(
    folders: dict[str, str], engine: Embedded, ledger: MemoryLedger, tmp_path: Path
) -> None:
    (tmp_path / "in" / "a.csv").write_text("n\n1\n")
    config = folders | {
        "source.format": "csv",
        "task.schema": "n INT",
        "transforms": "t",
        "transforms.t.type": "sql",
        "transforms.t.query": (
            # It takes hours, and looks up each 1,000 rows of the first range.
            "SELECT sum(sqrt(a.id * b.id) + n) AS s FROM input "
            "CROSS JOIN range(0, 1000000000, 1, 1) AS a CROSS JOIN range(1000) AS b"
        ),
        "sink.format": "parquet",
    }
    settings = keys.keys_of(config).parse(config)
    config[files.TASK_CLAIM] = str(claim_sink(settings, ledger.cluster_id, "c", None))
    task, token = Resource("c", 0), Token(1, 0)
    reports = Reports()
    runner = Runner(engine, ledger, find_plugins(), reports, grace_ms=300, hung_ms=60_000)
    runner.start(Launch(task, token, config, config))
    reports.wait_status(state=RunState.RUNNING)
    while not engine.run("probe", active_jobs):
        threading.Event().wait(0.05)
    runner.stop(task)
    assert reports.wait_stopped(token) == Stopped(task, token, Ending.CANCELLED)
    assert runner.close(60) == frozenset()
    assert (ledger.accepted, rows(tmp_path / "out")) == ({}, [])
