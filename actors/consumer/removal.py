"""The end of a group of Kafka's clients: it leaves nothing, and one of that name counts from 1.

Members of such groups have ids that never come again, and nothing that they do elsewhere is known
by an epoch of theirs: so nothing has to be remembered, as a group of workers has to.
"""

from dataclasses import replace

from ...events.group import Group
from ...events.records import GroupDeletion
from ..group.orders.delete_group import delete_group
from ..group.state.soft_state import Decision, SoftState
from ..messages.orders import DeleteGroup


def remove_group(group: Group, soft: SoftState, now_ms: int) -> Decision:
    """Bury all that there is of a group without members, with what it has committed."""
    decision = delete_group(group, soft, DeleteGroup(group.group_id), now_ms)
    buried = (each for each in decision.records if not isinstance(each, GroupDeletion))
    return replace(decision, records=tuple(buried))
