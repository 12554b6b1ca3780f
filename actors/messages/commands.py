"""All that may be asked of a group, and what it answers."""

from dataclasses import dataclass

from .computing import Install, InstallReply, Prepare, PrepareReply
from .errors import Error
from .heartbeat import Heartbeat, HeartbeatReply
from .orders import ConfigureGroup, DeleteGroup, EndMember, OperatorCommand, ReleaseSeats
from .timers import TimerCommand
from .work import (
    CommitOffsets,
    CommitReply,
    DeleteConnector,
    PutConnector,
    PutTaskConfigs,
    ReportStatus,
)


@dataclass(frozen=True, slots=True)
class CommandReply:
    """How a command ended; `log_offset` is the end of the log that holds its effect."""

    error: Error
    message: str = ""
    log_offset: int = 0
    created: bool = False


@dataclass(frozen=True, slots=True)
class DescribeTraffic:
    """Ask a group's actor what went through it."""

    group_id: str


@dataclass(frozen=True, slots=True)
class Traffic:
    """The heartbeats since the actor started, and those that it holds until there is news."""

    heartbeats: int
    held: int


GroupCommand = (
    Heartbeat
    | Prepare
    | Install
    | PutConnector
    | DeleteConnector
    | PutTaskConfigs
    | ReportStatus
    | ConfigureGroup
    | DeleteGroup
    | EndMember
    | ReleaseSeats
    | OperatorCommand
)
"""What may be asked of a group."""


GroupRequest = GroupCommand | CommitOffsets
"""What may be asked of a group's process: of its control log, or of its offset log."""

Command = GroupCommand | TimerCommand
"""What leads to a decision."""


Reply = HeartbeatReply | PrepareReply | InstallReply | CommandReply | CommitReply
