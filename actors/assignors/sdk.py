"""All that an assignor of one's own is written with; nothing else of fairlead needs an import.

An assignor is a class as `ConnectAssignor` describes it, named by an entry point of the group
`fairlead.assignors`. It is given a `Snapshot` and returns an `Assignment`. `eligible` tells which
members may be given work, `demand_of` where a resource may run, and `nobody_meets` says in words
why one is left out. The README has the smallest one, deploy/together a whole one.
"""

from ...events.model import CONNECTOR, NOTHING, Resource, Resources
from ...events.placement.abilities import Abilities, abilities
from ..messages.assignors import MemberAssignment, Metadata, Worker
from ..messages.computing import Assignment, LossView, MemberView, Needs, Snapshot
from .demands import Demand, demand_of, nobody_meets
from .eligibility import Eligible, eligible
from .interface import AssignorFactory, ConnectAssignor, plain_metadata

__all__ = [
    "CONNECTOR",
    "NOTHING",
    "Abilities",
    "Assignment",
    "AssignorFactory",
    "ConnectAssignor",
    "Demand",
    "Eligible",
    "LossView",
    "MemberAssignment",
    "MemberView",
    "Metadata",
    "Needs",
    "Resource",
    "Resources",
    "Snapshot",
    "Worker",
    "abilities",
    "demand_of",
    "eligible",
    "nobody_meets",
    "plain_metadata",
]
