"""The shapes of records that lie on disk in another form than they have in memory.

All records lie on disk as msgpack maps by the names of their fields, and most of them are written
and read as they are. A shape stands here only where the two differ: resources are lists, not
sets (`wire_resources.py`); states and causes are plain numbers and strings, so that what a later
version wrote still loads; a commit lies there with its id in one piece, with its token. Each
shape has a pair of methods, `of` and `to_record`.

As in the records themselves, a field that is newer than the first version has a default, so that
old logs load for ever; nothing is ever renamed or given another meaning.
"""

from collections.abc import Mapping
from typing import Any, Final, Protocol, Self

import msgspec

from .. import records
from ..commits import (
    NO_COST,
    Advance,
    Commit,
    CommitId,
    Committed,
    Cost,
    Lag,
    Manifest,
    TaskProgress,
)
from ..model import (
    AutoRestart,
    Cause,
    ClassicMember,
    ClassicProtocol,
    Resource,
    RunState,
    Token,
    Why,
)
from ..records import TaskStatus
from .wire_resources import (
    ConfiguredPartWire,
    ConnectorsTasksMetadataWire,
    CurrentAssignmentWire,
    CurrentPartWire,
    GrantsByConnector,
    ResourceList,
    TargetAssignmentWire,
    TargetPartWire,
    grants_by_connector,
    grants_from_connectors,
)

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
    """The cause of an event, and its subject."""

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


class ClassicMemberWire(msgspec.Struct):
    """A member of a generation; its grants lie there as in a part."""

    member_id: str
    session_timeout_ms: int
    rebalance_timeout_ms: int
    protocols: tuple[ClassicProtocol, ...]
    instance_id: str | None = None
    client_id: str = ""
    client_host: str = ""
    assignment: bytes = b""
    url: str = ""
    assigned: GrantsByConnector = {}
    pending: GrantsByConnector = {}
    returns: int = 0

    @classmethod
    def of(cls, member: ClassicMember) -> Self:
        """Return the form of a member."""
        fields = {name: getattr(member, name) for name in member.__slots__}
        fields["assigned"] = grants_by_connector(member.assigned)
        fields["pending"] = grants_by_connector(member.pending)
        return cls(**fields)

    def to_member(self) -> ClassicMember:
        """Return the member; raises ValueError if a resource lacks its epoch."""
        fields = msgspec.structs.asdict(self)
        fields["assigned"] = grants_from_connectors(self.assigned)
        fields["pending"] = grants_from_connectors(self.pending)
        return ClassicMember(**fields)


