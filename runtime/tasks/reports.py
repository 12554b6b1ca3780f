"""What a runner tells its worker: one value per thing that happened."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum

from ...events.model import CommitId, Resource, RunState, Token


class Ending(Enum):
    """How a resource came to its end."""

    STOPPED = "stopped"
    """It was asked to, and finished what it had begun."""

    CANCELLED = "cancelled"
    """It was cut short: what it had begun counts only if it was committed by then."""

    FENCED = "fenced"
    """Its token is no longer current: somebody else has the task."""


@dataclass(frozen=True, slots=True)
class Started:
    """A resource begins; it may still have to wait for the engine."""

    resource: Resource
    token: Token


@dataclass(frozen=True, slots=True)
class Stopped:
    """A resource has come to its end, and nothing of it runs any more."""

    resource: Resource
    token: Token
    ending: Ending


@dataclass(frozen=True, slots=True)
class Hung:
    """A resource does not end although it was cancelled: kill the engine, or the process."""

    resource: Resource
    token: Token


@dataclass(frozen=True, slots=True)
class StatusChanged:
    """What a resource is doing now; `trace` tells at length why, if it failed."""

    resource: Resource
    token: Token
    state: RunState
    reason: str = ""
    trace: str = ""


@dataclass(frozen=True, slots=True)
class Warned:
    """Something that its owner should look at, though the resource goes on."""

    resource: Resource
    token: Token
    text: str


@dataclass(frozen=True, slots=True)
class TaskConfigsChanged:
    """How a connector splits its work, in the order of its tasks."""

    connector: str
    token: Token
    configs: tuple[Mapping[str, str], ...]


@dataclass(frozen=True, slots=True)
class BatchDone:
    """A batch that counts: its size, and how long each phase took, in seconds.

    `first` marks the first batch since its task was started, `began_ms` is the wall clock at
    which the task first looked for one. `run_s` is reading, transforming and staging.
    """

    commit_id: CommitId
    began_ms: int
    first: bool
    rows_in: int
    rows_out: int
    bytes_in: int
    bytes_out: int
    files_out: int
    plan_s: float
    run_s: float
    commit_s: float
    publish_s: float
    backlog: bool


Report = Started | Stopped | Hung | StatusChanged | Warned | TaskConfigsChanged | BatchDone
