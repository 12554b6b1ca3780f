# pyright: basic
"""Proved files are read and written by Arrow, in tasks of Spark; all else goes Spark's way."""

import bz2
import gzip
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any
from uuid import uuid4

import pyarrow as pa
import pyarrow.parquet as papq
import pytest

from fairlead.events.commits import CommitId, Manifest
from fairlead.events.model import Resource, Token
from fairlead.runtime.pipeline.engines.executors.arrow_job import run_job
from fairlead.runtime.pipeline.spi.rows import PartedRows
from fairlead.runtime.pipeline.spi.sink import StagedParts
from fairlead.runtime.pipeline.stores.files.sink import arrow_parts
from fairlead.runtime.pipeline.stores.files.sink.sink import FileSink
from fairlead.runtime.pipeline.stores.files.sink_folder import staging
from fairlead.runtime.pipeline.stores.files.source import reading

Run = Callable[..., Any]

pytestmark = pytest.mark.spark

ROWS = 300


@pytest.fixture(autouse=True)
def by_arrow(monkeypatch: pytest.MonkeyPatch) -> list[Manifest | None]:
    """What each batch staged by Arrow, however small; None: nothing."""
    monkeypatch.setattr(reading, "_LEAST_PARTED", 1)
    stage = FileSink.stage_parts
    staged: list[Manifest | None] = []

    def stage_and_note(
        sink: FileSink, spark: Any, rows: PartedRows, commit_id: CommitId, size: int
    ) -> StagedParts | None:
        staged.append(None)
        parts = stage(sink, spark, rows, commit_id, size)
        staged[-1] = parts and parts.manifest
        return parts

    monkeypatch.setattr(FileSink, "stage_parts", stage_and_note)
    return staged


def config_of(folders: Mapping[str, str], **more: str) -> dict[str, str]:
    given = {"source.format": "csv", "source.schema": "n INT, s STRING", "sink.format": "parquet"}
    return {**folders, **given, **{key.replace("_", "."): text for key, text in more.items()}}


def land(folder: Path, number: int, text: str = "x") -> None:
    rows = range(number * ROWS, (number + 1) * ROWS)
    (folder / f"{number}.csv").write_text("n,s\n" + "".join(f"{each},{text}\n" for each in rows))


def rows_in(folders: Mapping[str, str]) -> list[tuple[int, str | None]]:
    files = sorted(Path(folders["sink.path"]).glob("*.parquet"))
    tables = [papq.read_table(each) for each in files]
    return sorted((row["n"], row["s"]) for each in tables for row in each.to_pylist())


def test_rows_of_proved_files_come_once_each(
    run: Run, folders: dict[str, str], by_arrow: list[Manifest | None]
) -> None:
    for number in range(3):
        land(Path(folders["source.path"]), number)
    reports = run(config_of(folders))
    assert [each.trace for each in reports.statuses if each.trace] == []
    (manifest,) = by_arrow
    assert manifest is not None
    assert manifest.rows == 3 * ROWS
    assert rows_in(folders) == [(number, "x") for number in range(3 * ROWS)]


def test_a_file_that_is_not_proved_is_read_by_spark_in_the_same_batch(
    run: Run, folders: dict[str, str], by_arrow: list[Manifest | None]
) -> None:
    for number in range(2):
        land(Path(folders["source.path"]), number)
    (Path(folders["source.path"]) / "odd.csv").write_text('n,s\n-1,"two\nlines"\n-2,y\n')
    reports = run(config_of(folders))
    assert [each.trace for each in reports.statuses if each.trace] == []
    (manifest,) = by_arrow
    assert manifest is not None
    assert manifest.rows == 2 * ROWS + 2
    odd = [(-2, "y"), (-1, "two\nlines")]
    assert rows_in(folders) == [*odd, *((number, "x") for number in range(2 * ROWS))]


def test_a_file_of_bad_rows_alone_keeps_no_file_beside_it_back(
    run: Run, folders: dict[str, str], by_arrow: list[Manifest | None]
) -> None:
    """Spark writes a file without rows for it, which has a number as well."""
    land(Path(folders["source.path"]), 0)
    (Path(folders["source.path"]) / "bad.csv").write_text("n,s\nx,y\n")
    reports = run({**config_of(folders), "errors.tolerance": "all"})
    assert [each.trace for each in reports.statuses if each.trace] == []
    assert [each is not None and each.rows for each in by_arrow] == [ROWS]
    assert rows_in(folders) == [(number, "x") for number in range(ROWS)]


