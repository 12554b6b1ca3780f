"""The snapshot: the group as an assignor sees it, whoever runs the assignor (PROTOCOL §5, Prepare).

What work demands of its workers comes from its configs and from operators' orders. An order wins
over the config, except for a weight of 1, and for workers if it names none; tags and zones are in
configs only. A name in a config stands for every worker that it may mean, present or lost; names in
earlier orders add none.
"""

from collections.abc import Iterator, Mapping
from functools import cache, partial
from typing import NamedTuple

from ....events.group import Group, Member
from ....events.model import Resource
from ....events.placement import (
    ANYWHERE,
    Placement,
    assignor_of,
    directory_of,
    is_drained,
    placement_in,
    placement_of,
    takes_tagged_only,
    worker_name,
    workers_in,
)
from ....events.records import MemberMetadata, Operator
from ...messages.computing import ANY_WORK, LossView, MemberView, Needs, Snapshot


def snapshot_of(group: Group, assignor: str, now_ms: int, snapshot_id: str = "") -> Snapshot:
    """Return a snapshot of the group now (wall clock, ms), with the demands of its work."""
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
    runs = assignor_of(assignor, metadata.assignors)
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
        topics=_topics_of(group, member.member_id),
    )


def _topics_of(group: Group, member_id: str) -> frozenset[str] | None:
    if group.topics is None:
        return None
    subscription = group.subscriptions.get(member_id)
    return frozenset() if subscription is None else subscription.topics


class Placements(NamedTuple):
    """The weights other than 1, the pins, and the needs of connectors; see `Snapshot`."""

    weights: Mapping[Resource, int]
    pins: Mapping[Resource, tuple[str, ...]]
    needs: Mapping[str, Needs]


def placements_of(group: Group) -> Placements:
    """Return all demands; costs little if there are none, however large the group."""
    weights: dict[Resource, int] = {}
    pins: dict[Resource, tuple[str, ...]] = {}
    needs: dict[str, Needs] = {}
    directory = cache(partial(directory_of, workers_in(group)))
    is_picky = any(takes_tagged_only(each.metadata) for each in group.members.values())
    if is_picky:
        needs = dict.fromkeys({each.connector for each in group.configured}, ANY_WORK)
    for connector, asked in _find_placements(group):
        if asked.tags or asked.zones:
            needs[connector] = Needs(asked.tags, asked.zones, is_picky and not asked.tags)
        workers = directory().resolve(asked.workers) if asked.workers else ()
        for resource in _work_of(group, connector):
            weights[resource] = asked.weight_of(resource)
            pins[resource] = workers
    for resource, order in _find_orders(group):
        weights[resource] = order.weight if order.weight != 1 else weights.get(resource, 1)
        pins[resource] = order.pins or pins.get(resource, ())
    return Placements(
        {resource: weight for resource, weight in weights.items() if weight != 1},
        {resource: workers for resource, workers in pins.items() if workers},
        needs,
    )


def needs_placing_anew(group: Group, old: MemberMetadata, new: MemberMetadata) -> bool:
    """Return whether work demands zones or named workers, and a member's zone or name changed.

    The configs are looked through only if one of these has changed.
    """
    is_moved = old.rack != new.rack
    is_renamed = _lasting_names(old) != _lasting_names(new)
    if not is_moved and not is_renamed:
        return False
    asked = tuple(each for _, each in _find_placements(group))
    if is_moved and any(each.zones for each in asked):
        return True
    orders = group.resource_orders.values()
    is_pinned = any(each.workers for each in asked) or any(each.pins for each in orders)
    return is_renamed and is_pinned


def _lasting_names(who: MemberMetadata) -> tuple[str, str, str]:
    """Return the names by which pins find a worker: not the member id, which is new each time."""
    return who.instance_id or "", who.url, who.client_id


def _find_placements(group: Group) -> Iterator[tuple[str, Placement]]:
    """Yield the configured connectors whose config has demands."""
    for name, connector in group.connectors.items():
        asked = placement_in(connector.config)
        if asked is not ANYWHERE and Resource(name) in group.configured:
            yield name, asked


def _work_of(group: Group, connector: str) -> Iterator[Resource]:
    """Yield a connector, and those of its tasks that are configured."""
    yield Resource(connector)
    tasks = (Resource(connector, number) for number in group.task_numbers(connector))
    yield from (task for task in tasks if task in group.configured)


def _find_orders(group: Group) -> Iterator[tuple[Resource, Operator]]:
    """Yield the configured resources that have an order, each with the order in force."""
    if not group.resource_orders:
        return
    for resource in group.configured:
        order = placement_of(group, resource)
        if order is not None:
            yield resource, order
