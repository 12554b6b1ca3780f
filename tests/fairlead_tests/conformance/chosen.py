"""The selected folder of conformance cases, and which cases have been implemented."""
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
    """Return whether these are the cases of this version, which are all implemented."""
    return bool(config.getoption("--conformance-dir") == DEFAULT)


def is_played(case: Case) -> bool:
    """Return whether a case in prose has a function."""
    return (case.section, case.case_id) in PLAYS
