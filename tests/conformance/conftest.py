"""Collects the conformance cases, and tells at the end how many of them ran.

Where the folder is there, cases that did not run fail the run: a skip must not pass for
conformance.
"""
# pyright: basic

from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from conformance import play_members, play_timers
from conformance.assignor_cases import RUN_ASSIGNORS, read_assignor_cases, unread_cases
from conformance.cases import RUN, TOLD_IN_WORDS, Case, later_cases, read_cases
from conformance.played import PLAYS

assert play_members
assert play_timers
DEFAULT = "../shared/conformance"
SECTIONS = (*RUN, *RUN_ASSIGNORS)
OUTCOMES = pytest.StashKey[Counter[str]]()


def conformance_dir(config: pytest.Config) -> Path:
    """Return the folder of the conformance data."""
    return config.rootpath / str(config.getoption("--conformance-dir"))


def _is_our_own(config: pytest.Config) -> bool:
    """Tell whether the cases are those that this version was built by: all of them are played."""
    return bool(config.getoption("--conformance-dir") == DEFAULT)


def is_played(case: Case) -> bool:
    """Tell whether somebody has written down how a case that is told in words goes."""
    return (case.section, case.case_id) in PLAYS


def pytest_configure(config: pytest.Config) -> None:
    config.stash[OUTCOMES] = Counter()


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    section = next((name for name in metafunc.fixturenames if name in SECTIONS), None)
    if section is None:
        return
    folder = conformance_dir(metafunc.config)
    read = read_cases if section in RUN else read_assignor_cases
    cases = [case for case in read(folder) if case.section == section]
    if section in TOLD_IN_WORDS and not _is_our_own(metafunc.config):
        cases = [case for case in cases if is_played(case)]
    if cases:
        metafunc.parametrize(section, cases, ids=[case.case_id for case in cases])
    else:
        reason = f"{folder} holds no {section}; set --conformance-dir"
        skipped = pytest.param(None, marks=pytest.mark.skip(reason=reason))
        metafunc.parametrize(section, [skipped], ids=["no-data"])


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Any:
    report: pytest.TestReport = yield
    callspec = getattr(item, "callspec", None)
    is_case = callspec is not None and any(
        isinstance(callspec.params.get(section), Case) for section in SECTIONS
    )
    if is_case and (report.when == "call" or report.outcome == "skipped"):
        item.config.stash[OUTCOMES][report.outcome] += 1
    return report


def pytest_sessionfinish(session: pytest.Session) -> None:
    outcomes = session.config.stash[OUTCOMES]
    if outcomes["skipped"] and session.exitstatus == pytest.ExitCode.OK:
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    folder = conformance_dir(config)
    outcomes = config.stash[OUTCOMES]
    terminalreporter.section("conformance")
    if not folder.is_dir():
        terminalreporter.line(f"not run: there is no folder {folder}")
        return
    terminalreporter.line(
        f"{outcomes.total()} cases of {folder}: {outcomes['passed']} passed,"
        f" {outcomes['failed']} failed, {outcomes['skipped']} skipped"
    )
    unplayed = [
        case.case_id
        for case in read_cases(folder)
        if case.section in TOLD_IN_WORDS and not is_played(case)
    ]
    if unplayed and not _is_our_own(config):
        terminalreporter.line(f"not run, told in words: {', '.join(unplayed)}")
    if later := later_cases(folder):
        terminalreporter.line(f"not run: {later} cases of the classic protocol (not spoken yet)")
    if unread := unread_cases(folder):
        terminalreporter.line(f"not run, not for a machine to read: {', '.join(unread)}")
