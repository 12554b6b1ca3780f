"""The base of members of both protocols: their interface, their state, and their end.

A member that lost its seat stops everything without grace, and rejoins once nothing runs, unless
the error is fatal. See `deadlines.py` for the times. What differs by protocol is abstract here: the
calls that are sent, and what an answer means.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping

from ...events.model import ClientAssignor, Resources
from ..messages.assignors import ComputeAssignmentReply
from ..messages.classic import MemberReply
from ..messages.members import NO_COORDINATOR_EPOCH
from ..timing import earliest
from .deadlines import Deadlines
from .instructions import Fence, Gone, Identity, Instruction, Kill, Stop, Timing
from .states import SENDING, Machine, State, Work


class GroupMembership(ABC):
    """One member of one group; every call returns the instructions that follow from it."""

    def __init__(
        self, identity: Identity, timing: Timing, transitions: Mapping[State, frozenset[State]]
    ) -> None:
        self.identity = identity
        self.computing = False
        """Whether a computation is under way; the member's owner sets it back when it is over."""
        self._machine = Machine(transitions)
        self._deadlines = Deadlines(timing.fence_margin_ms)
        self._work = Work()
        self._leaves_for_good: bool | None = None
        """Whether it leaves for good or for a while, once it was told to leave."""

    @property
    @abstractmethod
    def timing(self) -> Timing:
        """As configured, but for the interval and session of the group's last answer."""

    @property
    @abstractmethod
    def member_epoch(self) -> int:
        """The assignment epoch or generation that it has reached; below 1: it has no seat."""

    @property
    def coordinator_epoch(self) -> int:
        """The number of the coordinator's process that its requests name."""
        return NO_COORDINATOR_EPOCH

    @property
    def incarnation(self) -> str:
        """Distinguishes its process from others with its member id; empty: there are none."""
        return ""

    @property
    @abstractmethod
    def member_id(self) -> str:
        """Its member id; empty before the group has given it one."""

    @abstractmethod
    def join(self, now_ms: int) -> list[Instruction]:
        """Join the group; nothing may run yet."""

    def change_assignors(
        self, _assignors: tuple[ClientAssignor, ...], _now_ms: int
    ) -> list[Instruction]:
        """Replace assignors, or their metadata; a classic member has none."""
        return []

    @abstractmethod
    def reconnect(self, now_ms: int, coordinator_epoch: int) -> list[Instruction]:
        """Repeat requests that may be lost: the coordinator is a new process of this number."""

    def set_configured(
        self, _configured: Resources, _offset: int, _now_ms: int
    ) -> list[Instruction]:
        """Set the configured resources; only a classic leader needs them.

        `_offset` is that of the record that says so.
        """
        return []

    def take_assignment(self, _reply: ComputeAssignmentReply, _now_ms: int) -> list[Instruction]:
        """Apply what an assignor has computed; only a classic leader has asked for it itself."""
        return []

    @abstractmethod
    def handle_reply(self, reply: MemberReply, now_ms: int) -> list[Instruction]:
        """Apply the answer to the latest request; any other answer is ignored."""

    def tick(self, now_ms: int) -> list[Instruction]:
        """Execute all due timers: repeat unanswered requests, and fence."""
        if self._deadlines.kill_is_due(now_ms):
            return [Kill("what had to stop has not stopped in time")]
        if self.state not in SENDING:
            return []
        if overdue := self._deadlines.why_overdue(now_ms):
            return self._fence(overdue, now_ms)
        return self._left() if self._deadlines.leave_is_over(now_ms) else self._send_due(now_ms)

    def next_tick_ms(self) -> int | None:
        """Return when `tick` is due next, None if never."""
        if self.state not in SENDING:
            return self._deadlines.next_kill_ms()
        return earliest(self._next_send_ms(), self._deadlines.next_ms())

    @property
    def state(self) -> State:
        """The member's state."""
        return self._machine.state

    @property
    def owned(self) -> Resources:
        """All that the member owns: from before a start until after the stop has completed."""
        return self._work.owned

    def leave(self, now_ms: int, *, temporary: bool = False) -> list[Instruction]:
        """Stop everything in good order, then leave; the first call decides how.

        With `temporary` the seat is kept for the next process with the instance id; raises
        `ValueError` for a member without one.
        """
        if temporary and self.identity.instance_id is None:
            raise ValueError("only a member with an instance id can leave for a while")
        if self._leaves_for_good is None:
            self._leaves_for_good = not temporary
        if self.state in {State.FENCED, State.UNSUBSCRIBED}:
            return self._settle(now_ms)
        if self.state in {State.LEAVING, State.FATAL, State.PREPARE_LEAVING}:
            return []
        self._machine.go(State.PREPARE_LEAVING, "told to leave")
        stop: list[Instruction] = [Stop(self.owned)] if self.owned else []
        return stop + self._settle(now_ms)

    def end_ms(self) -> int | None:
        """Return until when work may run without an answer; None: there is no limit."""
        return self._deadlines.end_ms()

    def release(self, resources: Iterable[object], now_ms: int) -> list[Instruction]:
        """Record that these resources have stopped."""
        if not self._work.release(resources):
            return []
        if not self.owned:
            self._deadlines.call_off_kill()
        return self._settle(now_ms)

    def _settle(self, now_ms: int) -> list[Instruction]:
        """React to the state after a change."""
        if self.state is State.FENCED:
            return [] if self.owned else self._rejoin(now_ms)
        if self.state is State.UNSUBSCRIBED:
            return [Gone()]
        if self.state is State.PREPARE_LEAVING and not self.owned:
            self._machine.go(State.LEAVING, "everything is released")
            return self._send_leave(now_ms)
        return self._advance(now_ms)

    def _rejoin(self, now_ms: int) -> list[Instruction]:
        """Rejoin once nothing runs any more, or end if it has to leave."""
        if self._leaves_for_good is not None:
            return self._left()
        return self._send_join("nothing runs any more", now_ms)

    @abstractmethod
    def _send_due(self, now_ms: int) -> list[Instruction]:
        """Send what is due by now."""

    @abstractmethod
    def _next_send_ms(self) -> int | None:
        """Return when something is due to be sent, None if nothing is."""

    @abstractmethod
    def _send_join(self, why: str, now_ms: int) -> list[Instruction]:
        """Join, or join anew."""

    @abstractmethod
    def _send_leave(self, now_ms: int) -> list[Instruction]:
        """Leave, now that nothing runs any more."""

    @abstractmethod
    def _advance(self, now_ms: int) -> list[Instruction]:
        """Start what may start now, and report what has stopped."""

    @abstractmethod
    def _forget(self) -> None:
        """Drop the seat; resources that still run are being stopped."""

    def _fence(self, reason: str, now_ms: int) -> list[Instruction]:
        """Fence itself: stop everything without grace; no late answer prevents this."""
        end = self._end_all(State.FENCED, reason, now_ms)
        return end if self.owned else self._rejoin(now_ms)

    def _end_all(self, state: State, why: str, now_ms: int) -> list[Instruction]:
        """Drop the seat; cancel running resources, or kill them if no time is left."""
        end: list[Instruction] = []
        if self.owned:
            end = [Fence(why)] if self._deadlines.cancel(now_ms) else [Kill(why)]
        self._machine.go(state, why)
        self._forget()
        return end

    def _left(self) -> list[Instruction]:
        self._forget()
        self._machine.go(State.UNSUBSCRIBED, "left")
        return [Gone()]

    def _die(self, error: str, now_ms: int) -> list[Instruction]:
        return [*self._end_all(State.FATAL, error, now_ms), Gone(error)]
