"""Simple cooperative rebalancing: as level and as few moves as deferred, and nothing waits.

Lost work goes to others with the next target, and so does what another assignor parked. A
worker that returns is a newcomer like any: it gets a level share, not what it had. That costs
two moves for every bounce, and no work stands still for longer than it takes to notice the
loss. See Design I of "Incremental Cooperative Rebalancing: Support and Policies".
"""

from ..messages.computing import Assignment, Snapshot
from .deferred import deal
from .losses import without_losses
from .placing import place

NAME = "simple-cooperative"
VERSION = 0


def assign(snapshot: Snapshot) -> Assignment:
    """Return where everything configured is to go, nothing parked; see `place`."""
    return place(without_losses(snapshot), deal, VERSION)
