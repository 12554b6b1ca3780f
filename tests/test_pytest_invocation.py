"""However the tests are started, they are found, and what they start can be interrupted."""

import signal
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
COLLECT = [sys.executable, "-m", "pytest", "--collect-only", "-q", "-p", "no:cacheprovider"]


@pytest.mark.soak  # the run below begins so as well
def test_the_modules_are_found_with_the_root_on_the_path() -> None:
    ended = subprocess.run(
        [*COLLECT, "tests/projecting", "tests/cli"],
        cwd=ROOT, capture_output=True, text=True, check=False, timeout=120,
    )  # fmt: skip
    assert ended.returncode == 0, ended.stdout + ended.stderr


def test_no_folder_of_the_tests_has_the_name_of_a_room() -> None:
    rooms = {each.parent.name for each in ROOT.glob("*/__init__.py")}
    assert {each.name for each in (ROOT / "tests").iterdir()} & rooms == set()


@pytest.mark.timeout(120)
def test_a_run_in_the_background_hands_no_ignored_signal_on() -> None:
    """A shell without job control has what it starts with `&` ignore SIGINT."""
    test = "tests/cli/test_log.py::test_following_prints_what_is_written_meanwhile"
    command = f"{sys.executable} -m pytest -q -p no:cacheprovider {test} & wait $!"
    ended = subprocess.run(
        ["sh", "-c", command], cwd=ROOT, capture_output=True, text=True, check=False, timeout=100
    )
    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert signal.getsignal(signal.SIGINT) is not signal.SIG_IGN
