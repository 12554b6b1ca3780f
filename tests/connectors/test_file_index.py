"""What a look at a folder finds, with as little work as the folders' times of change allow."""

import errno
import os
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Event
from threading import enumerate as enumerate_threads
from typing import Any

import pytest

from fairlead.runtime.pipeline.spi.errors import NotReady
from fairlead.runtime.pipeline.stores.files.source import file_index
from fairlead.runtime.pipeline.stores.files.source.arrivals import Arrivals
from fairlead.runtime.pipeline.stores.files.source.file_index import FileIndex
from fairlead.runtime.pipeline.stores.files.source.listing import Skip, read_folder, walk

PATIENCE_S = 60.0


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let no look but the first take in all files."""
    monkeypatch.setattr(file_index, "_REST", 1e9)


def settled(root: Path) -> None:
    """Set all folders' times back: what comes is not of the same moment."""
    for folder, _, _ in os.walk(root):
        os.utime(folder, ns=(1, time.time_ns() - 10_000_000_123))


def names(index: FileIndex, version: int) -> tuple[int, dict[str, int | None]]:
    """Look, and return what changed since a version, each file with its size."""
    index.refresh()
    news = index.since(version)
    return news.version, {path: found and found.size for path, found in news.files.items()}


class Waiting:
    """Somebody who waits for a file."""

    def __init__(self) -> None:
        self.is_told = Event()

    def wake(self) -> None:
        self.is_told.set()


def test_who_waits_is_told_of_files_that_are_moved_into_any_of_the_folders(tmp_path: Path) -> None:
    (tmp_path / "in" / "a").mkdir(parents=True)
    index, one, other = FileIndex(tmp_path / "in", "*"), Waiting(), Waiting()
    index.wake_on_arrival(one.wake)
    index.wake_on_arrival(other.wake)
    index.refresh()
    for place in ("in", "in/a"):
        (tmp_path / "aside.csv").write_text("x")
        (tmp_path / "aside.csv").rename(tmp_path / place / "1.csv")
        for each in (one, other):
            assert each.is_told.wait(PATIENCE_S)
            each.is_told.clear()


def test_nothing_is_left_of_what_waits_for_the_kernel_once_nobody_listens(tmp_path: Path) -> None:
    before = set(enumerate_threads())
    arrivals = Arrivals()
    assert arrivals.watch(tmp_path) >= 0
    (waiting,) = set(enumerate_threads()) - before
    del arrivals
    waiting.join(PATIENCE_S)
    assert not waiting.is_alive()


@pytest.mark.usefixtures("quick")
def test_what_comes_and_goes_is_found_in_the_folders_that_changed(tmp_path: Path) -> None:
    (tmp_path / "a" / "b").mkdir(parents=True)
    (tmp_path / "a" / "1.csv").write_text("x")
    (tmp_path / "2.csv").write_text("xx")
    settled(tmp_path)
    index = FileIndex(tmp_path, "*.csv")
    version, found = names(index, 0)
    assert found == {"a/1.csv": 1, "2.csv": 2}
    (tmp_path / "a" / "b" / "3.csv").write_text("xxx")
    (tmp_path / "2.csv").unlink()
    (tmp_path / "c").mkdir()
    (tmp_path / "c" / "4.csv").write_text("xxxx")
    version, found = names(index, version)
    assert found == {"a/b/3.csv": 3, "2.csv": None, "c/4.csv": 4}
    (tmp_path / "a").rename(tmp_path / "d")
    version, found = names(index, version)
    assert found == {"a/1.csv": None, "a/b/3.csv": None, "d/1.csv": 1, "d/b/3.csv": 3}
    assert names(index, version) == (version, {})


@pytest.mark.usefixtures("quick")
def test_files_that_come_in_one_moment_are_all_found(tmp_path: Path) -> None:
    index = FileIndex(tmp_path, "*")
    version, seen = 0, dict[str, int | None]()
    for number in range(200):
        (tmp_path / f"{number}.csv").write_text("x")
        version, found = names(index, version)
        seen |= found
    assert len(seen) == 200


@pytest.mark.usefixtures("quick")
def test_a_file_that_was_empty_is_found_once_it_has_content(tmp_path: Path) -> None:
    (tmp_path / "1.csv").touch()
    settled(tmp_path)
    index = FileIndex(tmp_path, "*")
    version, found = names(index, 0)
    assert found == {}
    (tmp_path / "1.csv").write_text("x")
    assert names(index, version)[1] == {"1.csv": 1}


