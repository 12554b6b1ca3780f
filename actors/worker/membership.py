"""A member's side of the connect protocol, without any input or output (sans-io).

Events are calls with the time (monotonic, milliseconds); they return instructions for the program
that runs the member. Safety depends on three rules of PROTOCOL §8 and §9: only an answer starts a
resource; a revocation is over only when the request that acknowledges it has been answered; and a
member that cannot be sure of its session stops everything by itself, before another member may
start it.

    member = Membership(Identity("connect", "m-1", "p-1"), Timing(), (ClientAssignor("balanced"),))
    obey(member.join(clock()))              # [Send(...)]: to the group, by whatever carries it
    obey(member.handle_reply(reply, clock()))  # [Start(...), Send(...)]
    obey(member.release(freed, clock()))    # what a Stop or Fence named, once it has ended
    obey(member.tick(clock()))              # by `next_tick_ms()` at the latest

`callbacks.py` turns Start, Stop and Fence into a listener's callbacks; STATES.md shows the
states. Deadlines are in `deadlines.py`, requests and their times in `heartbeats.py`.
"""

from ...events.model import NOTHING, ClientAssignor, Resources
from ..messages.classic import MemberReply
from ..messages.errors import MEANINGS, SUCCESS, Error, Remedy
from ..messages.members import (
    JOIN_EPOCH,
    LEAVE_EPOCH,
    NO_COORDINATOR_EPOCH,
    TEMPORARY_LEAVE_EPOCH,
    HeartbeatReply,
)
from .group_membership import GroupMembership
from .heartbeats import HeartbeatScheduler, Requests, Sent
from .instructions import Compute, Identity, Instruction, Start, Stop, Timing
from .states import SENDING, TRANSITIONS, State


