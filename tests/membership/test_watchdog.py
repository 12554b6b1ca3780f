"""The last fence ends a real process at its deadline, whatever that process hangs in (§8)."""

import subprocess
import sys

import pytest

from fairlead.runtime.node.worker.watchdog import EXIT_HUNG, LAST_WORDS

PRELUDE = """
import logging, time
from fairlead.runtime.node.worker.watchdog import Watchdog
watchdog = Watchdog()
def until(seconds): watchdog.until(time.monotonic_ns() // 1_000_000 + int(seconds * 1000))
"""
HANG = "time.sleep(120)"


def run(*lines: str) -> tuple[int, str]:
    """Run a process with a watchdog; return its exit code and what it said at last."""
    program = PRELUDE + "\n".join(lines)
    ended = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=False
    )
    return ended.returncode, ended.stderr.strip()


def test_a_process_that_hangs_past_its_deadline_is_ended_and_says_so() -> None:
    assert run("until(0.05)", HANG) == (EXIT_HUNG, LAST_WORDS)


def test_a_deadline_that_has_passed_already_ends_the_process() -> None:
    assert run("until(-5)", HANG) == (EXIT_HUNG, LAST_WORDS)


def test_an_earlier_deadline_takes_the_place_of_a_later_one() -> None:
    assert run("until(3600)", "until(0.05)", HANG) == (EXIT_HUNG, LAST_WORDS)


@pytest.mark.parametrize("later", ["until(3600)", "watchdog.until(None)"])
def test_a_deadline_that_was_moved_in_time_ends_nothing(later: str) -> None:
    assert run("until(1)", later, "time.sleep(1.3)") == (0, "")


def test_a_process_without_a_deadline_is_left_alone() -> None:
    assert run("time.sleep(0.2)") == (0, "")


def test_a_process_that_hangs_in_its_log_is_ended_without_a_word() -> None:
    hold = "logging.lastResort.acquire()"
    assert run(hold, "until(0.05)", HANG) == (EXIT_HUNG, "")
