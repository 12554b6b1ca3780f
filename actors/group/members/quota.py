"""How many heartbeats a member may send: a token bucket for each, on the steady clock.

A member beyond its rate is not refused: its request is carried out, since it may say what
safety rests on (a revocation acknowledged, a goodbye), and the answer tells for how long the
member is to be silent: until its next request is within the rate. That is never longer than
the longest wait that is given with the request, so a member that heeds it keeps its session.

The bucket is kept as one time for each member, at which it would be full again (the generic
cell rate algorithm, ITU-T I.371): O(1) per request, and nothing to do as time passes.
"""

from dataclasses import replace

from ...messages.commands import Reply
from ...messages.heartbeat import HeartbeatReply
from ..state.soft_state import GroupSettings

BURST = 5
"""How many requests a member may send at once: joining and reconciling takes a few."""

_MICROSECONDS = 1_000


class Quota:
    """The buckets of all members of a group."""

    def __init__(self) -> None:
        self._full_at_us: dict[str, int] = {}
        """When the bucket of each member id would be full again, steady clock, in microseconds."""

    def charge(self, member_id: str, per_second: int, now_ms: int, longest_ms: int) -> int:
        """Count a request, and return for how long the member is to be silent, in milliseconds.

        `per_second` is the rate, 0 for none; the wait is never longer than `longest_ms`.
        """
        if not per_second:
            return 0
        now_us, interval_us = now_ms * _MICROSECONDS, 1_000_000 // per_second
        allowed_us = now_us + BURST * interval_us
        full_at_us = max(self._full_at_us.get(member_id, 0), now_us) + interval_us
        full_at_us = min(full_at_us, allowed_us + longest_ms * _MICROSECONDS)
        self._full_at_us[member_id] = full_at_us
        if full_at_us <= allowed_us:
            return 0
        wait_us = full_at_us + interval_us - allowed_us  # the next is then within the rate
        return min(longest_ms, -(-wait_us // _MICROSECONDS))

    def weigh(self, reply: Reply, settings: GroupSettings, now_ms: int) -> Reply:
        """Count a request that led to this answer; return the answer, with the wait if any.

        A member that waits no longer than a heartbeat interval is heard of in time.
        """
        if not isinstance(reply, HeartbeatReply):
            return reply
        rate, longest_ms = settings.requests_per_second, settings.heartbeat_interval_ms
        throttle_ms = self.charge(reply.member_id, rate, now_ms, longest_ms)
        return replace(reply, throttle_time_ms=throttle_ms) if throttle_ms else reply

    def forget(self, member_id: str) -> None:
        """Forget a member that is gone."""
        self._full_at_us.pop(member_id, None)
