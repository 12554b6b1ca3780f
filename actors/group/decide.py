"""The group coordinator's rules: one pure function for each command.

`decide` takes a group, the soft state beside it and a command, and returns the records to write and
the reply to send. It reads no clock, draws no random numbers and writes nothing: its caller does.
"""

from collections.abc import Callable
from typing import Any

from ...events.group import Group
from ..messages.commands import (
    Command,
    ContinueMoves,
    EndExpectation,
    EndInitialDelay,
    EndInterval,
    ExpireRebalance,
    ExpireSession,
    FinishDeletion,
    FinishStop,
    FreeSeat,
    RecordAlteration,
    ReleaseParked,
    RetryAssignor,
    TimeOutAssignor,
)
from ..messages.computing import Install, Prepare
from ..messages.groups import RemoveGroup
from ..messages.members import ExternalStateRemoved, Heartbeat, PutTaskConfigs, ReportStatus
from ..messages.orders import (
    AlterOffsets,
    ConfigureGroup,
    Cordon,
    DeleteConnector,
    DeleteGroup,
    EndMember,
    Expect,
    MoveOwner,
    PutConnector,
    PutConnectors,
    Rebalance,
    ReleaseSeats,
    RemoveMember,
    Restart,
    SetPlacement,
    SetTargetState,
    Uncordon,
)
from .computing.compute import end_initial_delay, end_interval, time_out_assignor, with_target
from .computing.install import install, prepare
from .computing.target import continue_moves, release_parked, retry_assignor
from .members.depart import end_member, expire_rebalance, expire_session
from .members.heartbeat import heartbeat, heartbeat_outside
from .members.seats import free_seat
from .orders.configuration import configure_group
from .orders.connector_configs import put_connector, put_connectors
from .orders.connectors import (
    delete_connector,
    external_state_removed,
    finish_deletion,
    put_task_configs,
    report_status,
)
from .orders.delete_group import delete_group, remove_group
from .orders.departures import end_expectation, expect, remove_member
from .orders.lifecycle import finish_stop, restart, set_target_state
from .orders.move_owner import move_owner
from .orders.offsets import alter_offsets, record_alteration
from .orders.operate import cordon, place, rebalance, release_seats, uncordon
from .state.soft_state import Decision, SoftState

RULES: dict[type, Callable[[Group, SoftState, Any, int], Decision]] = {
    Heartbeat: heartbeat,
    Prepare: prepare,
    Install: install,
    ReportStatus: report_status,
    PutTaskConfigs: put_task_configs,
    ExternalStateRemoved: external_state_removed,
    PutConnector: put_connector,
    PutConnectors: put_connectors,
    DeleteConnector: delete_connector,
    FinishDeletion: finish_deletion,
    SetTargetState: set_target_state,
    FinishStop: finish_stop,
    Restart: restart,
    AlterOffsets: alter_offsets,
    ConfigureGroup: configure_group,
    DeleteGroup: delete_group,
    RemoveGroup: remove_group,
    Cordon: cordon,
    Uncordon: uncordon,
    Expect: expect,
    MoveOwner: move_owner,
    SetPlacement: place,
    Rebalance: rebalance,
    RemoveMember: remove_member,
    EndMember: end_member,
    ReleaseSeats: release_seats,
    ExpireSession: expire_session,
    ExpireRebalance: expire_rebalance,
    ReleaseParked: release_parked,
    ContinueMoves: continue_moves,
    RetryAssignor: retry_assignor,
    EndExpectation: end_expectation,
    TimeOutAssignor: time_out_assignor,
    EndInterval: end_interval,
    EndInitialDelay: end_initial_delay,
    FreeSeat: free_seat,
    RecordAlteration: record_alteration,
}

OUTSIDE_RULES: dict[type, Callable[[Group, SoftState, Any, int], Decision]] = {
    **RULES,
    Heartbeat: heartbeat_outside,
}
"""The rules of a group whose configs are in another log."""


def decide(group: Group, soft: SoftState, command: Command, now_ms: int) -> Decision:
    """Decide a command for a group at this time (wall clock, ms).

    The decision includes a target that becomes due by it, if the coordinator computes that itself.
    """
    return with_target(group, RULES[type(command)](group, soft, command, now_ms), now_ms)


def decide_outside(group: Group, soft: SoftState, command: Command, now_ms: int) -> Decision:
    """Decide a command for a group whose members say what is to run (PROTOCOL §19)."""
    return with_target(group, OUTSIDE_RULES[type(command)](group, soft, command, now_ms), now_ms)
