"""The assignors that keep lost work for who lost it, for the rules that hold for all of them."""

from collections.abc import Callable

import pytest

from fairlead.actors.assignors.built_in import balanced, counting
from fairlead.actors.messages.computing import Assignment, Snapshot

Assign = Callable[[Snapshot], Assignment]

each_assignor = pytest.mark.parametrize(
    "assign", [balanced.assign, counting.assign_deferred], ids=[balanced.NAME, counting.DEFERRED]
)
