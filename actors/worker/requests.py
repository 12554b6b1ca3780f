"""What a member says, and what of it the group is known to have heard (PROTOCOL §3, §9).

A request says everything, or only what is new since the last answered one. It is full
whenever it cannot be known what the group has heard: at a join, while an answer is missing,
after any error, and towards a new process of the coordinator. Each names the process of the
coordinator that was heard of last, which carries out nothing that names another.
"""

from dataclasses import dataclass, replace

from ...events.model import ClientAssignor, Resources
from ..messages.heartbeat import (
    JOIN_EPOCH,
    NO_COORDINATOR_EPOCH,
    Heartbeat,
    HeartbeatReply,
)
from .instructions import Identity, Timing

Head = tuple[str, str, int, str, int, str | None]
"""Group, member, epoch, incarnation, sequence, and instance id: what every request says."""


@dataclass(frozen=True, slots=True)
class Sent:
    """A request on its way: what it said, and when."""

    request: Heartbeat
    at_ms: int


class Requests:
    """The requests of one member, at most one of which may still be answered."""

    def __init__(
        self, identity: Identity, assignors: tuple[ClientAssignor, ...], server_assignor: str | None
    ) -> None:
        if (server_assignor is None) is not bool(assignors):
            raise ValueError("a member names assignors of its own or a server assignor, not both")
        self.assignors = assignors
        """What the member can run, the best liked first; none if it names a server assignor."""
        self.sent: Sent | None = None
        """The latest request, until it is answered."""
        self.coordinator_epoch = NO_COORDINATOR_EPOCH
        """The number of the coordinator's process that was heard of last."""
        self._identity = identity
        self._server_assignor = server_assignor
        self._known: Heartbeat | None = None
        """What the group is known to have heard; None: the next request has to say everything."""
        self._sequence = 0
        """That of the latest request of this process."""

    @property
    def known_session_ms(self) -> int:
        """The session that the group knows this member to fence itself by, -1 if it has none."""
        return -1 if self._known is None else self._known.session_timeout_ms

    def knows_owned(self, owned: Resources) -> bool:
        """Tell whether the group has answered for exactly this list."""
        return self._known is not None and frozenset(self._known.owned or ()) == owned

    def change(self, assignors: tuple[ClientAssignor, ...]) -> bool:
        """Take other assignors, and tell whether they are; raises `ValueError` for none."""
        if self._server_assignor is not None or not assignors:
            raise ValueError("a member keeps to the mode that it joined with")
        was, self.assignors = self.assignors, assignors
        return assignors != was

    def make_request(self, epoch: int, timing: Timing, owned: Resources, now_ms: int) -> Heartbeat:
        """Return the next request; answers to any earlier one count no more."""
        identity = self._identity
        self._sequence += 1
        if self.sent is not None:
            self.doubt()
        head = (
            identity.group_id,
            identity.member_id,
            epoch,
            identity.incarnation,
            self._sequence,
            identity.instance_id,  # always: a member that lost its instance id is to hear so
        )
        if epoch < JOIN_EPOCH:
            request = Heartbeat(*head, coordinator_epoch=self.coordinator_epoch)
        elif epoch == JOIN_EPOCH or self._known is None:
            request = self._in_full(head, timing, owned)
        else:
            request = self._news(head, timing, owned, self._known)
        self.sent = Sent(request, now_ms)
        return request

    def match_reply(self, reply: HeartbeatReply) -> Sent | None:
        """Return the request that this answers, None unless that is the latest."""
        sent = self.sent
        if sent is None or reply.incarnation != self._identity.incarnation:
            return None
        if reply.sequence != sent.request.sequence:
            return None
        self.sent = None
        self.coordinator_epoch = reply.coordinator_epoch
        return sent

    def keep_heard(self, request: Heartbeat) -> None:
        """Keep that the group knows this now; what was left out it had heard before."""
        if self._known is None or request.is_full:
            self._known = request
            return
        known, session_ms = self._known, request.session_timeout_ms
        if session_ms == -1 and request.assignors is None and request.owned is None:
            return
        self._known = replace(
            known,
            session_timeout_ms=known.session_timeout_ms if session_ms == -1 else session_ms,
            assignors=known.assignors if request.assignors is None else request.assignors,
            owned=known.owned if request.owned is None else request.owned,
        )

    def doubt(self) -> None:
        """Say everything next time: it is not known any more what the group has heard."""
        self._known = None

    def repeat_owned(self) -> None:
        """Say next time what runs, though the group has heard it: it may ask for less by then."""
        if self._known is not None:
            self._known = replace(self._known, owned=None)

    def drop(self) -> None:
        """Take no answer to what was sent so far."""
        self.sent = self._known = None

    def _in_full(self, head: Head, timing: Timing, owned: Resources) -> Heartbeat:
        identity = self._identity
        return Heartbeat(
            *head,
            rack=identity.rack,
            url=identity.url,
            client_id=identity.client_id,
            client_host=identity.client_host,
            rebalance_timeout_ms=timing.rebalance_timeout_ms,
            session_timeout_ms=timing.session_timeout_ms,
            assignors=self.assignors or None,
            server_assignor=self._server_assignor,
            owned=tuple(sorted(owned)),
            node=identity.node or None,
            coordinator_epoch=self.coordinator_epoch,
        )

    def _news(self, head: Head, timing: Timing, owned: Resources, known: Heartbeat) -> Heartbeat:
        """Leave out what the group knows already."""
        assignors, session_ms = self.assignors or None, timing.session_timeout_ms
        return Heartbeat(
            *head,
            session_timeout_ms=-1 if session_ms == known.session_timeout_ms else session_ms,
            assignors=None if assignors == known.assignors else assignors,
            owned=None if self.knows_owned(owned) else tuple(sorted(owned)),
            coordinator_epoch=self.coordinator_epoch,
        )
