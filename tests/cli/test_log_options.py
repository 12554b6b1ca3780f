"""`logs`: the last entries, those of a time and a level, with the name of their file or as JSON."""

import json
from datetime import datetime, timedelta
from pathlib import Path

import pytest
from cli.conftest import Run

TEXT = """2026-01-01 10:00:00,000 INFO 1 fairlead.a: flights runs
2026-01-01 10:00:02,000 WARNING 1 fairlead.a: flights is slow
  because of this
2026-01-01 10:00:04,000 ERROR 1 fairlead.a: other FAILED
"""
JSON = (
    '{"time": "2026-01-01T10:00:03.000Z", "level": "DEBUG", "message": "flights looks"}\n'
    '{"time": "2026-01-01T10:00:05.000Z", "level": "INFO", "message": "flights ends"}\n'
)


@pytest.fixture(autouse=True)
def log_files(tmp_path: Path) -> Path:
    folder = tmp_path / "data" / "logs"
    folder.mkdir(parents=True)
    (folder / "actors.log").write_text(TEXT)
    (folder / "rest.log").write_text(JSON)
    return folder


@pytest.mark.parametrize(
    ("options", "messages"),
    [
        ("", ["runs", "slow", "looks", "FAILED", "ends"]),
        ("--tail 2", ["FAILED", "ends"]),
        ("flights --tail 2", ["looks", "ends"]),
        ("--tail 0", []),
        ("--level info", ["runs", "slow", "FAILED", "ends"]),
        ("--level warn", ["slow", "FAILED"]),
        ("--level ERROR --tail 5", ["FAILED"]),
        ("--since 1h", []),
    ],
)
def test_entries_are_chosen(options: str, messages: list[str], run: Run) -> None:
    out = run("logs", *options.split(), "--data-dir", "data").out
    words = ("runs", "slow", "looks", "FAILED", "ends")
    assert [each for each in words if each in out] == messages
    assert ("because of this" in out) == ("slow" in messages), "lines of an entry stay together"


def test_entries_of_the_last_minutes_are_local_times(run: Run, log_files: Path) -> None:
    recent = datetime.now() - timedelta(minutes=5)  # noqa: DTZ005  # as in the files
    (log_files / "rest.log").write_text(f"{recent:%Y-%m-%d %H:%M:%S},000 INFO 1 a: new\n")
    out = run("logs", "--since", "10m", "--data-dir", "data").out
    assert (out.count("\n"), "new" in out) == (1, True)


def test_each_line_may_begin_with_the_name_of_its_file(run: Run) -> None:
    lines = run("logs", "--prefix", "--level", "warn", "--data-dir", "data").out.splitlines()
    assert [line.partition("]")[0] for line in lines] == ["[actors.log"] * 3


def test_entries_are_objects_of_json_however_they_were_written(run: Run) -> None:
    lines = run("logs", "flights", "-o", "json", "--data-dir", "data").out.splitlines()
    entries = [json.loads(line) for line in lines]
    assert entries[1] == {
        "time": "2026-01-01 10:00:02,000",
        "level": "WARNING",
        "pid": "1",
        "logger": "fairlead.a",
        "message": "flights is slow\n  because of this",
        "file": "actors.log",
    }
    assert [each["message"] for each in entries[2:]] == ["flights looks", "flights ends"]


def test_a_line_that_is_no_entry_is_a_message(run: Run, log_files: Path) -> None:
    (log_files / "rest.log").write_text('{"broken\n')
    (log_files / "actors.log").write_text("\x1b[2J\n")
    lines = run("logs", "-o", "json", "--level", "error", "--data-dir", "data").out.splitlines()
    assert [json.loads(line)["message"] for line in lines] == ["\x1b[2J", '{"broken']
