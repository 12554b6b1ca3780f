"""A plugin of pytest under which all tests run with one safety rule switched off: RULE_OFF=NAME."""

import os
from typing import Final

import pytest

from fairlead_tests.simulation.rules import MUTATIONS

RULE_OFF: Final = "RULE_OFF"
_PATCH: Final = pytest.MonkeyPatch()


def pytest_collection_finish() -> None:
    """Switch the rule off, once all that is to be tested has been imported."""
    (mutation,) = (each for each in MUTATIONS if each.name == os.environ[RULE_OFF])
    mutation.switch_off(_PATCH)
