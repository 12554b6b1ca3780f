"""A classic member's calls, and when they are sent: one of a round, and one heartbeat, at a time.

An answer is matched by the number of its call. Only the latest call may still be answered, so no
answer of an older generation is ever taken. JoinGroup and SyncGroup wait for other members, and may
be lost: they are repeated with the same content whenever an answer is late, which begins no round.

A member sends heartbeats during a round as well, so that the group and the member know that the
other one is alive.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from zlib import crc32

from ....events.model import CONNECT, ClassicProtocol
from ...messages.classic import (
    NO_GENERATION,
    ClassicCall,
    ClassicHeartbeat,
    ClassicHeartbeatReply,
    JoinGroup,
    LeaveGroup,
    Leaver,
    MemberReply,
    SyncGroup,
)
from ...messages.members import HeartbeatReply
from ...timing import Backoff, earliest
from ..instructions import Identity, Instruction, SendCall, Timing

BACKOFF_MS = 500
"""The back-off after a first error; it doubles up to a heartbeat interval."""

CALLS_BITS = 20
"""How many bits of a number count the calls of one process; those above are the process's own."""


@dataclass(frozen=True, slots=True)
class SentCall:
    """A call that is not answered yet, and its sending time."""

    call: ClassicCall
    at_ms: int
    """The sending time, steady clock."""