@pytest.mark.usefixtures("quick")
def test_what_changes_in_place_is_not_seen_in_the_folders_alone(tmp_path: Path) -> None:
    (tmp_path / "1.csv").write_text("x")
    settled(tmp_path)
    index = FileIndex(tmp_path, "*")
    version, _ = names(index, 0)
    (tmp_path / "1.csv").write_text("xx")
    assert names(index, version)[1] == {}


def test_what_changes_in_place_is_seen_when_all_files_are_looked_at(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(file_index, "_REST", 0)
    (tmp_path / "1.csv").write_text("x")
    settled(tmp_path)
    index = FileIndex(tmp_path, "*")
    version, _ = names(index, 0)
    (tmp_path / "1.csv").write_text("xx")
    assert names(index, version)[1] == {"1.csv": 2}


@pytest.mark.usefixtures("quick")
class Disk:
    """What refuses to list some folders."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.errors: dict[Path, OSError] = {}
        self._scandir = os.scandir
        monkeypatch.setattr(os, "scandir", self.scandir)

    def scandir(self, folder: Path) -> Any:
        if error := self.errors.get(Path(folder)):
            raise error
        return self._scandir(folder)


def test_a_closed_subfolder_is_skipped_and_read_once_it_is_open(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(file_index, "_REST", 0)
    for path in ("a.csv", "lost+found/b.csv"):
        (tmp_path / path).parent.mkdir(exist_ok=True)
        (tmp_path / path).write_text("x")
    disk, index = Disk(monkeypatch), FileIndex(tmp_path, "*")
    disk.errors[tmp_path / "lost+found"] = PermissionError(errno.EACCES, "Permission denied")
    version, found = names(index, 0)
    assert (found, index.skipped) == ({"a.csv": 1}, {"lost+found/": Skip.CLOSED})
    assert [each.path for each in walk(tmp_path, "*")] == ["a.csv"]
    assert names(index, version) == (version, {})
    disk.errors.clear()
    assert names(index, version)[1] == {"lost+found/b.csv": 1}
    assert index.skipped == {}


def test_what_could_be_listed_is_noted_once_however_often_another_folder_cannot(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "sub").mkdir()
    (tmp_path / "a.csv").write_text("x")
    disk, index = Disk(monkeypatch), FileIndex(tmp_path, "*")
    index.refresh()
    (tmp_path / "b.csv").write_text("x")
    version = index.since(0).version
    disk.errors[tmp_path / "sub"] = OSError(errno.EIO, "Input/output error")
    for _ in range(3):
        with pytest.raises(OSError, match="Input/output error"):
            index.refresh()
    disk.errors.clear()
    assert names(index, version) == (version + 1, {"b.csv": 1})


def test_a_folder_that_is_gone_is_waited_for_and_read_anew(tmp_path: Path) -> None:
    root = tmp_path / "in"
    index = FileIndex(root, "*")
    with pytest.raises(NotReady, match="is not a folder"):
        index.refresh()
    root.mkdir()
    (root / "1.csv").write_text("x")
    version, found = names(index, 0)
    assert found == {"1.csv": 1}
    root.rename(tmp_path / "away")
    with pytest.raises(NotReady):
        index.refresh()
    (tmp_path / "away").rename(root)
    (root / "2.csv").write_text("x")
    assert names(index, version)[1] == {"2.csv": 1}


@pytest.mark.usefixtures("quick")
def test_whoever_was_away_for_long_hears_everything(tmp_path: Path) -> None:
    index = FileIndex(tmp_path, "*")
    index.refresh()
    behind = index.since(0).version
    for number in range(600):
        (tmp_path / "1.csv").write_text("x")
        index.refresh()
        (tmp_path / "1.csv").unlink()
        index.refresh()
        del number
    (tmp_path / "2.csv").write_text("x")
    index.refresh()
    news = index.since(max(behind, 1))
    assert (set(news.files), news.is_all) == ({"2.csv"}, True)


def test_tasks_that_look_at_once_look_one_after_the_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "a.csv").write_text("x")
    index = FileIndex(tmp_path, "*")
    inside: list[int] = []
    most: list[int] = []

    def read_slowly(*args: Any, **given: Any) -> Any:
        inside.append(1)
        most.append(len(inside))
        time.sleep(0.05)
        found = read_folder(*args, **given)
        inside.pop()
        return found

    monkeypatch.setattr(file_index, "read_folder", read_slowly)
    monkeypatch.setattr(file_index, "_REST", 0)  # each look takes in all files
    with ThreadPoolExecutor(4) as tasks:
        for each in [tasks.submit(index.refresh) for _ in range(4)]:
            each.result(60)
    assert most == [1, 1, 1, 1]
    assert list(index.since(0).files) == ["a.csv"]
