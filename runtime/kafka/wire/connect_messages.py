"""The messages of the proposals' three APIs of connect groups, and of two of ours.

The API keys are private ones, which other clients ignore. Version 0 has exactly the fields of the
proposals' schemas in their order, corrected where these are invalid: `ConnectorsAndTasks` is one
structure everywhere, and InstanceId may be null. All else is tagged, so a client that knows the
proposals alone is understood, and understands what it is told. Throttle times of Prepare and
Install are always 0: a member computes once for each time that it is asked. ConnectGroupDescribe
is ours, and is to these groups what ConsumerGroupDescribe is to those of consumers. All are kio
message classes.
"""
# pyright: basic

from dataclasses import dataclass, field
from typing import Any, Final

from kio.schema.request_header.v2.header import RequestHeader
from kio.schema.response_header.v1.header import ResponseHeader
from kio.static.constants import EntityType
from kio.static.primitive import i16

from .served import (
    CONNECT_ASK,
    CONNECT_DESCRIBE,
    CONNECT_HEARTBEAT,
    CONNECT_INSTALL,
    CONNECT_PREPARE,
)

EMPTY: Final = ()


def _of(kind: str, tag: int | None = None, **default: Any) -> Any:
    """Return a field of a Kafka type; without a default it is required."""
    metadata: dict[str, Any] = {"kafka_type": kind}
    return field(metadata=metadata if tag is None else {**metadata, "tag": tag}, **default)


class _Structure:
    """The attributes that kio requires of each class: all have one version, with tagged fields."""

    __type__ = EntityType.nested
    __version__ = i16(0)
    __flexible__ = True
    __api_key__ = i16(CONNECT_HEARTBEAT)
    __header_schema__: Any = RequestHeader


class _Request(_Structure):
    __type__ = EntityType.request


class _Response(_Structure):
    __type__ = EntityType.response
    __header_schema__ = ResponseHeader


# -- structures that several messages use


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectorTasks(_Structure):
    """Tasks of one connector, numbered from 0."""

    connector: str = _of("string")
    tasks: tuple[int, ...] = _of("int32", default=EMPTY)


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectorsAndTasks(_Structure):
    """Resources: connectors, and tasks by connector."""

    connectors: tuple[str, ...] = _of("string", default=EMPTY)
    tasks: tuple[ConnectorTasks, ...] = EMPTY


NOTHING: Final = ConnectorsAndTasks()


@dataclass(frozen=True, slots=True, kw_only=True)
class Deadline(_Structure):
    """A resource that is parked until a wall-clock time, or would be."""

    deadline_ms: int = _of("int64")
    connectors_and_tasks: ConnectorsAndTasks


# -- ConnectGroupHeartbeat


@dataclass(frozen=True, slots=True, kw_only=True)
class Assignor(_Structure):
    """An assignor of the member."""

    name: str = _of("string")
    minimum_version: int = _of("int16")
    maximum_version: int = _of("int16")
    reason: int = _of("int8")
    version: int = _of("int16")
    metadata: bytes = _of("bytes")


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectGroupHeartbeatRequest(_Request):
    """A member's heartbeat; fields that are null or -1 are unchanged."""

    group_id: str = _of("string")
    member_id: str = _of("string")
    member_epoch: int = _of("int32", default=-1)
    instance_id: str | None = _of("string", default=None)
    rebalance_timeout_ms: int = _of("int32", default=-1)
    server_assignor: str | None = _of("string", default=None)
    client_assignors: tuple[Assignor, ...] | None = None
    connectors_and_tasks: ConnectorsAndTasks | None = None
    url: str | None = _of("string", 0, default=None)
    incarnation: str = _of("string", 1, default="")
    sequence: int = _of("int64", 2, default=0)
    session_timeout_ms: int = _of("int32", 3, default=-1)
    coordinator_epoch: int = _of("int64", 4, default=-1)
    configured: ConnectorsAndTasks = field(metadata={"tag": 5}, default=NOTHING)
    config_offset: int = _of("int64", 6, default=-1)
    rack_id: str | None = _of("string", 7, default=None)


