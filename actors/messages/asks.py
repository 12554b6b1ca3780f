"""The asks of a member over Kafka's wire, beside its heartbeats, and their answers (PROTOCOL §20).

It sends what a worker of the node sends by actor messages, and reads what that reads in the log.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from ...events.commits import Commit, CommitId, Document
from ...events.model import Resource, RunState, Token
from .errors import Error
from .members import CommitOffsets, CommitReply, PutTaskConfigs, ReportStatus


@dataclass(frozen=True, slots=True)
class ReadWork:
    """A member reads what it needs to run resources that it was granted."""

    group_id: str
    member_id: str
    resources: tuple[Resource, ...]


@dataclass(frozen=True, slots=True)
class GrantedWork:
    """One resource that the group grants the member, with its fencing token."""

    resource: Resource
    token: Token
    state: RunState
    """What people want its connector to be."""
    connector_config: Mapping[str, str]
    config: Mapping[str, str]
    """That of the task; for a connector its own."""


@dataclass(frozen=True, slots=True)
class WorkReply:
    """The group answers `ReadWork`; what the member is not granted, or has no config, is missing.

    Secrets are sealed, as in the log.
    """

    error: Error = Error.NONE
    message: str = ""
    work: tuple[GrantedWork, ...] = ()


@dataclass(frozen=True, slots=True)
class ReadOffsets:
    """A member reads how far a task has come that it was granted."""

    group_id: str
    member_id: str
    connector: str
    task: int
    partitions: tuple[Document, ...] = ()
    """The source partitions whose offsets it wants."""


@dataclass(frozen=True, slots=True)
class OffsetsReply:
    """The group answers `ReadOffsets`."""

    error: Error = Error.NONE
    message: str = ""
    offsets: tuple[Document | None, ...] = ()
    """The logged offset of each partition, in the order in which they were named; None: none."""
    last: CommitId | None = None
    """The task's last batch that counts, under whichever token; None: there is none."""
    unpublished: tuple[Commit, ...] = ()
    """The task's oldest batches that count and are not known to be published."""


@dataclass(frozen=True, slots=True)
class ReportReply:
    """The group answers `ReportStatus` and `PutTaskConfigs`: what counts of it is durable."""

    error: Error = Error.NONE
    message: str = ""


AskReply = WorkReply | OffsetsReply | ReportReply | CommitReply


@dataclass(frozen=True, slots=True)
class UnreadableAsk:
    """An ask whose kind or body is not one of the table: it is refused, and no group is request."""

    error: Error
    message: str


AskRequest = ReadWork | ReadOffsets | ReportStatus | PutTaskConfigs | CommitOffsets | UnreadableAsk
"""What a member may ask."""


@dataclass(frozen=True, slots=True)
class MemberAsk:
    """A call ConnectGroupAsk."""

    group_id: str
    member_id: str
    member_epoch: int
    """The member's epoch as it knows it; below 0: it does not say."""
    request: AskRequest


def refuse_asked(request: AskRequest, error: Error, message: str) -> AskReply:
    """Return the reply to an ask that is refused as a whole."""
    if isinstance(request, ReadWork):
        return WorkReply(error, message)
    if isinstance(request, ReadOffsets):
        return OffsetsReply(error, message)
    if isinstance(request, CommitOffsets):
        return CommitReply((), 0, error, message)
    return ReportReply(error, message)
