"""Which files a task reads, when, and what it says about those that it does not."""

import errno
import os
import time
from collections.abc import Iterable
from pathlib import Path
from unittest.mock import Mock

import pytest

from fairlead.events.commits import Advance, Document, Lag, identity
from fairlead.events.model import Resource
from fairlead.runtime.pipeline.formats.csv.style import CsvStyle
from fairlead.runtime.pipeline.spi.context import AccessLimits, Context
from fairlead.runtime.pipeline.spi.errors import BadInput, SourceAway
from fairlead.runtime.pipeline.spi.source import Limit
from fairlead.runtime.pipeline.stores.files.copies import Copies
from fairlead.runtime.pipeline.stores.files.source import file_index
from fairlead.runtime.pipeline.stores.files.source.arrivals import has_own_times, unchanged_s
from fairlead.runtime.pipeline.stores.files.source.file_index import FileIndex
from fairlead.runtime.pipeline.stores.files.source.file_survey import survey_file
from fairlead.runtime.pipeline.stores.files.source.formats import ReadFormat
from fairlead.runtime.pipeline.stores.files.source.inference import infer_schema
from fairlead.runtime.pipeline.stores.files.source.listing import Skip, SourceFile, walk
from fairlead.runtime.pipeline.stores.files.source.offsets import (
    BUCKETS,
    Folder,
    bucket_of,
    deal,
    read_share,
    spell,
)
from fairlead.runtime.pipeline.stores.files.source.reading import Reading
from fairlead.runtime.pipeline.stores.files.source.source import FileSource

ALL = frozenset(range(BUCKETS))
PLENTY = Limit(1_000_000, 1 << 30, 100)


def put(root: Path, path: str, text: str = "x", at: int = 1000) -> SourceFile:
    """Write a file that was changed so many seconds after the epoch."""
    file = root / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)
    os.utime(file, (at, at))
    return SourceFile(path, len(text), at * 1000, file.stat().st_ctime_ns)


def source(root: Path, glob: str = "*", warnings: list[str] | None = None) -> FileSource:
    told = [] if warnings is None else warnings
    context = Context(Resource("c", 0), told.append)
    return FileSource(Folder(root, glob, ALL), ReadFormat("csv", "a INT"), context)


def confined(root: Path, *allowed: Path) -> FileSource:
    """Return a source on a node with `paths.allow`."""
    context = Context(Resource("c", 0), print, reach=AccessLimits(paths=tuple(map(str, allowed))))
    return FileSource(Folder(root, "*", ALL), ReadFormat("csv", "a INT"), context)


def test_a_file_that_is_moved_in_wakes_its_task(tmp_path: Path) -> None:
    told = list[str]()
    context = Context(Resource("c", 0), print, wake=lambda: told.append("woken"))
    made = FileSource(Folder(tmp_path, "*", ALL), ReadFormat("csv", "a INT"), context)
    made.wake()
    assert told == ["woken"]


def test_a_folder_that_became_a_link_to_elsewhere_is_not_read(tmp_path: Path) -> None:
    root, secret = tmp_path / "allowed" / "in", tmp_path / "secret"
    seen = put(root, "a.csv")
    put(secret, "a.csv")
    put(secret, "b.csv")
    made = confined(root, tmp_path / "allowed")
    planned = made.plan({}, PLENTY).ranges
    assert planned == (seen,)
    root.rename(tmp_path / "allowed" / "old")
    root.symlink_to(secret)
    told = (
        r"in \(that is .*secret\) is in none of the folders of paths\.allow: .*: its rows are not"
    )
    with pytest.raises(SourceAway, match=told):
        made.verify(planned)  # as before and after a batch is read
    with pytest.raises(SourceAway, match=told):
        made.plan({}, PLENTY)
    root.unlink()
    (tmp_path / "allowed" / "old").rename(root)
    assert [each.path for each in made.plan({}, PLENTY).ranges] == ["a.csv"]
    inner = root / "sub"
    put(inner, "c.csv")
    assert [each.path for each in made.plan({}, PLENTY).ranges] == ["a.csv", "sub/c.csv"]
    inner.rename(root / ".sub")
    inner.symlink_to(secret)
    assert [each.path for each in made.plan({}, PLENTY).ranges] == ["a.csv"]