def test_what_arrow_cannot_read_after_all_is_read_by_spark(
    run: Run,
    folders: dict[str, str],
    by_arrow: list[Manifest | None],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    land(Path(folders["source.path"]), 0)
    write = arrow_parts.write_parts

    def change_and_write(spark: Any, rows: PartedRows, *args: Any) -> Any:
        files: Any = rows
        files._files = [each._replace(cuts=(2, 3)) for each in files._files]  # no whole record
        return write(spark, rows, *args)

    monkeypatch.setattr(
        "fairlead.runtime.pipeline.stores.files.sink.sink.write_parts", change_and_write
    )
    reports = run(config_of(folders))
    assert [each.trace for each in reports.statuses if each.trace] == []
    assert by_arrow == [None]
    assert rows_in(folders) == [(number, "x") for number in range(ROWS)]


def test_the_file_of_an_attempt_that_does_not_count_is_removed(
    run: Run, folders: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    land(Path(folders["source.path"]), 0)

    def run_twice(spark: Any, works: Any) -> Any:
        run_job(spark, works)
        return run_job(spark, works)

    monkeypatch.setattr(arrow_parts, "run_job", run_twice)
    run(config_of(folders))
    assert rows_in(folders) == [(number, "x") for number in range(ROWS)]
    assert len([*Path(folders["sink.path"]).rglob("*.parquet")]) == 1


@pytest.mark.parametrize(
    ("name", "pack"),
    [
        ("a.csv", bytes),
        ("a.csv.gz", lambda text: gzip.compress(text[:9]) + gzip.compress(text[9:])),
        ("a.csv.bz2", bz2.compress),
        ("a.csv.zst", lambda text: pa.compress(text, "zstd", asbytes=True)),
    ],
    ids=["plain", "gz", "bz2", "zst"],
)
def test_marks_line_ends_and_compressions_of_the_usual_kinds_are_proved(
    run: Run,
    folders: dict[str, str],
    by_arrow: list[Manifest | None],
    name: str,
    pack: Callable[[bytes], bytes],
) -> None:
    text = '\ufeffn,s\r\n1,"a, ""b"""\r\n2,\r\n3,""\r\n"4",é\r\n"",z'.encode()
    (Path(folders["source.path"]) / name).write_bytes(pack(text))
    reports = run(config_of(folders))
    assert [each.trace for each in reports.statuses if each.trace] == []
    assert [each is not None and each.rows for each in by_arrow] == [5]
    written = [papq.read_table(each) for each in Path(folders["sink.path"]).glob("*.parquet")]
    rows = [(row["n"], row["s"]) for each in written for row in each.to_pylist()]
    assert rows == [(1, 'a, "b"'), (2, None), (3, ""), (4, "é"), (None, "z")]


@pytest.mark.parametrize("header", ["true", "false"])
@pytest.mark.parametrize("lane", ["auto", "spark"])
def test_a_file_that_has_a_byte_order_mark_alone_has_no_row(
    run: Run, folders: dict[str, str], header: str, lane: str
) -> None:
    source = Path(folders["source.path"])
    (source / "a.csv").write_text("n,s\n1,x\n" if header == "true" else "1,x\n")
    (source / "b.csv").write_text("\ufeff")
    (source / "c.csv.gz").write_bytes(gzip.compress("\ufeff".encode()))
    reports = run({**config_of(folders), "source.header": header, "engine.lane": lane})
    assert [each.trace for each in reports.statuses if each.trace] == []
    assert rows_in(folders) == [(1, "x")]


def test_a_file_that_an_attempt_writes_late_is_not_published_and_is_swept(
    run: Run, folders: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    land(Path(folders["source.path"]), 0)
    stage: Any = FileSink.stage_parts
    late: list[Path] = []

    def stage_and_write_late(sink: FileSink, *batch: Any) -> Any:
        staged = stage(sink, *batch)
        folder = Path(folders["sink.path"]) / staged.manifest.staging / "_temporary"
        folder.mkdir()
        late.append(folder / f"part-00000-{uuid4()}-c000.snappy.parquet")
        late[0].write_bytes(b"torn")
        return staged

    monkeypatch.setattr(FileSink, "stage_parts", stage_and_write_late)
    run(config_of(folders))
    assert rows_in(folders) == [(number, "x") for number in range(ROWS)]
    staging.sweep(Path(folders["sink.path"]), Resource("c", 0), Token(1, 0))
    assert [each.exists() for each in late] == [False]


def test_parts_have_the_columns_that_other_rows_have_given_all_files(
    run: Run, folders: dict[str, str], by_arrow: list[Manifest | None]
) -> None:
    """The columns that rows lack are null, and numbers as wide as before."""
    source = Path(folders["source.path"])
    (source / "wide.csv").write_text("n,s,t\n1,x,5\n")
    config = config_of(folders, source_schema="n BIGINT, s STRING, t SMALLINT")
    run({**config, "sink.auto.evolve": "true"})
    (source / "wide.csv").rename(source.parent / "wide.csv")
    land(source, 1)
    (source / "odd.csv").write_text('n,s\n-1,"two\nlines"\n')
    reports = run({**config_of(folders), "sink.auto.evolve": "true"})
    assert [each.trace for each in reports.statuses if each.trace] == []
    assert [each is not None and each.rows for each in by_arrow] == [1, ROWS + 1]
    tables = [papq.read_table(each) for each in Path(folders["sink.path"]).glob("*.parquet")]
    assert {str(each.schema.field("n").type) for each in tables} == {"int64"}
    rows = sorted(tuple(row.values()) for each in tables for row in each.to_pylist())
    begun = [(-1, "two\nlines", None), (1, "x", 5)]
    assert rows == [*begun, *((number, "x", None) for number in range(ROWS, 2 * ROWS))]
