"""Replies about the node and its workers: members, processes, assignors, health; and errors."""

from msgspec import Struct

from .words import HealthWord, MemberStateWord


class ErrorMessage(Struct, frozen=True):
    """Connect's `ErrorMessage`: the body of every error response."""

    error_code: int
    """The HTTP status."""
    message: str


class Message(Struct, frozen=True):
    """A sentence for users: what was started, and what it waits for."""

    message: str


class ServerInfo(Struct, frozen=True):
    """Connect's `ServerInfo`, and the version of fairlead."""

    version: str
    """The version of Kafka Connect whose REST API this is: clients choose their calls by it."""
    commit: str
    kafka_cluster_id: str
    fairlead_version: str = ""


class Health(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Whether the node accepts commands; an unhealthy one has the fields of an error as well."""

    status: HealthWord
    """healthy, slow or unhealthy."""
    error_code: int | None = None
    """The HTTP status of an error."""
    message: str


class LoggerLevel(Struct, frozen=True):
    """Connect's `LoggerLevel`."""

    level: str
    last_modified: int | None
    """When it was set, in milliseconds of the wall clock; None: not since the node started."""


class ResourceId(Struct, frozen=True):
    """A connector or a task, as separate fields: a connector's name may look like a task's id."""

    id: str
    connector: str
    task: int | None
    """None: the connector itself."""


class GrantedResource(ResourceId, frozen=True):
    """A resource that a member owns, with the group epoch of its grant."""

    grant_epoch: int


class MemberDescription(Struct, frozen=True, omit_defaults=True):
    """The state of one member, and its assignment."""

    member_id: str
    worker_id: str
    """Its URL; the member id if it has none."""
    instance_id: str | None
    rack: str | None
    tags: list[str]
    capacity: int
    """Its weight relative to other workers."""
    state: MemberStateWord
    member_epoch: int
    assigned: list[GrantedResource]
    pending_revocation: list[GrantedResource]
    target: list[ResourceId]
    assignors: list[str]
    rebalance_timeout_ms: int
    protocol: str
    """`classic`, or the protocol of the group's type."""
    client_id: str = ""
    """Only of Kafka clients, like `client_host`."""
    client_host: str = ""


class WorkerOrder(Struct, frozen=True, kw_only=True):
    """The operator orders for one worker."""

    worker: str
    cordoned: bool
    draining: bool
    expected_back_ms: int | None
    """Until when its work waits for its return; None if it does not."""
    removing: str | None
    """The id of the member that is being removed."""


class GroupWorkerOrder(WorkerOrder, frozen=True):
    """The operator orders for one worker of a group."""

    group_id: str


class ProcessDescription(Struct, frozen=True):
    """A process that the supervisor of the node restarts when it ends."""

    pid: int | None
    """None while it does not run."""
    state: str
    restarts: int
    """How often it was restarted."""
    detail: str
    """Why it does not run; empty if it does."""


class WorkerDescription(Struct, frozen=True):
    """A worker: its member once it has joined, and its process if it is of this node."""

    name: str
    worker_id: str
    """Its URL."""
    group_id: str | None
    member: MemberDescription | None
    order: WorkerOrder | None
    process: ProcessDescription | None


class WorkerList(Struct, frozen=True, omit_defaults=True):
    """All workers of the node's groups."""

    processes_known: bool
    """Whether the supervisor answered; without it there are only members."""
    workers: list[WorkerDescription]
    engine: ProcessDescription | None = None
    """The JVM that the workers share, if they do."""
    processes_age_ms: int = 0
    """How long ago the supervisor told the processes, if it does not answer at this moment."""


class AssignorDescription(Struct, frozen=True):
    """An assignor that `group.local.assignors` can name."""

    name: str
    origin: str
    """`built in`, or the entry point."""


class AssignorList(Struct, frozen=True):
    """The assignors of a node, and the process that runs them."""

    assignors: list[AssignorDescription]
    processes_known: bool
    """Whether the supervisor answered."""
    processes: list[ProcessDescription]


class WorkerRemoval(Struct, frozen=True):
    """A worker that is being removed."""

    group_id: str
    worker: str
    member_id: str | None
    process: str | None
    """The name of the process that is stopped; None if it is not of this node."""
    message: str
    """What happens next."""
