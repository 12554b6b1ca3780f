"""What a node tells of itself and of its workers: members, processes, assignors, its health.

How a request fails is here too: that answer is the same for all of them.
"""

from collections.abc import Iterable

from msgspec import Struct

from ....events.group import Group, Member
from ....events.model import Grants, GroupType, Resource
from ....events.placement import abilities, assignor_of
from ....events.records import Operator


class ErrorMessage(Struct, frozen=True):
    """Connect's `ErrorMessage`: the body of every answer that is an error."""

    error_code: int
    """The HTTP status."""
    message: str


class Message(Struct, frozen=True):
    """A sentence for people: what has been begun, and what it still waits for."""

    message: str


class ServerInfo(Struct, frozen=True):
    """Connect's `ServerInfo`."""

    version: str
    commit: str
    kafka_cluster_id: str


class Health(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Whether commands are taken; one that is not healthy is told as an error as well."""

    status: str
    """healthy, slow or unhealthy."""
    error_code: int | None = None
    """The HTTP status where it is an error's."""
    message: str


class LoggerLevel(Struct, frozen=True):
    """Connect's `LoggerLevel`."""

    level: str
    last_modified: int | None
    """When it was set, in milliseconds of the wall clock; None: not since the node began."""


class ResourceId(Struct, frozen=True):
    """A connector or a task, beyond doubt: a connector's name may look like a task's."""

    id: str
    connector: str
    task: int | None
    """None: the connector itself."""


class GrantedResource(ResourceId, frozen=True):
    """A resource that a member holds, with the group epoch at which it was granted."""

    grant_epoch: int


class MemberDescription(Struct, frozen=True, omit_defaults=True):
    """Where one member stands, and what it holds."""

    member_id: str
    worker_id: str
    """Its URL; the member id where it has none."""
    instance_id: str | None
    rack: str | None
    tags: list[str]
    capacity: int
    """How much it takes next to others."""
    state: str
    member_epoch: int
    assigned: list[GrantedResource]
    pending_revocation: list[GrantedResource]
    target: list[ResourceId]
    assignors: list[str]
    rebalance_timeout_ms: int
    protocol: str
    """By which it speaks to its group: `classic`, or that of the group's type."""
    client_id: str = ""
    """That of one of Kafka's clients, as is where it speaks from."""
    client_host: str = ""


class WorkerOrder(Struct, frozen=True, kw_only=True):
    """What operators want of one worker."""

    worker: str
    cordoned: bool
    draining: bool
    expected_back_ms: int | None
    """None where it is not expected."""
    removing: str | None
    """The id of the member that is to be removed."""


class GroupWorkerOrder(WorkerOrder, frozen=True):
    """What operators want of one worker of a group."""

    group_id: str


class ProcessDescription(Struct, frozen=True):
    """A process that the supervisor of the node keeps running."""

    pid: int | None
    """None while it does not run."""
    state: str
    restarts: int
    """How often it was started anew."""
    detail: str
    """Why it does not run, if it does not; else empty."""


class WorkerDescription(Struct, frozen=True):
    """A worker: the member that it is once it has joined, and its process if that is here."""

    name: str
    worker_id: str
    """Its URL."""
    group_id: str | None
    member: MemberDescription | None
    order: WorkerOrder | None
    process: ProcessDescription | None


class WorkerList(Struct, frozen=True, omit_defaults=True):
    """The workers of a node, of all groups."""

    processes_known: bool
    """Whether the supervisor answered: without it only the members are told."""
    workers: list[WorkerDescription]
    engine: ProcessDescription | None = None
    """The JVM that they share, if they do."""


class AssignorDescription(Struct, frozen=True):
    """An assignor that `group.local.assignors` can name."""

    name: str
    origin: str
    """Built in, or the entry point that offers it."""


class AssignorList(Struct, frozen=True):
    """The assignors of a node, and the process that runs them."""

    assignors: list[AssignorDescription]
    processes_known: bool
    """Whether the supervisor answered."""
    processes: list[ProcessDescription]


class WorkerRemoval(Struct, frozen=True):
    """A worker that was told to leave."""

    group_id: str
    worker: str
    member_id: str | None
    process: str | None
    """The name of the process that ends; None if none of this node was the worker."""
    message: str
    """What is to be expected."""


def describe_member(group: Group, member: Member) -> MemberDescription:
    """Return where one member stands, and what it holds."""
    metadata, current = member.metadata, member.current
    able = abilities(assignor_of(group.target.assignor, metadata.assignors).metadata)
    is_classic = metadata.classic is not None
    return MemberDescription(
        member.member_id,
        member.metadata.worker_url,
        metadata.instance_id,
        metadata.rack,
        sorted(able.tags),
        able.capacity,
        member.state.name,
        current.member_epoch,
        _granted(current.assigned),
        _granted(current.pending),
        resource_ids(group.share_of(member.member_id)),
        [each.name for each in metadata.assignors],
        metadata.rebalance_timeout_ms,
        (GroupType.CLASSIC if is_classic else group.type).value,
        metadata.client_id,
        metadata.client_host,
    )


def worker_order(order: Operator) -> WorkerOrder:
    """Return what operators want of one worker."""
    return WorkerOrder(
        worker=order.name,
        cordoned=order.cordoned,
        draining=order.draining,
        expected_back_ms=order.expected_back_ms or None,
        removing=order.removing or None,
    )


def _granted(grants: Grants) -> list[GrantedResource]:
    return [GrantedResource(*id_of(each), grants[each]) for each in sorted(grants)]


def resource_ids(resources: Iterable[Resource]) -> list[ResourceId]:
    """Return resources in their order."""
    return [ResourceId(*id_of(each)) for each in sorted(resources)]


def id_of(resource: Resource) -> tuple[str, str, int | None]:
    """Return the fields of a `ResourceId`."""
    return str(resource), resource.connector, resource.task if resource.is_task else None
