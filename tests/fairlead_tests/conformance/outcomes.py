"""A summary of the conformance cases at the end of a run, also with several processes.

Where the folder is there, cases that did not run fail the run: a skip must not pass for
conformance.
"""
# pyright: basic

from collections import Counter
from typing import Any

import pytest

from fairlead_tests.conformance.assignor_cases import unread_cases
from fairlead_tests.conformance.cases import TOLD_IN_WORDS, read_cases
from fairlead_tests.conformance.chosen import conformance_dir, is_our_own, is_played

OUTCOME = "conformance"
ABSENT = "absent"
LEFT_OUT = "conformance left out"
"""The property of a test that names a case which it leaves out, and why."""


def mark(report: pytest.TestReport, outcome: str) -> None:
    """Add the result of a case to a report, which is counted in the main process."""
    report.user_properties.append((OUTCOME, outcome))


class Outcomes:
    """Counts the cases of a run by result."""

    def __init__(self) -> None:
        self._counted: Counter[str] = Counter()
        self._left_out = set[str]()  # each property is in several reports of its test

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Count the result of a case in a report, and keep what was left out."""
        self._counted.update(str(told) for name, told in report.user_properties if name == OUTCOME)
        self._left_out |= {str(told) for name, told in report.user_properties if name == LEFT_OUT}

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """Fail a run that skipped cases."""
        if self._counted["skipped"] and session.exitstatus == pytest.ExitCode.OK:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def pytest_terminal_summary(self, terminalreporter: Any, config: pytest.Config) -> None:
        """Print how many cases ran, and which did not."""
        if not self._counted and not self._left_out:
            return
        folder = conformance_dir(config)
        terminalreporter.section("conformance")
        if not folder.is_dir():
            terminalreporter.line(f"not run: there is no folder {folder}")
            return
        counted = Counter(self._counted)
        del counted[ABSENT]
        terminalreporter.line(
            f"{counted.total()} cases of {folder}: {counted['passed']} passed,"
            f" {counted['failed']} failed, {counted['skipped']} skipped"
        )
        unplayed = [
            case.case_id
            for case in read_cases(folder)
            if case.section in TOLD_IN_WORDS and not is_played(case)
        ]
        if unplayed and not is_our_own(config):
            terminalreporter.line(f"not run, told in words: {', '.join(unplayed)}")
        if unread := unread_cases(folder):
            terminalreporter.line(f"not run, not for a machine to read: {', '.join(unread)}")
        for told in sorted(self._left_out):
            terminalreporter.line(f"not run: {told}")
