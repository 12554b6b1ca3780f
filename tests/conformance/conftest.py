"""Collects the conformance cases, one test each, and marks their reports."""
# pyright: basic

from typing import Any

import pytest

from fairlead_tests.conformance.assignor_cases import RUN_ASSIGNORS, read_assignor_cases
from fairlead_tests.conformance.byte_vectors import SECTION as CONNECT_BYTES
from fairlead_tests.conformance.byte_vectors import read_byte_vectors
from fairlead_tests.conformance.cases import RUN, TOLD_IN_WORDS, Case, read_cases
from fairlead_tests.conformance.chosen import conformance_dir, is_our_own, is_played
from fairlead_tests.conformance.conversations import SECTION as CONVERSATION
from fairlead_tests.conformance.conversations import read_conversations, wire_dir
from fairlead_tests.conformance.outcomes import ABSENT, mark

READERS = {
    **dict.fromkeys(RUN, read_cases),
    **dict.fromkeys(RUN_ASSIGNORS, read_assignor_cases),
    CONNECT_BYTES: read_byte_vectors,
    CONVERSATION: read_conversations,
}
"""Which function reads the cases of a section from a folder."""


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    section = next((name for name in metafunc.fixturenames if name in READERS), None)
    if section is None:
        return
    folder = (wire_dir if section == CONVERSATION else conformance_dir)(metafunc.config)
    cases = [case for case in READERS[section](folder) if case.section == section]
    if section in TOLD_IN_WORDS and not is_our_own(metafunc.config):
        cases = [case for case in cases if is_played(case)]
    if cases:
        metafunc.parametrize(section, cases, ids=[case.case_id for case in cases])
    else:
        option = "--wire-dir" if section == CONVERSATION else "--conformance-dir"
        reason = f"{folder} holds no {section}; set {option}"
        skipped = pytest.param(None, marks=pytest.mark.skip(reason=reason))
        metafunc.parametrize(section, [skipped], ids=["no-data"])


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Any:
    report: pytest.TestReport = yield
    callspec = getattr(item, "callspec", None)
    told = (
        [callspec.params[each] for each in READERS if each in callspec.params] if callspec else []
    )
    if told and (report.when == "call" or report.outcome == "skipped"):
        mark(report, report.outcome if isinstance(told[0], Case) else ABSENT)
    return report
