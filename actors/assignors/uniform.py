"""The uniform assignor: of everything together, members hold within one of each other.

Connectors and tasks count alike. Else it does as `deferred` does: who has work keeps it,
lost work waits, parked, until its deadline or until who lost it returns.
"""

from collections.abc import Mapping

from ...events.model import Resources
from ..messages.computing import Assignment, Snapshot
from .eligibility import Shares
from .level import level
from .placing import place

NAME = "uniform"
VERSION = 0


def assign(snapshot: Snapshot) -> Assignment:
    """Return where everything configured is to go; see `place`."""
    return place(snapshot, _deal, VERSION)


def _deal(free: Resources, claims: Shares, demanded: Mapping[str, Resources]) -> Shares:
    return level(free, claims, {member: len(share) for member, share in demanded.items()})
