"""The one computation in flight: who is asked for it, and for how long (PROTOCOL §5)."""

from collections.abc import Callable, Iterable
from dataclasses import replace

from ...events.group import Group
from ...events.records import MemberMetadata
from .desk import Computation, Desk
from .elect import able, elect, range_of

LONGEST_COMPUTATION_MS = 60_000
"""How long a member that named no rebalance timeout may compute."""


def is_due(group: Group) -> bool:
    """Tell whether the group needs a target that it does not have."""
    return group.group_epoch > group.assignment_epoch and bool(group.members)


def commission(group: Group, desk: Desk, now_ms: int) -> Desk:
    """Return the desk with a computation in flight if one is due and nobody has it."""
    if not is_due(group) or _stands(group, desk):
        return desk
    if not is_anybody_able(group):
        return desk.without_computation()
    return choose(desk, lambda: (member.metadata for member in group.members.values()), now_ms)


def is_anybody_able(group: Group) -> bool:
    """Tell whether a member of the group can compute for all; costs what ranges there are."""
    return bool(able(group.assignor_ranges, len(group.members)))


def choose(desk: Desk, crew: Callable[[], Iterable[MemberMetadata]], now_ms: int) -> Desk:
    """Return the desk with a member of the crew chosen to compute, if one is able."""
    by_id = {member.member_id: member for member in crew()}
    chosen = elect(by_id.values(), desk.last_chosen, desk.timed_out)
    if chosen is None:
        return desk.without_computation()
    assignor, member_id = chosen
    timeout_ms = by_id[member_id].rebalance_timeout_ms
    deadline_ms = now_ms + (timeout_ms if timeout_ms > 0 else LONGEST_COMPUTATION_MS)
    computation = Computation(member_id, assignor, deadline_ms)
    return replace(desk, computation=computation, last_chosen=member_id)


def _stands(group: Group, desk: Desk) -> bool:
    computation = desk.computation
    if computation is None:
        return False
    member = group.members.get(computation.member_id)
    if member is None:
        return False
    fit = able(group.assignor_ranges, len(group.members)).get(computation.assignor, set())
    return not fit.isdisjoint(map(range_of, member.metadata.assignors))


def told(desk: Desk, group_epoch: int) -> Desk:
    """Return the desk with the chosen member told to compute for this group epoch."""
    computation = desk.computation
    if computation is None or computation.told_epoch == group_epoch:
        return desk
    return replace(desk, computation=replace(computation, told_epoch=group_epoch))


def is_news(desk: Desk, group_epoch: int) -> bool:
    """Tell whether COMPUTE_ASSIGNMENT would be the first for this group epoch.

    A member that has its snapshot is busy; it asks again by itself when it has installed.
    """
    computation = desk.computation
    return (
        computation is not None
        and computation.snapshot is None
        and computation.told_epoch != group_epoch
    )