def test_a_folder_that_was_a_link_from_the_beginning_is_read_where_that_is_allowed(
    tmp_path: Path,
) -> None:
    put(tmp_path / "allowed" / "real", "a.csv")
    (tmp_path / "in").symlink_to(tmp_path / "allowed" / "real")
    made = confined(tmp_path / "in", tmp_path / "allowed")
    assert [each.path for each in made.plan({}, PLENTY).ranges] == ["a.csv"]


def test_a_file_with_a_name_elsewhere_is_skipped_where_folders_are_confined(
    tmp_path: Path,
) -> None:
    root = tmp_path / "in"
    first = put(root, "a.csv")
    secret = tmp_path / "secret.csv"
    secret.write_text("x")
    made, free = confined(root, root), source(root)
    planned = made.plan({}, PLENTY).ranges
    assert planned == (first,)
    (root / "b.csv").hardlink_to(secret)
    (root / "a.csv").unlink()
    (root / "a.csv").hardlink_to(secret)  # under a name that is known already
    with pytest.raises(BadInput, match=r"a\.csv: gone, or behind a link"):
        made.verify(planned)
    plan = made.plan({}, PLENTY)
    assert plan.ranges == ()
    assert "skipped 1, since have another name, which may lie outside paths.allow" in plan.remark
    assert list(walk(root, "*", is_confined=True)) == []
    assert [each.path for each in free.plan({}, PLENTY).ranges] == ["a.csv", "b.csv"]
    (root / "a.csv").unlink()
    secret.unlink()
    put(root, "c.csv")
    assert {each.path for each in made.plan({}, PLENTY).ranges} == {"b.csv", "c.csv"}


def test_hidden_and_empty_files_are_left_out_and_what_is_skipped_is_told(tmp_path: Path) -> None:
    root = tmp_path / "in"
    seen = [put(root, "a.csv"), put(root, "b/c.csv")]
    for path in (".a.csv", "_a.csv", "_tmp/a.csv", ".git/a.csv", "b/_x/y/a.csv"):
        put(root, path)
    put(root, "d.csv._COPYING_")
    put(root, "empty.csv", "")
    (root / "round").symlink_to(root)
    (root / "b" / "nowhere.csv").symlink_to(tmp_path / "gone")
    (root / "shadow.csv").symlink_to(put_outside(tmp_path))
    (root / "other.txt").symlink_to(root / "a.csv")
    os.mkfifo(root / "pipe.csv")
    Path(os.fsdecode(os.fsencode(root) + b"/\xff.csv")).write_text("x")
    Path(os.fsdecode(os.fsencode(root) + b"/\xfe")).mkdir()
    index = FileIndex(root, "*.csv*")
    index.refresh()
    assert sorted(walk(root, "*.csv*")) == list(filter(None, index.since(0).files.values())) == seen
    assert index.skipped == {
        "round": Skip.LINK,
        "b/nowhere.csv": Skip.LINK,
        "shadow.csv": Skip.LINK,
        "pipe.csv": Skip.SPECIAL,
        "\\xff.csv": Skip.NAME,
        "\\xfe": Skip.NAME,
    }


def put_outside(folder: Path) -> Path:
    put(folder, "shadow", "secret")
    return folder / "shadow"


def test_what_is_skipped_is_told_by_the_task_in_status_and_once_in_the_log(tmp_path: Path) -> None:
    put(tmp_path, "in/a.csv")
    for name in ("1.csv", "2.csv", "3.csv", "4.csv"):
        (tmp_path / "in" / name).symlink_to(put_outside(tmp_path))
    warnings: list[str] = []
    files = source(tmp_path / "in", warnings=warnings)
    plans = [files.plan({}, PLENTY) for _ in range(2)]
    told = (
        "skipped 4, since symbolic links are not followed: move or copy what they lead to here "
        "(1.csv, 2.csv, 3.csv and 1 more)"
    )
    assert ([plan.remark for plan in plans], warnings) == ([told] * 2, [f"{tmp_path}/in: {told}"])
    assert [[each.path for each in plan.ranges] for plan in plans] == [["a.csv"]] * 2


