# pyright: basic
"""Files where Spark's executors run on other hosts, and may not see what this process sees."""

import stat
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest.mock import MagicMock

import pytest
from pyspark.sql.types import StringType, StructField, StructType

from fairlead.events.model import Resource
from fairlead.runtime.pipeline.connectors.files.copies import FileSurvey
from fairlead.runtime.pipeline.connectors.files.csv_style import CsvStyle
from fairlead.runtime.pipeline.connectors.files.source import reading
from fairlead.runtime.pipeline.connectors.files.source.formats import ReadFormat
from fairlead.runtime.pipeline.connectors.files.source.listing import stat_file
from fairlead.runtime.pipeline.connectors.files.source.reading import Reading
from fairlead.runtime.pipeline.spi.context import Context, Reach
from fairlead.runtime.pipeline.spi.errors import SourceAway, Unreadable

NOT_THERE = "[FAILED_READ_FILE.FILE_NOT_EXIST] Encountered error while reading file file://{}. "


@pytest.fixture
def shared(tmp_path: Path) -> Path:
    (made := tmp_path / "shared").mkdir()
    return made


@pytest.fixture
def reader(shared: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Reading, list[FileSurvey]]:
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
    context = replace(Context(Resource("c", 0), print), reach=Reach(paths=(str(shared), "/other")))
    return Reading(shared, form, context), given


def test_copies_for_executors_lie_in_the_first_shared_folder_for_every_user_and_no_source(
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
