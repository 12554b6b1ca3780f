"""Why a resource goes to another worker, as far as the log tells."""

from collections.abc import Callable, Iterable
from enum import Enum
from typing import NamedTuple

from ...events.group import Group, Member
from ...events.model import Cause, Resource, Why
from ...events.placement import (
    ANYWHERE,
    Directory,
    abilities,
    assignor_of,
    is_drained,
    is_warm,
    placement_in,
    placement_of,
    worker_name,
)
from ...events.records import GroupMetadata, MemberMetadata

DEPARTURES = frozenset(
    {
        Why.MEMBER_LEFT,
        Why.SESSION_EXPIRED,
        Why.PROCESS_ENDED,
        Why.REBALANCE_EXPIRED,
        Why.MEMBER_REMOVED,
    }
)
"""The causes whose subject is a member that is gone."""


class ReasonKind(Enum):
    """The sort of a reason."""

    BALANCE = "balance"
    """Its previous owner is still there, and nothing forbids that it stays."""
    DEPARTURE = "departure"
    """Its previous owner is gone, and nobody waits for it."""
    DELAY_EXPIRED = "delay-expired"
    """Its previous owner is gone, and did not come back in time."""
    CONSTRAINT = "constraint"
    """Its previous owner is there, and may not have it any more.

    The detail is what keeps it from that: a drain, pin, tag or zone, or that it is cold.
    """
    RETURN = "return"
    """It goes back to the worker that had it before, which was away or might not have it."""
    NEW = "new"
    """Nobody had it before."""
    DELETED = "deleted"
    """It is not configured any more."""


class Reason(NamedTuple):
    """The reason for a move; `detail` adds facts where there are any."""

    kind: ReasonKind
    detail: str = ""

    def __str__(self) -> str:
        """Return it as tables and the log show it: `constraint, drain`."""
        return ", ".join(filter(None, (self.kind.value, self.detail)))


NEW = Reason(ReasonKind.NEW)
RETURN = Reason(ReasonKind.RETURN)
DELETED = Reason(ReasonKind.DELETED)
_BALANCE = Reason(ReasonKind.BALANCE)


def reason_of(
    group: Group,
    resource: Resource,
    previous_owner: MemberMetadata,
    bumps: Iterable[GroupMetadata],
    directory: Callable[[], Directory],
) -> Reason:
    """Return why a resource leaves its previous owner for another worker.

    `group` is that of the new target, with the schedule from before it; `bumps` are what the
    target answers; `directory` tells whom names mean, and is asked only where a config has any.
    """
    if _is_gone(group, previous_owner):
        if resource in group.schedule.fired:
            return Reason(ReasonKind.DELAY_EXPIRED)
        return Reason(ReasonKind.DEPARTURE, _departure(group, previous_owner, bumps))
    order = group.worker_orders.get(worker_name(previous_owner))
    if is_drained(order, previous_owner.member_id):
        return Reason(ReasonKind.CONSTRAINT, "drain")
    now = group.members[previous_owner.member_id].metadata
    unmet = _unmet(group, resource, now, directory) or ("cold" if _is_cold(group, now) else "")
    return Reason(ReasonKind.CONSTRAINT, unmet) if unmet else _BALANCE


def why_displaced(
    group: Group,
    resource: Resource,
    previous_owner: MemberMetadata,
    bumps: Iterable[GroupMetadata],
    directory: Callable[[], Directory],
) -> Reason:
    """Return why a resource leaves its previous owner although no other member can take it."""
    reason = reason_of(group, resource, previous_owner, bumps, directory)
    return Reason(ReasonKind.CONSTRAINT) if reason == _BALANCE else reason


def _is_gone(group: Group, previous_owner: MemberMetadata) -> bool:
    """Return whether an owner lost its seat; if its id joined again, that is another seat."""
    member = group.members.get(previous_owner.member_id)
    return member is None or member.metadata.joined_epoch != previous_owner.joined_epoch


def _unmet(
    group: Group,
    resource: Resource,
    previous_owner: MemberMetadata,
    directory: Callable[[], Directory],
) -> str:
    """Return the demand of a resource that its previous owner does not meet; "" if none."""
    order = placement_of(group, resource)
    connector = group.connectors.get(resource.connector)
    demanded = placement_in(connector.config) if connector else ANYWHERE
    pins = order.pins if order is not None else ()
    if not pins and demanded.workers:
        pins = directory().resolve(demanded.workers)
    if pins and worker_name(previous_owner) not in pins:
        return "pin"
    said = assignor_of(group.target.assignor, previous_owner.assignors)
    if not demanded.tags <= abilities(said.metadata).tags:
        return "tag"
    return "zone" if demanded.zones and previous_owner.rack not in demanded.zones else ""


def _is_cold(group: Group, previous_owner: MemberMetadata) -> bool:
    """Return whether a previous owner cannot take work now, while another member can."""
    if _is_warm(group, previous_owner):
        return False
    return any(_is_open(group, each) for each in group.members.values())


def _is_open(group: Group, member: Member) -> bool:
    """Return whether a member takes work: present, warm, and not cordoned."""
    order = group.worker_orders.get(worker_name(member.metadata))
    is_let = not (order and order.cordoned) and not is_drained(order, member.member_id)
    return is_let and member.current.member_epoch >= 0 and _is_warm(group, member.metadata)


def _is_warm(group: Group, member: MemberMetadata) -> bool:
    return is_warm(assignor_of(group.target.assignor, member.assignors).metadata)


def _departure(group: Group, previous_owner: MemberMetadata, bumps: Iterable[GroupMetadata]) -> str:
    """Return how a previous owner left, if a loss or an epoch bump still has it."""
    loss = group.losses.get(previous_owner.member_id)
    causes = [loss.cause] if loss else []
    causes += [bump.cause for bump in bumps if _is_about(bump.cause, previous_owner)]
    return causes[-1].why.value if causes else ""


def _is_about(cause: Cause, previous_owner: MemberMetadata) -> bool:
    names = (previous_owner.url, previous_owner.member_id, previous_owner.instance_id)
    return cause.why in DEPARTURES and cause.subject in names
