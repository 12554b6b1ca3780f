"""What a classic member says, and when: at most one call of a round, and one heartbeat, at a time.

An answer is known by the number of what was asked. A call that takes the place of another is the
only one that may still be answered: so no answer of an older generation is ever taken. A JoinGroup
and a SyncGroup wait for others, and may have been lost on their way: they are said again, with the
same content, as often as an answer is late. Nothing begins anew by that.

A member beats in a round, too: its group then knows that it lives, and it that its group does.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from zlib import crc32

from ....events.model import CONNECT, ClassicProtocol
from ...backoff import Backoff, earliest
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
from ..instructions import Identity, Instruction, SendCall, Timing

BACKOFF_MS = 500
"""How long the first refusal in a row is let rest; it doubles up to a heartbeat interval."""

CALLS_BITS = 20
"""So many bits count the calls of one process, before it comes to where another may begin."""


@dataclass(frozen=True, slots=True)
class SentCall:
    """A call on its way, and when it was sent."""

    call: ClassicCall
    at_ms: int


class MemberCalls:
    """The calls of one member; times on the monotonic clock, in milliseconds."""

    def __init__(self, identity: Identity, timing: Timing) -> None:
        self.member_id = ""
        """As the group named it; empty before."""
        self.generation = NO_GENERATION
        """The generation that it was told of last; none before the first, and after a fence."""
        self._identity = identity
        self._timing = timing
        self._number = crc32(identity.incarnation.encode()) << CALLS_BITS
        """Each process counts from another number: what another was told is no answer here."""
        self._asked: SentCall | None = None
        """Its JoinGroup, SyncGroup or LeaveGroup, until it is answered."""
        self._beat: SentCall | None = None
        """Its latest heartbeat, until it is answered."""
        self._is_current = False
        """Whether the last beat that was answered was one for this generation."""
        self._beat_at_ms = 0
        """When to beat next, unless one is on its way."""
        self._again_ms: int | None = None
        """When to join again after a refusal."""
        self._refusals = 0
        self.answered_ms = 0
        """When the call was sent that was answered last."""

    def join(self, offers: Sequence[tuple[str, bytes]], now_ms: int) -> list[Instruction]:
        """Ask for a seat in the next generation."""
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
        """Ask for the own assignment; a leader brings those of all."""
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
        return [*self._ask(call, now_ms), *self._speak(now_ms)]

    def leave(self, now_ms: int) -> list[Instruction]:
        """Say goodbye."""
        identity = self._identity
        leaver = Leaver(self.member_id, identity.instance_id)
        return self._ask(LeaveGroup(identity.group_id, (leaver,)), now_ms)

    def match(self, reply: MemberReply) -> bool:
        """Tell whether this answers the latest call of its kind; that then waits no more."""
        is_beat = isinstance(reply, ClassicHeartbeatReply)
        sent = self._beat if is_beat else self._asked
        if sent is None or isinstance(reply, HeartbeatReply) or sent.call.number != reply.number:
            return False
        if isinstance(sent.call, ClassicHeartbeat):
            self._is_current = sent.call.generation == self.generation
            self._beat, self._beat_at_ms = None, sent.at_ms + self._timing.heartbeat_interval_ms
        else:
            self._asked = None
        self.answered_ms = sent.at_ms
        return True

    @property
    def waits_in_vain(self) -> bool:
        """Whether it waits for an assignment of the generation that it has beaten for last.

        If that beat calls for a round, the assignment is of no use any more, and may be lost.
        """
        return (
            self._is_current and self._asked is not None and isinstance(self._asked.call, SyncGroup)
        )

    def be_in(self, member_id: str, generation: int) -> None:
        """Speak for a seat in a generation from now on; refusals before count no more."""
        self.member_id, self.generation = member_id, generation
        self._refusals = 0

    def back_off(self, now_ms: int) -> None:
        """Let a refusal rest, each in a row longer than the one before."""
        self._refusals += 1
        backoff = Backoff(BACKOFF_MS, self._timing.heartbeat_interval_ms)
        self._again_ms = now_ms + backoff.pause(self._refusals)

    def joins_again(self, now_ms: int) -> bool:
        """Tell, once, that a refusal has rested."""
        if self._again_ms is None or now_ms < self._again_ms:
            return False
        self._again_ms = None
        return True

    def tick(self, now_ms: int) -> list[Instruction]:
        """Say again what was not answered in time, and beat when it is time."""
        said: list[Instruction] = []
        if self._asked is not None and now_ms >= self._asked.at_ms + self._timing.patience_ms:
            said += self._ask(self._asked.call, now_ms)
        return [*said, *self._speak(now_ms)]

    def repeat(self, now_ms: int) -> list[Instruction]:
        """Say all again at once: the group has another process, which was told nothing."""
        asked = [] if self._asked is None else self._ask(self._asked.call, now_ms)
        self._beat, self._beat_at_ms = None, now_ms
        return [*asked, *self._speak(now_ms)]

    def next_ms(self) -> int | None:
        """Return when something is to be said, None if never."""
        patience_ms = self._timing.patience_ms
        lost_ms = None if self._asked is None else self._asked.at_ms + patience_ms
        if self.generation == NO_GENERATION:
            return earliest(lost_ms, self._again_ms)
        beat_ms = self._beat_at_ms if self._beat is None else self._beat.at_ms + patience_ms
        return earliest(lost_ms, beat_ms, self._again_ms)

    def clear(self) -> None:
        """Take no answer to what was said so far, and be of no generation."""
        self._asked = self._beat = self._again_ms = None
        self.generation = NO_GENERATION

    def _ask(self, call: ClassicCall, now_ms: int) -> list[Instruction]:
        self._again_ms = None
        self._asked = self._sent(call, now_ms)
        return [SendCall(self._asked.call)]

    def _speak(self, now_ms: int) -> list[Instruction]:
        """Beat, if it is time and there is a generation to beat for."""
        late_ms = self._beat.at_ms + self._timing.patience_ms if self._beat else self._beat_at_ms
        if self.generation == NO_GENERATION or now_ms < late_ms:
            return []
        identity = self._identity
        beat = ClassicHeartbeat(
            identity.group_id, self.member_id, self.generation, identity.instance_id
        )
        self._beat = self._sent(beat, now_ms)
        return [SendCall(self._beat.call)]

    def _sent(self, call: ClassicCall, now_ms: int) -> SentCall:
        self._number += 1
        return SentCall(replace(call, number=self._number), now_ms)
