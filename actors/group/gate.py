"""Request identity: which requests are new, and who ever answered for an assignment.

The coordinator drops, unanswered, whatever is not newer than the last request that it saw
from that incarnation, leaves included (PROTOCOL §3, Identity). Soft state: after a restart
the epochs alone fence.
"""

from ..messages import Heartbeat


class Gate:
    """The newest request of each member, by member id."""

    def __init__(self) -> None:
        self._newest: dict[str, tuple[str, int]] = {}
        self._acknowledged: set[str] = set()

    def admits(self, request: Heartbeat) -> bool:
        """Tell whether the request is newer than all before it, and remember it if so.

        Clients without an incarnation can not be told apart and always pass.
        """
        if not request.incarnation:
            return True
        newest = self._newest.get(request.member_id)
        is_same = newest is not None and newest[0] == request.incarnation
        if is_same and newest is not None and request.sequence <= newest[1]:
            return False
        self._newest[request.member_id] = (request.incarnation, request.sequence)
        if request.owned:
            self._acknowledged.add(request.member_id)
        return True

    def acknowledged(self, member_id: str) -> bool:
        """Tell whether the member ever answered for an assignment; if unknown, it did."""
        return member_id in self._acknowledged or member_id not in self._newest

    def forget(self, member_id: str) -> None:
        """Forget that the member ever answered, since it is gone.

        Its newest request stays: a late copy must not bring the seat back.
        """
        self._acknowledged.discard(member_id)
