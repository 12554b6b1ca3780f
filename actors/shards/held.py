"""Held heartbeats (long poll): a reply is delayed until there is news for its member.

A member learns of news only from the reply to a heartbeat. So a reply without news is held until
there is news, until its client sends another request on the same connection (the host sends
`EndHold`), and for at most 80 % of the client's heartbeat interval, since some clients time out
after exactly that (librdkafka).

When the group changes, all of its held heartbeats are decided again. That counts as a heartbeat
even if the client is gone meanwhile: so its session may end later by the time of the hold.
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
from ..timing import TimerQueue

HeartbeatCall = ClassicHeartbeat | ConsumerGroupHeartbeat

SHORTEST_MS: Final = 100
"""Clients with a shorter heartbeat interval are not held: they are load tests."""
LONGEST_MS: Final = 3_000
"""The assumed maximum interval of classic clients, Kafka's default, as they do not report it."""
HELD_PERCENT: Final = 80
LONGEST_MEMBER_ID: Final = 320
"""The maximum length of a member id here: longer ones belong to no member."""
MOST_HELD: Final = 256
"""The limit for each group, since each change decides all held heartbeats again."""


@dataclass(frozen=True, slots=True)
class HeldHeartbeat:
    """A held heartbeat, its sender, and its reply without news."""

    call: HeartbeatCall
    answer: AddressedReply
    until_ms: int
    """When it has to be answered, steady clock."""


class HeldHeartbeats:
    """The held heartbeats of one group."""

    def __init__(self, sides: Sides) -> None:
        self._sides = sides
        self._asked: dict[int, tuple[HeartbeatCall, int]] = {}
        """The heartbeats that are being decided, by number, with the end of their hold."""
        self._held: dict[str, HeldHeartbeat] = {}
        """By member id."""
        self._timers: TimerQueue[str] = TimerQueue()
        self._last_ms: dict[str, int] = {}
        """The time of the last heartbeat of each member, by member id."""
        self._version = self._current_version()

    def _current_version(self) -> tuple[int, RoundPhase]:
        """Return a version of the group that changes with any possible news."""
        return self._sides.group.end, self._sides.classic.phase

    def register(self, call: HeartbeatCall, now_ms: int) -> HeldHeartbeat | None:
        """Register a heartbeat that is about to be decided; return the held one that it replaces.

        That has to be answered, since its client has sent a new one.
        """
        member_id = call.member_id
        if len(member_id) > LONGEST_MEMBER_ID:
            return None
        gap_ms = now_ms - self._last_ms.get(member_id, now_ms)
        if len(self._last_ms) > 2 * MOST_HELD:
            self._last_ms.clear()
        self._last_ms[member_id] = now_ms
        is_join = isinstance(call, ConsumerGroupHeartbeat) and call.member_epoch <= JOIN_EPOCH
        if gap_ms >= SHORTEST_MS and not is_join and len(self._held) < MOST_HELD:
            until_ms = now_ms + min(gap_ms, self._longest_ms(call)) * HELD_PERCENT // 100
            self._asked[call.number] = call, until_ms
        return self._held.pop(member_id, None)

    def _longest_ms(self, call: HeartbeatCall) -> int:
        is_modern = isinstance(call, ConsumerGroupHeartbeat)
        return self._sides.modern.settings.heartbeat_interval_ms if is_modern else LONGEST_MS

    def keep(self, answer: AddressedReply) -> bool:
        """Hold a reply if it has no news and its heartbeat may wait; return whether it is held."""
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
        """Return all held heartbeats if the group has changed: they have to be decided again."""
        before, self._version = self._version, self._current_version()
        if before == self._version or not self._held:
            return []
        held, self._held = [*self._held.values()], {}
        self._asked |= {each.call.number: (each.call, each.until_ms) for each in held}
        return held

    def end(self, number: int) -> HeldHeartbeat | None:
        """Release a held heartbeat and return it, since its client has sent another request."""
        self._asked.pop(number, None)  # else it would be held once it is decided
        found = next((each for each in self._held.values() if each.call.number == number), None)
        if found is not None:
            del self._held[found.call.member_id]
        return found

    def due(self, now_ms: int) -> list[HeldHeartbeat]:
        """Release and return the heartbeats whose hold is over."""
        due = [self._held.pop(each, None) for each in self._timers.due(now_ms)]
        return [each for each in due if each is not None]

    def next_ms(self) -> int | None:
        """Return when the next hold ends, steady clock."""
        return self._timers.next_ms() if self._held else None
