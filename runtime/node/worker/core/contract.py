"""The interface between a `WorkerCore` and its shell: effects, reports, and the log to read.

An effect is an order of the core to its shell. The actor carries it out on real processes, the
simulator in virtual time, in the order of the effects. A report is an input of the core about the
connectors, tasks and engine of the worker.
"""

from dataclasses import dataclass
from typing import Protocol

from .....actors.messages.assignors import ComputeAssignment, DescribeAssignors, NotifyAssignment
from .....actors.messages.classic import ClassicCall
from .....actors.messages.computing import Install, Prepare
from .....actors.messages.members import (
    CommitOffsets,
    CommitVerdict,
    ExternalStateRemoved,
    Heartbeat,
    PutTaskConfigs,
    ReportStatus,
)
from .....events.commits import Commit, CommitId
from .....events.group import Group
from .....events.model import Resource, Resources, RunState
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
    | ExternalStateRemoved
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
    """Start a resource, which does not run yet; exactly one `Stopped` report has to follow."""

    launch: Launch


@dataclass(frozen=True, slots=True)
class StopResource:
    """Stop a resource gracefully; a `Stopped` report follows."""

    resource: Resource


@dataclass(frozen=True, slots=True)
class TurnResource:
    """Move a task that runs to another target state, RUNNING or PAUSED, without an end."""

    resource: Resource
    target_state: RunState


@dataclass(frozen=True, slots=True)
class AbandonAll:
    """Cancel all running resources at once; a `Stopped` report follows for each."""

    reason: str


@dataclass(frozen=True, slots=True)
class AnswerCommit:
    """Deliver the result of a commit to its task."""

    commit_id: CommitId
    verdict: CommitVerdict | None
    """None: the outcome is unknown, for the reason `why`; the task has to retry."""
    why: str = ""


@dataclass(frozen=True, slots=True)
class PresentReached:
    """Answer who asked: the log here has all that counted when that was asked."""

    asker: object
    is_known: bool = True
    """False: the group has not answered, and what counts now is not known."""


@dataclass(frozen=True, slots=True)
class Exit:
    """End the process immediately, with all that runs in it."""

    reason: str


Effect = (
    SendToGroup
    | AskAssignor
    | TellSupervisor
    | StartResource
    | StopResource
    | TurnResource
    | AbandonAll
    | AnswerCommit
    | PresentReached
    | Exit
)


@dataclass(frozen=True, slots=True)
class CommitAsked:
    """From a task: commit this batch."""

    commit: Commit


@dataclass(frozen=True, slots=True)
class BatchPublished:
    """From a task or the janitor: this batch is published."""

    commit_id: CommitId


@dataclass(frozen=True, slots=True)
class Forgotten:
    """From the janitor: the external state of a deleted connector (config of that time) is gone."""

    connector: str
    config_ms: int


@dataclass(frozen=True, slots=True)
class PresentAsked:
    """From a thread: say when the log here has all that counts now."""

    asker: object


@dataclass(frozen=True, slots=True)
class EngineStarted:
    """From the runner: its engine has a new process, which ends with the worker process."""

    pid: int


@dataclass(frozen=True, slots=True)
class EngineWarm:
    """From the runner: its engine is warm, and can run work."""


CoreReport = (
    Report | CommitAsked | BatchPublished | Forgotten | PresentAsked | EngineStarted | EngineWarm
)


class MemberLog(Protocol):
    """A worker's projection of the group's log, limited to its own member.

    Only `catch_up` reads the log; `group` does not change between two calls. The group may be
    partial, but it has:

    * the resources that this member was granted, with config and fencing token (`launches`,
      `token_of`: the member's own seat and step, and the connectors of its resources with their
      task configs);
    * the logged state of what this member has reported (`statuses` of the reported resources,
      their connectors, the task configs of its own connectors);
    * who computed the target, and the assignor's metadata for all members (`target` without its
      shares);
    * the configured connectors, for a member that may have to compute an assignment;
    * the end position of the log that was read (`end`).
    """

    @property
    def member_id(self) -> str:
        """The id of the member in the group."""
        ...

    @property
    def group(self) -> Group:
        """The member's part of the group, as of the last call of `catch_up`."""
        ...

    def rename(self, member_id: str) -> None:
        """Follow the member under a new id, from the next `catch_up` on."""
        ...

    def watch(self, reported: Resources) -> None:
        """From the next `catch_up` on, follow the status of these resources only, owned or not."""
        ...

    def catch_up(self) -> Group:
        """Read new entries of the log, and return the member's part of the group."""
        ...

    def take_changed(self) -> Resources:
        """Return the resources of the member that have changed since the last call."""
        ...
