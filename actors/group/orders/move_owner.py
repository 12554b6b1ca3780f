"""MoveOwner: the node that owns a group gives it up, so that another one owns it (LOG.md §13).

What it writes is the last record of its claim. It changes nothing else of the group, and moves
nobody: members go on with the node that claims the group next.
"""

from typing import Final

from ....events.group import Group
from ....events.records import OwnerBegan, OwnerResigned
from ...messages.errors import Error
from ...messages.orders import MoveOwner
from ..state.soft_state import Decision, SoftState, accept, refuse

ON_ONE_HOST: Final = (
    "the log of the group is on one host (log.store = lmdb): no other node can own it"
)


def move_owner(group: Group, soft: SoftState, command: MoveOwner, now_ms: int) -> Decision:
    """Resign, unless the node that is named owns the group already; it costs no epoch.

    An owner that came after the one that is to go has nothing to do: the order was repeated.
    """
    owner = group.ownership
    if owner is None:
        return refuse(soft, Error.INVALID_REQUEST, ON_ONE_HOST)
    is_meant = command.epoch in {0, owner.epoch}
    if not isinstance(owner, OwnerBegan) or not is_meant or command.to == owner.node:
        return accept(group, soft, ())
    return accept(group, soft, [OwnerResigned(owner.epoch, owner.node, command.to, now_ms)])
