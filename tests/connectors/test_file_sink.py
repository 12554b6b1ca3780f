"""A batch is published when what its manifest names is in place, and not before."""

import errno
import os
import shutil
import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as papq
import pytest
from pyspark.errors import PySparkException

from fairlead.events.commits import CommitId
from fairlead.events.model import Resource, Token
from fairlead.runtime.pipeline.spi.errors import SinkAway, SinkBroken, SinkFull
from fairlead.runtime.pipeline.stores.files.sink.sink import explain_spark_error
from fairlead.runtime.pipeline.stores.files.sink_folder import marks
from fairlead_tests.connectors.sinks import (
    FILES,
    FIRST,
    SECOND,
    TASK,
    Log,
    Rows,
    begin,
    begun,
    claimed,
    commit,
    publish,
    published,
    sink_of,
    staged,
    write,
)

STEPS = ("mkdir", "rename", "replace", "fsync", "rmdir", "unlink", "open", "link")
"""What publishing does to a file system; each of them may be the last thing that is done."""


class Crash(BaseException):
    """The end of a process."""


class Fault:
    """Ends, or fails, the n-th step that is taken on the file system."""

    def __init__(self, at: int, error: Callable[[], BaseException]) -> None:
        self._left = at
        self._error = error
        self.struck = False

    def __enter__(self) -> "Fault":
        self._patch = pytest.MonkeyPatch()
        for name in STEPS:
            self._patch.setattr(os, name, self._failing(getattr(os, name)))
        return self

    def __exit__(self, *_: object) -> None:
        self._patch.undo()

    def _failing(self, real: Callable[..., object]) -> Callable[..., object]:
        def step(*args: object, **named: object) -> object:
            self._left -= 1
            if self._left == 0:
                self.struck = True
                raise self._error()
            return real(*args, **named)

        return step


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path / "out"


def full() -> OSError:
    return OSError(errno.ENOSPC, "full")


def broken() -> OSError:
    return OSError(errno.EIO, "bad")


@pytest.mark.parametrize(
    ("form", "error"),
    [
        ("parquet", Crash),
        ("csv", full),
        ("csv", broken),
        pytest.param("csv", Crash, marks=pytest.mark.soak),
        pytest.param("parquet", full, marks=pytest.mark.soak),
        pytest.param("parquet", broken, marks=pytest.mark.soak),
    ],
)
def test_whatever_step_of_publishing_is_the_last_the_next_owner_finishes_it(
    root: Path, form: str, error: Callable[[], BaseException]
) -> None:
    config = claimed(root, sink_format=form)
    log, expected, at = Log(), list[int](), 0
    begin(sink_of(config), log)
    while True:
        at += 1
        token = Token(at, 1)
        first = sink_of(config)
        begin(first, log, token)
        commit(first, log, range(at * 10, at * 10 + 4), token)
        expected += range(at * 10, at * 10 + 4)
        with Fault(at, error) as fault:
            try:
                publish(first, log)
            except (Crash, SinkAway):
                assert fault.struck
        begin(sink_of(config), log, Token(at, 2))
        assert (published(root), staged(root), log.unpublished) == (expected, [], [])
        if not fault.struck:
            break
    assert at > 3 * FILES


@pytest.mark.parametrize("error", [Crash, full])
def test_whatever_step_of_acquiring_or_staging_fails_nothing_is_lost_or_doubled(
    root: Path, error: Callable[[], BaseException]
) -> None:
    config = claimed(root)
    log, at, struck = Log(), 0, True
    while struck:
        at += 1
        sink = sink_of(config)
        with Fault(at, error) as fault:
            try:
                begin(sink, log, Token(at, 1))
                commit(sink, log, [at], Token(at, 1))
            except (Crash, SinkFull):
                assert fault.struck
                begin(sink, log, Token(at, 2))
                commit(sink, log, [at], Token(at, 2))
        struck = fault.struck
        publish(sink, log)
        assert published(root) == list(range(1, at + 1))


@pytest.mark.parametrize("form", ["csv", "parquet"])
def test_a_manifest_names_every_file_with_its_rows_and_bytes(root: Path, form: str) -> None:
    _, sink, log = begun(root, sink_format=form)
    manifest = commit(sink, log, range(7)).manifest
    assert len(manifest.parts) == manifest.files == FILES
    assert [each.rows for each in manifest.parts] == ([3, 2, 2] if form == "parquet" else [-1] * 3)
    assert sum(each.bytes for each in manifest.parts) == manifest.bytes
    publish(sink, log)
    found = {str(each.relative_to(root)): each.stat().st_size for each in root.rglob("part-*")}
    assert found == {each.path: each.bytes for each in manifest.parts}


