"""The shapes of those records that lie on disk in another form than they have in memory.

All records lie on disk as msgpack maps by the names of their fields, and most of them are written
and read as they are. A shape stands here only where the two differ: resources are lists, not
sets; states and causes are plain numbers and strings, so that what a later version wrote still
loads. Each shape has a pair of methods, `of` and `to_record`.

As in the records themselves, a field that is newer than the first version has a default, so that
old logs load for ever; nothing is ever renamed or given another meaning.
"""

from collections.abc import Mapping
from typing import Any, Final, Protocol, Self

import msgspec

from .. import records
from ..model import Cause, MemberState, Resource, RunState, Token, Why
from .resource_lists import ReasonWire, ResourceList, list_reasons, map_reasons
from .wire_offsets import CommittedWire, TaskProgressWire
from .wire_shards import ConfiguredShardWire, CurrentShardWire, TargetShardWire

MEMBER_STATES: Final = {state.value: state for state in MemberState}
CAUSES: Final = {why.value: why for why in Why}
RUN_STATES: Final = {state.value: state for state in RunState}


class Shape(Protocol):
    """The form of a record on disk."""

    @classmethod
    def of(cls, record: Any, /) -> Self:
        """Return the form of a record."""
        ...

    def to_record(self) -> records.Record:
        """Return the record; raises ValueError where the parts of the form disagree."""
        ...


class CauseWire(msgspec.Struct):
    """Why, and to whom."""

    why: str
    subject: str = ""

    @classmethod
    def of(cls, cause: Cause) -> Self:
        """Return the form of a cause."""
        return cls(cause.why.value, cause.subject)

    def to_cause(self) -> Cause:
        """Return the cause; one that a later version wrote keeps its name in the subject."""
        why = CAUSES.get(self.why)
        if why is None:
            return Cause(Why.UNKNOWN, f"{self.why} {self.subject}")
        return Cause(why, self.subject)


class GroupMetadataWire(msgspec.Struct):
    """Key type 3."""

    group_epoch: int
    cause: CauseWire
    time_ms: int = 0
    actor: str | None = None
    since_ms: int = 0

    @classmethod
    def of(cls, record: records.GroupMetadata) -> Self:
        cause = CauseWire.of(record.cause)
        return cls(record.group_epoch, cause, record.time_ms, record.actor, record.since_ms)

    def to_record(self) -> records.GroupMetadata:
        cause = self.cause.to_cause()
        return records.GroupMetadata(
            self.group_epoch, cause, self.time_ms, self.actor, self.since_ms
        )


class ConnectorsTasksMetadataWire(msgspec.Struct):
    """Key type 4."""

    configured: ResourceList
    shards: int = 0

    @classmethod
    def of(cls, record: records.ConnectorsTasksMetadata) -> Self:
        return cls(ResourceList.of(record.configured), record.shards)

    def to_record(self) -> records.ConnectorsTasksMetadata:
        configured = frozenset(self.configured.resources())
        return records.ConnectorsTasksMetadata(configured, self.shards)


class ShareWire(msgspec.Struct):
    """What the target gives one member."""

    member_id: str
    resources: ResourceList


class TargetAssignmentWire(msgspec.Struct):
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
    shards: int = 0

    @classmethod
    def of(cls, record: records.TargetAssignment) -> Self:
        fields = _fields(record)
        fields["members"] = [
            ShareWire(member_id, ResourceList.of(share))
            for member_id, share in sorted(record.members.items())
        ]
        fields["unplaceable"] = list_reasons(record.unplaceable)
        return cls(**fields)

    def to_record(self) -> records.TargetAssignment:
        fields = msgspec.structs.asdict(self)
        fields["members"] = {
            each.member_id: frozenset(each.resources.resources()) for each in self.members
        }
        fields["unplaceable"] = map_reasons(self.unplaceable)
        return records.TargetAssignment(**fields)


