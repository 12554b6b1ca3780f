"""Offsets of files that people set, and those of a time or an end of a folder."""

import os
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path

import pytest
from connectors.conftest import Run

from fairlead.events.commits import Document, identity
from fairlead.runtime.pipeline.connectors.spark_pipeline import SparkPipeline
from fairlead.runtime.pipeline.spi.context import AccessLimits, ExternalAccess
from fairlead.runtime.pipeline.spi.errors import OffsetRefused, SourceAway
from fairlead.runtime.pipeline.spi.offsets import PartitionOffset, Seek, SeekEnd
from fairlead_tests.tasks.memory_ledger import MemoryLedger

AT = 1_700_000_000
"""When `b.csv` changed, in seconds; the others did an hour before and after."""
READ_AT = {"deep/a.csv": -1, "b.csv": 0, "c.csv": 1}
"""By path: how many hours later a file changed."""
READ = {"size": 4, "modified_ms": AT * 1_000}


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A folder with three files, of which one lies deeper, and one that is no input."""
    (tmp_path / "deep").mkdir()
    for name, hours in (("deep/a.csv", -1), ("b.csv", 0), ("c.csv", 1), ("_d.csv", 0)):
        (tmp_path / name).write_text("n\n1\n")
        at = AT + hours * 3_600
        os.utime(tmp_path / name, (at, at))
    return tmp_path


def config(root: Path, **given: str) -> Mapping[str, str]:
    return {"source.path": str(root), "source.format": "csv"} | {
        key.replace("_", "."): value for key, value in given.items()
    }


def at(root: Path, path: str, hours: int | None) -> PartitionOffset:
    modified_ms = (AT + (hours or 0) * 3_600) * 1_000
    offset = None if hours is None else {"size": 4, "modified_ms": modified_ms}
    return PartitionOffset({"root": str(root), "path": path}, offset)


def seek(root: Path, to: Seek, *known: PartitionOffset, **given: str) -> list[PartitionOffset]:
    return list(SparkPipeline.seek(config(root, **given), ExternalAccess(), to, known))


def refusal(root: Path, partition: Document, offset: Document | None, **given: str) -> str:
    """Return why an offset of a folder is refused; "": it is taken."""
    try:
        SparkPipeline.check_offset(config(root, **given), partition, offset)
    except OffsetRefused as refused:
        return str(refused)
    return ""


def test_the_earliest_takes_away_what_was_read_of_the_folder_and_of_no_other(root: Path) -> None:
    gone, older = at(root, "gone.csv", 0), PartitionOffset({"path": "b.csv"}, READ)
    other = PartitionOffset({"root": "/other", "path": "b.csv"}, READ)
    found = seek(root, SeekEnd.EARLIEST, at(root, "b.csv", 0), gone, older, other)
    assert found == [
        at(root, "b.csv", None),
        at(root, "gone.csv", None),
        PartitionOffset({"path": "b.csv"}, None),
    ]


def test_the_latest_counts_every_file_that_is_there_as_read(root: Path) -> None:
    changed = PartitionOffset({"root": str(root), "path": "c.csv"}, READ)
    found = seek(root, SeekEnd.LATEST, at(root, "b.csv", 0), changed)
    assert found == [at(root, "c.csv", 1), at(root, "deep/a.csv", -1)]
    assert seek(root, SeekEnd.LATEST, *found, at(root, "b.csv", 0)) == []


def test_a_time_has_files_read_that_changed_then_or_later_and_no_others(root: Path) -> None:
    then = datetime.fromtimestamp(AT, UTC)
    read = at(root, "c.csv", 1), PartitionOffset({"path": "b.csv"}, READ)
    found = seek(root, then, *read)
    assert found == [
        PartitionOffset({"path": "b.csv"}, None),
        at(root, "c.csv", None),
        at(root, "deep/a.csv", -1),
    ]


def test_files_that_the_glob_leaves_out_have_no_part_in_it(root: Path) -> None:
    assert seek(root, SeekEnd.LATEST, source_glob="b*") == [at(root, "b.csv", 0)]


def test_a_folder_that_is_not_there_is_away_and_one_out_of_reach_refused(root: Path) -> None:
    with pytest.raises(SourceAway, match=r"source.path: .*none is not a folder"):
        seek(root / "none", SeekEnd.LATEST)
    nowhere = ExternalAccess(AccessLimits(paths=("/nowhere",)))
    with pytest.raises(OffsetRefused, match=r"source.path: .* is in none of the folders"):
        SparkPipeline.seek(config(root), nowhere, SeekEnd.LATEST, ())


def test_a_folder_that_only_workers_know_cannot_be_looked_at() -> None:
    with pytest.raises(OffsetRefused, match=r"source.path has a"):
        SparkPipeline.seek({"source.path": "${env:IN}"}, ExternalAccess(), SeekEnd.LATEST, ())


def test_offsets_that_tasks_wrote_may_be_set_and_those_of_any_folder_taken_away(
    root: Path,
) -> None:
    deep, none = at(root, "deep/a.csv", -1), at(root / "none", "b.csv", 0).partition
    taken: list[tuple[Path, Document, Document | None]] = [
        (root, deep.partition, deep.offset),
        (root, {"path": "b.csv"}, READ),
        (root, {"root": "/other", "path": "x"}, None),
        (root / "none", none, READ),
    ]
    assert [refusal(*each) for each in taken] == [""] * 4
    assert refusal(root, {"root": "/other", "path": "x"}, READ) != ""


@pytest.mark.parametrize(
    ("changed", "offset", "flaw"),
    [
        ({}, {}, "offset.size is missing: its members are size (a whole number), m"),
        ({}, {"size": 4}, "offset.modified_ms is missing"),
        ({}, {**READ, "rows": 1}, "offset.rows is unknown"),
        ({}, {**READ, "size": -1}, "offset.size is -1: it must be 0 or more"),
        ({}, {**READ, "size": 1 << 63}, "below 2^63"),
        ({}, {**READ, "size": "4"}, "offset.size must be a whole number, not '4'"),
        ({"path": 1}, READ, "partition.path must be a text, not 1"),
        ({"file": "b.csv"}, READ, "partition.file is unknown"),
        ({"file": "b.csv"}, None, "partition.file is unknown"),
        ({"root": "/other"}, READ, "an offset of another folder can only be removed"),
        ({"path": ""}, READ, "partition.path is ''"),
        ({"path": "../b.csv"}, READ, "partition.path is '../b.csv': it must be a path relative to"),
        ({"path": "/b.csv"}, READ, "partition.path is '/b.csv': it must be a path relative to"),
        ({"path": "deep//a.csv"}, READ, "it must be a path relative to"),
        ({"path": "b.json"}, READ, "partition.path is 'b.json', which source.glob=*.csv excludes"),
        ({"path": "none.csv"}, READ, "partition.path is 'none.csv': there is no such file in"),
    ],
)
def test_what_no_file_of_the_folder_can_have_is_refused_with_the_key_at_fault(
    root: Path, changed: Document, offset: Document | None, flaw: str
) -> None:
    partition = {"root": str(root), "path": "b.csv", **changed}
    assert flaw in refusal(root, partition, offset, source_glob="*.csv")


@pytest.mark.spark
def test_what_is_read_again_is_new_rows(
    root: Path, run: Run, ledger: MemoryLedger, tmp_path_factory: pytest.TempPathFactory
) -> None:
    out = tmp_path_factory.mktemp("out")
    given = config(root, sink_format="json", sink_path=str(out), source_min_age_ms="0")
    given = {**given, "name": "c", "connector.class": "SparkPipeline", "task.restart.budget": "0"}

    def go(to: Seek) -> int:
        """Seek, run to the end, and count the rows that there are then."""
        known = [at(root, path, hours) for path, hours in READ_AT.items()]
        known = [each for each in known if identity(each.partition) in ledger.offsets("c")]
        for partition, offset in SparkPipeline.seek(given, ExternalAccess(), to, known):
            if offset is None:
                del ledger.logged["c"][identity(partition)]
            else:
                ledger.logged.setdefault("c", {})[identity(partition)] = offset
        run(given)
        return sum(len(each.read_text().splitlines()) for each in out.glob("part-*.json"))

    assert go(datetime.fromtimestamp(AT + 1, UTC)) == 1
    assert go(SeekEnd.EARLIEST) == 1 + 3
    assert go(datetime.fromtimestamp(AT, UTC)) == 1 + 3 + 2
    assert go(SeekEnd.LATEST) == 1 + 3 + 2
