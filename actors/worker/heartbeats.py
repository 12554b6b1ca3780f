"""A member's heartbeats: their content, and when they are sent (PROTOCOL §3, §9).

A request is full, or says only what has changed since the last answered one. It is full whenever
the member cannot be sure what the coordinator knows: at a join, without an answer, after any
error, and to a new process of the coordinator. Each names the number of the coordinator's process,
which carries out only requests that name its own.

A request is sent when there is news, and again after a lost answer, an error, or a throttle time.
"""

from dataclasses import dataclass, replace

from ...events.model import ClientAssignor, Resources
from ..messages.members import (
    JOIN_EPOCH,
    NO_COORDINATOR_EPOCH,
    Heartbeat,
    HeartbeatReply,
)
from ..timing import Backoff, earliest
from .instructions import Identity, Instruction, Send, Timing

Head = tuple[str, str, int, str, int, str | None]
"""Group, member, epoch, incarnation, sequence, and instance id: the fields of every request."""


@dataclass(frozen=True, slots=True)
class Sent:
    """A request that is not answered yet, and its sending time."""

    request: Heartbeat
    at_ms: int
    """The sending time, steady clock."""


class Requests:
    """The requests of one member; at most one of them awaits an answer."""

    def __init__(
        self, identity: Identity, assignors: tuple[ClientAssignor, ...], server_assignor: str | None
    ) -> None:
        if (server_assignor is None) is not bool(assignors):
            raise ValueError("a member names assignors of its own or a server assignor, not both")
        self.assignors = assignors
        """What the member can run, the preferred one first; none if it names a server assignor."""
        self.sent: Sent | None = None
        """The latest request, until it is answered."""
        self.coordinator_epoch = NO_COORDINATOR_EPOCH
        """The number of the coordinator's process in its last answer."""
        self._identity = identity
        self._server_assignor = server_assignor
        self._confirmed: Heartbeat | None = None
        """All that answered requests have told the coordinator; None: the next has to be full."""
        self._sequence = 0
        """The sequence of the latest request."""

    @property
    def confirmed_session_ms(self) -> int:
        """The session by which the member fences itself, as the coordinator knows it; -1: none."""
        return -1 if self._confirmed is None else self._confirmed.session_timeout_ms

    def knows_owned(self, owned: Resources) -> bool:
        """Return whether the coordinator is known to have exactly this owned list."""
        return self._confirmed is not None and frozenset(self._confirmed.owned or ()) == owned

    def change(self, assignors: tuple[ClientAssignor, ...]) -> bool:
        """Replace the assignors; False if they are the same. Raises `ValueError` for none."""
        if self._server_assignor is not None or not assignors:
            raise ValueError("a member keeps to the mode that it joined with")
        was, self.assignors = self.assignors, assignors
        return assignors != was

    def make_request(self, epoch: int, timing: Timing, owned: Resources, now_ms: int) -> Heartbeat:
        """Return the next request; answers to earlier ones are ignored from now on."""
        identity = self._identity
        self._sequence += 1
        if self.sent is not None:
            self.resend_in_full()
        head = (
            identity.group_id,
            identity.member_id,
            epoch,
            identity.incarnation,
            self._sequence,
            identity.instance_id,  # always: a member that lost its instance id has to learn it
        )
        if epoch < JOIN_EPOCH:
            request = Heartbeat(*head, coordinator_epoch=self.coordinator_epoch)
        elif epoch == JOIN_EPOCH or self._confirmed is None:
            request = self._in_full(head, timing, owned)
        else:
            request = self._in_part(head, timing, owned, self._confirmed)
        self.sent = Sent(request, now_ms)
        return request

    def match_reply(self, reply: HeartbeatReply) -> Sent | None:
        """Return the request that a reply answers; None if that is not the latest one."""
        sent = self.sent
        if sent is None or reply.incarnation != self._identity.incarnation:
            return None
        if reply.sequence != sent.request.sequence:
            return None
        self.sent = None
        self.coordinator_epoch = reply.coordinator_epoch
        return sent

    def confirm(self, request: Heartbeat) -> None:
        """Record the fields of an answered request as known to the coordinator."""
        if self._confirmed is None or request.is_full:
            self._confirmed = request
            return
        before, session_ms = self._confirmed, request.session_timeout_ms
        if session_ms == -1 and request.assignors is None and request.owned is None:
            return
        self._confirmed = replace(
            before,
            session_timeout_ms=before.session_timeout_ms if session_ms == -1 else session_ms,
            assignors=before.assignors if request.assignors is None else request.assignors,
            owned=before.owned if request.owned is None else request.owned,
        )

    def resend_in_full(self) -> None:
        """Make the next request full: the coordinator's state is uncertain."""
        self._confirmed = None

    def repeat_owned(self) -> None:
        """Send the owned list with the next request, even if the coordinator knows it."""
        if self._confirmed is not None:
            self._confirmed = replace(self._confirmed, owned=None)

    def drop(self) -> None:
        """Ignore answers to all requests so far."""
        self.sent = self._confirmed = None

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

    def _in_part(
        self, head: Head, timing: Timing, owned: Resources, confirmed: Heartbeat
    ) -> Heartbeat:
        """Return a request without what the coordinator knows already."""
        assignors, session_ms = self.assignors or None, timing.session_timeout_ms
        return Heartbeat(
            *head,
            session_timeout_ms=-1 if session_ms == confirmed.session_timeout_ms else session_ms,
            assignors=None if assignors == confirmed.assignors else assignors,
            owned=None if self.knows_owned(owned) else tuple(sorted(owned)),
            coordinator_epoch=self.coordinator_epoch,
        )


