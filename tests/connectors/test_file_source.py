"""Which files a task reads, when, and what it says about those that it does not."""

import os
from pathlib import Path

import pytest

from fairlead.events.model import Advance, Lag, Resource, identity
from fairlead.runtime.connectors.file_source import FileSource, Folder
from fairlead.runtime.connectors.formats import ReadFormat
from fairlead.runtime.connectors.listing import Found, walk
from fairlead.runtime.connectors.shares import BUCKETS, bucket_of, deal, read_share, spell
from fairlead.runtime.connectors.spi import BadInput, Context, Limit, NotReady

ALL = frozenset(range(BUCKETS))
PLENTY = Limit(100, 1 << 30)


def put(root: Path, path: str, text: str = "x", at: int = 1000) -> Found:
    """Write a file that was changed so many seconds after the epoch."""
    file = root / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)
    os.utime(file, (at, at))
    return Found(path, len(text), at * 1000)


def source(root: Path, glob: str = "*", warnings: list[str] | None = None) -> FileSource:
    told = [] if warnings is None else warnings
    context = Context(Resource("c", 0), told.append)
    return FileSource(Folder(root, glob, ALL), ReadFormat("csv", "a INT"), context)


def test_hidden_files_empty_files_and_links_to_folders_are_left_out(tmp_path: Path) -> None:
    seen = [put(tmp_path, "a.csv"), put(tmp_path, "b/c.csv")]
    for path in (".a.csv", "_a.csv", "_tmp/a.csv", ".git/a.csv", "b/_x/y/a.csv"):
        put(tmp_path, path)
    put(tmp_path, "empty.csv", "")
    (tmp_path / "round").symlink_to(tmp_path)
    (tmp_path / "nowhere.csv").symlink_to(tmp_path / "gone")
    Path(os.fsdecode(os.fsencode(tmp_path) + b"/\xff.csv")).write_text("x")
    assert sorted(walk(tmp_path, "*")) == seen


def test_a_glob_is_held_against_the_name_or_with_a_slash_against_the_path(tmp_path: Path) -> None:
    for path in ("a.csv", "b/a.csv", "b/a.json"):
        put(tmp_path, path)
    assert sorted(each.path for each in walk(tmp_path, "*.csv")) == ["a.csv", "b/a.csv"]
    assert sorted(each.path for each in walk(tmp_path, "b/*")) == ["b/a.csv", "b/a.json"]


def test_a_missing_folder_is_waited_for(tmp_path: Path) -> None:
    with pytest.raises(NotReady, match=r"none is not a folder \(yet\)"):
        source(tmp_path / "none").plan({}, PLENTY)


def test_files_come_oldest_first_within_the_limit_and_a_large_one_alone(tmp_path: Path) -> None:
    big = put(tmp_path, "big", "x" * 100, at=1)
    small = [put(tmp_path, name, "x" * 4, at=at) for at, name in enumerate("cab", start=2)]
    files = source(tmp_path)
    limit = Limit(10, 8)
    plans = [files.plan({}, limit) for _ in range(3)]
    assert [plan.ranges for plan in plans] == [(big,), tuple(small[:2]), tuple(small[2:])]
    assert [(plan.bytes, plan.backlog) for plan in plans] == [(100, True), (8, True), (4, False)]
    assert [plan.lag for plan in plans] == [Lag(3, 12), Lag(1, 4), Lag(0, 0)]
    assert plans[0].advances == (
        Advance({"path": "big"}, None, {"size": 100, "modified_ms": 1000}),
    )


def test_what_was_read_is_not_read_again_and_a_change_is_told_once(tmp_path: Path) -> None:
    put(tmp_path, "a", "x")
    warnings: list[str] = []
    files = source(tmp_path, warnings=warnings)
    (advance,) = files.plan({}, PLENTY).advances
    assert advance.end is not None
    offsets = {identity(advance.partition): advance.end}
    put(tmp_path, "a", "xyz", at=2000)
    assert [files.plan(offsets, PLENTY).ranges for _ in range(3)] == [()] * 3
    assert warnings == [
        f"{tmp_path}/a changed after it was read (1 bytes then, 3 now): it is not read again; "
        "to read it anew, stop the connector and remove the file's offset"
    ]


def test_a_file_that_vanishes_or_changes_after_it_was_planned_is_named(tmp_path: Path) -> None:
    put(tmp_path, "a")
    files = source(tmp_path)
    plan = files.plan({}, PLENTY)
    put(tmp_path, "a", "xx")
    with pytest.raises(BadInput, match=rf"{tmp_path}/a: changed while it was read \(1 bytes"):
        files.verify(plan.ranges)
    (tmp_path / "a").unlink()
    with pytest.raises(BadInput, match=f"{tmp_path}/a: gone since the batch was planned"):
        files.verify(plan.ranges)


def test_a_file_that_is_written_to_is_left_until_it_has_aged(tmp_path: Path) -> None:
    old = put(tmp_path, "old")
    (tmp_path / "new").write_text("x")
    context = Context(Resource("c", 0), lambda _: None)
    folder = Folder(tmp_path, "*", ALL, min_age_ms=3_600_000)
    files = FileSource(folder, ReadFormat("csv", "a INT"), context)
    assert files.plan({}, PLENTY).ranges == (old,)


def test_a_damaged_parquet_file_is_named(tmp_path: Path) -> None:
    put(tmp_path, "a.parquet", "no parquet at all")
    context = Context(Resource("c", 0), lambda _: None)
    files = FileSource(Folder(tmp_path, "*", ALL), ReadFormat("parquet", "a INT"), context)
    with pytest.raises(BadInput, match=rf"^{tmp_path}/a.parquet: "):
        files.plan({}, PLENTY)


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
