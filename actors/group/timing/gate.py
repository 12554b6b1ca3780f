"""Request identity: which requests are new, and who ever answered for an assignment.

The coordinator drops, unanswered, whatever is not newer than the last request that it saw
from that incarnation, leaves included (PROTOCOL §3, Identity). Soft state: after a restart
the epochs alone fence.
"""

from ...messages.heartbeat import JOIN_EPOCH, Heartbeat
from ..members.validate import LONGEST_TEXT


class Gate:
    """The newest request of each process that spoke for a member."""

    def __init__(self) -> None:
        self._newest: dict[tuple[str, str], int] = {}
        self._acknowledged: set[str] = set()
        self._joined: set[str] = set()

    def admits(self, request: Heartbeat) -> bool:
        """Tell whether the request is newer than all before it, and remember it if so.

        Clients without an incarnation can not be told apart and always pass; so do ids that
        are too long to be remembered, which are refused by whoever looks at them next.
        """
        longest = max(len(request.member_id), len(request.incarnation))
        if not request.incarnation or longest > LONGEST_TEXT:
            return True
        who = (request.member_id, request.incarnation)
        newest = self._newest.get(who)
        if newest is not None and request.sequence <= newest:
            return False
        self._newest[who] = request.sequence
        if request.member_epoch == JOIN_EPOCH:
            self._joined.add(request.member_id)
        if request.owned:
            self._acknowledged.add(request.member_id)
        return True

    def acknowledged(self, member_id: str) -> bool:
        """Tell whether the member ever answered for an assignment.

        Whose join was not seen here, before a restart of the coordinator, may well have: then
        the log says what it held, and nobody can say that it did not run.
        """
        return member_id in self._acknowledged or member_id not in self._joined

    def forget(self, member_id: str) -> None:
        """Forget that the member ever answered, since it is gone.

        Its newest request stays: a late copy must not bring the seat back.
        """
        self._acknowledged.discard(member_id)
