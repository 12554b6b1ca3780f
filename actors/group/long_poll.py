"""The long poll: which heartbeats are held until there is news, and when they are answered.

A member that runs and has nothing to say would hear of news only with its next heartbeat. So a
heartbeat without news is not answered: it is *held*, and answered as soon as there are any, at the
latest after a heartbeat interval. Of each member at most one request is held, by its member id.

* *What is held*: a request that leads to nothing new: no record, no first call to compute, and no
  sign that its sender has missed an answer. A full request (the member says everything) is answered
  at once, since its sender waits to learn what the group has of it; a join may be held, since it
  is full by its nature, and so may what comes in place of a held request. A member that does not
  know yet by which interval it is held is answered at once as well: it might give up before.
* *Superseding*: a newer request of the same process takes the place of the held one, which is never
  answered: its sender has given it up. The time by which the answer is due stays that of the first.
  A member that asks anew for ever, more often than each interval, would else be told nothing.
* *Stirring*: a record that is about to be written *stirs* the members whose heartbeats it may lead
  to anything new for (see `news`); the member that is to compute is stirred as well. Before
  anything is written their held requests are decided again. Each of them may write, and stir
  others: that goes on until nobody is stirred. What has no news then stays held.
* *Catching up*: a member to whom a new target says nothing but its epoch is stirred in its turn, a
  few at a time (see `news`).
* *Configured anew*: a member that runs something of a connector whose config changes has no news by
  the rules. It is answered all the same: only an answer makes it look at the log.
* *The end of a hold*: when the time is over the request is decided once more and answered, news or
  not. The session that the answer speaks of runs from when the request came: its sender may have
  been gone since.
* *Never answered*: a held join whose seat has ended, since its process asks again and must not be
  granted a seat that it may not take by then; and a request of a member that is removed by force.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from ...events.group import Group
from ...events.records import MemberMetadata, Operator, Record, Tombstone
from ..backoff import earliest
from ..messages.members import JOIN_EPOCH, Heartbeat
from ..timer_queue import TimerQueue
from .news import CatchUps, affected, keeps_all, reconfigured


@dataclass(frozen=True, slots=True)
class HeldRequest:
    """A heartbeat, who waits for its answer, and when it came, steady clock."""

    request: Heartbeat
    sender: object
    arrived_ms: int


class LongPoll:
    """The held requests of one group's members."""

    def __init__(self, members: Iterable[str]) -> None:
        """Begin with nothing held, and with members that know no interval yet."""
        self._held: dict[str, HeldRequest] = {}
        """What is held, by member id."""
        self._timers: TimerQueue[str] = TimerQueue()
        """When each is answered at the latest, by member id; those answered before stay in it."""
        self._stirred: set[str] = set()
        """The member ids whose held requests may have news by now."""
        self._catch_ups = CatchUps()
        self._reconfigured: set[str] = set()
        """The member ids that run something by a config that is not the latest any more."""
        self._untold = set(members)
        """The member ids that do not know yet by which interval they are held."""

    def __len__(self) -> int:
        """Return how many requests are held."""
        return len(self._held)

    def next_ms(self) -> int | None:
        """Return when a held request may be due next, steady clock."""
        return earliest(self._timers.next_ms(), self._catch_ups.next_ms()) if self._held else None

    def excuse(self, late_ms: int) -> None:
        """Have what is held come later by so long: nobody could be heard meanwhile."""
        for member_id, asked in self._held.items():
            self._held[member_id] = replace(asked, arrived_ms=asked.arrived_ms + late_ms)

    def hold(self, asked: HeldRequest, interval_ms: int, *, has_news: bool) -> bool:
        """Hold a request for an interval if it may wait, and tell so; else it is answered now.

        A request of the same member that is held already is superseded.
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
        """Tell whether what is held of a member is what this sender waits for."""
        asked = self._held.get(member_id)
        return asked is not None and asked.sender == sender

    def hurry(self, member_id: str, sender: object, now_ms: int) -> None:
        """Have a held request be due now: its client waits with what it asks next."""
        if self.holds(member_id, sender):
            self._timers.set(member_id, now_ms)

    def tell_interval_anew(self, members: Iterable[str]) -> None:
        """Answer each of these members at once the next time: the interval is another now."""
        self._untold = set(members)

    def see(self, group: Group, records: Sequence[Record]) -> None:
        """Stir the members for which these records may be news; `group` is the one before them.

        A member that is removed by force is not answered any more.
        """
        if self._held:
            unmoved = keeps_all(group, records)
            self._catch_ups.add(unmoved)
            self._stirred.update(each for each in affected(group, records) if each not in unmoved)
            self._reconfigured.update(self._held.keys() & {*reconfigured(group, records)})
            self._stirred |= self._reconfigured
        for record in records:
            if isinstance(record, Operator) and record.removing and not record.gently:
                self._drop(record.removing)
            elif isinstance(record, Tombstone) and record.kind is MemberMetadata:
                self._forget(str(record.key[0]))

    def stir(self, member_id: str) -> None:
        """Have the held request of one member decided again."""
        if member_id in self._held:
            self._stirred.add(member_id)

    def stirred(self, now_ms: int, *, is_overtaken: bool) -> Iterator[HeldRequest]:
        """Yield what may have news, until nothing may any more; it stays held.

        In the order of the member ids: the same log has to lead to the same records. Those that
        catch up come last; `is_overtaken` tells whether another target is due already.
        """
        while turns := self._next_turns(now_ms, is_overtaken=is_overtaken):
            for member_id in turns:
                if asked := self._held.get(member_id):
                    yield asked

    def _next_turns(self, now_ms: int, *, is_overtaken: bool) -> Sequence[str]:
        if not self._stirred:
            return [*self._catch_ups.turns(self._held, now_ms, is_overtaken=is_overtaken)]
        stirred, self._stirred = sorted(self._stirred), set()
        return stirred

    def releases(self, asked: HeldRequest, *, has_news: bool) -> bool:
        """Tell whether a request that was decided again is to be answered; else it stays held."""
        member_id = asked.request.member_id
        is_answered = has_news or member_id in self._reconfigured
        self._reconfigured.discard(member_id)
        if is_answered:
            self._held.pop(member_id, None)
        else:
            self._catch_ups.forget(member_id)
        return is_answered

    def due(self, now_ms: int) -> Iterator[HeldRequest]:
        """Yield what must be answered by now, and hold it no longer."""
        for member_id in self._timers.due(now_ms):
            if asked := self._held.pop(member_id, None):
                self._reconfigured.discard(member_id)
                yield asked

    def _drop(self, member_id: str) -> None:
        self._held.pop(member_id, None)
        self._reconfigured.discard(member_id)

    def _forget(self, member_id: str) -> None:
        """Forget a member whose seat has ended: its goodbye is answered, its join is not."""
        held = self._held.get(member_id)
        if held is not None and held.request.member_epoch == JOIN_EPOCH:
            del self._held[member_id]
        self._catch_ups.forget(member_id)
        self._reconfigured.discard(member_id)
        self._untold.discard(member_id)
