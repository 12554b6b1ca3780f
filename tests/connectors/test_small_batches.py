# pyright: basic
"""Small batches of parquet are written by the worker: readers find them as if Spark had."""

from pathlib import Path
from typing import Any

import pyarrow.parquet as papq
import pytest
from connectors.conftest import Run
from py4j.clientserver import ClientServerConnection
from pyspark.sql import SparkSession

from fairlead.events.commits import Manifest
from fairlead.runtime.pipeline.batches.counting import RowCount, above_queries
from fairlead.runtime.pipeline.batches.frames import rows_of
from fairlead.runtime.pipeline.engines.embedded.engine import Embedded
from fairlead.runtime.pipeline.engines.engine import TaskError
from fairlead.runtime.pipeline.stores.files.sink.writing import SmallBatches

pytestmark = pytest.mark.spark

PLAIN = """
    SELECT id, id % 2 = 0 AS is_even, CAST(id AS TINYINT) AS tiny, CAST(id AS SMALLINT) AS small,
           CAST(id - 1 AS INT) AS number, id / 3 AS broken, CAST(id / 7 AS FLOAT) AS rough,
           CAST(id - 1.25 AS DECIMAL(9, 2)) AS price, CAST(-id AS DECIMAL(18, 0)) AS far,
           CAST(id * 1e20 AS DECIMAL(38, 4)) AS farther, 'x' AS constant, NULLIF(id, 3) AS gap,
           CONCAT('é', CHAR(0), id) AS text, CAST('é' AS BINARY) AS bytes,
           CAST(NULL AS STRING) AS none,
           DATE '1582-10-04' + CAST(id AS INT) AS day, DATE '0001-01-01' AS first_day,
           TIMESTAMP '1969-12-31 23:59:59.999999' + MAKE_INTERVAL(0, 0, 0, CAST(id AS INT)) AS at,
           TIMESTAMP '9999-12-31 23:59:59.999999' AS last,
           TIMESTAMP_NTZ '0001-01-01 00:00:00.000001' AS local
    FROM RANGE(10)
"""


def written(spark: SparkSession, query: str, folder: Path) -> tuple[Any, Any]:
    """Return what is in the file of the worker's, and in that of Spark's."""
    rows, small = spark.sql(query).coalesce(1), SmallBatches(64 << 20)
    assert not small.take(rows, 100)  # nobody knows yet what comes of it
    rows.write.parquet(str(folder / "spark"))
    small.learn(Manifest("", "", 10, 0, 0), 100)
    assert small.take(rows, 100)
    small.write(rows, folder / "worker")
    (ours,), (theirs,) = ([*(folder / by).glob("part-*.parquet")] for by in ("worker", "spark"))
    return ours, theirs


def test_a_file_of_the_workers_has_the_columns_and_values_of_one_of_sparks(
    engine: Embedded, tmp_path: Path
) -> None:
    ours, theirs = engine.run("t", lambda spark: written(spark, PLAIN, tmp_path))
    mine, its = (papq.ParquetFile(each) for each in (ours, theirs))
    assert [str(each) for each in mine.schema] == [str(each) for each in its.schema]
    assert mine.schema_arrow.remove_metadata() == its.schema_arrow.remove_metadata()
    assert mine.read().to_pylist() == its.read().to_pylist()
    codecs = [
        {each.metadata.row_group(0).column(at).compression for at in range(20)}
        for each in (mine, its)
    ]
    assert codecs == [{"SNAPPY"}, {"SNAPPY"}]


def test_spark_reads_both_alike(engine: Embedded, tmp_path: Path) -> None:
    def read(spark: SparkSession) -> tuple[Any, ...]:
        frames = [spark.read.parquet(str(each)) for each in written(spark, PLAIN, tmp_path)]
        return (*(each.schema for each in frames), *(each.collect() for each in frames))

    ours, theirs, our_rows, their_rows = engine.run("t", read)
    assert ours == theirs
    assert our_rows == their_rows