@pytest.mark.parametrize("link", ["b/c.csv", "b"])
def test_a_link_that_takes_a_place_after_the_listing_is_not_followed(
    tmp_path: Path, link: str
) -> None:
    planned = put(tmp_path, "in/b/c.csv")._replace(path="b/c.csv")
    put(tmp_path, "away/c.csv")
    files = source(tmp_path / "in")
    assert files.plan({}, PLENTY).ranges == (planned,)
    (tmp_path / "in" / link).rename(tmp_path / "was")
    (tmp_path / "in" / link).symlink_to(tmp_path / "away" / ("c.csv" if "." in link else ""))
    assert files.plan({}, PLENTY).ranges == ()
    with pytest.raises(BadInput, match=f"{tmp_path}/in/b/c.csv: gone, or behind a link, since"):
        files.verify([planned])


def test_a_glob_is_held_against_the_name_or_with_a_slash_against_the_path(tmp_path: Path) -> None:
    for path in ("a.csv", "b/a.csv", "b/a.json"):
        put(tmp_path, path)
    assert sorted(each.path for each in walk(tmp_path, "*.csv")) == ["a.csv", "b/a.csv"]
    assert sorted(each.path for each in walk(tmp_path, "b/*")) == ["b/a.csv", "b/a.json"]


def test_a_folder_that_is_gone_or_closed_is_away_and_read_on_when_it_is_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(tmp_path / "in", "a.csv")
    files = source(tmp_path / "in")
    (tmp_path / "in").rename(tmp_path / "away")
    with pytest.raises(SourceAway, match=r"in is not a folder \(yet\): is it not mounted\?"):
        files.plan({}, PLENTY)
    (tmp_path / "away").rename(tmp_path / "in")
    with monkeypatch.context() as patch:
        stale = OSError(errno.ESTALE, "Stale file handle", str(tmp_path / "in"))
        patch.setattr(os, "scandir", Mock(side_effect=stale))
        with pytest.raises(SourceAway, match="in: stale file handle"):
            files.plan({}, PLENTY)
        with pytest.raises(SourceAway, match="in: stale file handle"):
            list(walk(tmp_path / "in", "*"))
    assert [each.path for each in files.plan({}, PLENTY).ranges] == ["a.csv"]


