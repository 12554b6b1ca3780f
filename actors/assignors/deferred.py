"""Deferred resolution of imbalance: level shares, few moves, lost work kept for who lost it.

Connectors and tasks are levelled apart: of each kind, the members that can take work hold
within one of each other. What a member has (its target, then what it owns) it keeps up to its
share; the head of its list stays and the tail moves.

Lost work waits, parked, until its deadline or until the worker that lost it returns, and the
shares are computed over all other work. A loss takes a member away with its whole share, so
those that remain are as level as they were and no running work moves for it. New resources
are dealt at once, and a newcomer gets its share of what runs, but none of what is parked.

Nothing is remembered between two assignments: all that counts is in the snapshot, and the
same snapshot, in whatever order, leads to the same assignment. Weights, capacities and zones
that are no demand do not count here. See Design II of "Incremental Cooperative Rebalancing:
Support and Policies", KIP-415, and PROTOCOL sections 5 and 7.
"""

from collections.abc import Mapping

from ...events.model import Resources
from ..messages.computing import Assignment, Snapshot
from .eligibility import Shares
from .level import level
from .placing import place

NAME = "deferred"
VERSION = 0


def assign(snapshot: Snapshot) -> Assignment:
    """Return where everything configured is to go; see `place`."""
    return place(snapshot, deal, VERSION)


def deal(free: Resources, claims: Shares, demanded: Mapping[str, Resources]) -> Shares:
    """Return each taker's level share of what is free, connectors apart from tasks."""
    shares: Shares = {member: set() for member in claims}
    connectors = frozenset(resource for resource in free if not resource.is_task)
    for kind, is_task in ((connectors, False), (free - connectors, True)):
        fixed = {
            member: sum(resource.is_task is is_task for resource in share)
            for member, share in demanded.items()
        }
        for member, share in level(kind, claims, fixed).items():
            shares[member] |= share
    return shares
