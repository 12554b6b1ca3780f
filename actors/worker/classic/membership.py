"""A worker's side of the classic protocol, without any input or output (sans-io).

It has the interface of `Membership`, so one worker core drives both. A member repeats this cycle:

    JoinGroup ─▶ (the leader assigns) ─▶ SyncGroup ─▶ stop, start ─▶ heartbeats ─▶ JoinGroup

It rejoins when a heartbeat is answered with REBALANCE_IN_PROGRESS, by itself after a revocation,
when the delay for lost work is over, and, as the leader, when the configs have changed. In the
protocols `compatible` and `sessioned` its work goes on meanwhile; in `default` it stops all first.

Unlike Kafka's workers, one that gets no answer stops everything by itself before its session ends,
and so does one that cannot join a round in time (`deadlines.py`). It commits under the fencing
tokens that the log grants it (PROTOCOL §14).
"""

from typing import Final

from ....events.model import Resources
from ...assignors.classic.protocol import VERSIONS, ReceivedAssignment
from ...classic.bytes.connect import decode_assignment, encode_offers
from ...classic.bytes.primitives import UnwritableError
from ...messages.assignors import ComputeAssignmentReply
from ...messages.classic import (
    ClassicHeartbeatReply,
    JoinGroupReply,
    LeaveGroupReply,
    MemberReply,
    SyncGroupReply,
)
from ...messages.computing import Assignment
from ...messages.errors import MEANINGS, Error, Remedy
from ...messages.members import NO_COORDINATOR_EPOCH
from ...timing import earliest
from ..group_membership import GroupMembership
from ..instructions import ComputeRound, Identity, Instruction, Timing
from ..states import CLASSIC_TRANSITIONS, SENDING, State
from .calls import MemberCalls
from .lead import Configs, Lead
from .share import Share

COMPUTE_MS: Final = 5_000
"""How long a leader waits for an assignor of users': all others wait for it meanwhile."""
IN_A_ROUND = frozenset({State.STABLE, State.RECONCILING, State.PREPARE_LEAVING})
"""The states in which a member has to join a round, or to leave, within its rebalance timeout."""


