"""What a member says, and when: its requests (PROTOCOL §3, §9).

A request says everything, or only what is new since the last answered one. It is full
whenever it cannot be known what the group has heard: at a join, while an answer is missing,
after any error, and towards a new process of the coordinator. Each names the process of the
coordinator that was heard of last, which carries out nothing that names another.

A request is sent when there is news, and again after a lost answer, a refusal, or a silence that
the group has asked for.
"""

from dataclasses import dataclass, replace

from ...events.model import ClientAssignor, Resources
from ..backoff import Backoff, earliest
from ..messages.members import (
    JOIN_EPOCH,
    NO_COORDINATOR_EPOCH,
    Heartbeat,
    HeartbeatReply,
)
from .instructions import Identity, Instruction, Send, Timing

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


BACKOFF_MS = 500
"""How long the first refusal in a row is let rest; it doubles up to a heartbeat interval."""

TAKEN = "so for {} ms now: end the other process, or give this one an id of its own"


class Voice:
    """Sends a member's requests, each at its time; times on the monotonic clock, in ms."""

    def __init__(self, requests: Requests, timing: Timing) -> None:
        self.requests = requests
        self.timing = timing
        """As configured; with the group's own interval and session once it has answered."""
        self._again_ms: int | None = None
        """When to send what was put off or refused; None: nothing was."""
        self._hushed_until_ms = 0
        """Until when the group has asked for silence."""
        self._refusals = 0
        """How many requests in a row were refused."""
        self._taken_since_ms: int | None = None
        """Since when the seat is known to be another process's; None: it is not."""

    def say(
        self, epoch: int, owned: Resources, now_ms: int, fence_at_ms: int | None
    ) -> list[Instruction]:
        """Send a request, or put it off to the end of the silence that the group asked for."""
        silent_until_ms = self._silent_until_ms(fence_at_ms)
        if now_ms < silent_until_ms:
            self._again_ms = silent_until_ms
            return []
        self._again_ms = None
        return [Send(self.requests.make_request(epoch, self.timing, owned, now_ms))]

    def next_ms(self, fence_at_ms: int | None) -> int | None:
        """Return when to send what was put off, refused, or not answered in time, if anything."""
        sent = self.requests.sent
        lost_ms = None if sent is None else sent.at_ms + self.timing.patience_ms
        wanted_ms = earliest(self._again_ms, lost_ms)
        return None if wanted_ms is None else max(wanted_ms, self._silent_until_ms(fence_at_ms))

    def take_success(self, reply: HeartbeatReply) -> int:
        """Follow the group's interval and session; return the session to fence oneself by.

        Why this is safe: the group waits for the longer of its own session and the one that
        it last heard of this member, and keeps the latter in its log. So a shorter session
        holds at once, whether or not the group will ever hear that it does; a longer one only
        for requests that say so, once they are answered: a group that fell back to a shorter
        one meanwhile, even through a crash, has then heard by which this member fences itself.
        And none is longer than the rebalance timeout: work may be taken away after that, from
        a member that was never reached by the answer that asks for it.
        """
        self._refusals, self._taken_since_ms = 0, None
        timing = self.timing
        interval_ms = reply.heartbeat_interval_ms or timing.heartbeat_interval_ms
        session_ms = reply.session_timeout_ms or timing.session_timeout_ms
        if (interval_ms, session_ms) != (timing.heartbeat_interval_ms, timing.session_timeout_ms):
            self.timing = replace(
                timing, heartbeat_interval_ms=interval_ms, session_timeout_ms=session_ms
            )
        return min(self.requests.known_session_ms, session_ms, timing.rebalance_timeout_ms)

    def back_off(self, now_ms: int) -> None:
        """Let a refusal rest, each in a row longer than the one before."""
        self._refusals += 1
        backoff = Backoff(BACKOFF_MS, self.timing.heartbeat_interval_ms)
        self._again_ms = now_ms + backoff.pause(self._refusals)

    def judge_taken_seat(self, now_ms: int) -> str:
        """Return what to do about a seat that is another process's, nothing while it may end.

        After a kill the old process's session has to expire first: that is waited for twice.
        """
        if self._taken_since_ms is None:
            self._taken_since_ms = now_ms
        taken_ms = now_ms - self._taken_since_ms
        return TAKEN.format(taken_ms) if taken_ms >= 2 * self.timing.session_timeout_ms else ""

    def hush(self, until_ms: int) -> None:
        """Keep silent until then; never shorter than was asked for before."""
        self._hushed_until_ms = max(self._hushed_until_ms, until_ms)

    def speak_up(self) -> None:
        """Owe nobody any silence any more."""
        self._hushed_until_ms = 0

    def clear(self) -> None:
        """Forget what was said; a silence that was asked for is kept."""
        self.requests.drop()
        self._again_ms = None

    def _silent_until_ms(self, fence_at_ms: int | None) -> int:
        """Return when the silence ends: in time for an answer to call off the next fence.

        So a throttled member keeps its session, and the report that a revocation is done
        waits only while the revocation's deadline is far.
        """
        if fence_at_ms is None:
            return self._hushed_until_ms
        return min(self._hushed_until_ms, fence_at_ms - self.timing.patience_ms)
