"""Replies about nodes and their workers: members, processes, assignors, health; and errors."""

from typing import Annotated

from msgspec import Struct

from .words import HealthWord, MemberStateWord, SettingSourceWord, one_of


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


class Liveness(Struct, frozen=True):
    """The REST process answers."""

    status: Annotated[str, one_of(["alive"])]
    """That it answers is all that is asked."""


class MissingPart(Struct, frozen=True):
    """A reason why a node cannot do its work now."""

    reason: str
    """supervisor, silent, group, owner, copies, log, disk, engine or worker."""
    message: str


class Readiness(Struct, frozen=True):
    """Whether a node accepts commands and can run work; if not, for which reasons."""

    status: Annotated[str, one_of(["ready", "not ready"])]
    """The answer has the status 503 if it is not ready."""
    reasons: list[MissingPart]
    """None of them if it is ready."""


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


class CallerGrant(Struct, frozen=True):
    """Rights of a caller, and what they are for."""

    rights: list[str]
    """view, operate, administer."""
    connectors: list[str]
    """The patterns of their names; empty: all connectors, and the node itself."""


class CallerDescription(Struct, frozen=True):
    """Who a caller is taken for, and what they may do."""

    name: str
    """As it is in the log."""
    authentication: str
    """How they have proved it: none, basic, token, mtls or oidc."""
    address: str
    """Where they call from; empty on the Unix socket."""
    grants: list[CallerGrant]
    """All that they may do."""
    node: list[str]
    """Their rights to everything."""
    connector: list[str]
    """Their rights to the connector of the question; empty without one."""


class WorkerRemoval(Struct, frozen=True):
    """A worker that is being removed."""

    group_id: str
    worker: str
    member_id: str | None
    process: str | None
    """The name of the process that is stopped; None if it is not of this node."""
    message: str
    """What happens next."""


class LoggedEntry(Struct, frozen=True):
    """An entry of a log: a line, and the lines that belong to it."""

    file: str
    """The name of its file, without what a full one has in addition."""
    text: str
    """As it was written, without what looks like a secret."""


class LogPage(Struct, frozen=True):
    """Entries of the log files of a node, in the order of their times."""

    entries: list[LoggedEntry]
    """The entries, the latest one last."""
    is_cut: bool
    """Whether there are older ones that were not looked at, or are too many for an answer."""
    next: str
    """Where the files end now: `after` of a request for what is new."""


class SettingInfo(Struct, frozen=True):
    """A setting of a node, or of its group, as it is in force."""

    name: str
    value: str
    """The value, ******** if it is a secret."""
    default: str
    """The value of a node that sets none."""
    unit: str
    """The unit of the value; empty: none."""
    source: SettingSourceWord
    """Where the value comes from; a group's own setting comes before those of its node."""
    origin: str
    """The file or the environment variable; empty if it comes from neither."""
    meaning: str
    """What it is for, in a sentence or two."""


class SettingList(Struct, frozen=True):
    """All settings of a node and of its group."""

    settings: list[SettingInfo]
    """The node's settings in the order of the reference, and what is passed on to others."""


class CopiesDescription(Struct, frozen=True):
    """How far the copies of the group's logs are on a node that does not own the group."""

    behind_entries: int
    """How many entries they lack, as far as the owner's answers tell."""
    in_step_ms: int | None
    """How long ago they had all that counted; null: not since the process started."""
    clock_ms: int | None
    """How far the clock of the node is ahead of the owner's; null: nothing was written since."""


class NodeDescription(Struct, frozen=True, kw_only=True):
    """A node that has owned the group, that the owner has heard of, or that is asked itself."""

    name: str
    """Its `node.name`; of a node that is only known by its workers, the host that these tell."""
    owns: bool
    """Whether it owns the group."""
    is_here: bool
    """Whether it is the node that was asked."""
    is_ready: bool = False
    """Whether it lives, as far as the node knows that was asked."""
    heard_ms: int | None = None
    """How long ago it was heard of; null: it was not, since the owner began and this one did."""
    address: str = ""
    """Where other nodes reach it, `host:port`; empty: that is not known."""
    version: str = ""
    """The version of fairlead on it, as far as it is known."""
    workers: list[str] = []
    """The names of its workers that are members of the group."""
    owner_epoch: int | None = None
    """The number of its last claim; null: it has never owned the group."""
    since_ms: int | None = None
    """When that claim began."""
    silence_ms: int | None = None
    """For how long nothing had been heard of the owner before that claim."""
    copies: CopiesDescription | None = None
    """How far its copies are; null: it owns the group, or that is not known."""


class NodeList(Struct, frozen=True):
    """The nodes of a cluster that its group knows."""

    group_id: str
    store: str
    """Where the group's commits count: lmdb (on one host), postgres or kafka."""
    owner: str
    """The name of the node that owns the group; empty: none is known."""
    owner_silent_ms: int
    """How long nothing has been heard of the owner."""
    nodes: list[NodeDescription]


class OwnerMove(Struct, frozen=True):
    """A group that its owner has given up."""

    group_id: str
    owner: str
    """The name of the node that owned the group."""
    to: str
    """The name of the node that is to own it; empty: any other."""
    message: str
