"""When a member sends a request: with news, after a lost answer, a refusal, or a silence."""

from dataclasses import replace

from ...events.model import Resources
from ..backoff import Backoff, earliest
from ..messages.heartbeat import HeartbeatReply
from .instructions import Instruction, Send, Timing
from .requests import Requests

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
