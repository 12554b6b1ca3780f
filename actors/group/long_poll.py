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
  to anything new for (`affected`); who is chosen to compute is stirred as well. Before anything is
  written their held requests are decided again. Each of them may write, and stir others: that goes
  on until nobody is stirred. What has no news then stays held.
* *The end of a hold*: when the time is over the request is decided once more and answered, news or
  not. The session that the answer speaks of runs from when the request came: its sender may have
  been gone since.
* *Never answered*: a held join whose seat has ended, since its process asks again and must not be
  granted a seat that it may not take by then; and a request of a member that is removed by force.
"""

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass

from ...events.group import Group
from ...events.records import (
    CurrentAssignment,
    MemberMetadata,
    Record,
    TargetAssignment,
    Tombstone,
)
from ..messages.heartbeat import JOIN_EPOCH, Heartbeat
from .timers import TimerQueue


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
        self._untold = set(members)
        """The member ids that do not know yet by which interval they are held."""

    def __len__(self) -> int:
        """Return how many requests are held."""
        return len(self._held)

    def next_ms(self) -> int | None:
        """Return when a held request may be due next, steady clock."""
        return self._timers.next_ms() if self._held else None

    def hold(self, asked: HeldRequest, interval_ms: int, *, has_news: bool) -> bool:
        """Hold a request for an interval if it may wait, and tell so; else it is answered now.

        Whatever was held of its member is superseded.
        """
        request, member_id = asked.request, asked.request.member_id
        superseded = self._held.pop(member_id, None)
        may_wait = superseded is not None or not request.is_full
        may_wait = may_wait or request.member_epoch == JOIN_EPOCH
        if has_news or not may_wait or member_id in self._untold:
            self._untold.discard(member_id)
            return False
        self._held[member_id] = asked
        if superseded is None:
            self._timers.set(member_id, asked.arrived_ms + interval_ms)
        return True

    def tell_interval_anew(self, members: Iterable[str]) -> None:
        """Answer each of these members at once the next time: the interval is another now."""
        self._untold = set(members)

    def see(self, group: Group, records: Iterable[Record]) -> None:
        """Stir whom these records may have news for; `group` is the one before them."""
        if self._held:
            self._stirred.update(affected(group, records))

    def stir(self, member_id: str) -> None:
        """Have the held request of one member decided again."""
        if member_id in self._held:
            self._stirred.add(member_id)

    def stirred(self) -> Iterator[HeldRequest]:
        """Yield what may have news, until nothing may any more; it stays held.

        In the order of the member ids: the same log has to lead to the same records.
        """
        while self._stirred:
            stirred, self._stirred = sorted(self._stirred), set()
            for member_id in stirred:
                if asked := self._held.get(member_id):
                    yield asked

    def due(self, now_ms: int) -> Iterator[HeldRequest]:
        """Yield what must be answered by now, and hold it no longer."""
        for member_id in self._timers.due(now_ms):
            if asked := self._held.pop(member_id, None):
                yield asked

    def drop(self, member_id: str) -> None:
        """Hold a member's request no longer: it has been answered, or never is."""
        self._held.pop(member_id, None)

    def forget(self, member_id: str) -> None:
        """Forget a member whose seat has ended: its goodbye is answered, its join is not."""
        held = self._held.get(member_id)
        if held is not None and held.request.member_epoch == JOIN_EPOCH:
            del self._held[member_id]
        self._untold.discard(member_id)


def affected(group: Group, records: Iterable[Record]) -> Collection[str]:
    """Return the ids of members whose heartbeat would lead to something else now (PROTOCOL §3).

    `group` is the group before the records. A new target concerns everybody; a step or a
    departure concerns the member itself and the target's owners of what it lets go. Who is to
    compute is the soft state's to tell.
    """
    found: set[str] = set()
    for record in records:
        match record:
            case TargetAssignment():
                return group.members.keys()
            case CurrentAssignment(member_id):
                found.add(member_id)
                kept = record.assigned.keys() | record.pending.keys()
                found.update(_awaiting(group, member_id, kept))
            case Tombstone(kind, (str() as member_id,)) if kind is MemberMetadata:
                found.add(member_id)
                found.update(_awaiting(group, member_id, frozenset()))
            case _:
                pass
    return found


def _awaiting(group: Group, member_id: str, kept: Collection[object]) -> Iterable[str]:
    """Yield the members that wait for what this one held and keeps no longer."""
    member = group.members.get(member_id)
    if member is None:
        return
    for grants in (member.current.assigned, member.current.pending):
        for resource in grants:
            if resource not in kept and (owner := group.target_owner.get(resource)):
                yield owner
