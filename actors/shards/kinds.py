"""The kinds of groups that a shard hosts: of Kafka's consumers, and of Connect's workers.

The first join decides. A group that was rebuilt from its log is of the kind of its last members.
"""

from dataclasses import replace
from typing import Final

from ...events.group import Group
from ...events.model import CONNECT
from ..consumer.calls import CONSUMERS, OffsetCalls
from ..group.kind import WORKERS, GroupKind
from ..messages.classic import JoinGroup
from ..messages.groups import ConnectCall, SharedCall

CONNECTORS: Final = replace(
    WORKERS, grants_from_log=False, is_of_clients=True, open_calls=OffsetCalls
)
"""A group of workers from outside: Kafka Connect's own start what their leader assigns. Tools may
commit offsets to it, as to any group."""


def kind_of_call(call: SharedCall) -> GroupKind | None:
    """Return the kind of group that a member of this call joins; None: it does not join."""
    if isinstance(call, ConnectCall):
        return CONNECTORS
    if isinstance(call, JoinGroup):
        return CONNECTORS if call.protocol_type == CONNECT else CONSUMERS
    return None


def kind_of_group(group: Group) -> GroupKind:
    """Return the kind of a group by its log; one without any members is of consumers."""
    if group.classic is not None and group.topics is None:
        return CONNECTORS if group.classic.protocol_type == CONNECT else CONSUMERS
    is_of_workers = group.topics is None and (bool(group.members) or bool(group.connectors))
    return CONNECTORS if is_of_workers or group.deletion is not None else CONSUMERS