def test_a_file_whose_file_system_does_not_answer_is_away_and_read_on_when_it_does(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = put(tmp_path, "a.csv")
    files = source(tmp_path)
    with monkeypatch.context() as patch:
        stale = OSError(errno.ESTALE, "Stale file handle", str(tmp_path / "a.csv"))
        patch.setattr(Path, "lstat", Mock(side_effect=stale))
        with pytest.raises(SourceAway, match=r"a\.csv: stale file handle"):
            files.plan({}, PLENTY)
    assert source(tmp_path).plan({}, PLENTY).ranges == (file,)


def test_a_link_that_cannot_be_followed_keeps_no_file_waiting(tmp_path: Path) -> None:
    (tmp_path / "round").symlink_to("round")
    (tmp_path / "long").symlink_to("x" * 256)
    file = put(tmp_path, "a.csv")
    plan = source(tmp_path, "*.csv").plan({}, PLENTY)
    assert (plan.ranges, plan.remark) == ((file,), "")


def test_a_path_that_no_log_could_hold_is_skipped_and_told(tmp_path: Path) -> None:
    file = put(tmp_path, "a.csv")
    folder = os.open(tmp_path, os.O_RDONLY)
    for _ in range(18):  # no system call takes the path to the last ones
        os.mkdir("d" * 250, dir_fd=folder)
        inner = os.open("d" * 250, os.O_RDONLY, dir_fd=folder)
        os.close(folder)
        folder = inner
    os.close(folder)
    deep = tmp_path.joinpath(*["\1" * 250] * 4)
    deep.mkdir(parents=True)
    plan = source(tmp_path).plan({}, PLENTY)
    told = "skipped 2, since paths are too long: shorten names, or move them up ("
    assert (plan.ranges, plan.remark[: len(told)]) == ((file,), told)
    assert len(plan.remark) < len(told) + 2 * 305


@pytest.mark.parametrize("why", ["Input/output error", "Transport endpoint is not connected"])
def test_a_file_that_spark_cannot_read_for_its_file_system_is_away(
    tmp_path: Path, why: str
) -> None:
    put(tmp_path, "a.csv")
    told = f"[FAILED_READ_FILE.NO_HINT] Encountered error while reading file {tmp_path}/a.csv. \n"
    files = source(tmp_path)
    files.plan({}, PLENTY)
    with pytest.raises(SourceAway) as away:
        files.blame(RuntimeError(f"{told}Caused by: java.io.IOException: {why}"))
    assert str(away.value) == f"{tmp_path}/a.csv: {why}"


def test_files_come_oldest_first_within_the_limit_and_a_large_one_alone(tmp_path: Path) -> None:
    big = put(tmp_path, "big", "x" * 100, at=1)
    small = [put(tmp_path, name, "x" * 4, at=at) for at, name in enumerate("cab", start=2)]
    files = source(tmp_path)
    limit = Limit(1_000_000, 8, 10)
    plans = [files.plan({}, limit) for _ in range(3)]
    assert [plan.ranges for plan in plans] == [(big,), tuple(small[:2]), tuple(small[2:])]
    assert [(plan.bytes, plan.backlog) for plan in plans] == [(100, True), (8, True), (4, False)]
    assert [plan.lag for plan in plans] == [Lag(3, 12), Lag(1, 4), Lag(0, 0)]
    assert plans[0].advances == (
        Advance({"root": str(tmp_path), "path": "big"}, None, {"size": 100, "modified_ms": 1000}),
    )


def test_a_file_of_the_same_size_and_time_is_another_one_until_it_is_read(tmp_path: Path) -> None:
    planned = put(tmp_path / "in", "a", "x")
    files = source(tmp_path / "in")
    assert files.plan({}, PLENTY).ranges == (planned,)
    other = put(tmp_path, "b", "y")
    (tmp_path / "b").rename(tmp_path / "in" / "a")
    assert (planned.size, planned.modified_ms) == (other.size, other.modified_ms)
    with pytest.raises(BadInput, match=f"{tmp_path}/in/a: "):
        files.verify([planned])


def test_what_was_read_is_not_read_again_and_a_change_is_told_once(tmp_path: Path) -> None:
    put(tmp_path, "a", "x")
    warnings: list[str] = []
    files = source(tmp_path, warnings=warnings)
    offsets = offsets_of(files.plan({}, PLENTY).advances)
    put(tmp_path, "a", "xyz", at=2000)
    assert [files.plan(offsets, PLENTY).ranges for _ in range(3)] == [()] * 3
    assert warnings == [
        f"{tmp_path}/a changed after it was read (1 bytes then, 3 now): it is not read again; "
        "put the missing rows into a file with another name"
    ]


def test_a_task_says_what_it_may_miss_as_long_as_files_differ_from_what_was_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(file_index, "_REST", 0)  # all files are looked at each time
    for name in "abcde":
        put(tmp_path, name, "x")
    offsets = offsets_of(source(tmp_path).plan({}, PLENTY).advances)
    for name in "abcd":
        put(tmp_path, name, "xyz", at=2000)
    told = (
        "4 of its files changed after they were read, and are not read again (a, b, c and 1 more): "
        "they have at least 8 bytes more now; put the missing rows into a file with another name"
    )
    another = source(tmp_path)  # another process, another worker
    assert another.plan(offsets, PLENTY).remark == told
    for name in "abcd":
        put(tmp_path, name, "x")
    assert another.plan(offsets, PLENTY).remark == ""


def test_a_folder_in_which_nothing_is_left_of_what_was_read_is_told_until_there_are_files(
    tmp_path: Path,
) -> None:
    told = (
        "there is no file to be seen in it, and files were read from it before: if nobody removed "
        "them, the file system that they are on is not mounted here; mount it again"
    )
    root, away, warnings = tmp_path / "in", tmp_path / "away", list[str]()
    put(root, "sub/a")
    offsets = offsets_of(source(root).plan({}, PLENTY).advances)
    mounted = source(root, warnings=warnings)
    for time_ in (1, 2):
        assert mounted.plan(offsets, PLENTY).remark == ""
        root.rename(away)
        root.mkdir()
        plans = [files.plan(offsets, PLENTY) for files in (mounted, mounted, source(root))]
        assert [(plan.ranges, plan.remark) for plan in plans] == 3 * [((), told)]
        assert warnings == time_ * [f"{root}: {told}"]
        root.rmdir()
        away.rename(root)
    assert mounted.plan(offsets, PLENTY).remark == ""


def test_an_empty_folder_that_nothing_was_read_from_is_waited_at_without_a_word(
    tmp_path: Path,
) -> None:
    root, other = tmp_path / "in", tmp_path / "other"
    root.mkdir()
    put(other, "a,root='x'")
    offsets = offsets_of(source(other).plan({}, PLENTY).advances)
    rootless = {identity({"path": "a"}): next(iter(offsets.values()))}
    warnings: list[str] = []
    assert source(root, warnings=warnings).plan({}, PLENTY).remark == ""
    assert source(root, warnings=warnings).plan(offsets | rootless, PLENTY).remark == ""
    assert warnings == []
    form, context = ReadFormat("csv", "a INT"), Context(Resource("c", 0), print)
    of_older_release = FileSource(Folder(root, "*", ALL, rootless=root), form, context)
    assert "not mounted here" in of_older_release.plan(rootless, PLENTY).remark


def test_a_file_that_keeps_growing_is_told_of_a_few_times(tmp_path: Path) -> None:
    put(tmp_path, "a", "x")
    warnings: list[str] = []
    files = source(tmp_path, warnings=warnings)
    offsets = offsets_of(files.plan({}, PLENTY).advances)
    remarks = set[str]()
    for size in range(2, 1002):
        put(tmp_path, "a", size * "x", at=size)
        remarks.add(files.plan(offsets, PLENTY).remark)
    assert len(warnings) == 1
    assert 1 < len(remarks) <= 10


def offsets_of(advances: Iterable[Advance]) -> dict[str, Document]:
    """Return what the log says once a batch counts."""
    return {identity(each.partition): each.end for each in advances if each.end is not None}


def test_offsets_belong_to_a_folder_and_a_path_in_it(tmp_path: Path) -> None:
    one, two = (put(tmp_path, f"{folder}/a")._replace(path="a") for folder in ("one", "two"))
    offsets = offsets_of(source(tmp_path / "one").plan({}, PLENTY).advances)
    assert source(tmp_path / "two").plan(offsets, PLENTY).ranges == (two,)
    assert source(tmp_path / "one").plan(offsets, PLENTY).ranges == ()
    respelled = Path(f"{tmp_path}/two/../one/")
    assert source(respelled).plan(offsets, PLENTY).ranges == ()
    assert one[:3] == two[:3]


def test_offsets_of_older_releases_count_for_the_folder_that_they_were_written_for(
    tmp_path: Path,
) -> None:
    for path in ("one/a", "two/a"):
        put(tmp_path, path, "xyz", at=2000)
    offsets: dict[str, Document] = {identity({"path": "a"}): {"size": 1, "modified_ms": 1_000_000}}

    def read_in(folder: str, rootless: Path | None) -> list[str]:
        context = Context(Resource("c", 0), lambda _: None)
        where = Folder(tmp_path / folder, "*", ALL, rootless=rootless)
        plan = FileSource(where, ReadFormat("csv", "a INT"), context).plan(offsets, PLENTY)
        return [each.path for each in plan.ranges]

    assert read_in("one", tmp_path / "one") == []  # although it changed
    assert read_in("two", tmp_path / "one") == ["a"]
    # Where nobody knows the folder they count for the very file that they tell of.
    assert read_in("one", None) == ["a"]
    put(tmp_path, "one/a", "x")
    assert read_in("one", None) == []


def test_a_file_that_vanishes_or_changes_after_it_was_planned_is_named(tmp_path: Path) -> None:
    put(tmp_path, "a")
    files = source(tmp_path)
    plan = files.plan({}, PLENTY)
    put(tmp_path, "a", "xx")
    with pytest.raises(
        BadInput, match=rf"{tmp_path}/a: changed while it was read \(1 bytes"
    ) as told:
        files.verify(plan.ranges)
    assert told.value.is_deferred
    (tmp_path / "a").unlink()
    with pytest.raises(
        BadInput, match=f"{tmp_path}/a: gone, or behind a link, since the batch was planned"
    ) as told:
        files.verify(plan.ranges)
    assert told.value.is_deferred


@pytest.mark.parametrize("time_of_change_s", [0, 1_000, 4_000_000_000])
def test_a_file_is_read_once_its_size_and_time_have_not_changed_for_long_enough(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, time_of_change_s: int
) -> None:
    clock = [100.0]
    monkeypatch.setattr("time.monotonic", lambda: clock[0])
    monkeypatch.setattr(file_index, "has_own_times", lambda _: False)  # a network file system
    context = Context(Resource("c", 0), lambda _: None)
    folder = Folder(tmp_path, "*", ALL, min_age_ms=1_000)
    files = FileSource(folder, ReadFormat("csv", "a INT"), context)

    def read_at(second: float) -> list[str]:
        clock[0] = second
        return [each.path for each in files.plan({}, PLENTY).ranges]

    # Whatever its time is: clocks differ, and coarse ones stand still while a file grows.
    put(tmp_path, "a", "x", at=time_of_change_s)
    assert [read_at(100.0), read_at(100.9)] == [[], []]
    put(tmp_path, "a", "xy", at=time_of_change_s)
    assert [read_at(101.0), read_at(101.9)] == [[], []]
    put(tmp_path, "a", "yx", at=time_of_change_s + 2)
    put(tmp_path, "b", "x", at=time_of_change_s)
    assert [read_at(102.0), read_at(102.9), read_at(103.0)] == [[], [], ["b", "a"]]


@pytest.mark.parametrize(("clock_ahead_s", "read"), [(2, ["a"]), (0, []), (-2, [])])
def test_a_new_owner_reads_at_once_what_the_kernel_knows_to_be_old_enough(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, clock_ahead_s: int, read: list[str]
) -> None:
    put(tmp_path, "a", at=1_000)  # a time of change that its user has set
    now_ns = (tmp_path / "a").stat().st_ctime_ns + clock_ahead_s * 1_000_000_000
    monkeypatch.setattr("time.time_ns", lambda: now_ns)
    folder = Folder(tmp_path, "*", ALL, min_age_ms=1_500)
    files = FileSource(folder, ReadFormat("csv", "a INT"), Context(Resource("c", 0), print))
    assert [each.path for each in files.plan({}, PLENTY).ranges] == read


def test_a_time_of_another_clock_or_in_whole_seconds_tells_no_age(tmp_path: Path) -> None:
    folders = tmp_path, Path("/proc/self"), tmp_path / "gone"
    assert [has_own_times(each) for each in folders] == [True, False, False]
    assert unchanged_s(1) > 0
    assert unchanged_s(2_000_000_000) == 0
    assert unchanged_s(time.time_ns() + 60_000_000_001) == 0


def test_a_file_that_changes_between_the_listing_and_its_batch_waits_anew(tmp_path: Path) -> None:
    folder = Folder(tmp_path, "*", ALL, min_age_ms=1)
    files = FileSource(folder, ReadFormat("csv", "a INT"), Context(Resource("c", 0), print))
    for name in "ab":
        put(tmp_path, name)
    files.plan({}, PLENTY)
    time.sleep(0.01)
    assert [each.path for each in files.plan({}, Limit(1_000_000, 100, 1)).ranges] == ["a"]
    put(tmp_path, "b", "xyz", at=1000)
    assert files.plan({}, Limit(1_000_000, 100, 1)).ranges == ()


def waiting_source(folder: Path) -> FileSource:
    """Return a source that would wait for a minute until it believes a file to be complete."""
    context = Context(Resource("c", 0), lambda _: None)
    made = FileSource(
        Folder(folder, "*", ALL, min_age_ms=60_000), ReadFormat("csv", "a INT"), context
    )
    assert made.plan({}, PLENTY).ranges == ()
    return made


def test_a_file_that_is_moved_in_is_read_at_once_and_one_that_is_written_there_is_not(
    tmp_path: Path,
) -> None:
    root = tmp_path / "in"
    root.mkdir()
    files = waiting_source(root)
    put(tmp_path, "moved", "x")
    put(root, "written", "x")
    (tmp_path / "moved").rename(root / "moved")
    assert [each.path for each in files.plan({}, PLENTY).ranges] == ["moved"]
    put(tmp_path, "touched", "x")
    (tmp_path / "touched").rename(root / "touched")
    put(root, "touched", "xy")
    # The first one has no offset yet, so it is planned again.
    assert [each.path for each in files.plan({}, PLENTY).ranges] == ["moved"]


def test_a_file_that_is_open_for_writing_is_not_read_however_long_it_stays_the_same(
    tmp_path: Path,
) -> None:
    context = Context(Resource("c", 0), lambda _: None)
    folder = Folder(tmp_path, "*", ALL, min_age_ms=1)
    files = FileSource(folder, ReadFormat("csv", "a INT"), context)

    def read() -> list[str]:
        files.plan({}, PLENTY)
        time.sleep(0.01)
        return [each.path for each in files.plan({}, PLENTY).ranges]

    with (tmp_path / "a").open("w") as writer:
        writer.write("x")
        writer.flush()
        assert read() == []
    assert read() == ["a"]


@pytest.mark.parametrize("is_growing", [False, True])
def test_a_file_that_is_waited_for_because_somebody_writes_to_it_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_growing: bool
) -> None:
    clock, warnings = [100.0], list[str]()
    monkeypatch.setattr("time.monotonic", lambda: clock[0])
    monkeypatch.setattr(file_index, "_REST", 0)  # all files are looked at each time
    folder = Folder(tmp_path, "*", ALL, min_age_ms=1_000)
    context = Context(Resource("c", 0), warnings.append)
    files = FileSource(folder, ReadFormat("csv", "a INT"), context)
    put(tmp_path, "b")

    def remarks_until(second: int) -> list[str]:
        found: list[str] = []
        while clock[0] < second:
            if is_growing:
                writer.write("x")
                writer.flush()
            clock[0] += 1
            found.append(files.plan({}, PLENTY).remark)
        return found

    told = (
        "waits for 1 of its files to be complete (a): they are being written to, or a process of "
        "this machine has them open for writing. Close them (lsof shows the "
        "process); a file that keeps growing is never read"
    )
    patience = 60 if is_growing else 10
    with (tmp_path / "a").open("w") as writer:
        writer.write("x")
        writer.flush()
        assert set(remarks_until(100 + patience)) == {""}
        assert warnings == []
        assert remarks_until(105 + patience)[-1] == told
        assert warnings == [f"{tmp_path}: {told}"]
    clock[0] += 2
    files.plan({}, PLENTY)
    clock[0] += 2
    plan = files.plan({}, PLENTY)
    assert ({each.path for each in plan.ranges}, plan.remark) == ({"a", "b"}, "")


