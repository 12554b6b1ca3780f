"""Collects the conformance cases, one test each, and marks their reports."""
# pyright: basic

from typing import Any

import pytest

from fairlead_tests.conformance.assignor_cases import RUN_ASSIGNORS, read_assignor_cases
from fairlead_tests.conformance.cases import RUN, TOLD_IN_WORDS, Case, read_cases
from fairlead_tests.conformance.chosen import conformance_dir, is_our_own, is_played
from fairlead_tests.conformance.outcomes import ABSENT, mark

SECTIONS = (*RUN, *RUN_ASSIGNORS)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    section = next((name for name in metafunc.fixturenames if name in SECTIONS), None)
    if section is None:
        return
    folder = conformance_dir(metafunc.config)
    read = read_cases if section in RUN else read_assignor_cases
    cases = [case for case in read(folder) if case.section == section]
    if section in TOLD_IN_WORDS and not is_our_own(metafunc.config):
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
    told = (
        [callspec.params[each] for each in SECTIONS if each in callspec.params] if callspec else []
    )
    if told and (report.when == "call" or report.outcome == "skipped"):
        mark(report, report.outcome if isinstance(told[0], Case) else ABSENT)
    return report
