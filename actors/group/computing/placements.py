"""What is asked of the workers that run a group's work: by its configs, and by operators.

An operator's order wins over the config. It says nothing of a weight that it leaves at 1,
or of workers if it names none; and tags and zones are the config's alone. A name in a config
means every worker, there or lost, that it may stand for; what orders once named adds nobody.
"""

from collections.abc import Iterator, Mapping
from functools import cache, partial
from typing import NamedTuple

from ....events.directory import directory_of, workers_in
from ....events.group import Group
from ....events.model import Resource
from ....events.orders import placement_of
from ....events.placement import ANYWHERE, Placement, placement_in
from ....events.records import MemberMetadata, Operator
from ...messages.computing import Needs


class Placements(NamedTuple):
    """The weights other than 1, the pins, and what connectors need; see `Snapshot`."""

    weights: Mapping[Resource, int]
    pins: Mapping[Resource, tuple[str, ...]]
    needs: Mapping[str, Needs]


def placements_of(group: Group) -> Placements:
    """Return all that is asked; costs little where nothing is, however large the group."""
    weights: dict[Resource, int] = {}
    pins: dict[Resource, tuple[str, ...]] = {}
    needs: dict[str, Needs] = {}
    directory = cache(partial(directory_of, workers_in(group)))
    for connector, asked in _asked(group):
        if asked.tags or asked.zones:
            needs[connector] = Needs(asked.tags, asked.zones)
        workers = directory().resolved(asked.workers) if asked.workers else ()
        for resource in _work_of(group, connector):
            weights[resource] = asked.weight_of(resource)
            pins[resource] = workers
    for resource, order in _ordered(group):
        weights[resource] = order.weight if order.weight != 1 else weights.get(resource, 1)
        pins[resource] = order.pins or pins.get(resource, ())
    return Placements(
        {resource: weight for resource, weight in weights.items() if weight != 1},
        {resource: workers for resource, workers in pins.items() if workers},
        needs,
    )


def asks_anew(group: Group, old: MemberMetadata, new: MemberMetadata) -> bool:
    """Tell whether work demands a zone, or workers by name, and a member's are others now.

    The configs are looked through only if the member has moved, or has another name.
    """
    is_moved = old.rack != new.rack
    is_renamed = _called(old) != _called(new)
    if not is_moved and not is_renamed:
        return False
    asked = tuple(each for _, each in _asked(group))
    if is_moved and any(each.zones for each in asked):
        return True
    orders = group.resource_orders.values()
    is_pinned = any(each.workers for each in asked) or any(each.pins for each in orders)
    return is_renamed and is_pinned


def _called(who: MemberMetadata) -> tuple[str, str, str]:
    """Return what pins outlast a process by: not the member id, which is another each time."""
    return who.instance_id or "", who.url, who.client_id


def _asked(group: Group) -> Iterator[tuple[str, Placement]]:
    """Yield the connectors that are to run and whose config asks for anything."""
    for name, connector in group.connectors.items():
        asked = placement_in(connector.config)
        if asked is not ANYWHERE and Resource(name) in group.configured:
            yield name, asked


def _work_of(group: Group, connector: str) -> Iterator[Resource]:
    """Yield a connector, and those of its tasks that are to run."""
    yield Resource(connector)
    split = group.task_configs.get(connector)
    tasks = (Resource(connector, number) for number in range(len(split.tasks) if split else 0))
    yield from (task for task in tasks if task in group.configured)


def _ordered(group: Group) -> Iterator[tuple[Resource, Operator]]:
    """Yield the configured resources that have an order, with the one that holds for each."""
    if not group.resource_orders:
        return
    for resource in group.configured:
        order = placement_of(group, resource)
        if order is not None:
            yield resource, order
