"""What a `WorkerCore` and its shell owe one another: effects, reports, and a log to read.

An effect is what the core has its shell do: the actor does it on real processes, the simulator in
virtual time, in the order of the effects. A report is what the core is told of what runs beside it.
"""

from dataclasses import dataclass
from typing import Protocol

from .....actors.messages.assignors import ComputeAssignment, DescribeAssignors, NotifyAssignment
from .....actors.messages.classic import ClassicCall
from .....actors.messages.computing import Install, Prepare
from .....actors.messages.members import (
    CommitOffsets,
    CommitVerdict,
    Heartbeat,
    PutTaskConfigs,
    ReportStatus,
    SourceForgot,
)
from .....events.commits import Commit, CommitId
from .....events.group import Group
from .....events.model import Resource, Resources
from .....projections.launches import Launch
from ....cluster.messages import AssignorHangs, EngineRuns, WorkerGone, WorkerSays
from ....pipeline.tasks.reports import Report

GroupMessage = (
    ClassicCall
    | Heartbeat
    | Prepare
    | Install
    | ReportStatus
    | PutTaskConfigs
    | SourceForgot
    | CommitOffsets
)
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
class Forgotten:
    """From the janitor: a deleted connector, its config of that time, keeps nothing outside."""

    connector: str
    config_ms: int


@dataclass(frozen=True, slots=True)
class EngineStarted:
    """From the runner: its engine has a new process, which ends with the worker's."""

    pid: int


@dataclass(frozen=True, slots=True)
class EngineWarm:
    """From the runner: its engine can take work now."""


CoreReport = Report | CommitAsked | BatchPublished | Forgotten | EngineStarted | EngineWarm


class MemberLog(Protocol):
    """What a worker takes of the log: the answers that concern its own member.

    It is read by `catch_up` only; between two calls `group` stays as it is, which need not be
    the whole group. It has to tell:

    * which resources this member was granted, with config and fencing token
      (`launches`, `token_of`: the member's own seat and step, the connectors of its resources and
      how these split their work);
    * what the log says of what this member has reported (`statuses` of the reported resources,
      their connectors, the task configs of its own connectors);
    * who computed the target, and what that assignor said to all (`target` without its shares);
    * what is configured, for a member that may have to assign;
    * how far the log was read (`end`).
    """

    @property
    def member_id(self) -> str:
        """What the group calls the member."""
        ...

    @property
    def group(self) -> Group:
        """The member's part of the group, as of the last `catch_up`."""
        ...

    def rename(self, member_id: str) -> None:
        """Have the next `catch_up` show the member under the name that it was given."""
        ...

    def watch(self, reported: Resources) -> None:
        """Have the next `catch_up` show the status of these, held or not, and of no others."""
        ...

    def catch_up(self) -> Group:
        """Read what is new, and return the member's part of the group."""
        ...

    def take_changed(self) -> Resources:
        """Return those of the member's resources of which anything changed since the last call."""
        ...
