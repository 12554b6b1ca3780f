"""The outlook of a member: work that waits and until when, and why it has nothing.

A worker of the node reads this in the log. A member over Kafka's wire is told it with its
assignment, and whenever its epoch has changed: with each target, then. It costs what is parked.
"""

from ....events.group import Group, Member
from ....events.model import Resources
from ....events.placement import is_drained, worker_name
from ...messages.groups import Outlook


def outlook_of(group: Group, member_id: str) -> Outlook | None:
    """Return what a member is to expect; None: there is no such member."""
    member = group.members.get(member_id)
    if member is None:
        return None
    schedule, held = group.schedule, member.current.assigned.keys()
    awaited = group.share_of(member_id) - held
    reason = "" if held else _why_nothing(group, member, awaited)
    pending = frozenset(member.current.pending)
    return Outlook(schedule.parked, schedule.again_at_ms, awaited, pending, reason)


def _why_nothing(group: Group, member: Member, awaited: Resources) -> str:
    """Return why a member holds nothing: the first of these that is so."""
    order = group.worker_orders.get(worker_name(member.metadata))
    reasons = (
        (is_drained(order, member.member_id), "it is drained: operators want it to have no work"),
        (awaited, f"{len(awaited)} resources are to come, which others still hold"),
        (
            group.group_epoch > group.assignment_epoch,
            f"the target for epoch {group.group_epoch} is being computed",
        ),
        (group.target.error, f"the last computation failed: {group.target.error}"),
        (order and order.cordoned, "it is cordoned: operators want it to get no more work"),
        (not group.configured, "no work is configured"),
    )
    return next((reason for holds, reason in reasons if holds), "") or _where_all_is(group)


def _where_all_is(group: Group) -> str:
    parked, unplaceable = group.schedule.parked, group.target.unplaceable
    reasons = [f"{len(group.owner)} resources are with other members"]
    if parked:
        reasons.append(f"{len(parked)} wait for a worker that was lost")
    if unplaceable:
        reasons.append(f"{len(unplaceable)} no worker can take: {next(iter(unplaceable.values()))}")
    return "; ".join(reasons)
