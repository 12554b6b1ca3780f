"""The values of the log's records as they lie on disk: msgpack maps with the seeds' fields.

Every field that is newer than its record's first version has a default, so that old logs
load for ever; nothing is ever renamed or given another meaning. States and causes are
plain numbers and strings here, so that what a later version wrote still loads.
"""
# pyright: strict

import msgspec


class TaskList(msgspec.Struct, gc=False):
    """Tasks of one connector."""

    connector: str
    tasks: list[int]


class ResourceList(msgspec.Struct, gc=False):
    """Connectors and tasks: the one nullable struct of the wire."""

    connectors: list[str] = []
    tasks: list[TaskList] = []


class AssignorWire(msgspec.Struct):
    """An assignor that a member can run."""

    name: str
    minimum_version: int = 0
    maximum_version: int = 0
    version: int = 0
    reason: int = 0
    metadata: bytes = b""


class CauseWire(msgspec.Struct):
    """Why, and to whom."""

    why: str
    subject: str = ""


class GroupMetadataWire(msgspec.Struct):
    """Key type 3."""

    group_epoch: int
    cause: CauseWire
    time_ms: int = 0
    actor: str | None = None
    since_ms: int = 0


class ConnectorsTasksMetadataWire(msgspec.Struct):
    """Key type 4."""

    configured: ResourceList
    shards: int = 0


class SuccessionWire(msgspec.Struct):
    """How a static member came back."""

    returns: int
    target_id: str
    assignment_epoch: int


class MemberMetadataWire(msgspec.Struct):
    """Key type 5."""

    member_id: str
    incarnation: str = ""
    joined_epoch: int = 0
    rebalance_timeout_ms: int = -1
    assignors: list[AssignorWire] = []
    server_assignor: str | None = None
    instance_id: str | None = None
    rack: str | None = None
    url: str = ""
    client_id: str = ""
    client_host: str = ""
    session_timeout_ms: int = 0
    succession: SuccessionWire | None = None
    node: str = ""


class ShareWire(msgspec.Struct):
    """What the target gives one member."""

    member_id: str
    resources: ResourceList


class ReasonWire(msgspec.Struct):
    """Why a resource has no place."""

    connector: str
    task: int
    reason: str


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


class CurrentAssignmentWire(msgspec.Struct, gc=False):
    """Key type 7; the epochs lie in the order of the flattened resources."""

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


class GroupConfigurationWire(msgspec.Struct):
    """Key type 8."""

    configs: dict[str, str]


class ConnectorConfigWire(msgspec.Struct):
    """Key type 16."""

    connector: str
    config: dict[str, str]
    version: int = 1
    time_ms: int = 0
    deleting: bool = False
    offsets_before: int = 0


class TaskConfigWire(msgspec.Struct):
    """One task's config."""

    config: dict[str, str]
    generation: int


class TaskConfigsWire(msgspec.Struct):
    """Key type 17."""

    connector: str
    generation: int
    tasks: list[TaskConfigWire]


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


class DeadlineWire(msgspec.Struct):
    """Resources that come due together."""

    deadline_ms: int
    resources: ResourceList


class ScheduledRebalanceWire(msgspec.Struct):
    """Key type 21."""

    parked: list[DeadlineWire]
    fired: ResourceList
    again_at_ms: int = 0


class OperatorWire(msgspec.Struct):
    """Key type 22."""

    scope: str
    name: str
    task: int = -1
    cordoned: bool = False
    draining: bool = False
    expected_back_ms: int = 0
    weight: int = 1
    pins: list[str] = []
    time_ms: int = 0
    actor: str | None = None
    removing: str = ""
    gently: bool = False


class LossWire(msgspec.Struct):
    """Key type 23."""

    member_id: str
    url: str
    resources: ResourceList
    time_ms: int
    cause: CauseWire
    deadline_ms: int
    instance_id: str | None = None


class GroupDeletionWire(msgspec.Struct):
    """Key type 26."""

    group_epoch: int
    time_ms: int
    actor: str | None = None


TasksByConnector = dict[str, list[int]]
"""By connector: numbers of tasks, -1 for the connector itself."""
GrantsByConnector = dict[str, list[int]]
"""By connector: number of a task and grant epoch in turn, the number -1 for the connector."""


class ConfiguredShardWire(msgspec.Struct):
    """Key type 27."""

    number: int
    configured: TasksByConnector


class TargetShardWire(msgspec.Struct):
    """Key type 28."""

    number: int
    members: dict[str, TasksByConnector]
    unplaceable: list[ReasonWire] = []


class CurrentShardWire(msgspec.Struct):
    """Key type 29."""

    member_id: str
    number: int
    assigned: GrantsByConnector
    pending: GrantsByConnector = {}


ScalarWire = str | int | float | bool | None
DocumentWire = dict[str, ScalarWire]


class OffsetWire(msgspec.Struct):
    """Key type 19."""

    connector: str
    partition: DocumentWire
    offset: DocumentWire


class CommitIdWire(msgspec.Struct):
    """Which batch of which task under which token."""

    connector: str
    task: int
    grant_epoch: int
    generation: int
    batch: int


class AdvanceWire(msgspec.Struct):
    """A step of one source partition."""

    partition: DocumentWire
    start: DocumentWire | None
    end: DocumentWire | None


class PartWire(msgspec.Struct, array_like=True):
    """One file of a batch."""

    path: str
    bytes: int
    rows: int = -1


class ManifestWire(msgspec.Struct):
    """What a batch staged."""

    root: str
    staging: str
    rows: int
    bytes: int
    files: int
    parts: list[PartWire] = []
    claim: str = ""


class LagWire(msgspec.Struct):
    """What a task has still to read."""

    ranges: int
    bytes: int


class CommittedWire(msgspec.Struct):
    """Key type 24."""

    commit_id: CommitIdWire
    advances: list[AdvanceWire]
    manifest: ManifestWire
    rows_in: int
    time_ms: int = 0
    lag: LagWire | None = None


class TaskProgressWire(msgspec.Struct):
    """Key type 25."""

    last: CommitIdWire
    batches: int
    rows_in: int
    rows_out: int
    bytes_out: int
    time_ms: int = 0
    lag: LagWire | None = None
    filled: CommitIdWire | None = None
