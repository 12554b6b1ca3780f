# pyright: reportPrivateUsage=false
"""Which way rows go, through Arrow or through Spark, and what is said of it."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from connectors.conftest import Run
from pyspark.sql.types import IntegerType, StringType, StructType

from fairlead.events.model import Resource
from fairlead.runtime.config.load import load_config
from fairlead.runtime.node.launcher.commands import node_spec
from fairlead.runtime.pipeline.connectors.spark_pipeline import SparkPipeline
from fairlead.runtime.pipeline.formats.csv import arrow_reader
from fairlead.runtime.pipeline.formats.csv.grammar import PlainForm
from fairlead.runtime.pipeline.formats.csv.style import CsvStyle
from fairlead.runtime.pipeline.spi.context import Context
from fairlead.runtime.pipeline.spi.rows import LaneCount
from fairlead.runtime.pipeline.stores.files.copies import FileSurvey
from fairlead.runtime.pipeline.stores.files.lanes import LaneCounter
from fairlead.runtime.pipeline.stores.files.sink import arrow_parts
from fairlead.runtime.pipeline.stores.files.source import reading
from fairlead.runtime.pipeline.stores.files.source.formats import ReadFormat
from fairlead.runtime.pipeline.tasks.reports import LaneRemark

Config = dict[str, str]

SQL = {"transforms": "t", "transforms.t.type": "sql", "transforms.t.query": "SELECT * FROM input"}


@pytest.mark.parametrize(
    ("of_node", "config", "may"),
    [
        ((), {}, True),
        ((), {"engine.lane": "auto"}, True),
        ((), {"engine.lane": "spark"}, False),
        (("engine.lane=spark",), {}, False),
        (("engine.lane=spark",), {"engine.lane": "auto"}, False),
        ((), SQL, False),
    ],
)
def test_a_node_or_a_connector_may_leave_all_rows_to_spark(
    of_node: tuple[str, ...], config: Config, may: bool, folders: Config, tmp_path: Path
) -> None:
    spec = node_spec(load_config(None, {}, (f"data.dir={tmp_path}/data", *of_node)), 1)
    context = replace(Context(Resource("c", 0), print), by_arrow=spec.engine.by_arrow)
    given = {**folders, "source.format": "csv", "task.schema": "a INT", "sink.format": "parquet"}
    pipeline = SparkPipeline().pipeline(context, {**given, **config})
    source: Any = pipeline.source
    assert (source._reading._may_be_parted, pipeline.by_arrow) == (may, may)


def test_another_lane_is_refused(folders: Config) -> None:
    given = {**folders, "source.format": "csv", "sink.format": "parquet", "engine.lane": "arrow"}
    assert list(SparkPipeline.validate(given).errors) == ["engine.lane"]


def land(config: Mapping[str, str], name: str, *lines: str) -> Path:
    file = Path(config["source.path"]) / name
    file.write_text("".join(f"{line}\n" for line in ("n,s", *lines)))
    return file


def lanes_of(run: Run, folders: Config, **more: str) -> tuple[list[LaneCount], list[str]]:
    """Return how much of each batch went by Arrow, and the remarks of the task, in order."""
    given = {"source.format": "csv", "source.schema": "n INT, s STRING", "sink.format": "parquet"}
    named = {key.replace("__", "."): text for key, text in more.items()}
    reports = run({**folders, **given, **named})
    assert [each.trace for each in reports.statuses if each.trace] == []
    of_task = [each for each in reports.statuses if each.resource == Resource("c", 0)]
    assert {len(each.commit.advances) for each in reports.batches} == {
        each.ranges for each in reports.batches
    }
    return [each.lanes for each in reports.batches], [each.reason for each in of_task]


@pytest.fixture
def large(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let no batch be a small one."""
    monkeypatch.setattr(reading, "_LEAST_PARTED", 1)


@pytest.mark.spark
@pytest.mark.usefixtures("large")
def test_the_status_names_the_place_for_which_spark_has_read_a_file(
    run: Run, folders: Config
) -> None:
    land(folders, "a.csv", "1,x", "2,y")
    odd = land(folders, "b.csv", "3,x", "+4,y")
    land(folders, "c.csv", "5,x")
    why = f"{odd}: line 3, column `n`: `+4`"
    lanes, remarks = lanes_of(run, folders)
    assert lanes == [LaneCount(2, 3, why, is_news=True)]
    said = f"note: 1 of the first 3 files since the start was read by Spark, not by Arrow: {why}"
    assert said in remarks


