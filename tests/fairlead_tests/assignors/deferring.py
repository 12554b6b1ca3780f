"""The assignors that park lost work, for tests of their common rules."""

from collections.abc import Callable, Mapping

import pytest

from fairlead.actors.assignors.built_in import balanced, counting
from fairlead.actors.messages.computing import Assignment, Snapshot

Assign = Callable[[Snapshot], Assignment]

DEFERRING: Mapping[str, Assign] = {
    balanced.NAME: balanced.assign,
    counting.DEFERRED: counting.assign_deferred,
}
each_assignor = pytest.mark.parametrize("assign", DEFERRING.values(), ids=DEFERRING)