class ClassicMembership(GroupMembership):
    """One classic member of one group; every call returns the instructions that follow from it."""

    def __init__(
        self,
        identity: Identity,
        timing: Timing,
        mode: str,
        max_delay_ms: int,
        assignor: str = "",
    ) -> None:
        """`mode` is a value of `connect.protocol`.

        When the member leads, lost work waits for `max_delay_ms` at most, and the assignor of that
        name, one of users', computes; "": Connect's own do.
        """
        super().__init__(identity, timing, CLASSIC_TRANSITIONS)
        self._timing, self._mode = timing, mode
        self._calls = MemberCalls(identity, timing)
        self._lead = Lead(max_delay_ms, assignor)
        self._share = Share(self._work)
        self._round: JoinGroupReply | None = None
        """The last generation that it was told."""
        self._completed = -1
        """The last generation of which it got its assignment."""
        self._configs = Configs()
        self._leads_now = False
        """Whether it has to assign as soon as it has looked into the log."""
        self._computed_by_ms: int | None = None
        """Until when it waits for the assignor of users'; None: it does not."""
        self._alive_ms = self._calm_ms = self._round_ms = 0
        """The sending times of the newest call that was answered, of the newest heartbeat that was
        answered without a round, and of the JoinGroup of the current round."""

    @property
    def timing(self) -> Timing:
        """As configured."""
        return self._timing

    @property
    def member_id(self) -> str:
        """Its member id; empty before the group has given it one."""
        return self._calls.member_id

    @property
    def member_epoch(self) -> int:
        """Its generation."""
        return self._calls.generation

    @property
    def is_leader(self) -> bool:
        """Whether it leads the last generation that it was told."""
        return self._round is not None and self._round.leader == self.member_id != ""

    # -- what happens to a member

    def join(self, now_ms: int) -> list[Instruction]:
        """Join the group; nothing may run yet."""
        self._leaves_for_good = None
        return self._send_join("told to join", now_ms)

    def reconnect(
        self, now_ms: int, coordinator_epoch: int = NO_COORDINATOR_EPOCH
    ) -> list[Instruction]:
        """Repeat unanswered calls at once: the coordinator is another process."""
        del coordinator_epoch
        return self._calls.repeat(now_ms) if self.state in SENDING else []

    def set_configured(self, configured: Resources, offset: int, now_ms: int) -> list[Instruction]:
        """Set the configured resources, and the offset of their record, for a leader."""
        self._configs = Configs(offset, configured)
        if self._leads_now:
            return self._assign(now_ms)
        if self.state is State.RECONCILING:
            return self._settle(now_ms)
        is_old = self._share.config_offset < self._configs.offset
        if self.state is State.STABLE and self.is_leader and is_old:
            return self._join_anew("the configs have changed", now_ms)
        return []

    def handle_reply(self, reply: MemberReply, now_ms: int) -> list[Instruction]:
        """Apply the answer to the latest call; any other answer is ignored."""
        if self.state not in SENDING or not self._calls.match(reply):
            return []
        if self.state is State.LEAVING:
            return self._left() if isinstance(reply, LeaveGroupReply) else []
        match reply:
            case JoinGroupReply():
                return self._enter_generation(reply, now_ms)
            case SyncGroupReply() if self.state is State.JOINING:
                return self._apply_assignment(reply, now_ms)
            case ClassicHeartbeatReply():
                return self._apply_heartbeat(reply, now_ms)
            case _:
                return []

    # -- calls

    def _send_due(self, now_ms: int) -> list[Instruction]:
        if self._calls.retries_join(now_ms) and self.state is State.JOINING:
            return self._send_join("the delay after a refusal is over", now_ms)
        if self._computed_by_ms is not None and now_ms >= self._computed_by_ms:
            return self._sync_all(None, now_ms)
        due_ms = self._share.rejoin_at_ms
        if self.state is State.STABLE and due_ms is not None and now_ms >= due_ms:
            return self._join_anew("lost work has waited long enough", now_ms)
        return self._calls.tick(now_ms)

    def _next_send_ms(self) -> int | None:
        rejoin_ms = self._share.rejoin_at_ms if self.state is State.STABLE else None
        return earliest(self._calls.next_ms(), rejoin_ms, self._computed_by_ms)

    # -- answers

    def _enter_generation(self, reply: JoinGroupReply, now_ms: int) -> list[Instruction]:
        if reply.error is Error.MEMBER_ID_REQUIRED and self.state is State.JOINING:
            self._calls.member_id = reply.member_id
            return self._send_join("it was given a name", now_ms)
        if reply.error is not Error.NONE:
            return self._refused(reply.error, reply.message, now_ms)
        self._calls.enter(reply.member_id, reply.generation)
        by_ms = self._round_ms + self._timing.rebalance_timeout_ms  # it has to sync by then
        self._deadlines.revoke_by_ms = by_ms if self.owned else None
        if self.state is not State.JOINING:
            return []
        self._round = reply
        self._leads_now = self.is_leader and not reply.skips_assignment
        return [] if self._leads_now else self._calls.sync(reply.protocol, {}, now_ms)

    def _assign(self, now_ms: int) -> list[Instruction]:
        """Assign as the leader, with the configs that the log has now."""
        self._leads_now = False
        if self._round is None:
            return []
        if (snapshot := self._lead.snapshot_of(self._round, self._configs)) is not None:
            self._computed_by_ms = now_ms + COMPUTE_MS
            return [ComputeRound(snapshot)]
        return self._sync_all(None, now_ms)

    def take_assignment(self, reply: ComputeAssignmentReply, now_ms: int) -> list[Instruction]:
        """Assign what the assignor of users' has computed; one that failed is passed over."""
        is_awaited = self._computed_by_ms is not None and self._round is not None
        if not is_awaited or reply.group_epoch != self._calls.generation:
            return []
        return self._sync_all(reply.assignment, now_ms)

    def _sync_all(self, computed: Assignment | None, now_ms: int) -> list[Instruction]:
        """Send what each member is assigned."""
        self._computed_by_ms = None
        if self._round is None:
            return []
        lasting = self._round, self._configs, self._completed, now_ms
        try:
            assignments = self._lead.assign(*lasting, computed)
        except UnwritableError as error:
            return self._die(f"what it is to assign is too large for one message: {error}", now_ms)
        return self._calls.sync(self._round.protocol, assignments, now_ms)

    def _apply_assignment(self, reply: SyncGroupReply, now_ms: int) -> list[Instruction]:
        """Apply an assignment: stop and start resources, and rejoin if it requires that."""
        if reply.error is Error.REBALANCE_IN_PROGRESS:
            return self._send_join("another round has begun", now_ms)
        if reply.error is not Error.NONE:
            return self._refused(reply.error, reply.message, now_ms)
        self._stay_alive()
        if overdue := self._deadlines.why_overdue(now_ms):  # the answer was read too late
            return self._fence(overdue, now_ms)
        self._completed, self._deadlines.revoke_by_ms = self._calls.generation, None
        self._work.log_offset = max(self._work.log_offset, reply.log_offset)
        version, offset = VERSIONS[reply.protocol or ""], self._configs.offset
        nothing = ReceivedAssignment(config_offset=offset)
        assignment = decode_assignment(reply.assignment, version) if reply.assignment else nothing
        stop = self._share.apply(version, assignment, offset, now_ms)
        self._machine.go(State.RECONCILING, "an assignment")
        return stop + self._settle(now_ms)

    def _apply_heartbeat(self, reply: ClassicHeartbeatReply, now_ms: int) -> list[Instruction]:
        if reply.error is Error.NONE:
            self._stay_alive()
            self._calm_ms = self._calls.answered_ms
        elif reply.error is Error.REBALANCE_IN_PROGRESS:
            self._stay_alive()
            return self._join_round(now_ms, has_joined=reply.has_joined)
        elif reply.error is not Error.ILLEGAL_GENERATION or self.state is not State.JOINING:
            return self._refused(reply.error, reply.message, now_ms)
        return []

    def _join_round(self, now_ms: int, *, has_joined: bool) -> list[Instruction]:
        """Join a round that has begun; until its JoinGroup has arrived the deadline runs."""
        if has_joined:
            self._deadlines.revoke_by_ms, self._round_ms = None, self._calls.answered_ms
        elif self.owned or self.state in IN_A_ROUND:
            self._deadlines.time_revocation(self._calm_ms + self._timing.rebalance_timeout_ms)
        if self.state is State.STABLE:
            return self._join_anew("a round has begun", now_ms)
        if self.state is State.RECONCILING:
            return self._share.join_round() + self._settle(now_ms)
        if self.state is State.JOINING and self._calls.waits_for_stale_assignment:
            return self._send_join("another round has begun", now_ms)
        return []

    def _refused(self, error: Error, message: str, now_ms: int) -> list[Instruction]:
        """Handle an error by its remedy; a refused join has no seat to lose."""
        meaning = MEANINGS[error]
        reason = f"{error.value}: {message or meaning.advice}"
        if meaning.remedy is Remedy.FATAL:
            return self._die(reason, now_ms)
        if error is Error.UNKNOWN_MEMBER_ID:
            self._calls.member_id = ""
        if meaning.remedy is Remedy.REJOIN and (self.owned or self.state is not State.JOINING):
            return self._fence(reason, now_ms)
        if self.state is State.JOINING:
            self._calls.back_off(now_ms)
        return []

    def _stay_alive(self) -> None:
        """Renew the session, counted from the sending time of the newest answered call."""
        self._alive_ms = max(self._alive_ms, self._calls.answered_ms)
        session_ms = min(self._timing.session_timeout_ms, self._timing.rebalance_timeout_ms)
        self._deadlines.start_session(self._alive_ms, session_ms)

    # -- what follows

    def _advance(self, now_ms: int) -> list[Instruction]:
        if self.state is not State.RECONCILING or self._work.must_release:
            return []
        started = self._share.start()
        if not self._share.rejoins:
            self._machine.go(State.STABLE, "all that it was given runs")
        elif not self._share.waits_for_configs(self._configs.offset):
            started += self._send_join("nothing has to stop any more", now_ms)
        return started

    def _join_anew(self, why: str, now_ms: int) -> list[Instruction]:
        """Rejoin; in the eager protocol only once nothing runs."""
        self._machine.go(State.RECONCILING, why)
        return self._share.prepare_to_rejoin() + self._settle(now_ms)

    def _send_join(self, why: str, now_ms: int) -> list[Instruction]:
        """Send a JoinGroup with what is owned, and with the config offset."""
        self._machine.go(State.JOINING, why)
        self._leads_now, self._round_ms, self._computed_by_ms = False, now_ms, None
        self._calm_ms = self._calm_ms or now_ms  # no round went on without it before its first
        metadata = self._share.make_metadata(self.identity.url, self._configs.offset)
        try:
            offers = encode_offers(self._mode, metadata)
        except UnwritableError as error:
            return self._die(f"what runs here is too much for one message: {error}", now_ms)
        return self._calls.join(offers, now_ms)

    # -- endings

    def _send_leave(self, now_ms: int) -> list[Instruction]:
        if not self._leaves_for_good or not self.member_id:
            return self._left()
        self._deadlines.start_leave(now_ms + self._timing.session_timeout_ms)
        self._calls.clear()
        return self._calls.leave(now_ms)

    def _forget(self) -> None:
        for each in (self._calls, self._deadlines, self._lead):
            each.clear()
        self._share.give_up()
        self._round, self._leads_now, self._computed_by_ms = None, False, None