BACKOFF_MS = 500
"""The back-off after a first error; it doubles up to a heartbeat interval."""

INSTANCE_IN_USE = "so for {} ms now: end the other process, or give this one an id of its own"


class HeartbeatScheduler:
    """Times a member's requests; times are of the monotonic clock, in ms."""

    def __init__(self, requests: Requests, timing: Timing) -> None:
        self.requests = requests
        self.timing = timing
        """As configured, but for the interval and session of the group's last answer."""
        self._again_ms: int | None = None
        """When to send a request that was delayed or refused; None: there is none."""
        self._throttled_until_ms = 0
        """The end of the throttle time."""
        self._refusals = 0
        """How many requests in a row were refused."""
        self._taken_since_ms: int | None = None
        """Since when the instance id is known to be in use by another process; None: it is not."""

    def send(
        self, epoch: int, owned: Resources, now_ms: int, fence_at_ms: int | None
    ) -> list[Instruction]:
        """Send a request, or delay it to the end of the throttle time."""
        not_before_ms = self._not_before_ms(fence_at_ms)
        if now_ms < not_before_ms:
            self._again_ms = not_before_ms
            return []
        self._again_ms = None
        return [Send(self.requests.make_request(epoch, self.timing, owned, now_ms))]

    def next_ms(self, fence_at_ms: int | None) -> int | None:
        """Return when to send a request that was delayed, refused, or not answered in time."""
        sent = self.requests.sent
        lost_ms = None if sent is None else sent.at_ms + self.timing.patience_ms
        due_ms = earliest(self._again_ms, lost_ms)
        return None if due_ms is None else max(due_ms, self._not_before_ms(fence_at_ms))

    def adopt_timing(self, reply: HeartbeatReply) -> int:
        """Adopt the group's interval and session; return the session by which to fence oneself.

        Why this is safe: the coordinator waits for the longer of its own session and the one that
        the member named last, which is in the log. So a shorter session may be used at once; a
        longer one only from the first answered request on that names it, since the group may have
        been set back to a shorter one meanwhile. And the session is never longer than the rebalance
        timeout: after that work may be given to others if the answer that asks for its revocation
        never reached the member.
        """
        self._refusals, self._taken_since_ms = 0, None
        timing = self.timing
        interval_ms = reply.heartbeat_interval_ms or timing.heartbeat_interval_ms
        session_ms = reply.session_timeout_ms or timing.session_timeout_ms
        if (interval_ms, session_ms) != (timing.heartbeat_interval_ms, timing.session_timeout_ms):
            self.timing = replace(
                timing, heartbeat_interval_ms=interval_ms, session_timeout_ms=session_ms
            )
        return min(self.requests.confirmed_session_ms, session_ms, timing.rebalance_timeout_ms)

    def back_off(self, now_ms: int) -> None:
        """Delay the next request after an error; the delay grows with each error in a row."""
        self._refusals += 1
        backoff = Backoff(BACKOFF_MS, self.timing.heartbeat_interval_ms)
        self._again_ms = now_ms + backoff.pause(self._refusals)

    def judge_taken_instance(self, now_ms: int) -> str:
        """Return why the member gives up an instance id in use; "" while it may be freed.

        After a kill the old process's session has to expire first; the member waits twice as long.
        """
        if self._taken_since_ms is None:
            self._taken_since_ms = now_ms
        taken_ms = now_ms - self._taken_since_ms
        return (
            INSTANCE_IN_USE.format(taken_ms)
            if taken_ms >= 2 * self.timing.session_timeout_ms
            else ""
        )

    def throttle(self, until_ms: int) -> None:
        """Send nothing until this time, and until the end of earlier throttle times."""
        self._throttled_until_ms = max(self._throttled_until_ms, until_ms)

    def end_throttle(self) -> None:
        """End the throttle time early."""
        self._throttled_until_ms = 0

    def clear(self) -> None:
        """Forget all requests; a throttle time is kept."""
        self.requests.drop()
        self._again_ms = None

    def _not_before_ms(self, fence_at_ms: int | None) -> int:
        """Return the end of the throttle time, or an earlier one in time to prevent the next fence.

        So a throttled member keeps its session, and acknowledges a revocation before its deadline.
        """
        if fence_at_ms is None:
            return self._throttled_until_ms
        return min(self._throttled_until_ms, fence_at_ms - self.timing.patience_ms)