def test_rows_of_a_damaged_parquet_file_are_not_counted_so_that_it_fails_where_it_is_read(
    tmp_path: Path,
) -> None:
    put(tmp_path, "a.parquet", "no parquet at all")
    context = Context(Resource("c", 0), lambda _: None)
    files = FileSource(Folder(tmp_path, "*", ALL), ReadFormat("parquet", "a INT"), context)
    plan = files.plan({}, PLENTY)
    assert (len(plan.ranges), plan.rows) == (1, -1)


@pytest.mark.parametrize("is_tolerant", [False, True])
def test_a_parquet_file_whose_file_system_does_not_answer_is_away_and_no_bad_input(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_tolerant: bool
) -> None:
    file = tmp_path / "a.parquet"
    error = OSError(errno.EIO, "Error reading bytes from file. Detail: [errno 5]")
    for name in ("ParquetFile", "read_metadata"):
        monkeypatch.setattr(f"pyarrow.parquet.{name}", Mock(side_effect=error))
    form = ReadFormat("parquet", "a INT", tolerant=is_tolerant)
    with pytest.raises(SourceAway, match=f"^{file}: error reading bytes from file"):
        survey_file(form, file, Copies(), None)
    with pytest.raises(SourceAway, match=f"^{file}: error reading bytes from file"):
        infer_schema("parquet", [file], CsvStyle(), 1 << 20)


