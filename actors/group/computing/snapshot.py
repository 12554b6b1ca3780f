"""The group as an assignor is shown it, whoever runs the assignor (PROTOCOL §5, Prepare)."""

from ....events.abilities import said_for
from ....events.group import Group, Member
from ....events.model import Resource
from ....events.orders import is_drained, worker_name
from ...messages.computing import LossView, MemberView, Snapshot
from .placements import placements_of


def snapshot_of(group: Group, assignor: str, now_ms: int, snapshot_id: str = "") -> Snapshot:
    """Return the group as it is now (wall clock, ms), with what is asked of its workers."""
    placements = placements_of(group)
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
        *placements,
        connectors=group.configured.intersection(map(Resource, group.connectors)),
        snapshot_id=snapshot_id,
    )


def _view(group: Group, member: Member, assignor: str) -> MemberView:
    metadata = member.metadata
    runs = said_for(assignor, metadata.assignors)
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
        draining=is_drained(order, member.member_id),
        worker=worker,
    )