@dataclass(frozen=True, slots=True, kw_only=True)
class AssignedWork(_Structure):
    """The assignment of the member."""

    error: int = _of("int8", default=0)
    connectors_and_tasks: ConnectorsAndTasks
    version: int = _of("int16", default=0)
    metadata: bytes = _of("bytes", default=b"")


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectGroupHeartbeatResponse(_Response):
    """The response to a heartbeat; the assignment is null if it has not changed."""

    throttle_time_ms: int = _of("int32", default=0)
    error_code: int = _of("int16")
    error_message: str | None = _of("string", default=None)
    member_epoch: int = _of("int32")
    heartbeat_interval_ms: int = _of("int32")
    assignment: AssignedWork | None = None
    incarnation: str = _of("string", 0, default="")
    sequence: int = _of("int64", 1, default=0)
    session_timeout_ms: int = _of("int32", 2, default=0)
    log_offset: int = _of("int64", 3, default=-1)
    coordinator_epoch: int = _of("int64", 4, default=-1)
    config_offset: int = _of("int64", 5, default=-1)
    member_id: str | None = _of("string", 6, default=None)
    parked: tuple[Deadline, ...] = field(metadata={"tag": 7}, default=EMPTY)
    again_at_ms: int = _of("int64", 8, default=0)
    awaited: ConnectorsAndTasks = field(metadata={"tag": 9}, default=NOTHING)
    pending: ConnectorsAndTasks = field(metadata={"tag": 10}, default=NOTHING)
    reason: str = _of("string", 11, default="")


# -- ConnectGroupPrepareAssignment


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectGroupPrepareAssignmentRequest(_Request):
    """The request of the computing member for a snapshot of the group."""

    group_id: str = _of("string")
    member_id: str = _of("string")
    member_epoch: int = _of("int32")


@dataclass(frozen=True, slots=True, kw_only=True)
class AssignorState(_Structure):
    """The last metadata of a member's assignor."""

    version: int = _of("int16")
    reason: int = _of("int8")
    metadata: bytes = _of("bytes")


@dataclass(frozen=True, slots=True, kw_only=True)
class PreparedMember(_Structure):
    """A member in a snapshot."""

    member_id: str = _of("string")
    member_epoch: int = _of("int32")
    instance_id: str | None = _of("string", default=None)
    assignor: AssignorState
    connectors_and_tasks: ConnectorsAndTasks
    """What the target gives it."""
    url: str = _of("string", 0, default="")
    rack_id: str | None = _of("string", 1, default=None)
    cordoned: bool = _of("bool", 2, default=False)
    draining: bool = _of("bool", 3, default=False)
    worker: str = _of("string", 4, default="")
    owned: ConnectorsAndTasks = field(metadata={"tag": 5}, default=NOTHING)


