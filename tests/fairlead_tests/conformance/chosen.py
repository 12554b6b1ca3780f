"""Which folder of cases a run was given, and which of its cases somebody has played."""
# pyright: basic

from pathlib import Path

import pytest

from fairlead_tests.conformance import play_members, play_timers, play_translation
from fairlead_tests.conformance.cases import Case
from fairlead_tests.conformance.played import PLAYS

assert play_members
assert play_timers
assert play_translation
DEFAULT = "../shared/conformance"


def conformance_dir(config: pytest.Config) -> Path:
    """Return the folder of the conformance data."""
    return config.rootpath / str(config.getoption("--conformance-dir"))


def is_our_own(config: pytest.Config) -> bool:
    """Tell whether the cases are those that this version was built by: all of them are played."""
    return bool(config.getoption("--conformance-dir") == DEFAULT)


def is_played(case: Case) -> bool:
    """Tell whether somebody has written down how a case that is told in words goes."""
    return (case.section, case.case_id) in PLAYS
