"""The deadlines by which a member fences itself: the member's three clocks (PROTOCOL §8).

Theory of operation. A member must stop its work by itself before the coordinator gives that work to
others. It cannot rely on any message for that, since it may be cut off. So it has three clocks of
its own: session, heartbeat and rebalance timeout. All times are of its monotonic clock.

*The session* says for how long the coordinator counts the member as alive. The coordinator counts
it from the arrival of a request, the member from the sending time of its newest answered request.
A request is sent before it arrives, so the member's session ends first, however long the request or
its answer took. If the member counted from the answer, a late answer would let it outlive the
coordinator's session.

    member   sent ------------------------------ fence ---- end
    coordinator   arrived ---------------------------------------- session expires: work is lost
                                                 |<margin>|

*The heartbeat* (`heartbeats.py`) renews the session. A request is repeated once its answer is late
(after the interval + 1,500 ms); a configuration is refused unless two requests may be lost before
the fence margin begins. Heartbeats also carry what others wait for: a report that something has
stopped is sent at once. A throttle time ends early enough for an answer to prevent the next fence.

*The rebalance timeout* limits a revocation. The coordinator counts it from the record that asked
for the revocation; the member from the sending time of the request before the one whose answer
asked for it, since at that time the record did not exist. The revocation is over when a request
that reports the resources gone has been *answered*. It is not enough that everything has stopped:
the report may be lost, and the coordinator would remove a member that still runs its other tasks. A
second revocation does not move the deadline of one that is not over.

The earlier of session end and revocation deadline is the *end*. What follows is not taken back:

    end - margin    fence: cancel everything without grace, and forget the seat. A late answer does
                    not prevent this any more: the work may be another member's when it is read.
    end - 100 ms    kill: what has not stopped by now is ended with the process. A member that wakes
                    from a freeze after this time kills at once; it must not even begin to stop in
                    good order.
    end             nothing runs. If all of this hangs, the watchdog ends the process.

When nothing runs any more the member rejoins with epoch 0. Leaving has a limit as well: a leave is
repeated for one session at most, since nothing runs by then.
"""

from ..timing import earliest

KILL_EARLY_MS = 100
"""How long before the end what has not stopped is killed: two of a worker's ticks."""

SILENCE = "the group has not answered for so long that the session may end"
LATE = "a revocation was not acknowledged in time"


class Deadlines:
    """The deadlines of one member, on its monotonic clock, in milliseconds."""

    def __init__(self, fence_margin_ms: int) -> None:
        self.revoke_by_ms: int | None = None
        """By when the current revocation must be acknowledged and answered; None: there is none."""
        self._margin_ms = fence_margin_ms
        self._asked_ms: int | None = None
        """The sending time of the newest answered request."""
        self._leave_by_ms: int | None = None
        """Until when a leave is repeated; None: the member does not leave."""
        self._session_end_ms: int | None = None
        """When the session ends; None: there is no seat to lose."""
        self._kill_at_ms: int | None = None
        """When what was cancelled is killed; None: nothing was cancelled."""
        self._is_kill_given = False

    def start_session(self, sent_ms: int, session_ms: int | None) -> int:
        """Start the session at a request's sending time; None: there is no seat to lose yet.

        Return the sending time of the request that was answered before: since then the coordinator
        may have asked for the revocation that this answer asks for.
        """
        before_ms = sent_ms if self._asked_ms is None else self._asked_ms
        self._asked_ms = sent_ms
        self._session_end_ms = None if session_ms is None else sent_ms + session_ms
        return before_ms

    def time_revocation(self, by_ms: int) -> None:
        """Set the deadline of a revocation, unless an earlier one is pending."""
        if self.revoke_by_ms is None:
            self.revoke_by_ms = by_ms

    def end_ms(self) -> int | None:
        """Return until when work may run without an answer; None: there is no limit."""
        return earliest(self._session_end_ms, self.revoke_by_ms, self._kill_at_ms)

    def fence_at_ms(self) -> int | None:
        """Return when the member must fence itself."""
        end_ms = self.end_ms()
        return None if end_ms is None else end_ms - self._margin_ms

    def why_overdue(self, now_ms: int) -> str:
        """Return why the member must fence itself now; "" if none."""
        fence_at_ms = self.fence_at_ms()
        if fence_at_ms is None or now_ms < fence_at_ms:
            return ""
        return SILENCE if self.end_ms() == self._session_end_ms else LATE

    def cancel(self, now_ms: int) -> bool:
        """Set when cancelled work is killed; False: it has no time left to stop.

        The kill comes before the end, however late the fence is.
        """
        latest_ms, end_ms = now_ms + self._margin_ms, self.end_ms()
        if end_ms is not None:
            latest_ms = min(latest_ms, end_ms - KILL_EARLY_MS)
        self._kill_at_ms = latest_ms
        self._is_kill_given = now_ms >= latest_ms
        return not self._is_kill_given

    def start_leave(self, until_ms: int) -> None:
        """Set until when a leave is repeated; nothing runs, so nothing is fenced."""
        self.clear()
        self._leave_by_ms = until_ms

    def leave_is_over(self, now_ms: int) -> bool:
        """Return whether a leave was repeated for long enough."""
        return self._leave_by_ms is not None and now_ms >= self._leave_by_ms

    def next_ms(self) -> int | None:
        """Return the earliest deadline; None if there is none."""
        return earliest(self.next_kill_ms(), self._leave_by_ms, self.fence_at_ms())

    def kill_is_due(self, now_ms: int) -> bool:
        """Return, once, whether cancelled work must be killed now."""
        kill_at_ms = self.next_kill_ms()
        if kill_at_ms is None or now_ms < kill_at_ms:
            return False
        self._is_kill_given = True
        return True

    def next_kill_ms(self) -> int | None:
        """Return when a kill will be due; None: none will."""
        return None if self._is_kill_given else self._kill_at_ms

    def call_off_kill(self) -> None:
        """Cancel the kill, since nothing runs any more."""
        self._kill_at_ms, self._is_kill_given = None, False

    def clear(self) -> None:
        """Drop the deadlines of a seat; a pending kill stays until nothing runs."""
        self._asked_ms = self._session_end_ms = self.revoke_by_ms = self._leave_by_ms = None