class Membership(GroupMembership):
    """One member of one group; every call returns the instructions that follow from it."""

    def __init__(
        self,
        identity: Identity,
        timing: Timing,
        assignors: tuple[ClientAssignor, ...] = (),
        *,
        server_assignor: str | None = None,
    ) -> None:
        """Name assignors that this member can run, or one of the group's (else `ValueError`)."""
        super().__init__(identity, timing, TRANSITIONS)
        self._epoch = JOIN_EPOCH
        self._requests = Requests(identity, assignors, server_assignor)
        self._scheduler = HeartbeatScheduler(self._requests, timing)

    @property
    def incarnation(self) -> str:
        """Distinguishes its process from others with its member id."""
        return self.identity.incarnation

    @property
    def member_id(self) -> str:
        """Its member id."""
        return self.identity.member_id

    @property
    def member_epoch(self) -> int:
        """The assignment epoch that it has reached; below 1 without a seat."""
        return self._epoch

    @property
    def timing(self) -> Timing:
        """As configured, but for the interval and session of the group's last answer."""
        return self._scheduler.timing

    @property
    def coordinator_epoch(self) -> int:
        """The number of the coordinator's process in its last answer."""
        return self._requests.coordinator_epoch

    # -- what happens to a member

    def join(self, now_ms: int) -> list[Instruction]:
        """Join the group; nothing may run yet."""
        self._leaves_for_good = None
        return self._send_join("told to join", now_ms)

    def change_assignors(
        self, assignors: tuple[ClientAssignor, ...], now_ms: int
    ) -> list[Instruction]:
        """Replace the assignors, or their metadata, and tell the coordinator at once.

        Raises `ValueError` in a member that named a server assignor.
        """
        is_new = self._requests.change(assignors)
        return self._send(now_ms) if is_new and self.state in SENDING else []

    def reconnect(
        self, now_ms: int, coordinator_epoch: int = NO_COORDINATOR_EPOCH
    ) -> list[Instruction]:
        """Send a full request at once: the coordinator is another process, with this number."""
        self._requests.coordinator_epoch = coordinator_epoch
        if self.state not in SENDING:
            return []
        self._requests.resend_in_full()
        self._scheduler.end_throttle()
        return self._send(now_ms)

    def handle_reply(self, reply: MemberReply, now_ms: int) -> list[Instruction]:
        """Apply the answer to the latest request; any other answer is ignored."""
        if not isinstance(reply, HeartbeatReply) or self.state not in SENDING:
            return []
        sent = self._requests.match_reply(reply)
        if sent is None:
            return []
        if reply.throttle_time_ms > 0 and self.state is not State.LEAVING:
            self._scheduler.throttle(now_ms + reply.throttle_time_ms)
        if reply.error in SUCCESS:
            return self._succeeded(reply, sent, now_ms)
        self._requests.resend_in_full()
        is_other = reply.coordinator_epoch != sent.request.coordinator_epoch
        if reply.error is Error.NOT_COORDINATOR and is_other:
            return self.reconnect(now_ms, reply.coordinator_epoch)
        return self._refused(reply, now_ms)

    # -- answers

    def _succeeded(self, reply: HeartbeatReply, sent: Sent, now_ms: int) -> list[Instruction]:
        if self.state is State.LEAVING:
            return self._left() if sent.request.member_epoch < JOIN_EPOCH else []
        self._epoch = reply.member_epoch
        self._work.log_offset = max(self._work.log_offset, reply.log_offset)
        self._requests.confirm(sent.request)
        session_ms = self._scheduler.adopt_timing(reply)
        is_seated = reply.member_epoch != JOIN_EPOCH
        asked_ms = self._deadlines.start_session(sent.at_ms, session_ms if is_seated else None)
        if self._work.is_given_up(sent.request.owned):
            self._deadlines.revoke_by_ms = None
        if overdue := self._deadlines.why_overdue(now_ms):  # the answer was read too late
            return self._fence(overdue, now_ms)
        instructions: list[Instruction] = []
        if reply.error is Error.COMPUTE_ASSIGNMENT and not self.computing:
            self.computing = True
            instructions.append(Compute(reply.member_epoch))
        if reply.assignment is not None:
            instructions += self._aim(reply.assignment, asked_ms)
        return instructions + self._advance(now_ms, answered=True)

    def _refused(self, reply: HeartbeatReply, now_ms: int) -> list[Instruction]:
        """Handle an error by its remedy; a refused join has no seat to lose."""
        remedy, reason = MEANINGS[reply.error].remedy, f"{reply.error.value}: {reply.message}"
        is_taken = reply.error is Error.UNRELEASED_INSTANCE_ID
        if self.state is State.LEAVING and (is_taken or remedy is not Remedy.RETRY):
            return self._left()
        if remedy is Remedy.FATAL:
            return self._die(reason, now_ms)
        if remedy is Remedy.REJOIN and self.state is not State.JOINING:
            return self._fence(reason, now_ms)
        if is_taken and (advice := self._scheduler.judge_taken_instance(now_ms)):
            return self._die(f"{reason} ({advice})", now_ms)
        self._scheduler.back_off(now_ms)
        return []

    def _aim(self, target: Resources, asked_ms: int) -> list[Instruction]:
        """Set a new target: revoke first."""
        newly = self._work.aim(target)
        if self._work.must_release:
            self._deadlines.time_revocation(asked_ms + self.timing.rebalance_timeout_ms)
        if self.state is State.PREPARE_LEAVING:
            return []  # everything is being stopped; but a revocation has a deadline
        if self.owned != target:
            self._machine.go(State.RECONCILING, "a new target")
        return [Stop(newly)] if newly else []

    # -- what follows

    def _advance(self, now_ms: int, *, answered: bool = False) -> list[Instruction]:
        """Start what is granted once nothing has to be revoked, and report what is owned."""
        if self.state is State.PREPARE_LEAVING:
            self._requests.repeat_owned()  # what is granted now is never started
            return self._send(now_ms) if answered else []
        if self.state not in SENDING or self.state is State.LEAVING:
            return []
        instructions: list[Instruction] = []
        if answered and not self._work.must_release and (grant := self._work.grant()):
            instructions.append(Start(grant, self._work.log_offset))
        may_report = not self._work.must_release
        reported = self._requests.knows_owned(self.owned)
        if self.state is State.RECONCILING and may_report:
            self._machine.go(State.ACKNOWLEDGING, "what runs is as far as it can be")
        is_done = reported and self.owned == self._work.target
        if is_done and self.state in {State.ACKNOWLEDGING, State.JOINING}:
            self._machine.go(State.STABLE, "the group knows what runs here")
        if answered or (may_report and not reported):
            instructions += self._send(now_ms)
        return instructions

    # -- requests

    def _send(self, now_ms: int) -> list[Instruction]:
        fence_at_ms = self._deadlines.fence_at_ms()
        return self._scheduler.send(self._epoch, self.owned, now_ms, fence_at_ms)

    def _next_send_ms(self) -> int | None:
        return self._scheduler.next_ms(self._deadlines.fence_at_ms())

    def _send_due(self, now_ms: int) -> list[Instruction]:
        due_ms = self._next_send_ms()
        return [] if due_ms is None or now_ms < due_ms else self._send(now_ms)

    def _send_join(self, why: str, now_ms: int) -> list[Instruction]:
        self._machine.go(State.JOINING, why)
        return self._send(now_ms)

    def _send_leave(self, now_ms: int) -> list[Instruction]:
        self._deadlines.start_leave(now_ms + self.timing.session_timeout_ms)
        self._epoch = LEAVE_EPOCH if self._leaves_for_good else TEMPORARY_LEAVE_EPOCH
        self._scheduler.end_throttle()  # others wait for a leave: it is not throttled
        return self._send(now_ms)

    def _forget(self) -> None:
        self._scheduler.clear()
        self._deadlines.clear()
        self._work.target = NOTHING
        self._epoch = JOIN_EPOCH
        self.computing = False
