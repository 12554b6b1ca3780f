"""Resources as the log lists them: connectors, then each connector's tasks together."""

from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby
from operator import itemgetter
from typing import Self

import msgspec

from ..model import CONNECTOR, Grants, Resource

_connector_of = itemgetter(0)


class TaskList(msgspec.Struct, gc=False):
    """Tasks of one connector."""

    connector: str
    tasks: list[int]


class ResourceList(msgspec.Struct, gc=False):
    """Connectors and tasks."""

    connectors: list[str] = []
    tasks: list[TaskList] = []

    @classmethod
    def of(cls, resources: Iterable[Resource]) -> Self:
        """Return the list of these resources."""
        return cls._ordered(resources)[0]

    @classmethod
    def of_grants(cls, grants: Grants) -> tuple[Self, list[int]]:
        """Return the list of what is granted, and the grant epochs in the order of the list."""
        listed, in_order = cls._ordered(grants)
        return listed, [grants[resource] for resource in in_order]

    @classmethod
    def _ordered(cls, resources: Iterable[Resource]) -> tuple[Self, list[Resource]]:
        """Return the list, and the resources in the order of it."""
        listed = cls([], [])
        connectors: list[Resource] = []
        tasks: list[Resource] = []
        for name, group in groupby(sorted(resources), _connector_of):
            numbers: list[int] = []
            for resource in group:
                if resource.task == CONNECTOR:
                    listed.connectors.append(name)
                    connectors.append(resource)
                else:
                    numbers.append(resource.task)
                    tasks.append(resource)
            if numbers:
                listed.tasks.append(TaskList(name, numbers))
        return listed, connectors + tasks

    def resources(self) -> list[Resource]:
        """Return the resources in the order of the list."""
        listed = [Resource(name) for name in self.connectors]
        for each in self.tasks:
            name = each.connector
            listed += [Resource(name, task) for task in each.tasks]
        return listed

    def grants(self, epochs: Sequence[int]) -> Grants:
        """Return the resources with these grant epochs; raises ValueError if one lacks its own."""
        listed = self.resources()
        if len(listed) != len(epochs):
            raise ValueError(f"{len(listed)} resources with {len(epochs)} grant epochs")
        return dict(zip(listed, epochs, strict=True))


class ReasonWire(msgspec.Struct):
    """Why a resource has no place."""

    connector: str
    task: int
    reason: str


def list_reasons(reasons: Mapping[Resource, str]) -> list[ReasonWire]:
    """Return resources with reasons as the log lists them."""
    return [ReasonWire(*resource, reason) for resource, reason in sorted(reasons.items())]


def map_reasons(listed: Iterable[ReasonWire]) -> dict[Resource, str]:
    """Return the resources with reasons that the log lists."""
    return {Resource(each.connector, each.task): each.reason for each in listed}