class MemberCalls:
    """The calls of one member; times on the monotonic clock, in milliseconds."""

    def __init__(self, identity: Identity, timing: Timing) -> None:
        self.member_id = ""
        """The id that the group gave it; empty before that."""
        self.generation = NO_GENERATION
        """The last generation that it was told; none before the first, and after a fence."""
        self._identity = identity
        self._timing = timing
        self._number = crc32(identity.incarnation.encode()) << CALLS_BITS
        """The number of the last call; each process counts from a number of its own."""
        self._pending: SentCall | None = None
        """Its JoinGroup, SyncGroup or LeaveGroup, until it is answered."""
        self._heartbeat: SentCall | None = None
        """Its latest heartbeat, until it is answered."""
        self._is_current = False
        """Whether the last answered heartbeat was for the current generation."""
        self._beat_at_ms = 0
        """When to send the next heartbeat, unless one is not answered yet."""
        self._again_ms: int | None = None
        """When to join again after a refusal."""
        self._refusals = 0
        """The errors in a row, which determine the back-off."""
        self.answered_ms = 0
        """The sending time of the call that was answered last."""

    def join(self, offers: Sequence[tuple[str, bytes]], now_ms: int) -> list[Instruction]:
        """Send a JoinGroup."""
        identity, timing = self._identity, self._timing
        call = JoinGroup(
            identity.group_id,
            self.member_id,
            CONNECT,
            tuple(ClassicProtocol(*each) for each in offers),
            timing.session_timeout_ms,
            timing.rebalance_timeout_ms,
            identity.instance_id,
            identity.client_id,
            identity.client_host,
        )
        return self._ask(call, now_ms)

    def sync(
        self, protocol: str | None, assignments: Mapping[str, bytes], now_ms: int
    ) -> list[Instruction]:
        """Send a SyncGroup; the leader's has the assignments of all members."""
        identity = self._identity
        call = SyncGroup(
            identity.group_id,
            self.member_id,
            self.generation,
            identity.instance_id,
            CONNECT,
            protocol,
            assignments,
        )
        return [*self._ask(call, now_ms), *self._beat_if_due(now_ms)]

    def leave(self, now_ms: int) -> list[Instruction]:
        """Send a LeaveGroup."""
        identity = self._identity
        leaver = Leaver(self.member_id, identity.instance_id)
        return self._ask(LeaveGroup(identity.group_id, (leaver,)), now_ms)

    def match(self, reply: MemberReply) -> bool:
        """Mark a call as answered; False if the answer is not to the latest call of its kind."""
        is_beat = isinstance(reply, ClassicHeartbeatReply)
        sent = self._heartbeat if is_beat else self._pending
        if sent is None or isinstance(reply, HeartbeatReply) or sent.call.number != reply.number:
            return False
        if isinstance(sent.call, ClassicHeartbeat):
            self._is_current = sent.call.generation == self.generation
            self._heartbeat, self._beat_at_ms = (
                None,
                sent.at_ms + self._timing.heartbeat_interval_ms,
            )
        else:
            self._pending = None
        self.answered_ms = sent.at_ms
        return True

    @property
    def waits_for_stale_assignment(self) -> bool:
        """Whether it waits for the assignment of the generation of its last answered heartbeat.

        If that answer calls for a round, the assignment is of no use any more, and may be lost.
        """
        return (
            self._is_current
            and self._pending is not None
            and isinstance(self._pending.call, SyncGroup)
        )

    def enter(self, member_id: str, generation: int) -> None:
        """Use this member id and generation from now on; the back-off starts again."""
        self.member_id, self.generation = member_id, generation
        self._refusals = 0

    def back_off(self, now_ms: int) -> None:
        """Delay the next JoinGroup after an error; the delay grows with each error in a row."""
        self._refusals += 1
        backoff = Backoff(BACKOFF_MS, self._timing.heartbeat_interval_ms)
        self._again_ms = now_ms + backoff.pause(self._refusals)

    def retries_join(self, now_ms: int) -> bool:
        """Return, once, whether the delay after an error is over."""
        if self._again_ms is None or now_ms < self._again_ms:
            return False
        self._again_ms = None
        return True

    def tick(self, now_ms: int) -> list[Instruction]:
        """Repeat a call that was not answered in time, and send a heartbeat if it is due."""
        repeated: list[Instruction] = []
        if self._pending is not None and now_ms >= self._pending.at_ms + self._timing.patience_ms:
            repeated += self._ask(self._pending.call, now_ms)
        return [*repeated, *self._beat_if_due(now_ms)]

    def repeat(self, now_ms: int) -> list[Instruction]:
        """Repeat everything at once: the coordinator is another process."""
        asked = [] if self._pending is None else self._ask(self._pending.call, now_ms)
        self._heartbeat, self._beat_at_ms = None, now_ms
        return [*asked, *self._beat_if_due(now_ms)]

    def next_ms(self) -> int | None:
        """Return when a call is due next, None if never."""
        patience_ms = self._timing.patience_ms
        lost_ms = None if self._pending is None else self._pending.at_ms + patience_ms
        if self.generation == NO_GENERATION:
            return earliest(lost_ms, self._again_ms)
        beat_ms = (
            self._beat_at_ms if self._heartbeat is None else self._heartbeat.at_ms + patience_ms
        )
        return earliest(lost_ms, beat_ms, self._again_ms)

    def clear(self) -> None:
        """Ignore answers to all calls so far, and forget the generation."""
        self._pending = self._heartbeat = self._again_ms = None
        self.generation = NO_GENERATION

    def _ask(self, call: ClassicCall, now_ms: int) -> list[Instruction]:
        self._again_ms = None
        self._pending = self._with_number(call, now_ms)
        return [SendCall(self._pending.call)]

    def _beat_if_due(self, now_ms: int) -> list[Instruction]:
        """Send a heartbeat if it is due and there is a generation."""
        late_ms = (
            self._heartbeat.at_ms + self._timing.patience_ms
            if self._heartbeat
            else self._beat_at_ms
        )
        if self.generation == NO_GENERATION or now_ms < late_ms:
            return []
        identity = self._identity
        beat = ClassicHeartbeat(
            identity.group_id, self.member_id, self.generation, identity.instance_id
        )
        self._heartbeat = self._with_number(beat, now_ms)
        return [SendCall(self._heartbeat.call)]

    def _with_number(self, call: ClassicCall, now_ms: int) -> SentCall:
        self._number += 1
        return SentCall(replace(call, number=self._number), now_ms)
