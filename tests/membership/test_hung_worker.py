"""A worker whose actor hangs ends with its session, if it runs anything (PROTOCOL §8)."""

import subprocess
import sys
from pathlib import Path

from fairlead.runtime.node.worker.watchdog import EXIT_HUNG, LAST_WORDS
from fairlead_tests.membership import hung_worker


def run(folder: Path, *granted: str) -> tuple[int, str, str]:
    """Have a worker hang; return its exit code and what it said."""
    program = [sys.executable, hung_worker.__file__, str(folder), *granted]
    ended = subprocess.run(program, capture_output=True, text=True, timeout=60, check=False)
    return ended.returncode, ended.stdout, ended.stderr


def test_a_worker_that_hangs_while_something_runs_ends_with_its_session(tmp_path: Path) -> None:
    assert run(tmp_path, "flights") == (EXIT_HUNG, "granted flights\n", f"{LAST_WORDS}\n")


def test_a_worker_that_hangs_while_nothing_runs_is_left_alone(tmp_path: Path) -> None:
    assert run(tmp_path) == (0, "granted\n", "")
