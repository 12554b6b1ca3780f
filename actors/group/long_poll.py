"""The long poll: which heartbeats are held until there is news, and when they are answered.

Theory of operation. Without a long poll a member would learn of news only by its next heartbeat.
So the coordinator does not answer a heartbeat without news: it *holds* it, and answers as soon as
there is news, at the latest after a heartbeat interval. Of each member one request is held at most.

    member       request 1 ----+                    request 2 ----+          request 3
                               v                                  v
    coordinator       decided: no news, held ...... superseded by request 2, never answered
                               |                    request 2 is held, and is due when 1 was
                               +------ heartbeat interval ------->| decided again and answered

* *What is held*: a request whose decision has no news: it writes no record, is not the first
  COMPUTE_ASSIGNMENT, and shows no sign that the member has missed an answer. A full request (the
  member says everything) is answered at once, since the member waits to learn what the coordinator
  knows; but a join may be held, though it is always full, and so may a request that supersedes
  another. A member that does not know its heartbeat interval yet is answered at once as well: it
  might give up too early.
* *Superseding*: a newer request of the same process replaces the held one, which is never answered,
  since the member ignores every answer but that to its latest request. The due time stays that of
  the first: otherwise a member that asks more often than the interval would never be answered.
* *Marking*: before a record is written, the members for whose heartbeats it may be news (see
  `news`) are *marked*, and so is the member that has to compute. Their held requests are decided
  again before the append, so that their records are part of it. These may mark other members; that
  goes on until none is marked. Requests that still have no news stay held.
* *Catching up*: a member that learns nothing from a new target but its epoch is marked in its
  turn, a few members at a time (see `news`).
* *Reconfigured*: a change of a connector's config is no news by the rules. The members that run
  anything of it are answered all the same, since only an answer makes them look at the log.
* *The end of a hold*: the request is decided once more and answered, with news or without. The
  session that this renews is counted from the arrival of the request, as the member may be gone.
* *Never answered*: a held join whose member was removed, since its process asks again, and must not
  be granted a seat that it may not have by then; and any request of a member that is removed by
  force.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from ...events.group import Group
from ...events.records import MemberMetadata, Operator, Record, Tombstone
from ..messages.members import JOIN_EPOCH, Heartbeat
from ..timing import TimerQueue, earliest
from .news import CatchUps, find_affected, find_reconfigured, find_unmoved


@dataclass(frozen=True, slots=True)
class HeldRequest:
    """A heartbeat, its sender, and when it arrived, steady clock."""

    request: Heartbeat
    sender: object
    arrived_ms: int


class LongPoll:
    """The held requests of one group's members."""

    def __init__(self, members: Iterable[str]) -> None:
        """Begin with nothing held; these members do not know the heartbeat interval yet."""
        self._held: dict[str, HeldRequest] = {}
        """The held requests, by member id."""
        self._timers: TimerQueue[str] = TimerQueue()
        """When each is due, by member id; timers of those that were answered earlier stay."""
        self._marked: set[str] = set()
        """The member ids whose held requests may have news by now."""
        self._catch_ups = CatchUps()
        self._reconfigured: set[str] = set()
        """The member ids that run anything of a connector whose config has changed."""
        self._untold = set(members)
        """The member ids that do not know the heartbeat interval yet."""

    def __len__(self) -> int:
        """Return how many requests are held."""
        return len(self._held)

    def next_ms(self) -> int | None:
        """Return when a held request may be due next, steady clock."""
        return earliest(self._timers.next_ms(), self._catch_ups.next_ms()) if self._held else None

    def excuse(self, late_ms: int) -> None:
        """Count held requests as arrived later by the time for which the process was held up."""
        for member_id, asked in self._held.items():
            self._held[member_id] = replace(asked, arrived_ms=asked.arrived_ms + late_ms)

    def hold(self, asked: HeldRequest, interval_ms: int, *, has_news: bool) -> bool:
        """Hold a request for an interval if it may wait; False: it has to be answered now.

        It supersedes a held request of the same member.
        """
        request, member_id = asked.request, asked.request.member_id
        superseded = self._held.pop(member_id, None)
        self._catch_ups.forget(member_id)
        may_wait = superseded is not None or not request.is_full
        may_wait = may_wait or request.member_epoch == JOIN_EPOCH
        if has_news or not may_wait or member_id in self._untold:
            self._untold.discard(member_id)
            self._reconfigured.discard(member_id)
            return False
        self._held[member_id] = asked
        if superseded is None:
            self._timers.set(member_id, asked.arrived_ms + interval_ms)
        return True

    def holds(self, member_id: str, sender: object) -> bool:
        """Tell whether a member's held request is from this sender."""
        asked = self._held.get(member_id)
        return asked is not None and asked.sender == sender

    def make_due(self, member_id: str, sender: object, now_ms: int) -> None:
        """Have a held request be due now: its client waits with its next request."""
        if self.holds(member_id, sender):
            self._timers.set(member_id, now_ms)

    def tell_interval_anew(self, members: Iterable[str]) -> None:
        """Answer the next request of each of these members at once: the interval has changed."""
        self._untold = set(members)

    def see(self, group: Group, records: Sequence[Record]) -> None:
        """Mark the members for which these records may be news; `group` is the one before them.

        A member that is removed by force is not answered any more.
        """
        if self._held:
            unmoved = find_unmoved(group, records)
            self._catch_ups.add(unmoved)
            self._marked.update(
                each for each in find_affected(group, records) if each not in unmoved
            )
            self._reconfigured.update(self._held.keys() & {*find_reconfigured(group, records)})
            self._marked |= self._reconfigured
        for record in records:
            if isinstance(record, Operator) and record.removing and not record.gently:
                self._drop(record.removing)
            elif isinstance(record, Tombstone) and record.kind is MemberMetadata:
                self._forget(str(record.key[0]))

    def mark(self, member_id: str) -> None:
        """Have the held request of one member decided again before the next append."""
        if member_id in self._held:
            self._marked.add(member_id)

    def take_marked(self, now_ms: int, *, is_overtaken: bool) -> Iterator[HeldRequest]:
        """Yield the held requests that may have news, until there are none; they stay held.

        They come in the order of the member ids, so that the same log leads to the same records.
        Members that catch up come last; `is_overtaken` tells whether another target is due already.
        """
        while turns := self._next_turns(now_ms, is_overtaken=is_overtaken):
            for member_id in turns:
                if asked := self._held.get(member_id):
                    yield asked

    def _next_turns(self, now_ms: int, *, is_overtaken: bool) -> Sequence[str]:
        if not self._marked:
            return [*self._catch_ups.turns(self._held, now_ms, is_overtaken=is_overtaken)]
        marked, self._marked = sorted(self._marked), set()
        return marked

    def releases(self, asked: HeldRequest, *, has_news: bool) -> bool:
        """Tell whether a request that was decided again has to be answered; else it stays held."""
        member_id = asked.request.member_id
        is_answered = has_news or member_id in self._reconfigured
        self._reconfigured.discard(member_id)
        if is_answered:
            self._held.pop(member_id, None)
        return is_answered

    def due(self, now_ms: int) -> Iterator[HeldRequest]:
        """Yield the requests that are due, which are not held any more."""
        for member_id in self._timers.due(now_ms):
            if asked := self._held.pop(member_id, None):
                self._reconfigured.discard(member_id)
                yield asked

    def _drop(self, member_id: str) -> None:
        self._held.pop(member_id, None)
        self._reconfigured.discard(member_id)

    def _forget(self, member_id: str) -> None:
        """Forget a member that was removed: its leave is answered, its held join is not."""
        held = self._held.get(member_id)
        if held is not None and held.request.member_epoch == JOIN_EPOCH:
            del self._held[member_id]
        self._reconfigured.discard(member_id)
        self._untold.discard(member_id)
