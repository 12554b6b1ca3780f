# pyright: basic
"""The columns of a sink of files: all files have them, and what a folder cannot say is told."""

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as papq
import pytest
from connectors.conftest import Run
from pyspark.sql import SparkSession

from fairlead.events.commits import CommitId
from fairlead.events.model import Token
from fairlead.runtime.pipeline.engines.embedded.engine import Embedded
from fairlead.runtime.pipeline.spi.errors import SchemaRefused
from fairlead.runtime.pipeline.stores.files.sink.sink import FileSink
from fairlead.runtime.pipeline.stores.files.sink.writing import WriteFormat
from fairlead.runtime.pipeline.stores.files.sink_folder.root import SinkLocation
from fairlead.runtime.pipeline.tasks.reports import Warned

pytestmark = pytest.mark.spark

NULL = "__HIVE_DEFAULT_PARTITION__"


def test_a_task_writes_the_columns_that_another_one_has_added_since(
    engine: Embedded, tmp_path: Path
) -> None:
    place = SinkLocation(tmp_path, "a-cluster", "c", None)
    form = WriteFormat("parquet")

    def write(spark: SparkSession) -> list[list[str]]:
        slow, fast = (FileSink(place, form, print, may_evolve=True) for _ in range(2))
        narrow = spark.sql("SELECT CAST(1 AS INT) AS n")
        wide = spark.sql("SELECT CAST(2 AS BIGINT) AS n, 'x' AS s")
        slow.prepare(narrow.toArrow().schema)
        fast.prepare(wide.toArrow().schema)
        for number, (sink, rows) in enumerate(((fast, wide), (slow, narrow), (slow, narrow))):
            sink.stage(rows, CommitId("c", number, Token(1, 0), 0), 100)
        parts = sorted(tmp_path.glob("_fairlead/staging/*/*/*/*.parquet"))
        return [[f"{each.name} {each.type}" for each in papq.read_schema(it)] for it in parts]

    assert engine.run("t", write) == [["n int64", "s string"]] * 3


@pytest.mark.parametrize("fmt", ["json", "parquet"])
def test_columns_that_differ_in_case_only_are_refused_before_a_row_is_written(
    tmp_path: Path, fmt: str
) -> None:
    sink = FileSink(SinkLocation(tmp_path, "a-cluster", "c", None), WriteFormat(fmt), print)
    nested = pa.list_(pa.struct({"a": pa.int32(), "A": pa.int32()}))
    for schema in (pa.schema({"id": pa.int32(), "ID": pa.int64()}), pa.schema({"s": nested})):
        with pytest.raises(SchemaRefused, match=r"`(id|s\.a)` and `(ID|s\.A)` differ in case only"):
            sink.prepare(schema)
    assert [*tmp_path.iterdir()] == []


@pytest.mark.parametrize("fmt", ["json", "parquet"])
def test_a_text_that_no_folder_stands_for_is_with_null_as_spark_has_it_and_told_once(
    run: Run, folders: dict[str, str], tmp_path: Path, fmt: str
) -> None:
    (tmp_path / "in" / "a.csv").write_text('k,K2,n\n"",,1\n,,2\nx,"",3\n')
    (tmp_path / "in" / "b.csv").write_text('k,K2,n\n"",x,4\n')
    config = {**folders, "source.format": "csv", "source.schema": "k STRING, K2 STRING, n INT"}
    config |= {"sink.format": fmt, "sink.partition.by": "K,k2", "source.max.files.per.batch": "1"}
    reports = run({**config, "tasks.max": "1"})
    assert [each.trace for each in reports.statuses if each.trace] == []
    (told,) = {each.text for each in reports.told if isinstance(each, Warned)}
    assert told.startswith("2 rows of a batch have an empty text, or the text __HIVE_")
    assert "column of sink.partition.by" in told
    found = sorted(
        (str(each.parent.relative_to(tmp_path / "out")), row["n"])
        for each in (tmp_path / "out").rglob(f"part-*.{fmt}")
        for row in rows_in(each)
    )
    assert found == [
        (f"K={NULL}/k2={NULL}", 1),
        (f"K={NULL}/k2={NULL}", 2),
        (f"K={NULL}/k2=x", 4),
        (f"K=x/k2={NULL}", 3),
    ]


def test_nulls_and_texts_with_folders_of_their_own_are_nothing_to_tell(
    run: Run, folders: dict[str, str], tmp_path: Path
) -> None:
    (tmp_path / "in" / "a.csv").write_text('k,s,n\n,"",1\nx,,2\n" ","",3\n')
    config = {**folders, "source.format": "csv", "sink.format": "json", "sink.partition.by": "k,n"}
    reports = run(config)
    assert [each for each in reports.told if isinstance(each, Warned)] == []
    assert len([*(tmp_path / "out").rglob("part-*.json")]) == 3


def test_bytes_name_no_folder(run: Run, folders: dict[str, str], tmp_path: Path) -> None:
    # Both would be read as one letter that stands for what is no text.
    papq.write_table(pa.table({"n": [1, 2], "B": [b"\xff", b"\xfe"]}), tmp_path / "in" / "a")
    config = {**folders, "source.format": "parquet", "sink.format": "parquet"}
    (told,) = {each.trace for each in run({**config, "sink.partition.by": "b"}).statuses} - {""}
    assert told.startswith(
        f"{tmp_path}/in/a, in a batch of its own: "
        "column `B` of sink.partition.by is BINARY, and bytes cannot name a folder"
    )
    assert [*(tmp_path / "out").rglob("part-*")] == []


def rows_in(file: Path) -> list[dict[str, Any]]:
    if file.suffix == ".parquet":
        found: list[dict[str, Any]] = papq.ParquetFile(file).read().to_pylist()
        return found
    return [json.loads(line) for line in file.read_text().splitlines()]