@pytest.mark.parametrize(
    ("query", "size"),
    [
        ("SELECT ARRAY(id) AS a FROM RANGE(10)", 100),
        ("SELECT NAMED_STRUCT('a', id) AS s FROM RANGE(10)", 100),
        ("SELECT MAP(id, 1) AS m FROM RANGE(10)", 100),
        ("SELECT CAST('a' AS STRING COLLATE UTF8_LCASE) AS c FROM RANGE(10)", 100),
        ("SELECT INTERVAL '1' DAY AS i FROM RANGE(10)", 100),
        ("SELECT PARSE_JSON('1') AS v FROM RANGE(10)", 100),
        ("SELECT id FROM RANGE(10)", 2 << 20),
        ("SELECT id FROM RANGE(10)", 600_000),
    ],
)
def test_spark_writes_what_is_not_plain_or_not_small(
    engine: Embedded, query: str, size: int
) -> None:
    small = SmallBatches(64 << 20)
    small.learn(Manifest("", "", 10, 0, 0), 100)
    assert engine.run("t", lambda spark: small.take(spark.sql(query), size)) is False


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("spark.sql.parquet.outputTimestampType", "INT96"),
        ("spark.sql.parquet.compression.codec", "zstd"),
    ],
)
def test_spark_writes_where_somebody_has_set_how(engine: Embedded, name: str, value: str) -> None:
    def takes(spark: SparkSession) -> bool:
        own = spark.newSession()
        own.conf.set(name, value)
        return small.take(own.sql("SELECT 1 AS id"), 1)

    small = SmallBatches(64 << 20)
    small.learn(Manifest("", "", 1, 0, 0), 1)
    assert engine.run("t", takes) is False


def test_rows_are_counted_that_pass_below_a_query(engine: Embedded) -> None:
    def count(spark: SparkSession) -> tuple[int, int]:
        passing = RowCount()
        frame = spark.sql("SELECT id FROM {t} WHERE id > 3", None, t=passing.on(spark.range(10)))
        return rows_of(above_queries(frame)).num_rows, passing.rows

    assert engine.run("t", count) == (6, 10)


@pytest.mark.parametrize("rows", ["", "WHERE id > 99"], ids=["some", "none"])
def test_rows_are_held_as_pyspark_holds_them(engine: Embedded, rows: str) -> None:
    def held(spark: SparkSession) -> tuple[Any, Any]:
        frame = spark.sql(PLAIN + rows)
        return rows_of(frame), frame.toArrow()

    ours, theirs = engine.run("t", held)
    assert ours.schema == theirs.schema
    assert ours.to_pylist() == theirs.to_pylist()


def test_nobody_tells_the_jvm_by_which_line_rows_are_asked_for(
    engine: Embedded, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked, send = list[str](), ClientServerConnection.send_command

    def noted(connection: Any, command: str) -> Any:
        asked.append(command)
        return send(connection, command)

    def held(spark: SparkSession) -> int:
        frame = spark.range(3)
        monkeypatch.setattr(ClientServerConnection, "send_command", noted)
        return rows_of(frame).num_rows

    assert engine.run("t", held) == 3
    assert any("collectAsArrowToPython" in each for each in asked)
    assert not any("setCallSite" in each for each in asked)


def test_a_row_that_fails_fails_the_job_as_it_does_with_spark(engine: Embedded) -> None:
    small = SmallBatches(64 << 20)
    small.learn(Manifest("", "", 1, 0, 0), 1)
    query = "SELECT CAST(IF(id = 3, 'x', '1') AS INT) AS n FROM RANGE(5)"
    with pytest.raises(TaskError, match="CAST_INVALID_INPUT"):
        engine.run("t", lambda spark: small.write(spark.sql(query), Path("/nowhere")))


@pytest.mark.parametrize(
    "transform",
    [
        {"engine.lane": "spark"},
        {"transforms": "t", "transforms.t.type": "sql", "transforms.t.query": "TABLE input"},
    ],
    ids=["as they are", "by SQL"],
)
def test_rows_of_a_trickle_come_once_each(
    run: Run, folders: dict[str, str], transform: dict[str, str]
) -> None:
    schema = {"source.format": "csv", "source.schema": "n INT, at TIMESTAMP"}
    for number in range(4):
        text = "n,at\n" + "".join(f"{number * 3 + at},2024-01-01T00:00:0{at}Z\n" for at in range(3))
        (Path(folders["source.path"]) / f"{number}.csv").write_text(text)
    one_by_one = {"sink.format": "parquet", "source.max.files.per.batch": "1"}
    config = {**folders, **schema, **one_by_one, **transform}
    reports = run(config)
    assert [each.trace for each in reports.statuses if each.trace] == []
    files = sorted(Path(folders["sink.path"]).glob("*.parquet"))
    writers = [papq.read_metadata(each).created_by.partition(" ")[0] for each in files]
    assert writers == ["parquet-mr", *["parquet-cpp-arrow"] * 3]
    rows = [row for each in files for row in papq.read_table(each).to_pylist()]
    assert sorted(row["n"] for row in rows) == [*range(12)]
    assert {row["at"].isoformat() for row in rows} == {
        f"2024-01-01T00:00:0{at}+00:00" for at in range(3)
    }
