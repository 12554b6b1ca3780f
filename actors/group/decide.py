"""The group coordinator's rules: what a command leads to, and nothing of how it is done.

`decide` looks at a group, the desk beside it and a command, and returns the records to
write and the reply to send. It reads no clock, draws no lot and writes nothing; whoever
calls it does that.
"""

from collections.abc import Callable
from typing import Any

from ...events.group import Group
from ..messages import (
    Command,
    DeleteConnector,
    ExpireRebalance,
    ExpireSession,
    FinishDeletion,
    Heartbeat,
    Install,
    Prepare,
    PutConnector,
    PutTaskConfigs,
    ReleaseParked,
    ReportStatus,
    RetryAssignor,
    TimeOutAssignor,
)
from .configure import (
    delete_connector,
    finish_deletion,
    put_connector,
    put_task_configs,
    report_status,
)
from .desk import Decision, Desk
from .heartbeat import heartbeat
from .install import install, prepare
from .timers import (
    expire_rebalance,
    expire_session,
    release_parked,
    retry_assignor,
    time_out_assignor,
)

RULES: dict[type, Callable[[Group, Desk, Any, int], Decision]] = {
    Heartbeat: heartbeat,
    Prepare: prepare,
    Install: install,
    ReportStatus: report_status,
    PutTaskConfigs: put_task_configs,
    PutConnector: put_connector,
    DeleteConnector: delete_connector,
    FinishDeletion: finish_deletion,
    ExpireSession: expire_session,
    ExpireRebalance: expire_rebalance,
    ReleaseParked: release_parked,
    RetryAssignor: retry_assignor,
    TimeOutAssignor: time_out_assignor,
}


def decide(group: Group, desk: Desk, command: Command, now_ms: int) -> Decision:
    """Return what the command leads to in this group at this time (wall clock, ms)."""
    return RULES[type(command)](group, desk, command, now_ms)
