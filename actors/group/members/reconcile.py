"""Reconciliation: one member's next step from its current assignment towards its target.

First it revokes what the member must not hold any more. Only when the member has acknowledged that
it grants what is free. It never does both at once (PROTOCOL §4, KAFKA-19449, KAFKA-19974).
"""

from collections.abc import Mapping
from typing import NamedTuple

from ....events.model import NO_DATA, NOTHING, AssignorData, MemberState, Resource, Resources
from ....events.records import CurrentAssignment


class Goal(NamedTuple):
    """The target of a member, and the members that now hold each resource."""

    assignment_epoch: int
    target: Resources
    owner: Mapping[Resource, str]
    """Which member holds each resource; a resource that is not named is free."""
    data: AssignorData = NO_DATA
    """What the assignor says to this member alone."""


class UnknownStateError(Exception):
    """The member's stored state is from a later version; the member must rejoin."""


def reconcile(current: CurrentAssignment, goal: Goal, owned: Resources | None) -> CurrentAssignment:
    """Return the member's next current assignment; the same object if nothing changes.

    `owned` is what the member says that it runs, None if it did not say. Raises `UnknownStateError`
    if the member's state is unknown and it does not say that it runs nothing.
    """
    state = current.state
    if state is MemberState.UNREVOKED:
        if owned is None or not owned.isdisjoint(current.pending):
            return current
    elif state is MemberState.STABLE:
        if current.member_epoch == goal.assignment_epoch:
            return current
    elif state is MemberState.UNKNOWN and owned != NOTHING:
        raise UnknownStateError(current.member_id)

    drop = current.assigned.keys() - goal.target
    if drop and (owned is None or not owned.isdisjoint(drop)):
        after = _revoke(current, goal, drop)
    else:
        after = _grant(current, goal)
    return current if after == current else after


def _revoke(current: CurrentAssignment, goal: Goal, drop: set[Resource]) -> CurrentAssignment:
    grants = current.assigned
    return CurrentAssignment(
        current.member_id,
        current.member_epoch,
        current.member_epoch,
        MemberState.UNREVOKED,
        {resource: epoch for resource, epoch in grants.items() if resource in goal.target},
        {resource: grants[resource] for resource in drop},
        data=current.data,
    )


def _grant(current: CurrentAssignment, goal: Goal) -> CurrentAssignment:
    target, owner, me = goal.target, goal.owner, current.member_id
    epoch = goal.assignment_epoch
    assigned = {r: granted for r, granted in current.assigned.items() if r in target}
    waiting = False
    for resource in target:
        if resource not in assigned:
            if owner.get(resource, me) == me:
                assigned[resource] = epoch
            else:
                waiting = True
    state = MemberState.UNRELEASED if waiting else MemberState.STABLE
    return CurrentAssignment(me, epoch, current.member_epoch, state, assigned, {}, data=goal.data)