class ClassicGroupWire(msgspec.Struct):
    """Key type 2."""

    generation: int
    cause: CauseWire
    time_ms: int
    protocol_type: str = ""
    protocol: str | None = None
    leader: str = ""
    members: tuple[ClassicMemberWire, ...] = ()
    is_synced: bool = False

    @classmethod
    def of(cls, record: records.ClassicGroup) -> Self:
        return cls(
            record.generation,
            CauseWire.of(record.cause),
            record.time_ms,
            record.protocol_type,
            record.protocol,
            record.leader,
            tuple(map(ClassicMemberWire.of, record.members)),
            record.is_synced,
        )

    def to_record(self) -> records.ClassicGroup:
        return records.ClassicGroup(
            self.generation,
            self.cause.to_cause(),
            self.time_ms,
            self.protocol_type,
            self.protocol,
            self.leader,
            tuple(each.to_member() for each in self.members),
            self.is_synced,
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
    restarts: int = 0
    restarted_ms: int = 0

    @classmethod
    def of(cls, record: TaskStatus) -> Self:
        return cls(
            *record.resource,
            record.state.value,
            record.worker,
            *record.token,
            record.time_ms,
            record.reason,
            *record.restarts,
        )

    def to_record(self) -> TaskStatus:
        return TaskStatus(
            Resource(self.connector, self.task),
            RUN_STATES.get(self.state, RunState.UNASSIGNED),
            self.worker,
            Token(self.grant_epoch, self.generation),
            self.time_ms,
            self.reason,
            AutoRestart(self.restarts, self.restarted_ms),
        )


class CommitIdWire(msgspec.Struct):
    """The id of a batch: its task, its token, and its number."""

    connector: str
    task: int
    grant_epoch: int
    generation: int
    batch: int

    @classmethod
    def of(cls, commit_id: CommitId) -> Self:
        """Return the form of a commit's id."""
        return cls(commit_id.connector, commit_id.task, *commit_id.token, commit_id.batch)

    def to_commit_id(self) -> CommitId:
        """Return the commit's id."""
        token = Token(self.grant_epoch, self.generation)
        return CommitId(self.connector, self.task, token, self.batch)


class CommittedWire(msgspec.Struct):
    """Key type 24: the fields of the commit, and when it was logged."""

    commit_id: CommitIdWire
    advances: tuple[Advance, ...]
    manifest: Manifest
    rows_in: int
    time_ms: int = 0
    lag: Lag | None = None
    skipped: int = 0
    cost: Cost = NO_COST

    @classmethod
    def of(cls, record: Committed) -> Self:
        commit, commit_id = record.commit, CommitIdWire.of(record.commit_id)
        return cls(
            commit_id,
            commit.advances,
            commit.manifest,
            commit.rows_in,
            record.time_ms,
            commit.lag,
            commit.skipped,
            commit.cost,
        )

    def to_record(self) -> Committed:
        commit_id = self.commit_id.to_commit_id()
        done = self.rows_in, self.lag, self.skipped, self.cost
        commit = Commit(commit_id, self.advances, self.manifest, *done)
        return Committed(commit, self.time_ms)


class TaskProgressWire(msgspec.Struct):
    """Key type 25."""

    last: CommitIdWire
    batches: int
    rows_in: int
    rows_out: int
    bytes_out: int
    time_ms: int = 0
    lag: Lag | None = None
    filled: CommitIdWire | None = None
    skipped: int = 0
    dead_letters: int = 0
    cost: Cost = NO_COST

    @classmethod
    def of(cls, record: TaskProgress) -> Self:
        return cls(
            CommitIdWire.of(record.last),
            record.batches,
            record.rows_in,
            record.rows_out,
            record.bytes_out,
            record.time_ms,
            record.lag,
            CommitIdWire.of(record.filled) if record.filled else None,
            record.skipped,
            record.dead_letters,
            record.cost,
        )

    def to_record(self) -> TaskProgress:
        fields = msgspec.structs.asdict(self)
        fields["last"] = self.last.to_commit_id()
        fields["filled"] = self.filled.to_commit_id() if self.filled else None
        return TaskProgress(**fields)


class DeadlineWire(msgspec.Struct):
    """Resources with a common deadline."""

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
        return cls(
            record.member_id,
            record.url,
            ResourceList.of(record.resources),
            record.time_ms,
            CauseWire.of(record.cause),
            record.deadline_ms,
            record.instance_id,
        )

    def to_record(self) -> records.Loss:
        fields = msgspec.structs.asdict(self)
        fields["resources"] = frozenset(self.resources.resources())
        fields["cause"] = self.cause.to_cause()
        return records.Loss(**fields)


SHAPES: Final[Mapping[type, type[Shape]]] = {
    records.GroupMetadata: GroupMetadataWire,
    records.ClassicGroup: ClassicGroupWire,
    records.ConnectorsTasksMetadata: ConnectorsTasksMetadataWire,
    records.TargetAssignment: TargetAssignmentWire,
    records.CurrentAssignment: CurrentAssignmentWire,
    TaskStatus: TaskStatusWire,
    records.ScheduledRebalance: ScheduledRebalanceWire,
    records.Loss: LossWire,
    Committed: CommittedWire,
    TaskProgress: TaskProgressWire,
    records.ConfiguredPart: ConfiguredPartWire,
    records.TargetPart: TargetPartWire,
    records.CurrentPart: CurrentPartWire,
}
"""By class of record; the records of all other classes are written as they are."""