@pytest.mark.spark
@pytest.mark.parametrize(
    ("more", "why"),
    [
        ({"engine__lane": "spark"}, "engine.lane=spark"),
        ({key.replace(".", "__"): text for key, text in SQL.items()}, "transforms"),
        ({"sink__partition__by": "n"}, "the sink's format, options, partitions or columns"),
        ({"sink__format": "json"}, "the sink's format, options, partitions or columns"),
        ({"source__option__mode": "FAILFAST"}, "only Spark reads this dialect of csv"),
        ({"source__schema": "n BINARY, s STRING"}, "only Spark reads column `n` of type BINARY"),
    ],
)
@pytest.mark.usefixtures("large")
def test_what_a_config_leaves_to_spark_is_no_remark(
    more: Config, why: str, run: Run, folders: Config
) -> None:
    land(folders, "a.csv", "1,x", "2,+y")
    (lanes,), remarks = lanes_of(run, folders, **more)
    assert lanes == LaneCount(why_spark=lanes.why_spark)
    assert lanes.why_spark.startswith(why)
    assert not [each for each in remarks if "Spark" in each]


@pytest.mark.spark
def test_a_small_batch_is_read_and_written_without_a_job(
    run: Run, folders: Config, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(arrow_parts, "run_job", "no job is to be made")
    monkeypatch.setattr(ReadFormat, "rows", "no frame is to be made")
    land(folders, "a.csv", "1,x", "2,y")
    lanes, remarks = lanes_of(run, folders)
    assert lanes == [LaneCount(1, 2)]
    assert not [each for each in remarks if "Spark" in each]


@pytest.mark.spark
def test_spark_reads_a_small_batch_of_which_a_file_is_not_proved(run: Run, folders: Config) -> None:
    land(folders, "a.csv", "1,x")
    land(folders, "b.csv", "+1,x")
    (lanes,), remarks = lanes_of(run, folders)
    assert lanes == LaneCount(why_spark=lanes.why_spark, is_news=True)
    assert "b.csv: line 2" in lanes.why_spark
    assert [each for each in remarks if each.endswith(lanes.why_spark)]


@pytest.mark.spark
@pytest.mark.usefixtures("large")
def test_the_status_says_what_arrow_could_not_read_after_all(
    run: Run, folders: Config, monkeypatch: pytest.MonkeyPatch
) -> None:
    land(folders, "a.csv", "1,x")
    proved = arrow_reader.TextRange
    monkeypatch.setattr(
        "fairlead.runtime.pipeline.stores.files.source.formats.TextRange",
        lambda path, _, *more: proved(path, (2, 3), *more),  # no whole record
    )
    (lanes,), remarks = lanes_of(run, folders)
    assert lanes == LaneCount(why_spark=lanes.why_spark, is_news=True)
    assert lanes.why_spark.startswith("Arrow could not read them: ArrowInvalid: ")
    assert [each for each in remarks if each.endswith(lanes.why_spark)]


SCHEMA = StructType().add("n", IntegerType()).add("s", StringType())
FORM = PlainForm(SCHEMA, CsvStyle(), {}, "UTC", is_inferred=False)


def test_a_text_is_looked_through_only_when_the_number_of_such_files_has_doubled() -> None:
    looked: list[str] = []

    def look(file: Path, _: FileSurvey) -> str:
        looked.append(file.name)
        return "line 2"

    counter = LaneCounter("csv", look)
    news: list[str] = []
    for number in range(10):
        found = [(Path(f"{number}.csv"), FileSurvey(Path("copy")))]
        counter.count(FORM, found, is_parted=False)
        told = f"{number}.csv: line 2" if counter.last.is_news else f"{number}.csv is not proved"
        assert counter.last.why_spark == told
        news += [f"{number}.csv"] if counter.last.is_news else []
    assert looked == news == ["0.csv", "1.csv", "3.csv", "7.csv"]


@pytest.mark.parametrize(
    ("name", "survey", "why"),
    [
        ("a.csv.deflate", FileSurvey(Path()), "only Spark reads files such as a.csv.deflate"),
        ("a.csv.lz4", FileSurvey(Path()), "only Spark reads files such as a.csv.lz4"),
        (
            "a.csv",
            FileSurvey(Path(), shadowed=("day",)),
            "only Spark reads columns that folders name, such as those of a.csv",
        ),
    ],
)
def test_a_file_that_no_text_could_prove_is_no_news(
    name: str, survey: FileSurvey, why: str
) -> None:
    counter = LaneCounter("csv", lambda *_: "line 2")
    counter.count(FORM, [(Path(name), survey)], is_parted=False)
    assert counter.last == LaneCount(why_spark=why)


def test_another_format_is_the_reason_as_long_as_nothing_is_counted() -> None:
    counter = LaneCounter("json", lambda *_: "")
    assert counter.last == LaneCount(why_spark="source.format=json")


def test_a_remark_changes_only_when_the_source_has_news() -> None:
    remark = LaneRemark()
    remark.count(LaneCount(8, 80), 8)
    assert remark.remark == ""
    remark.count(LaneCount(1, 10, "a", is_news=True), 3)
    first = "note: 2 of the first 11 files since the start were read by Spark, not by Arrow: a"
    assert remark.remark == first
    remark.count(LaneCount(0, 0, "b"), 1)
    assert remark.remark == first
    remark.count(LaneCount(0, 0, "c", is_news=True), 1)
    assert remark.remark.startswith("note: 4 of the first 13 files")
    assert remark.remark.endswith(": c")
