"""Resources as the wire lists them: connectors, then each connector's tasks together."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from itertools import chain, groupby
from operator import itemgetter

from ..model import CONNECTOR, Grants, Resource
from . import wire

BY_CONNECTOR = itemgetter(0)


def lower_resources(resources: Iterable[Resource]) -> wire.ResourceList:
    """Return the wire's struct."""
    return in_order(resources)[0]


def in_order(resources: Iterable[Resource]) -> tuple[wire.ResourceList, list[Resource]]:
    """Return the wire's struct, and the resources in the order in which it lists them."""
    connectors: list[str] = []
    tasks: list[wire.TaskList] = []
    ordered = sorted(resources)
    heads: list[Resource] = []
    rest: list[Resource] = []
    for name, group in groupby(ordered, BY_CONNECTOR):
        numbers: list[int] = []
        for resource in group:
            if resource.task == CONNECTOR:
                connectors.append(name)
                heads.append(resource)
            else:
                numbers.append(resource.task)
                rest.append(resource)
        if numbers:
            tasks.append(wire.TaskList(name, numbers))
    return wire.ResourceList(connectors, tasks), heads + rest


def lift_resources(value: wire.ResourceList) -> list[Resource]:
    """Return the resources of a wire struct, in its order."""
    found = [Resource(name) for name in value.connectors]
    for each in value.tasks:
        name = each.connector
        found += [Resource(name, task) for task in each.tasks]
    return found


def lower_grants(grants: Grants) -> tuple[wire.ResourceList, list[int]]:
    """Return the wire's struct, and the grant epochs in its order."""
    listed, ordered = in_order(grants)
    return listed, [grants[resource] for resource in ordered]


def lift_grants(value: wire.ResourceList, epochs: Sequence[int]) -> Grants:
    """Return resources with their grant epochs; raises ValueError if one lacks its epoch."""
    found = lift_resources(value)
    if len(found) != len(epochs):
        raise ValueError(f"{len(found)} resources with {len(epochs)} grant epochs")
    return dict(zip(found, epochs, strict=True))


def by_connector(resources: Iterable[Resource]) -> wire.TasksByConnector:
    """Return resources as shards list them: shorter, as a log has many of those."""
    found: defaultdict[str, list[int]] = defaultdict(list)
    for name, task in resources:
        found[name].append(task)
    return {name: sorted(found[name]) for name in sorted(found)}


def from_connectors(value: wire.TasksByConnector) -> frozenset[Resource]:
    """Return the resources that a shard lists."""
    return frozenset([Resource(name, task) for name, tasks in value.items() for task in tasks])


def grants_by_connector(grants: Grants) -> wire.GrantsByConnector:
    """Return resources with their grant epochs as shards list them."""
    found: defaultdict[str, list[tuple[int, int]]] = defaultdict(list)
    for (name, task), epoch in grants.items():
        found[name].append((task, epoch))
    return {name: [*chain.from_iterable(sorted(found[name]))] for name in sorted(found)}


def grants_from_connectors(value: wire.GrantsByConnector) -> Grants:
    """Return what a shard grants; raises ValueError if a resource lacks its epoch."""
    return {
        Resource(name, task): epoch
        for name, numbers in value.items()
        for task, epoch in zip(numbers[::2], numbers[1::2], strict=True)
    }
