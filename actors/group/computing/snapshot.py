"""The group as an assignor is shown it, whoever runs the assignor (PROTOCOL §5, Prepare)."""

from collections.abc import Mapping

from ....events.group import Group, Member
from ....events.model import Assignor, Resource
from ....events.orders import placement_of, worker_name
from ....events.records import MemberMetadata, Operator
from ...messages.computing import LossView, MemberView, Snapshot

NO_ASSIGNOR = Assignor("")
"""What is shown of a member that lists no assignor: it leaves the computing to the group."""


def snapshot_of(group: Group, assignor: str, now_ms: int) -> Snapshot:
    """Return the group as it is now (wall clock, ms), with what operators want of it."""
    orders = _resource_orders(group)
    return Snapshot(
        group.group_epoch,
        group.assignment_epoch,
        assignor,
        group.target.assignor_metadata if assignor == group.target.assignor else b"",
        group.configured,
        {member_id: _view(group, member, assignor) for member_id, member in group.members.items()},
        tuple(
            LossView(loss.member_id, loss.instance_id, loss.url, loss.resources, loss.deadline_ms)
            for _, loss in sorted(group.losses.items())
        ),
        group.schedule.parked,
        group.schedule.fired,
        now_ms,
        {resource: order.weight for resource, order in orders.items() if order.weight != 1},
        {resource: order.pins for resource, order in orders.items() if order.pins},
    )


def _view(group: Group, member: Member, assignor: str) -> MemberView:
    metadata = member.metadata
    runs = _assignor_of(metadata, assignor)
    worker = worker_name(metadata)
    order = group.worker_orders.get(worker)
    return MemberView(
        member.member_id,
        member.current.member_epoch,
        metadata.instance_id,
        metadata.url,
        metadata.rack,
        runs.version,
        runs.reason,
        runs.metadata,
        frozenset(member.current.assigned),
        group.share_of(member.member_id),
        metadata.joined_epoch,
        cordoned=order is not None and order.cordoned,
        draining=order is not None and order.draining,
        worker=worker,
    )


def _assignor_of(metadata: MemberMetadata, name: str) -> Assignor:
    """Return what a member says for an assignor of that name.

    A server assignor is in nobody's list. It is shown what the member says for its own
    first choice, so that it knows a worker that is not warm yet.
    """
    listed = metadata.assignors
    first = listed[0] if listed else NO_ASSIGNOR
    return next((each for each in listed if each.name == name), first)


def _resource_orders(group: Group) -> Mapping[Resource, Operator]:
    """Return the order that holds for each configured resource that has one."""
    if not group.resource_orders:
        return {}
    found = ((resource, placement_of(group, resource)) for resource in group.configured)
    return {resource: order for resource, order in found if order is not None}
