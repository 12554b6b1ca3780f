"""DeleteGroups for a group of Kafka's clients: nothing is left, and its epochs begin at 1 again.

Member ids of such groups are never used again, and nothing outside the group depends on its epochs.
So its epoch does not have to be kept, as that of a workers' group does.
"""

from dataclasses import replace

from ...events.group import Group
from ...events.records import GroupDeletion
from ..group.orders.delete_group import delete_group
from ..group.state.soft_state import Decision, SoftState
from ..messages.orders import DeleteGroup


def remove_group(group: Group, soft: SoftState, now_ms: int) -> Decision:
    """Bury all records of a group without members, and its committed offsets."""
    decision = delete_group(group, soft, DeleteGroup(group.group_id), now_ms)
    buried = (each for each in decision.records if not isinstance(each, GroupDeletion))
    return replace(decision, records=tuple(buried))
