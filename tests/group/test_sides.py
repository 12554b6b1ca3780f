"""A group whose members may speak either protocol: what holds for one holds for both."""

from unittest.mock import Mock

import pytest

from fairlead.actors.group.sides import Sides


@pytest.mark.parametrize("call", ["excuse", "grant_sessions"])
def test_time_for_which_a_process_was_held_up_is_nobodys_fault_of_either_protocol(
    call: str,
) -> None:
    sides = object.__new__(Sides)
    sides.modern, sides.classic, sides._mixed = Mock(), Mock(), Mock()
    if call == "excuse":
        sides.excuse(7)
    else:
        sides.grant_sessions(7, Mock())
    for each in (sides.modern, sides.classic, sides._mixed):
        each.excuse.assert_called_with(7)
