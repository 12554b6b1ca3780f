"""The shapes of the records that hold resources: what is configured, the target, what a member has.

A head lists connectors, then each connector's tasks together. As a log has many parts, theirs
are maps by connector, which are shorter.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain, groupby
from operator import itemgetter
from typing import Final, Self

import msgspec

from .. import records
from ..model import (
    CONNECTOR,
    NO_DATA,
    AssignorData,
    Grants,
    MemberState,
    Resource,
    Resources,
)

PARTS: Final = {"parts": "shards"}
"""The name in the log of how many parts a head has: names there never change."""

MEMBER_STATES: Final = {state.value: state for state in MemberState}

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
        return cls._list_in_order(resources)[0]

    @classmethod
    def of_grants(cls, grants: Grants) -> tuple[Self, list[int]]:
        """Return the list of granted resources, and the grant epochs in its order."""
        listed, in_order = cls._list_in_order(grants)
        return listed, [grants[resource] for resource in in_order]

    @classmethod
    def _list_in_order(cls, resources: Iterable[Resource]) -> tuple[Self, list[Resource]]:
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


class ConnectorsTasksMetadataWire(msgspec.Struct, rename=PARTS):
    """Key type 4."""

    configured: ResourceList
    parts: int = 0
    config_offset: int = -1

    @classmethod
    def of(cls, record: records.ConnectorsTasksMetadata) -> Self:
        return cls(ResourceList.of(record.configured), record.parts, record.config_offset)

    def to_record(self) -> records.ConnectorsTasksMetadata:
        configured = frozenset(self.configured.resources())
        return records.ConnectorsTasksMetadata(configured, self.parts, self.config_offset)


class ShareWire(msgspec.Struct):
    """The share of one member in a target."""

    member_id: str
    resources: ResourceList


class DataWire(msgspec.Struct):
    """The version and metadata that an assignor sends to one member."""

    member_id: str
    version: int
    metadata: bytes


class TargetAssignmentWire(msgspec.Struct, rename=PARTS):
    """Key type 6."""

    assignment_epoch: int
    members: list[ShareWire]
    assignor: str = ""
    assignor_version: int = 0
    assignor_metadata: bytes = b""
    unplaceable: list[ReasonWire] = []
    computed_by: str = ""
    time_ms: int = 0
    error: str = ""
    failures: int = 0
    retry_at_ms: int = 0
    parts: int = 0
    data: list[DataWire] = []
    error_code: int = 0

    @classmethod
    def of(cls, record: records.TargetAssignment) -> Self:
        fields = {name: getattr(record, name) for name in record.__slots__}
        fields["members"] = [
            ShareWire(member_id, ResourceList.of(share))
            for member_id, share in sorted(record.members.items())
        ]
        fields["unplaceable"] = list_reasons(record.unplaceable)
        fields["data"] = [DataWire(each, *said) for each, said in sorted(record.data.items())]
        return cls(**fields)

    def to_record(self) -> records.TargetAssignment:
        fields = msgspec.structs.asdict(self)
        fields["members"] = {
            each.member_id: frozenset(each.resources.resources()) for each in self.members
        }
        fields["unplaceable"] = map_reasons(self.unplaceable)
        fields["data"] = {
            each.member_id: AssignorData(each.version, each.metadata) for each in self.data
        }
        return records.TargetAssignment(**fields)


class CurrentAssignmentWire(msgspec.Struct, gc=False, rename=PARTS):
    """Key type 7; the grant epochs lie in the order of the resource lists.

    An assignor's error is the target's (key type 6): the proposal's field for it says 0 here.
    """

    member_id: str
    member_epoch: int
    previous_epoch: int
    state: int
    assigned: ResourceList
    pending: ResourceList
    assigned_epochs: list[int] = []
    pending_epochs: list[int] = []
    assignor_error: int = 0
    parts: int = 0
    data: tuple[int, bytes] | None = None

    @classmethod
    def of(cls, record: records.CurrentAssignment) -> Self:
        assigned, assigned_epochs = ResourceList.of_grants(record.assigned)
        pending, pending_epochs = ResourceList.of_grants(record.pending)
        return cls(
            record.member_id,
            record.member_epoch,
            record.previous_epoch,
            int(record.state),
            assigned,
            pending,
            assigned_epochs,
            pending_epochs,
            0,
            record.parts,
            record.data if record.data != NO_DATA else None,
        )

    def to_record(self) -> records.CurrentAssignment:
        return records.CurrentAssignment(
            self.member_id,
            self.member_epoch,
            self.previous_epoch,
            MEMBER_STATES.get(self.state, MemberState.UNKNOWN),
            self.assigned.grants(self.assigned_epochs),
            self.pending.grants(self.pending_epochs),
            self.parts,
            AssignorData(*self.data) if self.data else NO_DATA,
        )


TasksByConnector = dict[str, list[int]]
"""By connector: the numbers of tasks, -1 for the connector itself."""

GrantsByConnector = dict[str, list[int]]
"""By connector: the number of a task, or -1, and its grant epoch, in turn."""


class ConfiguredPartWire(msgspec.Struct):
    """Key type 27."""

    number: int
    configured: TasksByConnector

    @classmethod
    def of(cls, record: records.ConfiguredPart) -> Self:
        return cls(record.number, _by_connector(record.configured))

    def to_record(self) -> records.ConfiguredPart:
        return records.ConfiguredPart(self.number, _from_connectors(self.configured))


class TargetPartWire(msgspec.Struct):
    """Key type 28."""

    number: int
    members: dict[str, TasksByConnector]
    unplaceable: list[ReasonWire] = []

    @classmethod
    def of(cls, record: records.TargetPart) -> Self:
        shares = sorted(record.members.items())
        members = {member_id: _by_connector(share) for member_id, share in shares}
        return cls(record.number, members, list_reasons(record.unplaceable))

    def to_record(self) -> records.TargetPart:
        shares = self.members.items()
        members = {member_id: _from_connectors(share) for member_id, share in shares}
        return records.TargetPart(self.number, members, map_reasons(self.unplaceable))


class CurrentPartWire(msgspec.Struct):
    """Key type 29."""

    member_id: str
    number: int
    assigned: GrantsByConnector
    pending: GrantsByConnector = {}

    @classmethod
    def of(cls, record: records.CurrentPart) -> Self:
        assigned = grants_by_connector(record.assigned)
        pending = grants_by_connector(record.pending)
        return cls(record.member_id, record.number, assigned, pending)

    def to_record(self) -> records.CurrentPart:
        assigned = grants_from_connectors(self.assigned)
        pending = grants_from_connectors(self.pending)
        return records.CurrentPart(self.member_id, self.number, assigned, pending)


def _by_connector(resources: Iterable[Resource]) -> TasksByConnector:
    """Return resources in the form of parts."""
    numbers: defaultdict[str, list[int]] = defaultdict(list)
    for name, task in resources:
        numbers[name].append(task)
    return {name: sorted(numbers[name]) for name in sorted(numbers)}


def _from_connectors(value: TasksByConnector) -> Resources:
    """Return the resources that a part lists."""
    return frozenset([Resource(name, task) for name, tasks in value.items() for task in tasks])


def grants_by_connector(grants: Grants) -> GrantsByConnector:
    """Return grants in the form of parts."""
    pairs: defaultdict[str, list[tuple[int, int]]] = defaultdict(list)
    for (name, task), epoch in grants.items():
        pairs[name].append((task, epoch))
    return {name: [*chain.from_iterable(sorted(pairs[name]))] for name in sorted(pairs)}


def grants_from_connectors(value: GrantsByConnector) -> Grants:
    """Return the grants that a part lists; raises ValueError if a resource lacks its epoch."""
    return {
        Resource(name, task): epoch
        for name, numbers in value.items()
        for task, epoch in zip(numbers[::2], numbers[1::2], strict=True)
    }