@dataclass(frozen=True, slots=True, kw_only=True)
class ParkableLoss(_Structure):
    """A resource of a lost member, which may be parked until the deadline."""

    member_id: str = _of("string")
    instance_id: str | None = _of("string", default=None)
    url: str = _of("string", default="")
    deadline_ms: int = _of("int64")
    connectors_and_tasks: ConnectorsAndTasks


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkDemand(_Structure):
    """The weight and the allowed workers of a resource; empty: all; task -1: the connector."""

    connector: str = _of("string")
    task: int = _of("int32", default=-1)
    weight: int = _of("int32", default=1)
    workers: tuple[str, ...] = _of("string", default=EMPTY)
    zones: tuple[str, ...] = _of("string", default=EMPTY)
    tags: tuple[str, ...] = _of("string", default=EMPTY)
    any_work: bool = _of("bool", 0, default=False)
    """Whether members that take only work with tags are not among them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectGroupPrepareAssignmentResponse(_Response):
    """The snapshot of the group, or an error."""

    throttle_time_ms: int = _of("int32", default=0)
    error_code: int = _of("int16")
    error_message: str | None = _of("string", default=None)
    group_epoch: int = _of("int32", default=0)
    assignor_name: str = _of("string", default="")
    members: tuple[PreparedMember, ...] = EMPTY
    assignment_epoch: int = _of("int32", 0, default=0)
    now_ms: int = _of("int64", 1, default=0)
    metadata: bytes = _of("bytes", 2, default=b"")
    losses: tuple[ParkableLoss, ...] = field(metadata={"tag": 3}, default=EMPTY)
    parked: tuple[Deadline, ...] = field(metadata={"tag": 4}, default=EMPTY)
    fired: ConnectorsAndTasks = field(metadata={"tag": 5}, default=NOTHING)
    demands: tuple[WorkDemand, ...] = field(metadata={"tag": 6}, default=EMPTY)
    configured: ConnectorsAndTasks = field(metadata={"tag": 7}, default=NOTHING)
    snapshot_id: str = _of("string", 8, default="")


# -- ConnectGroupInstallAssignment


@dataclass(frozen=True, slots=True, kw_only=True)
class InstalledMember(_Structure):
    """The target of a member, with what the assignor says to it."""

    member_id: str = _of("string")
    connectors_and_tasks: ConnectorsAndTasks
    version: int = _of("int32", default=0)
    metadata: bytes = _of("bytes", default=b"")


@dataclass(frozen=True, slots=True, kw_only=True)
class Unplaceable(_Structure):
    """A resource that no member can take."""

    reason: str = _of("string")
    connectors_and_tasks: ConnectorsAndTasks


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectGroupInstallAssignmentRequest(_Request):
    """The computed assignment, from the snapshot of this group epoch."""

    group_id: str = _of("string")
    member_id: str = _of("string")
    member_epoch: int = _of("int32")
    group_epoch: int = _of("int32")
    error: int = _of("int8", default=0)
    members: tuple[InstalledMember, ...] = EMPTY
    parked: tuple[Deadline, ...] = field(metadata={"tag": 0}, default=EMPTY)
    unplaceable: tuple[Unplaceable, ...] = field(metadata={"tag": 1}, default=EMPTY)
    again_at_ms: int = _of("int64", 2, default=0)
    snapshot_id: str = _of("string", 3, default="")
    metadata: bytes = _of("bytes", 4, default=b"")
    version: int = _of("int32", 5, default=0)


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectGroupInstallAssignmentResponse(_Response):
    """Whether the assignment was accepted as the target."""

    throttle_time_ms: int = _of("int32", default=0)
    error_code: int = _of("int16")
    error_message: str | None = _of("string", default=None)


# -- ConnectGroupAsk


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectGroupAskRequest(_Request):
    """An ask of a member beside heartbeats, or any message of a node, which names no member.

    The kind says what is in the body, a map of msgpack.
    """

    group_id: str = _of("string")
    member_id: str = _of("string")
    member_epoch: int = _of("int32", default=-1)
    kind: str = _of("string")
    body: bytes = _of("bytes")


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectGroupAskResponse(_Response):
    """The answer, of a kind of its own; what it says is durable."""

    throttle_time_ms: int = _of("int32", default=0)
    error_code: int = _of("int16")
    error_message: str | None = _of("string", default=None)
    kind: str = _of("string", default="")
    body: bytes = _of("bytes", default=b"")
    control_end: int = _of("int64", 0, default=-1)
    """The end of the control log that the answer to a node rests on."""
    offsets_end: int = _of("int64", 1, default=-1)


# -- ConnectGroupDescribe


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectGroupDescribeRequest(_Request):
    """The groups to describe."""

    group_ids: tuple[str, ...] = _of("string", default=EMPTY)
    include_authorized_operations: bool = _of("bool", default=False)
    """It is ignored."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DescribedMember(_Structure):
    """A member of a described group."""

    member_id: str = _of("string")
    instance_id: str | None = _of("string", default=None)
    rack_id: str | None = _of("string", default=None)
    member_epoch: int = _of("int32")
    client_id: str = _of("string", default="")
    client_host: str = _of("string", default="")
    url: str = _of("string", default="")
    version: int = _of("int32", default=0)
    metadata: bytes = _of("bytes", default=b"")
    """What the assignor has said to it with its current assignment."""
    assignment: ConnectorsAndTasks
    """What it may run."""
    owned: ConnectorsAndTasks
    """What it holds: that, and what it has not given up yet."""
    target_assignment: ConnectorsAndTasks
    member_type: int = _of("int8", default=-1)
    """0: of the classic protocol, 1: of the connect protocol, -1: unknown."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DescribedGroup(_Structure):
    """A described group, or the error why it is not."""

    error_code: int = _of("int16")
    error_message: str | None = _of("string", default=None)
    group_id: str = _of("string")
    group_state: str = _of("string", default="")
    group_epoch: int = _of("int32", default=0)
    assignment_epoch: int = _of("int32", default=0)
    assignor_name: str = _of("string", default="")
    members: tuple[DescribedMember, ...] = EMPTY
    authorized_operations: int = _of("int32", default=-(1 << 31))


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectGroupDescribeResponse(_Response):
    """The groups, in the order in which they were named."""

    throttle_time_ms: int = _of("int32", default=0)
    groups: tuple[DescribedGroup, ...] = EMPTY


REQUESTS: Final[dict[int, Any]] = {
    CONNECT_HEARTBEAT: ConnectGroupHeartbeatRequest,
    CONNECT_PREPARE: ConnectGroupPrepareAssignmentRequest,
    CONNECT_INSTALL: ConnectGroupInstallAssignmentRequest,
    CONNECT_ASK: ConnectGroupAskRequest,
    CONNECT_DESCRIBE: ConnectGroupDescribeRequest,
}
RESPONSES: Final[dict[int, Any]] = {
    CONNECT_HEARTBEAT: ConnectGroupHeartbeatResponse,
    CONNECT_PREPARE: ConnectGroupPrepareAssignmentResponse,
    CONNECT_INSTALL: ConnectGroupInstallAssignmentResponse,
    CONNECT_ASK: ConnectGroupAskResponse,
    CONNECT_DESCRIBE: ConnectGroupDescribeResponse,
}
"""The request and response classes, by API key."""
