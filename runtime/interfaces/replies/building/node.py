"""Builds replies about members and orders from the state of a group."""

from collections.abc import Iterable

from .....events.group import Group, Member
from .....events.model import Grants, GroupType, Resource
from .....events.placement import abilities, assignor_of
from .....events.records import Operator
from ..node import GrantedResource, MemberDescription, ResourceId, WorkerOrder


def describe_member(group: Group, member: Member) -> MemberDescription:
    """Return the state of one member, and its assignment."""
    metadata, current = member.metadata, member.current
    able = abilities(assignor_of(group.target.assignor, metadata.assignors).metadata)
    is_classic = metadata.classic is not None
    return MemberDescription(
        member.member_id,
        member.metadata.worker_url,
        metadata.instance_id,
        metadata.rack,
        sorted(able.tags),
        able.capacity,
        member.state.name,
        current.member_epoch,
        _granted(current.assigned),
        _granted(current.pending),
        resource_ids(group.share_of(member.member_id)),
        [each.name for each in metadata.assignors],
        metadata.rebalance_timeout_ms,
        (GroupType.CLASSIC if is_classic else group.type).value,
        metadata.client_id,
        metadata.client_host,
    )


def worker_order(order: Operator) -> WorkerOrder:
    """Return the operator orders for one worker as a reply."""
    return WorkerOrder(
        worker=order.name,
        cordoned=order.cordoned,
        draining=order.draining,
        expected_back_ms=order.expected_back_ms or None,
        removing=order.removing or None,
    )


def _granted(grants: Grants) -> list[GrantedResource]:
    return [GrantedResource(*id_of(each), grants[each]) for each in sorted(grants)]


def resource_ids(resources: Iterable[Resource]) -> list[ResourceId]:
    """Return resources as a sorted reply."""
    return [ResourceId(*id_of(each)) for each in sorted(resources)]


def id_of(resource: Resource) -> tuple[str, str, int | None]:
    """Return the fields of a `ResourceId`."""
    return str(resource), resource.connector, resource.task if resource.is_task else None
