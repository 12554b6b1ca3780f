"""What a node tells of itself: version, health, processes, assignors, and how a request fails."""

from msgspec import Struct

from .members import MemberDescription, WorkerOrder


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


class WorkerList(Struct, frozen=True):
    """The workers of a node, of all groups."""

    processes_known: bool
    """Whether the supervisor answered: without it only the members are told."""
    workers: list[WorkerDescription]


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