def parts_in(folder: Path) -> list[Path]:
    return sorted(folder.rglob("part-*"))


def cut(file: Path, size: Callable[[int], int]) -> None:
    os.truncate(file, size(file.stat().st_size))


def replace_by_other(file: Path) -> None:
    """Put a whole file with other rows in a file's place, as a copy of a former batch has."""
    if file.suffix == ".parquet":
        papq.write_table(pa.table({"n": [1, 2, 3]}), file)
    else:
        file.write_text("1\n2\n3\n")


def remove(file: Path) -> None:
    file.unlink()


def harm_all(folder: Path, harm: Callable[[Path], object]) -> None:
    for each in parts_in(folder):
        harm(each)


def double(file: Path) -> None:
    shutil.copy(file, file.with_name(file.name.replace("00000", "00007")))


def put_file_in_place(folder: Path) -> None:
    shutil.rmtree(folder)
    folder.write_text("")


HARMS: dict[str, Callable[[Path], object]] = {
    "one is removed": lambda folder: remove(parts_in(folder)[0]),
    "all are removed": lambda folder: harm_all(folder, remove),
    "one is emptied": lambda folder: os.truncate(parts_in(folder)[1], 0),
    "all are emptied": lambda folder: harm_all(folder, lambda each: os.truncate(each, 0)),
    "one is cut off": lambda folder: cut(parts_in(folder)[2], lambda size: size // 2),
    "the last row is cut off": lambda folder: cut(parts_in(folder)[0], lambda size: size - 2),
    "one has other rows": lambda folder: replace_by_other(parts_in(folder)[0]),
    "one is doubled": lambda folder: double(parts_in(folder)[0]),
    "a folder of theirs is removed": lambda folder: shutil.rmtree(folder / "k=0"),
    "the batch is removed": shutil.rmtree,
    "all that is staged is removed": lambda folder: shutil.rmtree(folder.parents[2]),
    "a file is in the place of the batch": put_file_in_place,
}
"""What a program that cleans up, or copies, may do to staged files."""


@pytest.mark.parametrize("form", ["parquet", "csv", "json"])
@pytest.mark.parametrize("harm", HARMS)
def test_a_batch_whose_files_were_changed_before_its_manifest_does_not_count(
    root: Path, form: str, harm: str
) -> None:
    _, sink, log = begun(root, sink_format=form)
    frame: Any = Rows(range(30), after=HARMS[harm])
    where = f"{root}/_fairlead/staging/c-0/1-1/0"
    with pytest.raises(SinkAway) as told:
        sink.stage(frame, CommitId(*TASK, FIRST, 0), 0)
    assert f"{where} was changed after it was written: " in str(told.value)
    assert "Nothing of the batch counts, and it is written again" in str(told.value)
    assert "/proc/" not in str(told.value)
    sink.discard(CommitId(*TASK, FIRST, 0))
    begin(sink, log, SECOND)
    write(sink, log, range(30), SECOND)
    assert (published(root), staged(root)) == (list(range(30)), [])


def test_a_batch_that_lost_rows_says_how_many_there_are(root: Path) -> None:
    _, sink, _ = begun(root)
    frame: Any = Rows(range(30), after=HARMS["one is removed"])
    with pytest.raises(SinkAway, match=r"of 30 rows its files have 20\. Nothing of the batch"):
        sink.stage(frame, CommitId(*TASK, FIRST, 0), 0)


@pytest.mark.parametrize("gone", ["staging", "one"])
def test_a_batch_of_which_files_are_gone_is_not_published_and_says_so(
    root: Path, gone: str
) -> None:
    _, sink, log = begun(root)
    manifest = commit(sink, log, range(7)).manifest
    if gone == "staging":
        shutil.rmtree(root / "_fairlead/staging")
    else:
        staged(root)[1].unlink()
    left = staged(root)
    with pytest.raises(SinkBroken) as refusal:
        begin(sink_of(claimed(root)), log, SECOND)
    told = str(refusal.value)
    assert "batch 0 of c-0 (token 1-1, 7 rows) is committed but not published" in told
    assert "sink.adopt=true" in told
    assert sum(each.path in told for each in manifest.parts) == (3 if gone == "staging" else 1)
    assert (published(root), staged(root), len(log.unpublished)) == ([], left, 1)


def test_the_files_of_a_batch_that_were_brought_back_are_published(
    root: Path, tmp_path: Path
) -> None:
    config, sink, log = begun(root)
    commit(sink, log, range(7))
    (root / "_fairlead/staging").rename(tmp_path / "aside")
    with pytest.raises(SinkBroken):
        publish(sink, log)
    (tmp_path / "aside").rename(root / "_fairlead/staging")
    begin(sink_of(config), log, SECOND)
    assert published(root) == list(range(7))


def test_a_foreign_file_under_a_final_name_is_kept_and_waits_for_its_removal(root: Path) -> None:
    _, sink, log = begun(root)
    part = commit(sink, log, range(7)).manifest.parts[0]
    foreign = root / part.path
    foreign.parent.mkdir()
    foreign.write_text("x\n")
    with pytest.raises(SinkBroken, match="exists already"):
        publish(sink, log)
    assert (foreign.read_text(), len(staged(root))) == ("x\n", FILES)
    foreign.unlink()
    publish(sink, log)
    assert published(root) == list(range(7))


def test_a_foreign_file_in_the_place_of_a_lost_one_is_not_taken_for_it(root: Path) -> None:
    _, sink, log = begun(root)
    part = commit(sink, log, range(7)).manifest.parts[0]
    shutil.rmtree(root / "_fairlead/staging")
    (root / part.path).parent.mkdir()
    (root / part.path).write_text("0\n3\n")
    with pytest.raises(SinkBroken, match="is not the file of the batch"):
        publish(sink, log)


def test_a_parquet_file_in_place_counts_only_with_its_rows(root: Path) -> None:
    _, sink, log = begun(root, sink_format="parquet")
    manifest = commit(sink, log, range(7)).manifest
    publish(sink, Log())
    other = replace(
        manifest, parts=tuple(each._replace(rows=each.rows + 1) for each in manifest.parts)
    )
    for file, part in zip(sorted(staged(root)), sorted(manifest.parts), strict=True):
        (root / part.path).parent.mkdir(exist_ok=True)
        file.rename(root / part.path)
    made = log.unpublished[0]
    with pytest.raises(SinkBroken, match="is not the file of the batch"):
        sink.publish(other, made.commit_id, 0)
    sink.publish(manifest, made.commit_id, 0)
    assert published(root) == list(range(7))


def test_a_batch_that_a_reader_took_away_does_not_come_back_and_is_not_missed(root: Path) -> None:
    config, sink, log = begun(root)
    made = commit(sink, log, range(7))
    publish(sink, log)
    for file in root.rglob("part-*"):
        file.unlink()
    log.unpublished.append(made)  # that it is published never came to be known
    begin(sink_of(config), log, SECOND)
    assert (published(root), log.unpublished) == ([], [])


def test_what_was_staged_beside_a_manifest_is_not_published(root: Path) -> None:
    _, sink, log = begun(root)
    commit(sink, log, range(7))
    late = staged(root)[0]
    shutil.copy(late, late.with_name(late.name.replace("part-0000", "part-0009")))
    publish(sink, log)
    assert published(root) == list(range(7))


@pytest.mark.parametrize("form", ["csv", "parquet"])
def test_a_batch_that_is_staged_once_more_holds_nothing_of_the_first_time(
    root: Path, form: str
) -> None:
    _, sink, log = begun(root, sink_format=form)
    first: Any = Rows(range(30))
    sink.stage(first, CommitId(*TASK, FIRST, 0), 0)
    write(sink, log, range(9))
    assert published(root) == list(range(9))


def test_publishers_at_once_are_harmless(root: Path) -> None:
    config, sink, log = begun(root)
    made, faults = commit(sink, log, range(60)), list[Exception]()
    together = threading.Barrier(4)

    def race() -> None:
        together.wait()
        try:
            sink_of(config).publish(made.manifest, made.commit_id, 0)
        except Exception as error:  # noqa: BLE001  # told by the assertion below
            faults.append(error)

    threads = [threading.Thread(target=race) for _ in range(4)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert (faults, published(root), staged(root)) == ([], list(range(60)), [])


def test_a_root_that_is_gone_is_waited_for_and_never_made_anew(root: Path, tmp_path: Path) -> None:
    config, sink, log = begun(root)
    commit(sink, log, range(7))
    root.rename(tmp_path / "aside")
    for act in (
        lambda: publish(sink, log),
        lambda: commit(sink, log, [9]),
        lambda: sink.sweep(TASK, FIRST),
        lambda: begin(sink_of(config), log, SECOND),
        lambda: begin(sink_of(claimed(root, before=config)), log, SECOND),
    ):
        with pytest.raises(SinkAway, match=f"{root} is gone"):
            act()
    assert not root.exists()
    root.write_text("a file")
    with pytest.raises(SinkAway, match=f"{root}: not a directory"):
        publish(sink, log)
    root.unlink()
    root.mkdir()
    with pytest.raises(SinkAway, match="is it not mounted"):
        publish(sink, log)
    with pytest.raises(SinkAway, match="is it not mounted"):
        commit(sink, log, [9])
    assert [*root.iterdir()] == []
    root.rmdir()
    (tmp_path / "aside").rename(root)
    publish(sink, log)
    assert published(root) == list(range(7))


def test_a_root_that_vanishes_while_a_batch_is_written_is_not_made_by_the_writer(
    root: Path, tmp_path: Path
) -> None:
    _, sink, _ = begun(root)
    frame: Any = Rows([1], lambda _: root.replace(tmp_path / "aside"))
    with pytest.raises(SinkAway, match="was unmounted or replaced during a batch"):
        sink.stage(frame, CommitId(*TASK, FIRST, 0), 0)
    assert not root.exists()


def test_marks_that_were_removed_fail_the_task_and_are_not_made_anew(root: Path) -> None:
    config, sink, log = begun(root)
    commit(sink, log, range(7))
    shutil.rmtree(root / "_fairlead")
    for act in (
        lambda: publish(sink, log),
        lambda: begin(sink_of(config), log, SECOND),
        lambda: commit(sink, log, [9]),
    ):
        with pytest.raises(SinkBroken, match="has lost _fairlead"):
            act()
    assert [*root.iterdir()] == []


def test_a_batch_that_was_committed_before_manifests_named_files_is_published_too(
    root: Path,
) -> None:
    """As the released version leaves it: no marks, no names, files half in place."""
    _, sink, log = begun(root)
    made = commit(sink, log, range(7))
    old = replace(made.manifest, parts=(), claim="")
    log.unpublished = [replace(made, manifest=old)]
    for file in (root / "_fairlead").iterdir():
        if file.name != "staging":
            shutil.rmtree(file) if file.is_dir() else file.unlink()
    task_config = claimed(root, before={"sink.path": str(root)})
    begin(sink_of(task_config), log, SECOND)
    assert (published(root), staged(root)) == (list(range(7)), [])
    sink = sink_of(task_config)
    begin(sink, log, SECOND)
    write(sink, log, [7], SECOND)
    assert published(root) == list(range(8))


def test_a_released_versions_sink_that_is_not_there_is_waited_for(root: Path) -> None:
    with pytest.raises(SinkAway, match="does not exist or has no _fairlead"):
        claimed(root, before={"sink.path": str(root)})
    assert not root.exists()
    root.mkdir()
    with pytest.raises(SinkAway, match="does not exist or has no _fairlead"):
        claimed(root, before={"sink.path": str(root)})


def test_a_mark_tells_the_last_commit_that_was_published(root: Path) -> None:
    _, sink, log = begun(root)
    write(sink, log, [1])
    write(sink, log, [2])
    commit(sink, log, [3])
    mark = marks.read_mark(root, TASK)
    assert mark is not None
    assert mark.published == (FIRST, 1)
    assert marks.read_owner(root) == "a"
    assert marks.read_mark(root, Resource("c", 1)) is None


@pytest.mark.parametrize(
    ("told", "full"),
    [
        ("[TASK_WRITE_FAILED] Task failed: {}", "no space left on the disk of /"),
        ("[TASK_WRITE_FAILED] Task failed: calling spill() on x : {}", "no space left for Spark's"),
        ("Job aborted due to stage failure: Lost task 1: {}", "no space left for Spark's temp"),
        ("{}", "no space left on the disk of /"),
    ],
)
def test_a_full_disk_of_sparks_temporary_files_is_not_told_as_that_of_the_sink(
    told: str, full: str
) -> None:
    error = PySparkException(told.format("java.io.IOException: No space left on device"))
    explained = explain_spark_error(Path("/"), error)
    assert isinstance(explained, SinkFull)
    assert str(explained).startswith(full)