class CurrentAssignmentWire(msgspec.Struct, gc=False):
    """Key type 7; the grant epochs lie in the order of the resource lists."""

    member_id: str
    member_epoch: int
    previous_epoch: int
    state: int
    assigned: ResourceList
    pending: ResourceList
    assigned_epochs: list[int] = []
    pending_epochs: list[int] = []
    assignor_error: int = 0
    shards: int = 0

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
            record.assignor_error,
            record.shards,
        )

    def to_record(self) -> records.CurrentAssignment:
        return records.CurrentAssignment(
            self.member_id,
            self.member_epoch,
            self.previous_epoch,
            MEMBER_STATES.get(self.state, MemberState.UNKNOWN),
            self.assigned.grants(self.assigned_epochs),
            self.pending.grants(self.pending_epochs),
            self.assignor_error,
            self.shards,
        )


class TaskStatusWire(msgspec.Struct):
    """Key type 20."""

    connector: str
    task: int
    state: str
    worker: str
    grant_epoch: int
    generation: int
    time_ms: int = 0
    reason: str = ""

    @classmethod
    def of(cls, record: records.TaskStatus) -> Self:
        state, at = record.state.value, record.time_ms
        return cls(*record.resource, state, record.worker, *record.token, at, record.reason)

    def to_record(self) -> records.TaskStatus:
        return records.TaskStatus(
            Resource(self.connector, self.task),
            RUN_STATES.get(self.state, RunState.UNASSIGNED),
            self.worker,
            Token(self.grant_epoch, self.generation),
            self.time_ms,
            self.reason,
        )


class DeadlineWire(msgspec.Struct):
    """Resources that come due together."""

    deadline_ms: int
    resources: ResourceList


class ScheduledRebalanceWire(msgspec.Struct):
    """Key type 21."""

    parked: list[DeadlineWire]
    fired: ResourceList
    again_at_ms: int = 0

    @classmethod
    def of(cls, record: records.ScheduledRebalance) -> Self:
        by_deadline: dict[int, list[Resource]] = {}
        for resource, deadline_ms in record.parked.items():
            by_deadline.setdefault(deadline_ms, []).append(resource)
        parked = [
            DeadlineWire(deadline_ms, ResourceList.of(resources))
            for deadline_ms, resources in sorted(by_deadline.items())
        ]
        return cls(parked, ResourceList.of(record.fired), record.again_at_ms)

    def to_record(self) -> records.ScheduledRebalance:
        parked = {
            resource: each.deadline_ms
            for each in self.parked
            for resource in each.resources.resources()
        }
        return records.ScheduledRebalance(
            parked, frozenset(self.fired.resources()), self.again_at_ms
        )


class LossWire(msgspec.Struct):
    """Key type 23."""

    member_id: str
    url: str
    resources: ResourceList
    time_ms: int
    cause: CauseWire
    deadline_ms: int
    instance_id: str | None = None

    @classmethod
    def of(cls, record: records.Loss) -> Self:
        fields = _fields(record)
        fields["resources"] = ResourceList.of(record.resources)
        fields["cause"] = CauseWire.of(record.cause)
        return cls(**fields)

    def to_record(self) -> records.Loss:
        fields = msgspec.structs.asdict(self)
        fields["resources"] = frozenset(self.resources.resources())
        fields["cause"] = self.cause.to_cause()
        return records.Loss(**fields)


def _fields(record: Any) -> dict[str, Any]:
    """Return a slotted dataclass's own fields, not those of the values in it."""
    return {name: getattr(record, name) for name in record.__slots__}


SHAPES: Final[Mapping[type, type[Shape]]] = {
    records.GroupMetadata: GroupMetadataWire,
    records.ConnectorsTasksMetadata: ConnectorsTasksMetadataWire,
    records.TargetAssignment: TargetAssignmentWire,
    records.CurrentAssignment: CurrentAssignmentWire,
    records.TaskStatus: TaskStatusWire,
    records.ScheduledRebalance: ScheduledRebalanceWire,
    records.Loss: LossWire,
    records.Committed: CommittedWire,
    records.TaskProgress: TaskProgressWire,
    records.ConfiguredShard: ConfiguredShardWire,
    records.TargetShard: TargetShardWire,
    records.CurrentShard: CurrentShardWire,
}
"""By class of record; the records of all other classes are written as they are."""
