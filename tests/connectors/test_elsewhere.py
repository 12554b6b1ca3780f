# pyright: basic
"""Files where Spark's executors run on other hosts, and may not see what this process sees."""

import stat
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest.mock import MagicMock

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StringType, StructField, StructType

from fairlead.events.commits import CommitId
from fairlead.events.model import Resource
from fairlead.runtime.pipeline.engines.embedded.engine import Embedded
from fairlead.runtime.pipeline.formats.csv.style import CsvStyle
from fairlead.runtime.pipeline.spi.context import AccessLimits, Context
from fairlead.runtime.pipeline.spi.errors import SinkAway, SourceAway, Unreadable
from fairlead.runtime.pipeline.stores.files.copies import FileSurvey
from fairlead.runtime.pipeline.stores.files.sink import sink as file_sink
from fairlead.runtime.pipeline.stores.files.sink.writing import WriteFormat
from fairlead.runtime.pipeline.stores.files.source import reading
from fairlead.runtime.pipeline.stores.files.source.formats import ReadFormat
from fairlead.runtime.pipeline.stores.files.source.listing import stat_file
from fairlead.runtime.pipeline.stores.files.source.reading import Reading
from fairlead_tests.connectors.sinks import FIRST, TASK, begun

NOT_THERE = "[FAILED_READ_FILE.FILE_NOT_EXIST] Encountered error while reading file file://{}. "


@pytest.fixture
def shared(tmp_path: Path) -> Path:
    (made := tmp_path / "shared").mkdir()
    return made


@pytest.fixture
def paths(shared: Path) -> tuple[str, ...]:
    """The folders that the operator allows; only one of them takes anything."""
    return "/gone", str(shared), "/other"


@pytest.fixture
def reader(
    shared: Path, paths: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> tuple[Reading, list[FileSurvey]]:
    """Return what reads files of a cluster with tolerance, and what Spark is given of them."""
    monkeypatch.setattr(reading, "runs_elsewhere", lambda _: True)
    given: list[FileSurvey] = []

    def rows(_: object, __: object, found: list[FileSurvey], ___: object) -> Any:
        given.extend(found)
        return None, ()

    monkeypatch.setattr(ReadFormat, "rows", rows)
    columns = StructType([StructField(each, StringType()) for each in "ns"])
    style = CsvStyle(header=False, encoding="ISO-8859-1")
    form = ReadFormat("csv", "n STRING, s STRING", style, tolerant=True, grown=columns)
    reach = AccessLimits(paths=paths)
    context = replace(Context(Resource("c", 0), print), reach=reach, by_arrow=False)
    return Reading(shared, form, context), given


def test_copies_for_executors_lie_in_the_first_writable_folder_for_every_user_and_no_source(
    reader: tuple[Reading, list[FileSurvey]], shared: Path
) -> None:
    (shared / "a:b.csv").write_bytes("1,é\n".encode("latin-1"))
    file = stat_file(shared, "a:b.csv")
    assert file is not None
    read, given = reader
    read.read(MagicMock(), [file])
    (copy,) = (each.path for each in given)
    assert (copy.read_text(), copy.parent.parent, copy.parent.name[0]) == ("1,é\n", shared, ".")
    assert stat.S_IMODE(copy.parent.stat().st_mode) & 0o555 == 0o555
    read.close()
    assert [each.name for each in shared.iterdir()] == ["a:b.csv"]


@pytest.mark.parametrize("paths", [("/gone", "/other")])
def test_no_shared_folder_that_takes_copies_for_executors_is_a_source_that_is_away(
    reader: tuple[Reading, list[FileSurvey]], shared: Path
) -> None:
    (shared / "a.csv").write_bytes("1,é\n".encode("latin-1"))
    file = stat_file(shared, "a.csv")
    assert file is not None
    read, _ = reader
    with pytest.raises(SourceAway) as away:
        read.read(MagicMock(), [file])
    assert str(away.value) == (
        "cannot copy input files to /gone: No such file or directory; let this node's user write "
        "to one of /gone, /other"
    )


def test_a_file_that_only_executors_do_not_find_is_away_and_never_unreadable(
    reader: tuple[Reading, list[FileSurvey]], shared: Path
) -> None:
    (shared / "a.csv").write_text("1,x\n")
    file = stat_file(shared, "a.csv")
    assert file is not None
    read, given = reader
    read.read(MagicMock(), [file])
    (copy,) = (each.path for each in given)
    told = RuntimeError(NOT_THERE.format(copy))
    with pytest.raises(SourceAway) as away:
        read.blame(told)
    assert str(away.value).startswith(f"{shared}/a.csv is there, and Spark does not find {copy}: ")
    (shared / "a.csv").unlink()
    gone = read.blame(told)
    assert isinstance(gone, Unreadable), "and the plan is found to have changed before it counts"
    read.close()


@pytest.mark.spark
@pytest.mark.parametrize("form", ["parquet", "json"])
def test_a_batch_counts_only_if_the_files_of_all_executors_are_there(
    engine: Embedded, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, form: str
) -> None:
    monkeypatch.setattr(file_sink, "runs_elsewhere", lambda _: True)
    _, sink, _ = begun(tmp_path / "out", sink_format=form)
    save = WriteFormat._save

    def lose(self: WriteFormat, rows: DataFrame, folder: Path, mode: str) -> None:
        save(self, rows, folder, mode)
        (part,) = folder.glob("part-00001-*")
        part.unlink()

    def stage(spark: SparkSession, batch: int = 0, most: int = 100) -> int:
        rows = spark.range(100, numPartitions=2).where(f"id < {most}")
        return sink.stage(rows, CommitId(*TASK, FIRST, batch), 8 << 20).files

    assert engine.run("whole", stage) == 2
    assert engine.run("one executor has no rows", lambda spark: stage(spark, 1, 50)) in {1, 2}
    monkeypatch.setattr(WriteFormat, "_save", lose)
    with pytest.raises(SinkAway, match="out does not have the files that Spark has written: is it"):
        engine.run("one executor wrote elsewhere", lambda spark: stage(spark, 2))
