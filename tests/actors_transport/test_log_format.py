"""Log lines of one format, as text or as JSON, to a file or to standard output."""

import json
import logging
import os
import select
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from fairlead.actors.transport import log_format
from fairlead.actors.transport.log_format import JSON, STDOUT, LogOutput, StdoutLog

CREATED = time.mktime((2026, 1, 31, 23, 59, 58, 0, 0, 0)) + 0.25
ABOUT = {"connector": "flights", "task": 0, "epoch": 7, "worker": ""}


def record(
    message: str, *args: object, about: dict[str, object] | None = None
) -> logging.LogRecord:
    made = logging.getLogger("a.b").makeRecord(
        "a.b", logging.INFO, __file__, 1, message, args, None, extra=about
    )
    made.created, made.msecs, made.process = CREATED, 250.0, 4711
    return made


def lines(tmp_path: Path, output: LogOutput, *records: logging.LogRecord) -> list[str]:
    handler = output.handler(tmp_path / "x.log")
    for each in records:
        handler.handle(each)
    handler.close()
    return (tmp_path / "x.log").read_text().splitlines()


def test_a_line_of_text_ends_with_what_it_is_about(tmp_path: Path) -> None:
    told = record("%s runs", "flights-0", about=ABOUT)
    assert lines(tmp_path, LogOutput(), told, record("up")) == [
        "2026-01-31 23:59:58,250 INFO 4711 a.b: flights-0 runs [connector=flights task=0 epoch=7]",
        "2026-01-31 23:59:58,250 INFO 4711 a.b: up",
    ]


def test_a_name_makes_no_other_line_and_no_other_field(tmp_path: Path) -> None:
    told = record("runs", about={"connector": "a b]\n2026-01-31 INFO", "worker": "w1"})
    (line,) = lines(tmp_path, LogOutput(), told)
    assert line.endswith(" runs [connector='a b]\\n2026-01-31 INFO' worker=w1]")


def test_a_line_of_json_is_one_object_with_its_fields_and_its_traceback(tmp_path: Path) -> None:
    failed = record("it\nfailed")
    failed.exc_text = "Traceback\nValueError"
    whole = record("%s runs", "flights-0", about=ABOUT)
    first, second = map(json.loads, lines(tmp_path, LogOutput(format=JSON), whole, failed))
    assert first.pop("time").startswith("2026-01-31T23:59:58.250")
    told = {"level": "INFO", "pid": 4711, "logger": "a.b"}
    fields = {"connector": "flights", "task": 0, "epoch": 7}
    assert first == {**told, **fields, "message": "flights-0 runs"}
    assert second == {
        **told,
        "time": second["time"],
        "message": "it\nfailed",
        "error": "Traceback\nValueError",
    }


def test_people_at_a_terminal_see_warnings_alone_and_the_file_has_all(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(logging.root, "handlers", [])  # as a process that has just begun
    monkeypatch.setattr(logging.root, "level", logging.WARNING)
    LogOutput().begin(tmp_path / "logs" / "up.log", is_terminal=True)
    assert [*(tmp_path / "logs").iterdir()] == [], "nothing is open before the first line"
    logging.getLogger("a").info("up")
    logging.getLogger("a").warning("gone")
    for each in logging.root.handlers:
        each.close()
    assert capsys.readouterr() == ("", "gone\n")
    told = (tmp_path / "logs" / "up.log").read_text().splitlines()
    assert [each.rpartition(": ")[2] for each in told] == ["up", "gone"]


@pytest.fixture
def pipe(monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[int, StdoutLog]]:
    """The read end of standard output, and what writes to it."""
    monkeypatch.setattr(log_format, "WAIT_MS", 1)
    read_end, write_end = os.pipe()
    os.set_blocking(read_end, False)
    handler = StdoutLog(write_end)
    handler.setFormatter(LogOutput().handler(Path("unused"), delay=True).formatter)
    yield read_end, handler
    os.close(read_end)
    os.close(write_end)


def test_what_nobody_reads_is_dropped_and_holds_nobody_up(pipe: tuple[int, StdoutLog]) -> None:
    read_end, handler = pipe
    for number in range(900):
        handler.handle(record("%d " + "x" * 1000, number))
    taken = os.read(read_end, 1 << 20)
    assert 0 < len(taken) <= 1 << 17
    handler.handle(record("read again"))
    assert os.read(read_end, 1 << 20).endswith(b"a.b: read again\n")


def test_standard_output_is_written_to_without_a_file(tmp_path: Path) -> None:
    assert isinstance(LogOutput(to=STDOUT).handler(tmp_path / "unused"), StdoutLog)
    assert [*tmp_path.iterdir()] == []


def test_a_pipe_that_others_fill_between_the_look_and_the_write_holds_nobody_up(
    pipe: tuple[int, StdoutLog], monkeypatch: pytest.MonkeyPatch
) -> None:
    read_end, handler = pipe
    other = os.open(f"/proc/self/fd/{read_end}", os.O_WRONLY | os.O_NONBLOCK)
    with suppress(BlockingIOError):
        while True:
            os.write(other, bytes(select.PIPE_BUF))
    os.close(other)
    looks = iter([True, True, False])
    monkeypatch.setattr(handler, "_is_writable", lambda: next(looks))
    handler.handle(record("for nobody"))  # if it waited, it would wait for ever
    assert b"for nobody" not in os.read(read_end, 1 << 20)


def test_an_entry_that_was_cut_off_does_not_spoil_the_next_one(
    pipe: tuple[int, StdoutLog], monkeypatch: pytest.MonkeyPatch
) -> None:
    read_end, handler = pipe
    looks = iter([True, False, False, True])
    monkeypatch.setattr(handler, "_is_writable", lambda: next(looks))
    for text in ("x" * (2 * select.PIPE_BUF), "for nobody", "whole"):
        handler.handle(record(text))
    cut, whole, rest = os.read(read_end, 1 << 20).split(b"\n")
    assert (len(cut), whole[-10:], rest) == (select.PIPE_BUF, b"a.b: whole", b"")


def test_a_reader_that_is_gone_is_no_error(
    pipe: tuple[int, StdoutLog], capsys: pytest.CaptureFixture[str]
) -> None:
    read_end, handler = pipe
    other = os.open(os.devnull, os.O_RDONLY)
    os.dup2(other, read_end)  # closes the read end
    os.close(other)
    handler.handle(record("for nobody"))
    assert capsys.readouterr() == ("", "")
