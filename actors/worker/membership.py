"""A member's side of the protocol, without any input or output (sans-io).

Events come in as calls with the time (monotonic, milliseconds); out go instructions for
whoever runs the member. Safety rests on three rules of PROTOCOL §8 and §9: only an answer
starts a resource; what is to be given up counts as given up only when an answer to the
report has come; and a member that can not be sure of its session stops everything by
itself before anybody else may start it.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace

from ...events.model import NOTHING, Assignor, Resources
from ..messages import JOIN_EPOCH, LEAVE_EPOCH, SUCCESS, Error, Heartbeat, HeartbeatReply
from .instructions import (
    Compute,
    Fence,
    Gone,
    Identity,
    Instruction,
    Kill,
    Send,
    Start,
    Stop,
    Timing,
)
from .states import SPEAKING, Machine, State

REQUEST_GRACE_MS = 1_500
"""How long past the heartbeat interval an answer may take before the request is repeated."""

KILL_EARLY_MS = 100
"""So long before its deadline what has not stopped is killed: two of a worker's ticks."""

REJOIN = frozenset({Error.UNKNOWN_MEMBER_ID, Error.FENCED_MEMBER_EPOCH, Error.GROUP_ID_NOT_FOUND})
RETRIABLE = frozenset({Error.UNRELEASED_INSTANCE_ID})


@dataclass(frozen=True, slots=True)
class Sent:
    """A request on its way: what it said, and when."""

    request: Heartbeat
    at_ms: int


