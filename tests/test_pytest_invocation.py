"""However the tests are started, they are found, and what they start can be interrupted."""

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from pyspark.logger.logger import PySparkLogger

ROOT = Path(__file__).parents[1]
COLLECT = [sys.executable, "-m", "pytest", "--collect-only", "-q", "-p", "no:cacheprovider"]

PROCESSES_AND_ROWS = """
from fairlead_tests.running.rows import RowScheduling

def pytest_xdist_make_scheduler(config, log):
    return RowScheduling(config, log)
"""
TESTS_IN_ROWS = """
import pathlib, time, pytest

HAS_BEGUN = pathlib.Path(__file__).with_name("third")

@pytest.mark.xdist_group("first")
def test_short():
    pass

@pytest.mark.xdist_group("first")
def test_that_ends_when_the_third_row_has_begun():
    late = time.monotonic() + 120
    while not HAS_BEGUN.exists():
        assert time.monotonic() < late, "the third row waits for this test"
        time.sleep(0.01)

@pytest.mark.xdist_group("second")
def test_of_the_second_row():
    pass

@pytest.mark.xdist_group("third")
def test_of_the_third_row():
    HAS_BEGUN.touch()

@pytest.mark.parametrize("number", range(9))
def test_single(number):
    pass
"""

TESTS_OF_WHICH_TWO_END_THEIR_PROCESS = """
import os, pytest

@pytest.mark.xdist_group("row")
@pytest.mark.parametrize("number", range(5))
def test_in_a_row(number):
    if number == 2:
        os._exit(9)

@pytest.mark.parametrize("number", range(9))
def test_single(number):
    if number == 8:
        os._exit(9)
"""


@pytest.mark.soak  # the run below begins so as well
def test_the_modules_are_found_with_the_root_on_the_path() -> None:
    ended = subprocess.run(
        [*COLLECT, "tests/projecting", "tests/cli"],
        cwd=ROOT, capture_output=True, text=True, check=False, timeout=280,
    )  # fmt: skip
    assert ended.returncode == 0, ended.stdout + ended.stderr


def test_no_folder_of_the_tests_has_the_name_of_a_room() -> None:
    rooms = {each.parent.name for each in ROOT.glob("*/__init__.py")}
    assert {each.name for each in (ROOT / "tests").iterdir()} & rooms == set()


@pytest.mark.timeout(300)
def test_a_run_in_the_background_hands_no_ignored_signal_on() -> None:
    """A shell without job control has what it starts with `&` ignore SIGINT."""
    test = "tests/cli/test_log.py::test_following_prints_what_is_written_meanwhile"
    command = f"{sys.executable} -m pytest -q -p no:cacheprovider {test} & wait $!"
    ended = subprocess.run(
        ["sh", "-c", command], cwd=ROOT, capture_output=True, text=True, check=False, timeout=280
    )
    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert signal.getsignal(signal.SIGINT) is not signal.SIG_IGN


@pytest.mark.timeout(300)
def test_no_row_of_tests_waits_behind_the_last_long_test_of_another(tmp_path: Path) -> None:
    """A process has to know its next test before it runs one: xdist gives it a row meanwhile."""
    ended = by_two_processes(tmp_path, TESTS_IN_ROWS)
    assert ended.returncode == 0, ended.stdout + ended.stderr


@pytest.mark.timeout(300)
def test_a_test_that_ends_its_process_fails_by_its_name_and_all_others_run(tmp_path: Path) -> None:
    ended = by_two_processes(tmp_path, TESTS_OF_WHICH_TWO_END_THEIR_PROCESS)
    assert ended.returncode == 1, ended.stdout + ended.stderr
    assert "2 failed, 12 passed" in ended.stdout
    for name in ("test_in_a_row[2]", "test_single[8]"):
        assert re.search(rf"crashed while running '\S*{re.escape(name)}", ended.stdout)


def test_what_a_logger_of_pyspark_is_given_formats_as_before(
    caplog: pytest.LogCaptureFixture,
) -> None:
    logger = PySparkLogger("of this test")
    logger.addHandler(caplog.handler)
    logger.warning("a word")
    assert [each.message for each in caplog.records] == ["a word"]


def by_two_processes(folder: Path, tests: str) -> subprocess.CompletedProcess[str]:
    (folder / "conftest.py").write_text(PROCESSES_AND_ROWS)
    (folder / "test_rows.py").write_text(tests)
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-q", "--rootdir=."]
    return subprocess.run(
        [*command, "-n", "2", "--dist", "loadgroup", "--no-loadscope-reorder"],
        cwd=folder, env={**os.environ, "PYTHONPATH": str(ROOT / "tests")},
        capture_output=True, text=True, check=False, timeout=280,
    )  # fmt: skip
