# pyright: basic
"""Small csv files are read as a few large ones, and looked through while Spark works on others."""

import errno
import gzip
import os
import platform
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest.mock import MagicMock

import pyarrow.parquet as papq
import pytest
from connectors.conftest import Run
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql import SparkSession
from pyspark.sql.types import StringType, StructField, StructType

from fairlead.events.model import Resource
from fairlead.runtime.pipeline.connectors.pipeline_keys import task_keys_of
from fairlead.runtime.pipeline.connectors.spark_pipeline import SparkPipeline
from fairlead.runtime.pipeline.engines.embedded.engine import Embedded
from fairlead.runtime.pipeline.engines.sessions import scratch_of
from fairlead.runtime.pipeline.formats.csv.style import CsvStyle
from fairlead.runtime.pipeline.spi.context import AccessLimits, Context
from fairlead.runtime.pipeline.spi.errors import BadInput, SourceAway
from fairlead.runtime.pipeline.spi.source import Limit
from fairlead.runtime.pipeline.stores.files.copies import Copies, FileSurvey, merge_small_files
from fairlead.runtime.pipeline.stores.files.folders import FolderColumn
from fairlead.runtime.pipeline.stores.files.source import file_survey, reading
from fairlead.runtime.pipeline.stores.files.source.file_survey import LookAhead
from fairlead.runtime.pipeline.stores.files.source.formats import ReadFormat
from fairlead.runtime.pipeline.stores.files.source.listing import stat_file
from fairlead.runtime.pipeline.stores.files.source.offsets import EVERYTHING, Folder
from fairlead.runtime.pipeline.stores.files.source.reading import Reading
from fairlead.runtime.pipeline.stores.files.source.source import FileSource
from fairlead.runtime.pipeline.stores.files.source.text import survey_csv

FILES = 20
VALUES = st.text(st.sampled_from('ab" é'), min_size=1, max_size=3)


def land(folder: Path, odd: Mapping[str, str], count: int = FILES) -> None:
    """Write files of three rows each, numbered through; `odd` are others, by their names."""
    texts = {f"{at:03}": f"n,s\n{3 * at},a\n{3 * at + 1},b\n{3 * at + 2},c" for at in range(count)}
    for name, text in {**texts, **odd}.items():
        (folder / f"{name}.csv").write_text(text)


@pytest.mark.parametrize("kind", ["merged", "copied", "linked", "placed"])
@pytest.mark.parametrize("harm", ["cut", "removed", "folder removed"])
def test_a_copy_that_is_not_as_it_was_written_is_told_with_its_file(
    tmp_path: Path, kind: str, harm: str
) -> None:
    copies, file, within = Copies(), tmp_path / "a.csv", str(tmp_path)
    file.write_text("n\n1\n")
    if kind == "merged":
        path = copies.merge([FileSurvey(file, text=b"n\n1\n")], within)
    elif kind == "linked":
        path = copies.link(file, within)
    else:
        path = copies.new(file, within)
        copies.write(path, [b"n\n", b"1\n"])
    if kind == "placed":
        path = copies.place(path, within, [FolderColumn("k", "k=v")])
    copies.verify()
    path.unlink()
    if harm == "cut":
        path.write_text("n\n")
    elif harm == "folder removed":
        shutil.rmtree(copies.base)
    what = "small input files" if kind == "merged" else str(file)
    told = f"the copy of {what} that Spark reads, {path}, was cut or removed. Nothing of the batch"
    with pytest.raises(SourceAway, match=re.escape(told)):
        copies.verify()
    copies.clear()
    copies.verify()


@pytest.mark.spark
@pytest.mark.parametrize("kind", ["merged", "copied"])
def test_a_batch_with_rows_of_a_copy_that_was_cut_does_not_count_and_is_read_again(
    engine: Embedded, tmp_path: Path, kind: str
) -> None:
    root = tmp_path / "in"
    root.mkdir()
    land(root, {})
    for each in root.glob("*") if kind == "copied" else ():
        each.write_bytes(each.read_bytes().replace(b"\n", b"\r\n", 1))  # both ends of lines
    form = ReadFormat("csv", "n INT, s STRING")
    may_use = kind == "copied"
    context = Context(Resource("c", 0), print, may_use_file_names=may_use, by_arrow=False)
    source = FileSource(Folder(root, "*", EVERYTHING), form, context)
    planned = source.plan({}, Limit(1_000, 1 << 30, 100)).ranges

    def read_twice(spark: SparkSession) -> list[int]:
        frame: Any = source.read(spark, planned)
        copies = source._reading._copies
        assert (len(copies.merged) > 0, len(copies.originals)) == (
            (True, 0) if kind == "merged" else (False, FILES)
        )
        cut = Path(next(iter(copies.merged or copies.originals)))
        cut.write_text("n,s\n0,a\n")
        found = [frame.count()]
        with pytest.raises(SourceAway, match="was cut or removed"):
            source.verify(planned)
        again: Any = source.read(spark, planned)
        found.append(again.count())
        source.verify(planned)
        return found

    less, all_rows = engine.run("t", read_twice)
    source.close()
    assert (less < all_rows, all_rows) == (True, 3 * FILES)


