"""Resources as the wire lists them: connectors, then each connector's tasks together."""

from collections.abc import Iterable, Sequence
from itertools import groupby
from operator import itemgetter

from . import wire
from .model import CONNECTOR, Grants, Resource

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