@pytest.mark.parametrize(("files", "tasks"), [(0, 3), (1, 2), (365, 4), (1000, 7), (20, 20)])
def test_every_bucket_is_dealt_once_and_files_evenly(files: int, tasks: int) -> None:
    paths = [f"2013/{number}.csv" for number in range(files)]
    shares = deal(paths, tasks)
    assert sorted(bucket for share in shares for bucket in share) == list(range(BUCKETS))
    loads = [sum(bucket_of(path) in share for path in paths) for share in shares]
    assert max(loads) - min(loads) <= max(2, files // tasks // 10)


def test_the_same_files_are_dealt_the_same_way_and_a_bucket_never_changes() -> None:
    paths = [f"{number}.csv" for number in range(100)]
    assert deal(paths, 3) == deal(reversed(paths), 3)
    assert [bucket_of(path) for path in ("a.csv", "b/c.csv", "näh")] == [119, 163, 14]


def test_a_share_can_be_spelled_and_read_again() -> None:
    assert spell(frozenset({0, 1, 2, 7, 255})) == "0-2,7,255"
    for share in deal([], 3):
        assert read_share(spell(share)) == share
    with pytest.raises(ValueError, match="no such bucket"):
        read_share("255-256")


@pytest.mark.parametrize(("most_bytes", "ahead"), [(1, 1), (7, 1), (8, 2), (100, 2)])
def test_what_the_next_batch_will_hold_is_looked_at_meanwhile(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, most_bytes: int, ahead: int
) -> None:
    # One that is larger than a batch may be is a batch of its own.
    files = [put(tmp_path, f"{number}.csv", "1234") for number in range(5)]
    looked_at = Mock()
    monkeypatch.setattr(Reading, "read", Mock())
    monkeypatch.setattr(Reading, "look_ahead", looked_at)
    made = source(tmp_path)
    plan = made.plan({}, Limit(100, most_bytes, 2))
    made.read(Mock(), plan.ranges)
    assert looked_at.call_args.args == (files[len(plan.ranges) :][:ahead],)


def test_the_files_of_a_failed_batch_are_planned_in_halves_and_one_that_failed_alone_last(
    tmp_path: Path,
) -> None:
    context = Context(Resource("c", 0), lambda _: None)

    def anew() -> FileSource:
        return FileSource(Folder(tmp_path, "*", ALL), ReadFormat("csv", "a INT"), context)

    def first() -> list[SourceFile]:
        return [*anew().plan({}, PLENTY).ranges]

    a, b, c, d = (put(tmp_path, name) for name in "abcd")
    assert first() == [a, b, c, d]
    assert anew().defer([a, b, c, d]) == (f"{tmp_path}/a, {tmp_path}/b, {tmp_path}/c and 1 more")
    e = put(tmp_path, "e", at=2000)
    assert first() == [a, b], "what keeps coming does not put off that one of them fails alone"
    anew().defer([a, b])
    assert first() == [a]
    assert anew().defer([a]) == f"{tmp_path}/a"
    assert first() == [b], "the rest of its half, alone"
    files, offsets, order = anew(), dict[str, Document](), list[list[SourceFile]]()
    while (batch := files.plan(offsets, PLENTY)).ranges:
        order.append([*batch.ranges])
        offsets |= offsets_of(batch.advances)
    assert order == [[b], [c, d], [e], [a]]
    anew().plan({**offsets}, PLENTY)
    assert context.deferred == {}, "what was read after all is forgotten"
    anew().defer([a, b])
    (tmp_path / "a").unlink()
    anew().plan({}, PLENTY)
    assert [*context.deferred] == ["b"], "what is gone is forgotten by the next attempt"
    files = anew()
    files.plan({}, PLENTY)
    (tmp_path / "b").unlink()
    for _ in range(4):  # it scans once nothing is pending
        files.plan({}, PLENTY)
    assert context.deferred == {}, "and by the one that runs"