def config_of(folders: Mapping[str, str], **more: str) -> dict[str, str]:
    given = {"source.format": "csv", "source.schema": "n INT, s STRING", "sink.format": "parquet"}
    return {**folders, **given, **{key.replace("_", "."): text for key, text in more.items()}}


def numbers(folders: Mapping[str, str]) -> list[int]:
    files = Path(folders["sink.path"]).glob("*.parquet")
    return sorted(row["n"] for each in files for row in papq.read_table(each).to_pylist())


@given(
    tables=st.lists(st.lists(VALUES, max_size=4), min_size=8, max_size=12),
    end=st.sampled_from(["\n", "\r"]),
    has_header=st.booleans(),
    is_ended=st.booleans(),
    cores=st.integers(1, 3),
)
def test_files_that_are_put_together_have_the_same_lines(
    tmp_path_factory: pytest.TempPathFactory,
    tables: list[list[str]],
    end: str,
    has_header: bool,
    is_ended: bool,
    cores: int,
) -> None:
    folder, copies = tmp_path_factory.mktemp("files"), Copies()
    style = CsvStyle(header=has_header)
    lines = [[f'"{value.replace(chr(34), chr(34) * 2)}",x' for value in each] for each in tables]
    heads = ["h,i"] if has_header else []
    texts = [end.join(heads + each) + (end if is_ended else "") for each in lines]
    files = [folder / str(number) for number in range(len(texts))]
    for file, text in zip(files, texts, strict=True):
        file.write_text(text, newline="")
    found = [survey_csv(each, style, copies, None, keeps_text=True) for each in files]
    given = merge_small_files(found, lambda: cores, copies, str(folder))
    read = [
        line
        for each in given
        for line in each.path.read_text().replace("\r", "\n").split("\n")[len(heads) :]
        if line
    ]
    assert sorted(read) == sorted(line for each in lines for line in each)
    assert all(each.text is None for each in given)
    copies.clear()


def test_files_that_differ_in_header_or_line_end_stay_apart(tmp_path: Path) -> None:
    copies = Copies()
    for number in range(12):
        head, end = ("a,b", "\n") if number % 3 else ("b,a", "\n") if number % 2 else ("a,b", "\r")
        (tmp_path / str(number)).write_text(f"{head}{end}1,2{end}", newline="")
    files = [tmp_path / str(number) for number in range(12)]
    found = [survey_csv(each, CsvStyle(), copies, None, keeps_text=True) for each in files]
    given = merge_small_files(found, lambda: 2, copies, str(tmp_path))
    assert sorted((each.header, each.line_end) for each in given) == [
        (("a", "b"), "\n"),
        (("a", "b"), "\r"),
        (("b", "a"), "\n"),
    ]
    copies.clear()


@pytest.mark.parametrize("text", ['a,"x\ny"\n', "\na,b\n", "a,b\n \nc,d\n", "a,b\r\n"])
def test_a_file_whose_lines_may_not_be_its_records_is_read_by_itself(
    tmp_path: Path, text: str
) -> None:
    (tmp_path / "a").write_text(text, newline="")
    assert survey_csv(tmp_path / "a", CsvStyle(), Copies(), None, keeps_text=True).text is None


@pytest.mark.parametrize("is_told", [True, False])
def test_copies_of_a_process_that_is_gone_are_removed_by_the_next_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_told: bool
) -> None:
    monkeypatch.setattr(tempfile, "gettempdir", lambda: str(tmp_path))
    command = [sys.executable, "-c", MAKE_A_COPY, str(tmp_path)]
    (made,) = subprocess.run(command, check=True, capture_output=True, text=True).stdout.split()
    gone, others = Path(made), tmp_path / ".fairlead-copies-others"
    elsewhere = gone.with_name(gone.name.replace(platform.node(), "another-machine"))
    assert elsewhere.name != gone.name
    for each in (elsewhere, others):
        each.mkdir()
    live, copies = Copies(), Copies()
    kept = live.new(Path("a"), str(tmp_path))
    kept.write_text("n")
    # Once the JVM is gone, so is the folder that goes with it.
    copies.new(Path("a"), str(tmp_path) if is_told else None).write_text("n")
    assert (gone.exists(), elsewhere.exists(), kept.exists()) == (False, True, True)
    live.clear()
    copies.clear()
    assert {*tmp_path.iterdir()} == {elsewhere, others}