class Membership:
    """One member of one group; every call returns what is to be done because of it."""

    def __init__(self, identity: Identity, timing: Timing, assignors: tuple[Assignor, ...]) -> None:
        self.identity = identity
        self.timing = timing
        self.member_epoch = JOIN_EPOCH
        self.owned: Resources = NOTHING
        """What runs here: from before its start begins until after its stop has completed."""
        self.computing = False
        self._machine = Machine()
        self._assignors = assignors
        self._target: Resources = NOTHING
        self._log_offset = 0
        self._sequence = 0
        self._sent: Sent | None = None
        self._said: Heartbeat | None = None
        self._session_from_ms: int | None = None
        self._revoke_by_ms: int | None = None
        self._retry_at_ms: int | None = None
        self._kill_at_ms: int | None = None
        self._leave_by_ms: int | None = None
        self._is_leaving = False

    @property
    def state(self) -> State:
        """Where the member stands."""
        return self._machine.state

    # -- what happens to a member

    def join(self, now_ms: int) -> list[Instruction]:
        """Ask for a seat; nothing may run yet."""
        self._machine.go(State.JOINING, "told to join")
        return self._send(now_ms)

    def leave(self, now_ms: int) -> list[Instruction]:
        """Give everything up in good order, then say goodbye."""
        self._is_leaving = True
        if self.state in {State.FENCED, State.UNSUBSCRIBED}:
            return self._settle(now_ms)
        if self.state in {State.LEAVING, State.FATAL, State.PREPARE_LEAVING}:
            return []
        self._machine.go(State.PREPARE_LEAVING, "told to leave")
        stop: list[Instruction] = [Stop(self.owned)] if self.owned else []
        return stop + self._settle(now_ms)

    def stopped(self, resources: Iterable[object], now_ms: int) -> list[Instruction]:
        """Take note that these do not run any more."""
        gone = self.owned.intersection(resources)
        if not gone:
            return []
        self.owned -= gone
        return self._settle(now_ms)

    def changed(self, assignors: tuple[Assignor, ...], now_ms: int) -> list[Instruction]:
        """Take new assignors, or new metadata of theirs, and tell the group at once."""
        if assignors == self._assignors:
            return []
        self._assignors = assignors
        return self._send(now_ms) if self.state in SPEAKING else []

    def reconnected(self, now_ms: int) -> list[Instruction]:
        """Say everything again, at once: the group is served by somebody new."""
        if self.state not in SPEAKING:
            return []
        self._said = None
        return self._send(now_ms)

    def computed(self) -> None:
        """Take note that the computation that was asked for is over, well or not."""
        self.computing = False

    def answered(self, reply: HeartbeatReply, now_ms: int) -> list[Instruction]:
        """Take the answer to the latest request; any other answer is ignored."""
        sent = self._sent
        if sent is None or self.state not in SPEAKING:
            return []
        asked = (self.identity.incarnation, sent.request.sequence)
        if (reply.incarnation, reply.sequence) != asked:
            return []
        self._sent = None
        if reply.error in SUCCESS:
            return self._succeeded(reply, sent, now_ms)
        self._said = None
        return self._refused(reply, now_ms)

    def tick(self, now_ms: int) -> list[Instruction]:
        """Let time pass: repeat what was not answered, and fence when it is time."""
        if self._kill_at_ms is not None and now_ms >= self._kill_at_ms and self.owned:
            self._kill_at_ms = None
            return [Kill("what had to stop has not stopped in time")]
        if self.state not in SPEAKING:
            return []
        if overdue := self._overdue(now_ms):
            return self._fence(overdue, now_ms)
        if self._leave_by_ms is not None and now_ms >= self._leave_by_ms:
            return self._left()
        return self._repeat(now_ms)

    def _repeat(self, now_ms: int) -> list[Instruction]:
        """Send again what was refused for now, or was not answered in time."""
        patience_ms = self.timing.heartbeat_interval_ms + REQUEST_GRACE_MS
        is_lost = self._sent is not None and now_ms >= self._sent.at_ms + patience_ms
        is_due = self._retry_at_ms is not None and now_ms >= self._retry_at_ms
        if not is_lost and not is_due:
            return []
        self._said = None
        return self._send(now_ms)

    def next_tick_ms(self) -> int | None:
        """Return when `tick` has something to do at the earliest, None if never."""
        times = [self._kill_at_ms]
        if self.state in SPEAKING:
            patience_ms = self.timing.heartbeat_interval_ms + REQUEST_GRACE_MS
            times += [self._retry_at_ms, self._leave_by_ms, self._fence_at_ms()]
            times.append(self._sent.at_ms + patience_ms if self._sent else None)
        return min((time for time in times if time is not None), default=None)

    # -- answers

    def _succeeded(self, reply: HeartbeatReply, sent: Sent, now_ms: int) -> list[Instruction]:
        if self.state is State.LEAVING:
            return self._left() if sent.request.member_epoch == LEAVE_EPOCH else []
        before_ms, self._session_from_ms = self._session_from_ms, sent.at_ms
        self.member_epoch = reply.member_epoch
        self._log_offset = max(self._log_offset, reply.log_offset)
        self._remember(sent.request)
        self._acknowledged(sent.request)
        if overdue := self._overdue(now_ms):  # an answer that lay unread while time went by
            return self._fence(overdue, now_ms)
        instructions: list[Instruction] = []
        if reply.error is Error.COMPUTE_ASSIGNMENT and not self.computing:
            self.computing = True
            instructions.append(Compute(reply.member_epoch))
        if reply.assignment is not None:
            instructions += self._aim(reply.assignment, before_ms or sent.at_ms)
        return instructions + self._settle(now_ms, answered=True)

    def _refused(self, reply: HeartbeatReply, now_ms: int) -> list[Instruction]:
        if self.state is State.LEAVING:
            return self._left()
        reason = f"{reply.error.value}: {reply.message}"
        if reply.error in REJOIN:
            return self._fence(reason, now_ms)
        if reply.error in RETRIABLE:
            self._retry_at_ms = now_ms + self.timing.heartbeat_interval_ms
            return []
        return self._die(reason, now_ms)

    def _aim(self, target: Resources, asked_from_ms: int) -> list[Instruction]:
        """Turn to a new target: what must go goes first."""
        newly = (self.owned & self._target) - target
        self._target = target
        drop = self.owned - target
        if drop and self._revoke_by_ms is None:
            self._revoke_by_ms = asked_from_ms + self.timing.rebalance_timeout_ms
        if self.state is State.PREPARE_LEAVING:
            return []  # all of it was told to stop; but the group has set a deadline
        if self.owned != target:
            self._machine.go(State.RECONCILING, "a new target")
        return [Stop(newly)] if newly else []

    def _acknowledged(self, request: Heartbeat) -> None:
        """Call the revocation's deadline off once a report that it is done was answered."""
        if request.owned is None or self._revoke_by_ms is None:
            return
        if self._target.issuperset(request.owned) and self._target.issuperset(self.owned):
            self._revoke_by_ms = None

    def _settle(self, now_ms: int, *, answered: bool = False) -> list[Instruction]:
        """Do what the state calls for after something changed."""
        if self.state is State.FENCED:
            return [] if self.owned else self._rejoin(now_ms)
        if self.state is State.UNSUBSCRIBED:
            return [Gone()]
        if self.state is State.PREPARE_LEAVING:
            if not self.owned:
                self._machine.go(State.LEAVING, "everything is released")
                self._leave_by_ms = now_ms + self.timing.session_timeout_ms
                return self._send(now_ms)
            return self._send(now_ms) if answered else []
        if self.state not in SPEAKING or self.state is State.LEAVING:
            return []
        return self._reconcile(now_ms, answered=answered)

    def _reconcile(self, now_ms: int, *, answered: bool) -> list[Instruction]:
        """Start what is granted once nothing more has to go, and report what runs."""
        instructions: list[Instruction] = []
        grant = self._target - self.owned
        if grant and self.owned <= self._target and answered:
            self.owned |= grant
            instructions.append(Start(grant, self._log_offset))
        is_done = self.owned == self._target
        reported = self._said is not None and frozenset(self._said.owned or ()) == self.owned
        if self.state is State.RECONCILING and self.owned <= self._target:
            self._machine.go(State.ACKNOWLEDGING, "what runs is as far as it can be")
        if is_done and reported and self.state in {State.ACKNOWLEDGING, State.JOINING}:
            self._machine.go(State.STABLE, "the group knows what runs here")
        if answered or (not reported and self.owned <= self._target):
            instructions += self._send(now_ms)
        return instructions

    # -- requests

    def _send(self, now_ms: int) -> list[Instruction]:
        """Send what is new since the last answer; everything if one is still missing."""
        is_full = self._sent is not None or self._said is None
        self._sequence += 1
        request = self._request(is_full=is_full)
        self._sent = Sent(request, now_ms)
        self._retry_at_ms = None
        return [Send(request)]

    def _request(self, *, is_full: bool) -> Heartbeat:
        identity, timing = self.identity, self.timing
        request = Heartbeat(
            identity.group_id,
            identity.member_id,
            LEAVE_EPOCH if self.state is State.LEAVING else self.member_epoch,
            identity.incarnation,
            self._sequence,
        )
        if self.state is State.LEAVING:
            return request
        said = self._said
        if is_full or said is None or request.member_epoch == JOIN_EPOCH:
            return replace(
                request,
                rack=identity.rack,
                url=identity.url,
                client_id=identity.client_id,
                client_host=identity.client_host,
                rebalance_timeout_ms=timing.rebalance_timeout_ms,
                assignors=self._assignors,
                owned=tuple(sorted(self.owned)),
            )
        owned = tuple(sorted(self.owned))
        return replace(
            request,
            assignors=self._assignors if self._assignors != said.assignors else None,
            owned=owned if owned != said.owned else None,
        )

    def _remember(self, request: Heartbeat) -> None:
        """Keep what the group knows by now: what was left out had been said before."""
        if self._said is None or request.is_full:
            self._said = request
            return
        said = self._said
        owned = said.owned if request.owned is None else request.owned
        assignors = said.assignors if request.assignors is None else request.assignors
        self._said = replace(said, owned=owned, assignors=assignors)

    # -- endings

    def end_ms(self) -> int | None:
        """Return by when nothing may run here unless an answer comes, None if nothing has to."""
        session_ms = self._session_from_ms
        ends = [self._revoke_by_ms, self._kill_at_ms]
        if session_ms is not None and self.member_epoch != JOIN_EPOCH:
            ends.append(session_ms + self.timing.session_timeout_ms)
        return min((end for end in ends if end is not None), default=None)

    def _fence_at_ms(self) -> int | None:
        """Return when this member must begin to stop everything by itself."""
        end_ms = self.end_ms()
        return None if end_ms is None else end_ms - self.timing.fence_margin_ms

    def _overdue(self, now_ms: int) -> str:
        fence_at_ms = self._fence_at_ms()
        if fence_at_ms is None or now_ms < fence_at_ms or self.state is State.LEAVING:
            return ""
        session_ms = self._session_from_ms
        is_session = session_ms is not None and fence_at_ms == (
            session_ms + self.timing.session_timeout_ms - self.timing.fence_margin_ms
        )
        if is_session:
            return "the group has not answered for so long that the session may end"
        return "a revocation was not acknowledged in time"

    def _fence(self, reason: str, now_ms: int) -> list[Instruction]:
        """Stop everything without grace; no late answer calls this off."""
        end = self._stop_all(reason, now_ms)
        self._machine.go(State.FENCED, reason)
        self._forget()
        return end if self.owned else self._rejoin(now_ms)

    def _stop_all(self, reason: str, now_ms: int) -> list[Instruction]:
        """Cancel what runs, and kill it in time for the deadline; at once if that has passed.

        Whoever was frozen past its deadline must not even begin to stop in good order: others
        may run its work by now.
        """
        if not self.owned:
            return []
        margin_ms, end_ms = self.timing.fence_margin_ms, self.end_ms()
        latest_ms = now_ms + margin_ms if end_ms is None else end_ms - KILL_EARLY_MS
        self._kill_at_ms = min(now_ms + margin_ms, latest_ms)
        return [Fence(reason)] if now_ms < self._kill_at_ms else [Kill(reason)]

    def _forget(self) -> None:
        self._sent = self._said = None
        self._target = NOTHING
        self._session_from_ms = self._revoke_by_ms = self._retry_at_ms = None
        self.member_epoch = JOIN_EPOCH
        self.computing = False

    def _rejoin(self, now_ms: int) -> list[Instruction]:
        self._kill_at_ms = None
        if self._is_leaving:
            return self._left()
        self._machine.go(State.JOINING, "nothing runs any more")
        return self._send(now_ms)

    def _left(self) -> list[Instruction]:
        self._forget()
        self._leave_by_ms = None
        self._machine.go(State.UNSUBSCRIBED, "left")
        return [Gone()]

    def _die(self, error: str, now_ms: int) -> list[Instruction]:
        end = self._stop_all(error, now_ms)
        self._machine.go(State.FATAL, error)
        self._forget()
        return [*end, Gone(error)]
