"""`top`, `logs`, `log-level` and `get --watch`: what is going on now."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from cli.conftest import Asked, Cluster, Run, in_each_pause

from fairlead_tests.cli import answered

EXPANDED = "/connectors?expand=status&expand=info&expand=progress"
TOP = """\
TASK       ROWS IN/S  ROWS OUT/S  READ/S   WRITTEN/S  LAG
flights-0  2,000      1,000       50.0 kB  10.2 kB    1.2 MB
flights-1  0          0           0 bytes  0 bytes
"""


def after_each_pause(monkeypatch: pytest.MonkeyPatch, *events: Callable[[], object]) -> None:
    """Let something happen in each pause of a command; the pause after the last is its end."""
    left = list(events)

    def pause(_: float) -> None:
        if not left:
            raise KeyboardInterrupt
        left.pop(0)()

    in_each_pause(monkeypatch, pause)


def busier(**done: int) -> dict[str, Any]:
    tasks = [{"id": 0, **answered.DONE, **done}, {"id": 1, **answered.NOTHING}]
    entry = answered.CONNECTORS["flights"]
    return {"flights": {**entry, "progress": {"name": "flights", "tasks": tasks}}}


def test_top_measures_between_two_requests(
    run: Run, cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    def work() -> None:
        busy = busier(rows_in=20_842, rows_out=10_840, bytes_in=500_000, bytes_out=112_240)
        cluster.answer("GET", EXPANDED, busy)

    after_each_pause(monkeypatch, work)
    assert run("top", "--interval", "10s", "--url", cluster.url) == (0, TOP, "")


def test_top_measures_again_until_it_is_interrupted_in_the_wanted_order(
    run: Run, cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    def work(count: int) -> Callable[[], None]:
        return lambda: cluster.answer("GET", EXPANDED, busier(rows_in=842 + count))

    after_each_pause(monkeypatch, work(10), work(30))
    words = ("top", "-w", "--interval", "10s", "--sort-by", "name", "--url", cluster.url)
    rates = [line.split()[1] for line in run(*words).out.splitlines()]
    assert rates == ["ROWS", "1", "0", "ROWS", "2", "0"]
    sorts = run("top", "--sort-by", "age", "--url", cluster.url)
    assert (sorts.code, "'rows-in', 'rows-out'" in sorts.err) == (2, True)


def test_top_gives_programs_each_rate(
    run: Run, cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    after_each_pause(monkeypatch, lambda: cluster.answer("GET", EXPANDED, busier(rows_in=845)))
    told = run("top", "flights", "--interval", "2s", "-o", "json", "--url", cluster.url)
    still = {"rows_in": 0.0, "rows_out": 0.0, "bytes_in": 0.0, "bytes_out": 0.0, "lag": None}
    lag = answered.DONE["lag"]
    assert json.loads(told.out) == [
        {**still, "id": "flights-0", "worker": "w1", "rows_in": 1.5, "lag": lag},
        {**still, "id": "flights-1", "worker": "w2"},
    ]


def test_a_watch_prints_a_list_when_it_changes_until_it_is_interrupted(
    run: Run, cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    def change() -> None:
        cluster.answer("GET", EXPANDED, {})

    after_each_pause(monkeypatch, lambda: None, change)
    told = run("get", "tasks", "-w", "-o", "name", "--url", cluster.url)
    assert told == (0, "flights-0\nflights-1\n", "")
    assert cluster.statuses == [200, 304, 200]  # what has not changed is not sent again


ACTORS = """\
2026-01-01 10:00:00,000 INFO 7 fairlead.a: flights-0 begins
2026-01-01 10:00:02,000 ERROR 7 fairlead.a: flights2 fails
Traceback of flights2
"""
REST = "2026-01-01 10:00:01,000 INFO PUT /connectors/flights/config\n"


@pytest.fixture
def log_folder(tmp_path: Path) -> Path:
    folder = tmp_path / "data" / "logs"
    folder.mkdir(parents=True)
    (folder / "actors.log").write_text(ACTORS)
    (folder / "rest.log").write_text(REST)
    return folder


@pytest.mark.parametrize(
    ("names", "numbers"),
    [
        ([], [0, 3, 1, 2]),
        (["flights"], [0, 3]),
        (["flights2"], [1, 2]),
        (["flights-0"], [0]),
        (["flights/0"], [0]),
        (["tasks", "flights/0", "flights/1"], [0]),
        (["flights/1"], []),
    ],
)
def test_logs_are_in_the_order_of_their_times_and_only_of_what_is_named(
    names: list[str], numbers: list[int], run: Run, log_folder: Path
) -> None:
    lines = (ACTORS + REST).splitlines(keepends=True)
    told = run("logs", *names, "--data-dir", log_folder.parent)
    assert told == (0, "".join(lines[number] for number in numbers), "")


def test_logs_of_both_formats_are_in_one_order(run: Run, log_folder: Path) -> None:
    line = '{"time": "2026-01-01T10:00:01.500+0000", "connector": "flights", "message": "moves"}\n'
    (log_folder / "up.log").write_text(line)
    lines = (ACTORS + REST).splitlines(keepends=True)
    told = run("logs", "flights", "--data-dir", log_folder.parent)
    assert told == (0, lines[0] + lines[3] + line, "")


def test_logs_that_are_followed_are_printed_by_whole_lines_and_from_new_files(
    run: Run, log_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = log_folder / "rest.log"
    new = REST.replace("10:00", "11:00")
    after_each_pause(
        monkeypatch,
        lambda: file.write_text(REST + new[:30]),
        lambda: file.write_text(REST + new),
        file.unlink,
        lambda: file.write_text("2026-01-01 12:00:00,000 INFO anew\n"),
        lambda: (log_folder / "kafka.log").write_text("2026-01-01 12:00:01,000 INFO begins\n"),
    )
    told = run("logs", "--follow", "--data-dir", log_folder.parent)
    anew = ["2026-01-01 12:00:00,000 INFO anew", "2026-01-01 12:00:01,000 INFO begins"]
    followed = [new.rstrip(), *anew]
    assert (told.code, told.out.splitlines()[4:]) == (0, followed)


def test_no_line_is_lost_when_a_log_file_is_put_aside(
    run: Run, log_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = log_folder / "rest.log"
    last = "2026-01-01 11:00:00,000 INFO the last in a full file\n"
    after = "2026-01-01 12:00:00,000 INFO behind it, and longer than all of the former\n" * 3

    def put_aside() -> None:
        file.write_text(REST + last)
        file.rename(log_folder / "rest.log.1")
        file.write_text(after)

    after_each_pause(monkeypatch, put_aside)
    told = run("logs", "--follow", "--data-dir", log_folder.parent)
    assert told.out.splitlines(keepends=True)[4:] == [last, *after.splitlines(keepends=True)]
    again = run("logs", "--data-dir", log_folder.parent)
    before = "".join(told.out.splitlines(keepends=True)[:4])
    assert again.out == before + last + after, "the full file is read as well"


def test_a_folder_without_logs_is_told(run: Run) -> None:
    told = run("logs", "--data-dir", "data")
    why = "has no log files: has a node run here (--data-dir), and does it log to files (log.to)?"
    assert (told.code, told.out) == (1, "")
    assert told.err.endswith(f"data/logs {why}\n")


def test_the_level_of_a_logger_is_set(run: Run, cluster: Cluster) -> None:
    cluster.answer("PUT", "/admin/loggers/fairlead.actors", ["fairlead.actors"])
    told = run("log-level", "fairlead.actors", "debug", "--url", cluster.url)
    assert told == (0, "logger fairlead.actors has level DEBUG\n", "")
    body = {"level": "DEBUG"}
    assert cluster.asked == [Asked("PUT", "/admin/loggers/fairlead.actors", body)]
