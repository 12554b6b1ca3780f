"""What a `WorkerCore` has its shell do: a closed set of values, carried out in order.

The actor carries them out on real processes, the simulator in virtual time.
"""

from dataclasses import dataclass

from .....actors.messages.assignors import ComputeAssignment, DescribeAssignors, NotifyAssignment
from .....actors.messages.computing import Install, Prepare
from .....actors.messages.heartbeat import Heartbeat
from .....actors.messages.work import CommitOffsets, CommitVerdict, PutTaskConfigs, ReportStatus
from .....events.commits import Commit, CommitId
from .....events.model import Resource
from .....projections.launches import Launch
from ....cluster.messages import AssignorHangs, EngineRuns, WorkerGone, WorkerSays

GroupMessage = Heartbeat | Prepare | Install | ReportStatus | PutTaskConfigs | CommitOffsets
AssignorMessage = DescribeAssignors | ComputeAssignment | NotifyAssignment
SupervisorMessage = AssignorHangs | EngineRuns | WorkerGone | WorkerSays


@dataclass(frozen=True, slots=True)
class SendToGroup:
    """Send this to the group's actor."""

    message: GroupMessage


@dataclass(frozen=True, slots=True)
class AskAssignor:
    """Send this to the assignor process."""

    message: AssignorMessage


@dataclass(frozen=True, slots=True)
class TellSupervisor:
    """Send this to the supervisor."""

    message: SupervisorMessage


@dataclass(frozen=True, slots=True)
class StartResource:
    """Begin to run this; nothing of the resource runs yet. Exactly one `Stopped` will follow."""

    launch: Launch


@dataclass(frozen=True, slots=True)
class StopResource:
    """Let this come to its end in good order; `Stopped` says when it has."""

    resource: Resource


@dataclass(frozen=True, slots=True)
class AbandonAll:
    """Cut everything short that runs; `Stopped` says of each when it has ended."""

    reason: str


@dataclass(frozen=True, slots=True)
class AnswerCommit:
    """Tell a task what became of its commit."""

    commit_id: CommitId
    verdict: CommitVerdict | None
    """None: the outcome is unknown, and `why` says so; the task has to ask again."""
    why: str = ""


@dataclass(frozen=True, slots=True)
class Exit:
    """End the process this instant, with all that runs in it."""

    reason: str


Effect = (
    SendToGroup
    | AskAssignor
    | TellSupervisor
    | StartResource
    | StopResource
    | AbandonAll
    | AnswerCommit
    | Exit
)


@dataclass(frozen=True, slots=True)
class CommitAsked:
    """From a task: make this batch count."""

    commit: Commit


@dataclass(frozen=True, slots=True)
class BatchPublished:
    """From a task, or the janitor: the files of this batch are in place."""

    commit_id: CommitId


@dataclass(frozen=True, slots=True)
class EngineStarted:
    """From the runner: its engine has a new process, which ends with the worker's."""

    pid: int


@dataclass(frozen=True, slots=True)
class EngineWarm:
    """From the runner: its engine can take work now."""
