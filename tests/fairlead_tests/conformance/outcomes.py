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


def mark(report: pytest.TestReport, outcome: str) -> None:
    """Add the result of a case to a report, which is counted in the main process."""
    report.user_properties.append((OUTCOME, outcome))


class Outcomes:
    """Counts the cases of a run by result."""

    def __init__(self) -> None:
        self._counted: Counter[str] = Counter()

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Count the result of a case in a report."""
        self._counted.update(str(told) for name, told in report.user_properties if name == OUTCOME)

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """Fail a run that skipped cases."""
        if self._counted["skipped"] and session.exitstatus == pytest.ExitCode.OK:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def pytest_terminal_summary(self, terminalreporter: Any, config: pytest.Config) -> None:
        """Print how many cases ran, and which did not."""
        if not self._counted:
            return
        folder = conformance_dir(config)
        terminalreporter.section("conformance")
        if not folder.is_dir():
            terminalreporter.line(f"not run: there is no folder {folder}")
            return
        told = Counter(self._counted)
        del told[ABSENT]
        terminalreporter.line(
            f"{told.total()} cases of {folder}: {told['passed']} passed,"
            f" {told['failed']} failed, {told['skipped']} skipped"
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
