# pyright: basic
"""The rows of staged files are counted whatever they hold, or by their parts where they cannot."""

import shutil
from pathlib import Path
from threading import Event, Thread
from typing import Any

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from fairlead.events.commits import CommitId
from fairlead.events.model import Token
from fairlead.runtime.pipeline.connectors import pipeline_keys
from fairlead.runtime.pipeline.engines.embedded.engine import Embedded
from fairlead.runtime.pipeline.formats.spark.options import SINK_OPTION
from fairlead.runtime.pipeline.spi.errors import SinkAway
from fairlead.runtime.pipeline.stores.files.sink import row_counts
from fairlead.runtime.pipeline.stores.files.sink.row_counts import counter_of
from fairlead.runtime.pipeline.stores.files.sink.sink import FileSink, explain_lost_files
from fairlead.runtime.pipeline.stores.files.sink.writing import (
    SmallBatches,
    WriteFormat,
    WrittenRows,
)
from fairlead.runtime.pipeline.stores.files.sink_folder.root import SinkLocation
from fairlead.runtime.pipeline.stores.files.sink_folder.staging import STAGING
from fairlead_tests.connectors.sinks import config
from fairlead_tests.soaks import thinned

pytestmark = pytest.mark.spark

TEXTS = (
    "a",
    "",
    None,
    "\n",
    "a\nb\n",
    '"',
    '""',
    'a"b\n"c',
    "a,b",
    "\r",
    "\r\n",
    "\\",
    "x\\\n",
    "é",
)
"""What stands for ends of lines and of texts, as text."""

COUNTED = [
    ("parquet", {}),
    ("json", {}),
    ("json", {"compression": "gzip"}),
    ("csv", {}),
    ("csv", {"header": "false"}),
    ("csv", {"quoteAll": "true", "sep": ";"}),
    ("csv", {"quote": "'"}),
    ("csv", {"compression": "gzip"}),
    ("csv", {"compression": "bzip2"}),
    ("csv", {"compression": "deflate"}),
    ("csv", {"encoding": "ISO-8859-1"}),
    ("csv", {"header": "true", "compression": "gzip"}),
    ("json", {"pretty": "false"}),
]
UNCOUNTED = [
    ("csv", {"escape": "\\"}),
    ("csv", {"encoding": "UTF-16"}),
    ("csv", {"lineSep": "|"}),
    ("csv", {"quote": ""}),
    ("csv", {"escapeQuotes": "false"}),
    ("json", {"lineSep": "|"}),
    ("json", {"encoding": "UTF-16LE"}),
    ("csv", {"compression": "lz4"}),
    ("json", {"compression": "snappy"}),
    ("json", {"pretty": "true"}),
]


@pytest.mark.parametrize("chunk", [1, 2, 3, 1 << 20])
def test_records_are_counted_wherever_a_chunk_ends(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, chunk: int
) -> None:
    monkeypatch.setattr(row_counts, "_CHUNK", chunk)
    (tmp_path / "a.csv").write_text('a,"x\n\n\ny"\n"""\n",b\n"\n\n"\n,\n')
    count = counter_of(WriteFormat("csv", options={"escape": '"'}))
    assert count
    assert count(tmp_path / "a.csv") == 4


BATCH = CommitId("c", 0, Token(1, 1), 0)


def sink_of(root: Path, name: str, options: dict[str, str]) -> tuple[FileSink, WriteFormat]:
    more = {SINK_OPTION + each: text for each, text in options.items()}
    given = {**config(root, sink_format=name), **more}
    form = WriteFormat.of(pipeline_keys.keys_of(given).parse(given), given)
    root.mkdir()
    return FileSink(SinkLocation(root, "", "c", None), form, print), form


def rows(spark: SparkSession) -> Any:
    texts = [(each, at) for at, each in enumerate([*TEXTS, *reversed(TEXTS)])]
    return spark.createDataFrame(texts, "t string, n int").repartition(2)


@pytest.mark.parametrize(("name", "options"), thinned([*COUNTED, *UNCOUNTED], 4))
def test_rows_that_spark_has_written_are_found_again(
    engine: Embedded, tmp_path: Path, name: str, options: dict[str, str]
) -> None:
    sink, form = sink_of(tmp_path / "out", name, options)
    manifest = engine.run("t", lambda spark: sink.stage(rows(spark), BATCH, 9 << 20))
    assert (manifest.rows, manifest.files) == (2 * len(TEXTS), 2)
    assert (counter_of(form) is None) == ((name, options) in UNCOUNTED)


