"""What people report of files, tables and topics in public trackers, played on a real node."""

import os
import subprocess
import sys

import pytest

from fairlead_tests import TESTS
from fairlead_tests.conformance.chosen import conformance_dir


@pytest.mark.soak
def test_every_reported_case_is_right_or_is_told(pytestconfig: pytest.Config) -> None:
    folder = conformance_dir(pytestconfig).parent / "trials"
    if not (folder / "kit.py").exists():
        pytest.skip(f"{folder} holds no kit.py with cases; set --conformance-dir to its neighbour")
    told = subprocess.run(
        [sys.executable, str(folder / "kit.py"), str(folder / "reports")],
        env={**os.environ, "TRIAL_TOOLS": str(folder), "PROJECT_TESTS": str(TESTS)},
        capture_output=True,
        text=True,
        check=False,
    )
    wrong = [line for line in told.stdout.splitlines() if not line.startswith("PASS ")]
    assert wrong[:-1] == [], told.stderr
    assert told.returncode == 0, told.stdout + told.stderr
