"""Crashes in native code, in processes whose signals are handled in Python."""

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from fairlead.actors.transport.crashes import LARGEST, TRACES, open_traces

PROBE = """
import os, signal, sys
from pathlib import Path
from fairlead.actors.transport.crashes import end_at_crashes, open_traces
for number in (signal.SIGSEGV, signal.SIGABRT):
    signal.signal(number, lambda *_: None)  # as Thespian does
end_at_crashes(open_traces(Path(sys.argv[1])))
if sys.argv[2] == "isolated":
    end_at_crashes(2, signal.SIGABRT)
os.kill(os.getpid(), int(sys.argv[3]))
"""


@pytest.mark.parametrize(
    ("kind", "number", "is_here"),
    [("actor", signal.SIGSEGV, True), ("isolated", signal.SIGABRT, False)],
)
def test_a_process_that_crashes_ends_and_the_last_one_to_ask_has_its_stack(
    tmp_path: Path, kind: str, number: signal.Signals, is_here: bool
) -> None:
    probe = [sys.executable, "-c", PROBE, str(tmp_path), kind, str(int(number))]
    ran = subprocess.run(probe, capture_output=True, text=True, check=False, timeout=60)
    traces = (tmp_path / TRACES).read_text()
    assert ran.returncode == -number
    assert ("Fatal Python error" in traces, "Fatal Python error" in ran.stderr) == (
        is_here,
        not is_here,
    )


@pytest.mark.parametrize(("size", "left"), [(LARGEST, LARGEST), (LARGEST + 1, 0)])
def test_traces_do_not_fill_the_disk(tmp_path: Path, size: int, left: int) -> None:
    (tmp_path / TRACES).write_bytes(bytes(size))
    file = open_traces(tmp_path)
    assert file is not None
    file.close()
    assert (tmp_path / TRACES).stat().st_size == left


def test_a_folder_that_takes_no_file_keeps_no_process_from_running(tmp_path: Path) -> None:
    assert open_traces(tmp_path / "not there") is None