@pytest.mark.parametrize("name", ["parquet", "json", "csv"])
def test_parts_may_be_cut_into_files_of_some_rows_each(
    engine: Embedded, tmp_path: Path, name: str
) -> None:
    sink, _ = sink_of(tmp_path / "out", name, {"maxRecordsPerFile": "9"})
    manifest = engine.run("t", lambda spark: sink.stage(rows(spark), BATCH, 9 << 20))
    assert (manifest.rows, manifest.files) == (2 * len(TEXTS), 4)


@pytest.mark.parametrize("harm", ["removed", "emptied"])
@pytest.mark.parametrize(
    ("name", "options"),
    thinned([COUNTED[0], UNCOUNTED[0], COUNTED[3], UNCOUNTED[1], COUNTED[7]], 2),
)
def test_a_part_that_is_gone_is_missed_in_any_format(
    engine: Embedded,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    name: str,
    options: dict[str, str],
    harm: str,
) -> None:
    sink, _ = sink_of(tmp_path / "out", name, options)
    save = WriteFormat._save

    def save_and_harm(form: WriteFormat, frame: Any, folder: Path, mode: str) -> None:
        save(form, frame, folder, mode)
        part, _ = folder.glob("part-*")
        part.unlink() if harm == "removed" else part.write_bytes(b"")

    monkeypatch.setattr(WriteFormat, "_save", save_and_harm)
    with pytest.raises(SinkAway):
        engine.run("t", lambda spark: sink.stage(rows(spark), BATCH, 9 << 20))


def test_staged_files_that_vanish_while_spark_writes_them_are_told(
    engine: Embedded, tmp_path: Path
) -> None:
    sink, _ = sink_of(tmp_path / "out", "json", {})
    is_over = Event()

    def harm() -> None:
        while not is_over.is_set():
            for each in (tmp_path / "out" / STAGING).rglob("_temporary"):
                shutil.rmtree(each, ignore_errors=True)

    cleaner = Thread(target=harm)
    cleaner.start()
    try:
        with pytest.raises(SinkAway) as told:
            engine.run("t", lambda spark: sink.stage(rows(spark), BATCH, 9 << 20))
    finally:
        is_over.set()
        cleaner.join()
    out = tmp_path / "out"
    assert str(told.value) == (
        f"files of a batch vanished from {out}/_fairlead/staging while Spark wrote them. Nothing "
        f"of the batch counts, and it is written again. Keep whatever cleans up away from {out}/"
        "_fairlead/staging"
    )


@pytest.mark.parametrize(
    ("told", "is_lost"),
    [
        ("File file:/out/_fairlead/staging/c-0/1-1/0/_temporary/0/x does not exist", True),
        ("/proc/7/fd/9/_fairlead/staging/c-0 (No such file or directory)", True),
        ("File file:/in/a.csv does not exist", False),
        ("column `x` of /out/_fairlead/staging is wrong", False),
    ],
)
def test_only_files_that_are_gone_from_staging_are_told_so(told: str, *, is_lost: bool) -> None:
    explained = explain_lost_files(Path("/out"), PySparkException(told))
    assert (explained is not None) is is_lost


def test_a_small_batch_of_the_workers_is_missed_as_well(
    engine: Embedded, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sink, _ = sink_of(tmp_path / "out", "parquet", {})
    write = SmallBatches.write
    harms: list[str] = []

    def write_and_harm(small: SmallBatches, frame: Any, folder: Path) -> WrittenRows:
        written = write(small, frame, folder)
        (part,) = folder.glob("part-*")
        harms.append(part.name)
        part.unlink()
        return written

    monkeypatch.setattr(SmallBatches, "write", write_and_harm)

    def stage_twice(spark: SparkSession) -> None:
        assert sink.stage(rows(spark), BATCH, 9000).rows == 2 * len(TEXTS)
        sink.stage(rows(spark), BATCH._replace(batch=1), 9000)

    with pytest.raises(SinkAway, match="of 28 rows its files have 0"):
        engine.run("t", stage_twice)
    assert len(harms) == 1
