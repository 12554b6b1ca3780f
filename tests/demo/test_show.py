# pyright: basic
"""The demo as a user runs it: to its end, and with Ctrl-C in the middle."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import pyarrow.parquet as papq
import pytest

from fairlead_tests.chaos.crew import quick_to_start

pytestmark = [
    pytest.mark.spark,
    pytest.mark.cluster,
    pytest.mark.timeout(800),
    pytest.mark.usefixtures("archive"),
]

COMMAND = [sys.executable, "-m", "fairlead.runtime", "demo"]


@pytest.fixture
def environment(tmp_path: Path) -> Iterator[dict[str, str]]:
    """An environment whose temporary files lie in a folder of its own; ends what is left."""
    yield {**quick_to_start(os.environ), "TMPDIR": str(tmp_path)}
    for each in mine(tmp_path):
        each.kill()


def mine(folder: Path) -> list[psutil.Process]:
    """Return the processes whose temporary files lie in the folder."""
    found: list[psutil.Process] = []
    for process in psutil.process_iter():
        try:
            is_ours = process.environ().get("TMPDIR") == str(folder)
        except psutil.Error:
            continue
        if is_ours and process.pid != os.getpid():
            found.append(process)
    return found


def gone(folder: Path) -> bool:
    deadline = time.monotonic() + 60
    while mine(folder) and time.monotonic() < deadline:
        time.sleep(0.1)
    return not mine(folder)


@pytest.mark.timeout(800)
def test_the_demo_passes_and_leaves_nothing_behind(
    environment: dict[str, str], tmp_path: Path
) -> None:
    ran = subprocess.run(
        [*COMMAND, "--seconds", "5"],
        env=environment,
        capture_output=True,
        text=True,
        timeout=700,
        check=False,
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert ran.stdout.splitlines()[-1] == "PASSED"
    assert "kill -9" in ran.stdout
    assert gone(tmp_path)
    assert list(tmp_path.glob("fairlead-demo-*")) == []


@pytest.mark.parametrize(
    "row_files",
    [
        pytest.param(0, id="while-it-warms-up"),
        pytest.param(40, id="while-data-flows", marks=pytest.mark.soak),
    ],
)
@pytest.mark.soak
def test_ctrl_c_leaves_no_process_and_no_partial_file(
    environment: dict[str, str], tmp_path: Path, row_files: int
) -> None:
    kept = tmp_path / "kept"
    command = [*COMMAND, "--keep", str(kept)]
    process = subprocess.Popen(
        command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        process_group=0,
    )  # fmt: skip
    deadline = time.monotonic() + 120
    while len(visible(kept)) < row_files or not (kept / "up.log").exists():
        assert process.poll() is None, process.communicate()[0]
        assert time.monotonic() < deadline, "the demo did not get that far"
        time.sleep(0.2)
    time.sleep(1)
    os.killpg(process.pid, signal.SIGINT)
    said, _ = process.communicate(timeout=60)
    # Python itself ends by the signal where it came while `exec` made a class: 130 to a shell.
    code = 130 if process.returncode == -signal.SIGINT else process.returncode
    assert (code, said.splitlines()[-1]) == (130, "stopped: nothing of the demo runs any more")
    assert gone(tmp_path)
    for file in visible(kept):
        assert papq.read_metadata(file).num_rows > 0


def visible(kept: Path) -> list[Path]:
    """Return the output's files as a reader finds them."""
    return sorted((kept / "flights").glob("carrier=*/*"))
