"""The rules of consumer groups: those of connect groups, except for heartbeats and topics.

A consumer group has no connectors, and parks no work. Its members send heartbeats and are
reconciled like those of connect groups. The coordinator computes its targets (PROTOCOL §18).
"""

from collections.abc import Callable, Mapping
from typing import Any, Final

from ...events.group import Group
from ..assignors.built_in.catalogue import Computes
from ..group.computing.compute import (
    end_computation,
    end_initial_delay,
    end_interval,
    time_out_assignor,
    with_target,
)
from ..group.computing.target import retry_assignor
from ..group.members.depart import expire_rebalance, expire_session
from ..group.orders.configuration import configure_group
from ..group.orders.delete_group import delete_group, remove_group
from ..group.state.soft_state import Decision, SoftState
from ..messages.commands import (
    Command,
    EndInitialDelay,
    EndInterval,
    ExpireRebalance,
    ExpireSession,
    RetryAssignor,
    TimeOutAssignor,
)
from ..messages.computing import EndComputation
from ..messages.consumers import TopicsSeen
from ..messages.groups import RemoveGroup
from ..messages.members import Heartbeat
from ..messages.orders import ConfigureGroup, DeleteGroup
from .assignors.range import assign_ranges
from .assignors.uniform import assign_uniformly
from .heartbeat import heartbeat
from .topics import end_subscriptions, update_topics

Rules = Mapping[type, Callable[[Group, SoftState, Any, int], Decision]]

SERVER_ASSIGNORS: Final[Mapping[str, Computes]] = {
    "uniform": assign_uniformly,
    "range": assign_ranges,
}
"""The server assignors, by name."""


RULES: Rules = {
    Heartbeat: heartbeat,
    TopicsSeen: update_topics,
    ConfigureGroup: configure_group,
    DeleteGroup: delete_group,
    RemoveGroup: remove_group,
    ExpireSession: expire_session,
    ExpireRebalance: expire_rebalance,
    RetryAssignor: retry_assignor,
    TimeOutAssignor: time_out_assignor,
    EndInterval: end_interval,
    EndInitialDelay: end_initial_delay,
    EndComputation: end_computation,
}
"""The rule of each command for a consumer group."""


def decide(group: Group, soft: SoftState, command: Command, now_ms: int) -> Decision:
    """Decide a command at this time (wall clock, ms).

    If a new target is due and the coordinator computes it, the decision includes the target. It
    also includes tombstones of the subscriptions of removed members.
    """
    decision = RULES[type(command)](group, soft, command, now_ms)
    return with_target(group, end_subscriptions(group, decision), now_ms)
