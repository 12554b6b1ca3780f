"""By when nothing may run at a member any more, however it came to that (PROTOCOL §8).

Theory of operation. A member lives by three clocks of its own, and must stop by itself before the
group, by its clocks, gives the member's work to others. No message can be relied upon for that:
the member may be cut off. All times are of the member's monotonic clock.

*The session* says for how long the member is known to be alive. The group counts it from the
arrival of a request, the member from the sending time of the newest request that was answered.
Sent is before arrived, so the member's session ends first, however long the request or its answer
took. Counted from the answer, a member that is served late would outlive its session.

    member   sent ------------------------------ fence ---- end
    group         arrived ---------------------------------------- session expires: work is lost
                                                 |<margin>|

*The heartbeat* (`voice.py`) keeps the session away. A request is repeated once its answer is late
(the interval + 1,500 ms); a configuration is refused unless two of them may be lost before the
margin begins. It also carries what others wait for: a report that something has ended is sent at
once. A silence that the group asks for ends in time for an answer to call off the next fence.

*The rebalance timeout* bounds a revocation. The group counts it from the record that asked for it,
the member from the sending time of the request before the answer that asked for it: at that time
the group had not asked yet. The revocation is over when a request that reports it done was
*answered*. That everything has stopped is not enough: the report may be lost, and the group then
removes a member that still runs its other tasks. A second revocation moves no deadline.

The earliest of session and revocation is the *end*. What follows is a ratchet:

    end - margin    fence: cancel everything, without grace; forget the seat. No late answer
                    calls it off, for the work may be somebody else's by the time it is read.
    end - 100 ms    kill: what was cancelled and has not stopped is ended with the process. A
                    member that wakes after a freeze beyond this kills at once; it must not even
                    begin to stop in good order.
    end             nothing runs. Should all of this hang, the watchdog ends the process.

When nothing runs any more the member joins anew, at epoch 0. Leaving has a bound as well: a
goodbye is repeated for one session at most, since nothing runs by then.
"""

from ..backoff import earliest

KILL_EARLY_MS = 100
"""So long before its deadline what has not stopped is killed: two of a worker's ticks."""

SILENCE = "the group has not answered for so long that the session may end"
LATE = "a revocation was not acknowledged in time"


class Deadlines:
    """The deadlines of one member, on its monotonic clock, in milliseconds."""

    def __init__(self, fence_margin_ms: int) -> None:
        self.revoke_by_ms: int | None = None
        """When the revocation under way must have been answered for; None: there is none."""
        self._margin_ms = fence_margin_ms
        self._asked_ms: int | None = None
        """When the newest answered request was sent."""
        self._leave_by_ms: int | None = None
        """Until when a goodbye is repeated; None: the member does not leave."""
        self._session_end_ms: int | None = None
        """None: there is no seat to lose."""
        self._kill_at_ms: int | None = None
        """When what was cancelled is killed; None: nothing was cancelled."""
        self._is_kill_given = False

    def start_session(self, sent_ms: int, session_ms: int | None) -> int:
        """Count the session from a request's sending time; None: there is no seat to lose yet.

        Return since when the group may have asked for what its answer asks for: the sending time
        of the request that was answered before.
        """
        before_ms = sent_ms if self._asked_ms is None else self._asked_ms
        self._asked_ms = sent_ms
        self._session_end_ms = None if session_ms is None else sent_ms + session_ms
        return before_ms

    def time_revocation(self, by_ms: int) -> None:
        """Set by when a revocation is to be answered for; one under way keeps its deadline."""
        if self.revoke_by_ms is None:
            self.revoke_by_ms = by_ms

    def end_ms(self) -> int | None:
        """Return by when nothing may run unless an answer comes, None if nothing has to end."""
        return earliest(self._session_end_ms, self.revoke_by_ms, self._kill_at_ms)

    def fence_at_ms(self) -> int | None:
        """Return when the member must begin to stop everything by itself."""
        end_ms = self.end_ms()
        return None if end_ms is None else end_ms - self._margin_ms

    def why_overdue(self, now_ms: int) -> str:
        """Return why it is time to fence, or nothing."""
        fence_at_ms = self.fence_at_ms()
        if fence_at_ms is None or now_ms < fence_at_ms:
            return ""
        return SILENCE if self.end_ms() == self._session_end_ms else LATE

    def cancel(self, now_ms: int) -> bool:
        """Set when to kill what is cancelled now; tell whether it has any time to stop.

        The kill is in time for the deadline, late as the cancelling may be.
        """
        latest_ms, end_ms = now_ms + self._margin_ms, self.end_ms()
        if end_ms is not None:
            latest_ms = min(latest_ms, end_ms - KILL_EARLY_MS)
        self._kill_at_ms = latest_ms
        self._is_kill_given = now_ms >= latest_ms
        return not self._is_kill_given

    def start_goodbye(self, until_ms: int) -> None:
        """Set until when a goodbye is repeated: nothing runs, so there is nothing to fence."""
        self.clear()
        self._leave_by_ms = until_ms

    def goodbye_is_over(self, now_ms: int) -> bool:
        """Tell whether a goodbye was repeated for long enough."""
        return self._leave_by_ms is not None and now_ms >= self._leave_by_ms

    def next_ms(self) -> int | None:
        """Return the first of all deadlines, None if there is none."""
        return earliest(self.next_kill_ms(), self._leave_by_ms, self.fence_at_ms())

    def kill_is_due(self, now_ms: int) -> bool:
        """Tell, once, that what was cancelled has had its time."""
        kill_at_ms = self.next_kill_ms()
        if kill_at_ms is None or now_ms < kill_at_ms:
            return False
        self._is_kill_given = True
        return True

    def next_kill_ms(self) -> int | None:
        """Return when a kill will be due, None if none is to come."""
        return None if self._is_kill_given else self._kill_at_ms

    def call_off_kill(self) -> None:
        """Take note that nothing runs: there is nothing to kill."""
        self._kill_at_ms, self._is_kill_given = None, False

    def clear(self) -> None:
        """Forget the seat; a kill that was set stands until nothing runs."""
        self._asked_ms = self._session_end_ms = self.revoke_by_ms = self._leave_by_ms = None
