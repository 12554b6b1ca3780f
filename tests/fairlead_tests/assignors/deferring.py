"""The assignors that park lost work, for tests of their common rules."""

from collections.abc import Callable

import pytest

from fairlead.actors.assignors.built_in import balanced, counting
from fairlead.actors.messages.computing import Assignment, Snapshot

Assign = Callable[[Snapshot], Assignment]

each_assignor = pytest.mark.parametrize(
    "assign", [balanced.assign, counting.assign_deferred], ids=[balanced.NAME, counting.DEFERRED]
)
