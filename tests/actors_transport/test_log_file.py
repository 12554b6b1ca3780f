"""Log files stay small, private and readable, whoever writes to them and however much."""

import logging
import multiprocessing
import os
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest

from fairlead.actors.transport import log_file
from fairlead.actors.transport.log_file import PERIOD_SECONDS, SAME_PLACE, SAME_TEXT, LogFile


@pytest.fixture
def now(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    clock = [1000.0]
    monkeypatch.setattr(log_file, "time", SimpleNamespace(monotonic=lambda: clock[0]))
    return clock


@pytest.fixture
def handler(tmp_path: Path) -> Iterator[LogFile]:
    made = LogFile(tmp_path / "a.log")
    yield made
    made.close()


def say(handler: LogFile, text: str, *args: object, line: int = 1) -> None:
    """Log a line, as if from a line of code."""
    record = logging.LogRecord("test", logging.INFO, "code.py", line, text, args, None)
    handler.handle(record)


@pytest.mark.usefixtures("now")
def test_a_line_that_repeats_is_told_a_few_times_in_a_period(handler: LogFile) -> None:
    for _ in range(10_000):
        say(handler, "no descriptor is left")
        say(handler, "no descriptor is left", line=2)
    lines = Path(handler.baseFilename).read_text().splitlines()
    assert len(lines) == 2 * SAME_TEXT
    assert [each for each in lines if each.endswith("(said too often: no more of it for 10 s)")]


def test_a_repeated_line_is_told_again_in_the_next_period(
    handler: LogFile, now: list[float]
) -> None:
    for _ in range(3):
        for _ in range(100):
            say(handler, "full")
        now[0] += PERIOD_SECONDS
    assert len(Path(handler.baseFilename).read_text().splitlines()) == 3 * SAME_TEXT


@pytest.mark.usefixtures("now")
def test_different_lines_are_all_told_up_to_a_limit_for_one_place(handler: LogFile) -> None:
    for number in range(2 * SAME_PLACE):
        say(handler, "task %d FAILED", number)
    lines = Path(handler.baseFilename).read_text().splitlines()
    assert len(lines) == SAME_PLACE
    assert lines[7] == "task 7 FAILED"


def test_a_log_and_the_older_one_never_exceed_their_size(tmp_path: Path) -> None:
    path = tmp_path / "a.log"
    writers = [
        multiprocessing.get_context("fork").Process(target=flood, args=(path,)) for _ in "ab"
    ]
    for each in writers:
        each.start()
    for each in writers:
        each.join()
        assert each.exitcode == 0
    files = sorted(tmp_path.iterdir())
    assert [each.name for each in files] == ["a.log", "a.log.1"]
    assert all(each.stat().st_size <= 10_000 + 2_000 for each in files)
    assert all(line.startswith("line ") for each in files for line in each.read_text().splitlines())
    assert path.read_text() + path.with_name("a.log.1").read_text()


def flood(path: Path) -> None:
    """Write much more than a log takes."""
    handler = LogFile(path, largest=10_000)
    for number in range(900):
        say(handler, "line %d %s", number, "x" * 100)


@pytest.mark.parametrize("files", [1, 2, 4])
def test_so_many_older_logs_are_kept_as_are_wanted(tmp_path: Path, files: int) -> None:
    handler = LogFile(tmp_path / "a.log", largest=10, files=files)
    for number in range(6):
        say(handler, "%d is written here", number)
    handler.close()
    written = {each.name: each.read_text() for each in tmp_path.iterdir()}
    older = {f"a.log.{number}": f"{6 - number} is written here\n" for number in range(1, files)}
    assert written == {"a.log": "", **older}


def test_a_log_that_another_process_has_put_aside_is_not_put_aside_again(tmp_path: Path) -> None:
    path = tmp_path / "a.log"
    handler = LogFile(path, largest=10)
    say(handler, "short")
    full = handler.stream
    assert full is not None
    path.rename(f"{path}.1")
    handler._rotate(full)
    full.close()
    assert path.with_name("a.log.1").read_text() == "short\n"
    say(handler, "new")
    handler.close()
    assert path.read_text() == "new\n"


def test_logs_are_for_their_owner_only(tmp_path: Path) -> None:
    old = os.umask(0)
    try:
        (tmp_path / "earlier.log").touch(0o644)
        for name in ("new.log", "earlier.log"):
            handler = LogFile(tmp_path / name, largest=10)
            say(handler, "more than ten characters")
            say(handler, "and more")
            handler.close()
    finally:
        os.umask(old)
    assert {each.stat().st_mode & 0o777 for each in tmp_path.iterdir()} == {0o600}


def test_a_line_that_cannot_be_formatted_harms_nobody(
    handler: LogFile, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(logging, "raiseExceptions", False)
    say(handler, "%d", "no number")
    say(handler, "next")
    assert Path(handler.baseFilename).read_text() == "next\n"
