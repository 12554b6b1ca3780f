"""What is asked of the workers that run a group's work: by its configs, and by operators.

An operator's order wins over the config. It says nothing of a weight that it leaves at 1,
or of workers if it names none; and tags and zones are the config's alone.
"""

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from ....events.group import Group
from ....events.model import Resource
from ....events.orders import placement_of
from ....events.placement import ANYWHERE, Placement, placement_in
from ....events.records import Operator
from ...messages.computing import Needs
from ..orders.whereabouts import Directory, directory_of


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
    directory: Directory | None = None
    for connector, asked in _asked(group):
        if asked.tags or asked.zones:
            needs[connector] = Needs(asked.tags, asked.zones)
        if asked.workers:
            directory = directory or directory_of(group)
        workers = directory.resolved(asked.workers) if directory else ()
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
