"""The output of a child process goes to a log, and its end says why."""

import io
import os
import sys
from pathlib import Path

import psutil
import pytest

from fairlead.runtime.processes import guard
from fairlead.runtime.processes.logged import LoggedProcess, ProcessOutput
from fairlead_tests.actor_system import eventually, runs


def read(output: ProcessOutput, text: bytes) -> str:
    """Let it read a pipe to its end; return its tail."""
    output.read(io.BytesIO(text))
    output.wait(60)
    return output.tail()


def test_the_tail_hides_secrets_and_stack_frames(tmp_path: Path) -> None:
    text = b"cannot use hush\n\tat some.Frame\nsorry\n"
    output = ProcessOutput(tmp_path / "log", hide_in_tail=lambda tail: tail.replace("hush", "***"))
    assert read(output, text) == "cannot use ***\nsorry"
    assert (tmp_path / "log").read_bytes() == text


def test_a_secret_of_the_node_is_in_neither_log_nor_tail(tmp_path: Path) -> None:
    output = ProcessOutput(tmp_path / "log", lambda line: line.replace("hush", "***"))
    assert read(output, b"it is hush\n") == "it is ***"
    assert (tmp_path / "log").read_bytes() == b"it is ***\n"


def test_a_log_that_cannot_be_written_stops_nobody(tmp_path: Path) -> None:
    assert read(ProcessOutput(tmp_path / "none" / "log"), b"one\ntwo\n") == "one\ntwo"


def test_a_log_that_is_full_begins_anew_beside_an_older_one(tmp_path: Path) -> None:
    line, log = b"x" * 65_000 + b"\n", tmp_path / "log"
    count = guard.LARGEST // len(line) + 1
    read(ProcessOutput(log), line * count + b"newest\n")
    assert (log.read_bytes(), (tmp_path / "log.1").stat().st_size) == (b"newest\n", guard.LARGEST)


class Started:
    """A Python program, and what its end was."""

    def __init__(self, folder: Path, code: str) -> None:
        self.ends: list[LoggedProcess] = []
        self.process = LoggedProcess(
            [sys.executable, "-c", code],
            os.environ,
            ProcessOutput(folder / "log"),
            "the program",
            self.ends.append,
        )

    def why(self) -> str:
        """Why it ended; once."""
        assert self.process.ended.wait(60)
        eventually(lambda: self.ends == [self.process], "its end is reported once")
        return self.process.why


@pytest.mark.parametrize(
    ("code", "how"),
    [
        ("exit(3)", "ended with exit code 3"),
        ("os.abort()", "was killed by SIGABRT"),
    ],
)
def test_its_end_says_how_with_its_last_lines(tmp_path: Path, code: str, how: str) -> None:
    started = Started(tmp_path, f"import os; print('sorry', flush=True); {code}")
    assert started.why() == f"the program {how}; last lines of {tmp_path / 'log'}:\nsorry"


def test_it_is_asked_to_end_by_the_end_of_its_input_and_killed_if_it_does_not(
    tmp_path: Path,
) -> None:
    good = Started(tmp_path, "import sys; sys.stdin.read()")
    good.process.stop(30, "it was not needed")
    bad = Started(tmp_path, "import time; time.sleep(600)")
    bad.process.stop(0.01, "it was too slow")
    bad.process.kill("too late")
    assert (good.why(), bad.why()) == ("it was not needed", "it was too slow")


def test_its_children_are_killed_with_it(tmp_path: Path) -> None:
    code = "import subprocess; subprocess.Popen(['sleep', '600']).wait()"
    started = Started(tmp_path, code)
    process = psutil.Process(started.process.pid)
    eventually(lambda: len(process.children()) == 1, "it has a child")
    (child,) = process.children()
    started.process.kill("it is over")
    assert started.why() == "it is over"
    eventually(lambda: not runs(child), "the child is gone")
