"""Connectors, their tasks, what these do, and the batches that are to count."""

from collections.abc import Mapping
from dataclasses import dataclass

from ...events.commits import Commit, CommitId
from ...events.model import Resource, RunState, Token
from .errors import Error


@dataclass(frozen=True, slots=True)
class PutConnector:
    """Create a connector, or change its config; secret values come sealed.

    With `create_only` an existing connector is left as it is (ALREADY_EXISTS).
    """

    group_id: str
    connector: str
    config: Mapping[str, str]
    create_only: bool = False
    principal: str | None = None


@dataclass(frozen=True, slots=True)
class DeleteConnector:
    """Stop a connector for good; its offsets stay, as in Kafka Connect."""

    group_id: str
    connector: str
    principal: str | None = None


@dataclass(frozen=True, slots=True)
class PutTaskConfigs:
    """A connector split its work; only the holder of the connector may say so."""

    group_id: str
    member_id: str
    connector: str
    token: Token
    configs: tuple[Mapping[str, str], ...]


@dataclass(frozen=True, slots=True)
class StatusUpdate:
    """What one resource does at its worker, and since when by the worker's wall clock."""

    resource: Resource
    token: Token
    state: RunState
    at_ms: int
    reason: str = ""


@dataclass(frozen=True, slots=True)
class ReportStatus:
    """What became of resources at a worker; an older token never overwrites a newer one."""

    group_id: str
    member_id: str
    updates: tuple[StatusUpdate, ...]


@dataclass(frozen=True, slots=True)
class CommitOffsets:
    """The batches of a member's tasks that are to count, and those since published."""

    group_id: str
    member_id: str
    commits: tuple[Commit, ...]
    published: tuple[CommitId, ...] = ()
    number: int = 0
    """Which of the member's messages this is; the answer names it."""


@dataclass(frozen=True, slots=True)
class CommitVerdict:
    """Whether one batch counts now; FENCED says that its task must end."""

    commit_id: CommitId
    error: Error
    message: str = ""


@dataclass(frozen=True, slots=True)
class CommitReply:
    """The verdicts, in the order of the commits."""

    verdicts: tuple[CommitVerdict, ...]
    number: int = 0
    error: Error = Error.NONE
    message: str = ""
