"""The shapes of shards; as a log has many of them, their lists of resources are shorter."""

from collections import defaultdict
from collections.abc import Iterable
from itertools import chain
from typing import Self

import msgspec

from ..model import Grants, Resource, Resources
from ..records import ConfiguredShard, CurrentShard, TargetShard
from .resource_lists import ReasonWire, list_reasons, map_reasons

TasksByConnector = dict[str, list[int]]
"""By connector: the numbers of tasks, -1 for the connector itself."""

GrantsByConnector = dict[str, list[int]]
"""By connector: the number of a task, or -1, and its grant epoch, in turn."""


class ConfiguredShardWire(msgspec.Struct):
    """Key type 27."""

    number: int
    configured: TasksByConnector

    @classmethod
    def of(cls, record: ConfiguredShard) -> Self:
        return cls(record.number, _by_connector(record.configured))

    def to_record(self) -> ConfiguredShard:
        return ConfiguredShard(self.number, _from_connectors(self.configured))


class TargetShardWire(msgspec.Struct):
    """Key type 28."""

    number: int
    members: dict[str, TasksByConnector]
    unplaceable: list[ReasonWire] = []

    @classmethod
    def of(cls, record: TargetShard) -> Self:
        shares = sorted(record.members.items())
        members = {member_id: _by_connector(share) for member_id, share in shares}
        return cls(record.number, members, list_reasons(record.unplaceable))

    def to_record(self) -> TargetShard:
        shares = self.members.items()
        members = {member_id: _from_connectors(share) for member_id, share in shares}
        return TargetShard(self.number, members, map_reasons(self.unplaceable))


class CurrentShardWire(msgspec.Struct):
    """Key type 29."""

    member_id: str
    number: int
    assigned: GrantsByConnector
    pending: GrantsByConnector = {}

    @classmethod
    def of(cls, record: CurrentShard) -> Self:
        assigned = _grants_by_connector(record.assigned)
        pending = _grants_by_connector(record.pending)
        return cls(record.member_id, record.number, assigned, pending)

    def to_record(self) -> CurrentShard:
        assigned = _grants_from_connectors(self.assigned)
        pending = _grants_from_connectors(self.pending)
        return CurrentShard(self.member_id, self.number, assigned, pending)


def _by_connector(resources: Iterable[Resource]) -> TasksByConnector:
    """Return resources in the form of shards."""
    numbers: defaultdict[str, list[int]] = defaultdict(list)
    for name, task in resources:
        numbers[name].append(task)
    return {name: sorted(numbers[name]) for name in sorted(numbers)}


def _from_connectors(value: TasksByConnector) -> Resources:
    """Return the resources that a shard lists."""
    return frozenset([Resource(name, task) for name, tasks in value.items() for task in tasks])


def _grants_by_connector(grants: Grants) -> GrantsByConnector:
    """Return what is granted in the form of shards."""
    pairs: defaultdict[str, list[tuple[int, int]]] = defaultdict(list)
    for (name, task), epoch in grants.items():
        pairs[name].append((task, epoch))
    return {name: [*chain.from_iterable(sorted(pairs[name]))] for name in sorted(pairs)}


def _grants_from_connectors(value: GrantsByConnector) -> Grants:
    """Return what a shard grants; raises ValueError if a resource lacks its epoch."""
    return {
        Resource(name, task): epoch
        for name, numbers in value.items()
        for task, epoch in zip(numbers[::2], numbers[1::2], strict=True)
    }
