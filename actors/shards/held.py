"""Heartbeats of Kafka's clients that are held: answered as soon as there is news for their members.

A member that beats hears of news only by its next heartbeat. So an answer that has no news is kept
back: until there are any, until its client sends anything else on the same connection, which the
host says (`EndHold`), and for 80 % of the time that the client lets pass between two of its
heartbeats at most: some give an answer up after exactly that (librdkafka).

Whenever the group has changed, all of its held heartbeats are decided anew. A client is heard by
that, though it may be gone since: its session ends later by as much as it is held.
"""

from dataclasses import dataclass
from typing import Final

from ..classic.state import RoundPhase
from ..group.shard import AddressedReply
from ..group.sides import Sides
from ..messages.classic import ClassicHeartbeat, ClassicHeartbeatReply
from ..messages.consumers import ConsumerGroupHeartbeat, ConsumerGroupHeartbeatReply
from ..messages.errors import Error
from ..messages.members import JOIN_EPOCH
from ..timer_queue import TimerQueue

HeartbeatCall = ClassicHeartbeat | ConsumerGroupHeartbeat

SHORTEST_MS: Final = 100
"""Who beats more often than that is not held: it loads the group, or measures it."""
LONGEST_MS: Final = 3_000
"""As the interval of a classic client counts at most this, Kafka's default: nobody tells it."""
HELD_PERCENT: Final = 80
LONGEST_NOTED: Final = 320
"""Letters of the ids of those that are noted: longer ones are no members'."""
MOST_HELD: Final = 256
"""In one group: each change has all of them decided anew."""


@dataclass(frozen=True, slots=True)
class HeldHeartbeat:
    """A heartbeat, who waits for its answer, and what that is without news."""

    call: HeartbeatCall
    answer: AddressedReply
    until_ms: int
    """When it is answered at the latest, steady clock."""


class HeldHeartbeats:
    """Those of one group."""

    def __init__(self, sides: Sides) -> None:
        self._sides = sides
        self._asked: dict[int, tuple[HeartbeatCall, int]] = {}
        """The heartbeats that are being decided, by number, each with until when it may wait."""
        self._held: dict[str, HeldHeartbeat] = {}
        """By member id."""
        self._timers: TimerQueue[str] = TimerQueue()
        self._heard_ms: dict[str, int] = {}
        """When each member has beaten last, by member id."""
        self._seen = self._state()

    def _state(self) -> tuple[int, RoundPhase]:
        """Return what changes whenever anything may be news for somebody."""
        return self._sides.group.end, self._sides.classic.phase

    def see(self, call: HeartbeatCall, now_ms: int) -> HeldHeartbeat | None:
        """Take note of a heartbeat that is about to be decided; return what it takes the place of.

        That is to be answered: its client asks anew.
        """
        member_id = call.member_id
        if len(member_id) > LONGEST_NOTED:
            return None
        gap_ms = now_ms - self._heard_ms.get(member_id, now_ms)
        if len(self._heard_ms) > 2 * MOST_HELD:
            self._heard_ms.clear()
        self._heard_ms[member_id] = now_ms
        is_join = isinstance(call, ConsumerGroupHeartbeat) and call.member_epoch <= JOIN_EPOCH
        if gap_ms >= SHORTEST_MS and not is_join and len(self._held) < MOST_HELD:
            until_ms = now_ms + min(gap_ms, self._longest_ms(call)) * HELD_PERCENT // 100
            self._asked[call.number] = call, until_ms
        return self._held.pop(member_id, None)

    def _longest_ms(self, call: HeartbeatCall) -> int:
        is_modern = isinstance(call, ConsumerGroupHeartbeat)
        return self._sides.modern.settings.heartbeat_interval_ms if is_modern else LONGEST_MS

    def keep(self, answer: AddressedReply) -> bool:
        """Tell whether an answer is kept back: one without news to a heartbeat that may wait."""
        reply = answer.reply
        if not isinstance(reply, ClassicHeartbeatReply | ConsumerGroupHeartbeatReply):
            return False
        call, until_ms = self._asked.pop(reply.number, (None, 0))
        if call is None or not self._is_without_news(call, reply):
            return False
        self._held[call.member_id] = HeldHeartbeat(call, answer, until_ms)
        self._timers.set(call.member_id, until_ms)
        return True

    def _is_without_news(
        self,
        call: HeartbeatCall,
        reply: ClassicHeartbeatReply | ConsumerGroupHeartbeatReply,
    ) -> bool:
        if reply.error is not Error.NONE:
            return False
        if isinstance(call, ClassicHeartbeat) or isinstance(reply, ClassicHeartbeatReply):
            return self._sides.classic.phase is RoundPhase.STABLE
        return call.member_epoch == reply.member_epoch and reply.assignment is None

    def take_changed(self) -> list[HeldHeartbeat]:
        """Return all that are held if the group has changed: they are to be decided anew."""
        seen, self._seen = self._seen, self._state()
        if seen == self._seen or not self._held:
            return []
        held, self._held = [*self._held.values()], {}
        self._asked |= {each.call.number: (each.call, each.until_ms) for each in held}
        return held

    def end(self, number: int) -> HeldHeartbeat | None:
        """Hold a heartbeat no longer, and return it; its client waits with something else."""
        self._asked.pop(number, None)  # else it would be held once it is decided
        found = next((each for each in self._held.values() if each.call.number == number), None)
        if found is not None:
            del self._held[found.call.member_id]
        return found

    def due(self, now_ms: int) -> list[HeldHeartbeat]:
        """Return those that are held for long enough, and hold them no longer."""
        due = [self._held.pop(each, None) for each in self._timers.due(now_ms)]
        return [each for each in due if each is not None]

    def next_ms(self) -> int | None:
        """Return when one may be due next, steady clock."""
        return self._timers.next_ms() if self._held else None