MAKE_A_COPY = """
import sys
from pathlib import Path
from fairlead.runtime.pipeline.stores.files.copies import Copies
copy = Copies().new(Path("a"), sys.argv[1])
copy.write_text("n")
print(copy.parent)
"""


@pytest.fixture
def no_spark(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is asked of a session before anything is read with it."""
    monkeypatch.setattr(reading, "scratch_of", lambda _: None)
    monkeypatch.setattr(reading, "runs_elsewhere", lambda _: False)
    monkeypatch.setattr(reading, "cores_of", lambda _: 1)


def reading_of(root: Path) -> tuple[Reading, ReadFormat, Context]:
    """Return what reads files of two columns, its format, which asks no JVM, and its context."""
    columns = StructType([StructField(each, StringType()) for each in "ns"])
    form = ReadFormat("csv", "n STRING, s STRING", CsvStyle(header=False), grown=columns)
    context = replace(Context(Resource("c", 0), print), may_use_file_names=False, by_arrow=False)
    return Reading(root, form, context), form, context


@pytest.mark.usefixtures("no_spark")
def test_all_files_that_cannot_be_read_are_put_off_at_once(tmp_path: Path) -> None:
    for name in "abcd":
        (tmp_path / name).write_bytes(b"1,\xff\n" if name in "bd" else b"1,x\n")
    files = [file for each in "abcd" if (file := stat_file(tmp_path, each))]
    reader, _, context = reading_of(tmp_path)
    with pytest.raises(BadInput, match=f"^{tmp_path}/b: byte 2 ") as told:
        reader.read(MagicMock(), files)
    assert told.value.is_deferred
    assert context.deferred == {"b": (files[1], 0), "d": (files[3], 0)}


@pytest.mark.usefixtures("no_spark")
@pytest.mark.parametrize(
    ("text", "is_held"), [(b"1,x\r" * 25, True), (b"1,x\n" * 25, False)], ids=["scanned", "plain"]
)
def test_no_more_text_of_packed_files_is_held_than_a_bound_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: bytes, *, is_held: bool
) -> None:
    for each in range(12):
        (tmp_path / f"{each:02}.gz").write_bytes(gzip.compress(text))
    files = [file for each in range(12) if (file := stat_file(tmp_path, f"{each:02}.gz"))]
    for module in (file_survey, reading):
        monkeypatch.setattr(module, "MOST_HELD", 850)
    reader, form, _ = reading_of(tmp_path)
    ahead = LookAhead(tmp_path)
    ahead.begin(form, files, None, keeps_text=True)
    while len(found := ahead.take(form)[0]) < len(files):  # it may be asked too early
        ahead.begin(form, files, None, keeps_text=True)
        time.sleep(0.05)
    ahead.close()
    given: list[FileSurvey] = []

    def rows(_form: ReadFormat, _spark: object, found: list[FileSurvey], _copies: Copies) -> Any:
        given.extend(found)
        return None, ()

    monkeypatch.setattr(ReadFormat, "rows", rows)
    reader.read(MagicMock(), files)
    reader.close()
    ahead_held = [each.text is not None for each in found.values()]
    assert ahead_held == ([True] * 9 + [False] * 3 if is_held else [False] * 12)  # plain ones later
    assert [each.path.name for each in given[:3]] == ["09.gz", "10.gz", "11.gz"]
    assert len(given) == 4


@pytest.mark.usefixtures("no_spark")
def test_files_are_read_one_by_one_where_there_is_no_room_to_put_them_together(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(FILES):
        (tmp_path / f"{number:02}").write_text("1,x\n")
    files = [file for at in range(FILES) if (file := stat_file(tmp_path, f"{at:02}"))]
    read: list[FileSurvey] = []

    def rows(_: object, __: object, found: list[FileSurvey], ___: object) -> tuple[None, tuple[()]]:
        read.extend(found)
        return None, ()

    monkeypatch.setattr(ReadFormat, "rows", rows)

    def is_full(*_: object) -> Path:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(Copies, "merge", is_full)
    reader, *_ = reading_of(tmp_path)
    reader.read(MagicMock(), files)
    assert [each.path.name for each in read] == [each.path for each in files]


@pytest.mark.usefixtures("no_spark")
@pytest.mark.parametrize(
    ("number", "told"),
    [
        (errno.ENOSPC, "SourceAway: cannot copy input files to /"),
        (errno.EIO, "OSError: [Errno 5] Input/output error"),
    ],
)
def test_a_copy_for_which_there_is_no_room_is_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int, told: str
) -> None:
    (tmp_path / "a").write_text("1,x\r2,y\r\n")  # whose line ends have to be made one
    (file,) = (each for each in [stat_file(tmp_path, "a")] if each)

    def is_broken(*_: object) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(Copies, "write", is_broken)
    reader, _, context = reading_of(tmp_path)
    with pytest.raises((SourceAway, OSError)) as raised:
        reader.read(MagicMock(), [file])
    assert f"{raised.typename}: {raised.value}".startswith(told)
    assert raised.value.__cause__ is not raised.value, "who looks for its cause comes to an end"
    assert context.deferred == {}


@pytest.mark.spark
def test_rows_of_many_small_files_come_once_each_and_nothing_is_left_of_copies(
    run: Run, folders: dict[str, str], engine: Any
) -> None:
    odd = {"quoted": 'n,s\n100,"x\ny"\n', "empty": "n,s\n", "crlf": "n,s\r\n101,a\r\n"}
    land(Path(folders["source.path"]), odd)
    reports = run(config_of(folders))
    assert [each.trace for each in reports.statuses if each.trace] == []
    assert numbers(folders) == [*range(3 * FILES), 100, 101]
    scratch = engine.run("t", scratch_of)
    assert scratch is not None
    assert not [*Path(scratch).glob("copies-*")]


@pytest.mark.spark
def test_a_bad_value_in_one_of_many_small_files_is_told_with_that_file(
    run: Run, folders: dict[str, str]
) -> None:
    land(Path(folders["source.path"]), {"bad": "n,s\n100,a\nx1,b\n"})
    reports = run(config_of(folders))
    (failed,) = [each.reason for each in reports.statuses if each.state.value == "FAILED"]
    assert "/in/bad.csv: " in failed
    assert '"x1"' in failed
    assert numbers(folders) == []


@pytest.mark.parametrize(
    ("transform", "may_ask"),
    [
        ({"type": "sql", "query": "SELECT n + 1 AS n FROM input"}, False),
        ({"type": "sql", "query": "SELECT Input_File_Name() AS f FROM input"}, True),
        ({"type": "sql", "query": "SELECT `_metadata`.file_path AS f FROM input"}, True),
        ({"type": "MaskField", "fields": "s"}, False),
        ({"type": "dedupe", "fields": "n"}, True),
        ({"type": "expect", "expect.some": "n > 0"}, True),
    ],
)
def test_files_are_read_one_by_one_where_a_transform_may_ask_for_them(
    folders: dict[str, str], transform: dict[str, str], may_ask: bool
) -> None:
    keys = {f"transforms.t.{key}": text for key, text in transform.items()}
    config = {**config_of(folders), "transforms": "t", **keys}
    context = Context(
        Resource("c", 0), print, reach=AccessLimits(sql=frozenset({"input_file_name"}))
    )
    (chain,) = SparkPipeline().pipeline(context, config).transforms
    assert chain.may_use_file_names is may_ask


@pytest.mark.spark
@pytest.mark.usefixtures("engine")  # a schema is read by a JVM
def test_what_was_looked_at_ahead_counts_for_the_file_as_it_was_then(tmp_path: Path) -> None:
    land(tmp_path, {"broken": 'n,s\n1,"'}, 3)
    ends = {"source.path": str(tmp_path), "sink.path": str(tmp_path / "out")}
    settings = config_of({"name": "c", "connector.class": "SparkPipeline", **ends})
    form = ReadFormat.of(task_keys_of(settings).parse(settings), settings, tolerant=False)
    names = ("000.csv", "001.csv", "002.csv", "broken.csv")
    files = [file for each in names if (file := stat_file(tmp_path, each))]
    ahead = LookAhead(tmp_path)
    ahead.begin(form, files, None, keeps_text=True)
    while len(found := ahead.take(form)[0]) < len(files) - 1:  # it may be asked too early
        ahead.begin(form, files, None, keeps_text=True)
        time.sleep(0.05)
    assert [*found] == files[:-1]
    (tmp_path / "000.csv").write_text("n,s\n1,a\n")
    assert stat_file(tmp_path, "000.csv") not in [*found]
    ahead.begin(form, files, None, keeps_text=True)
    assert ahead.take(replace(form, schema="n INT, s STRING, t INT"))[0] == {}
    ahead.close()
