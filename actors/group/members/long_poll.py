"""The long poll: which heartbeats are held until there is news, and when they are answered.

Theory of operation. Without a long poll a member would learn of news only by its next heartbeat.
So the coordinator does not answer a heartbeat without news: it *holds* it, and answers as soon as
there is news, at the latest after a while. Of each member one request is held at most.

    member       request 1 ----+                    request 2 ----+          request 3
                               v                                  v
    coordinator       decided: no news, held ...... superseded by request 2, never answered
                               |                    request 2 is held, and is due when 1 was
                               +------ heartbeat interval ------->| decided again and answered

* *Held* is a request whose decision has no news: it writes no record, is not the first
  COMPUTE_ASSIGNMENT, and shows no sign that the member has missed an answer. A full request (the
  member says everything) is answered at once, since the member waits to learn what the coordinator
  knows; but a join may be held, though it is always full, and so may a request that supersedes
  another. A member that does not know its heartbeat interval yet is answered at once as well: it
  might give up too early.
* *Superseding*: a newer request of the same process replaces the held one, which is never answered,
  since the member ignores every answer but that to its latest request. The due time stays that of
  the first: otherwise a member that asks more often than the interval would never be answered.
* *Marking*: before a record is written, the members for whose heartbeats it may be news
  (`find_affected`) are *marked*, and so is the member that has to compute. Their held requests are
  decided again before the append, so that their records are part of it. These may mark other
  members; that goes on until none is marked. Requests that still have no news stay held.
* *Catching up*: with each target every member takes a step, and most of these steps only bring the
  member to the new epoch. To take them all at once costs a group of hundreds of members a storm of
  messages for each target: those of members that have something to revoke or to start wait in it,
  and in the end sessions expire. So a member that keeps what it has (`find_unmoved`) catches up in
  its turn: a few at the same time, the next one when one of these has sent its next heartbeat.
  While the next target is due the turns wait, unless so few members are left that all of them can
  be answered at once: one step is enough for both targets.
* *Reconfigured*: a change of a connector's config is no news by the rules. The members that run
  anything of it are answered all the same, since only an answer makes them look at the log.
* *The end of a hold*: the request is decided once more and answered, with news or without. The
  session that this renews is counted from the arrival of the request, as the member may be gone.
* *Never answered*: a held join whose member was removed, since its process asks again, and must not
  be granted a seat that it may not have by then; and any request of a member that is removed by
  force.

**Clients of Kafka** need an answer to each request, in order: while one is held they wait with all
others. So their held requests keep the answer without news (`HeldRequest.reply`), and that is sent
when another request supersedes it, when the client waits with something else (`release`), and at
the end of the hold. `ClientHoldTimes` says how long. They all catch up at once:
they do not ask again as soon as they are answered. A heartbeat of a classic member has news when a
round begins or ends.
"""

from collections.abc import Collection, Container, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final

from ....events.group import Group
from ....events.model import NOTHING, MemberState, Resource
from ....events.records import (
    ClassicGroup,
    ConnectorConfig,
    CurrentAssignment,
    MemberMetadata,
    Operator,
    Record,
    TargetAssignment,
    TargetState,
    TaskConfigs,
    Tombstone,
)
from ...messages.classic import ClassicHeartbeat
from ...messages.commands import Address, AddressedReply, Reply
from ...messages.consumers import ConsumerGroupHeartbeat
from ...messages.members import JOIN_EPOCH, Heartbeat
from ...timing import TimerQueue, earliest

AT_ONCE: Final = 12
"""How many members catch up at the same time."""
HELD_UP_MS: Final = 1_000
"""How long a member that sends no heartbeat delays the turn of the next one."""

SHORTEST_MS: Final = 100
"""Clients with a shorter heartbeat interval are not held: they are load tests."""
LONGEST_MS: Final = 3_000
"""The assumed maximum interval of classic clients, Kafka's default, as they do not report it."""
HELD_PERCENT: Final = 80
"""Of its interval: some clients time out after exactly that (librdkafka)."""
LONGEST_MEMBER_ID: Final = 320
"""The maximum length of a member id here: longer ones belong to no member."""
MOST_HELD: Final = 256
"""The limit for the clients of each group, since each change may decide all of them again."""

ClientHeartbeat = ClassicHeartbeat | ConsumerGroupHeartbeat
"""The heartbeats of Kafka's clients."""


@dataclass(frozen=True, slots=True)
class HeldRequest:
    """A heartbeat that may be held, and who waits for its answer; times by the steady clock."""

    request: Heartbeat | ClientHeartbeat
    sender: Address
    arrived_ms: int
    until_ms: int = 0
    """When it has to be answered at the latest."""
    may_wait: bool = False
    """Whether it may be held even if it supersedes no other."""
    reply: Reply | None = None
    """The answer without news; None: who has sent it needs none if it is superseded."""


class LongPoll:
    """The held requests of one group's members."""

    def __init__(self, members: Iterable[str]) -> None:
        """Start with no held request; these members do not know the heartbeat interval yet."""
        self._held: dict[str, HeldRequest] = {}
        """The held requests, by member id."""
        self._timers: TimerQueue[str] = TimerQueue()
        """When each is due, by member id; timers of those that were answered earlier stay."""
        self._marked: set[str] = set()
        """The member ids whose held requests may have news by now."""
        self._catch_ups = CatchUps()
        """The members that take their step to a new epoch in their turn."""
        self._reconfigured: set[str] = set()
        """The member ids that run anything of a connector whose config has changed."""
        self._uninformed = set(members)
        """The member ids that do not know the current heartbeat interval yet."""
        self._client_hold_times = ClientHoldTimes()
        """For how long the heartbeat of each client may be held."""

    def __len__(self) -> int:
        """Return how many requests are held."""
        return len(self._held)

    def next_ms(self) -> int | None:
        """Return when a held request may be due next, steady clock."""
        return earliest(self._timers.next_ms(), self._catch_ups.next_ms()) if self._held else None

    def extend_timers(self, late_ms: int) -> None:
        """Count held requests as arrived later by the time for which the process was held up."""
        for member_id, held in self._held.items():
            self._held[member_id] = replace(held, arrived_ms=held.arrived_ms + late_ms)

    # -- what comes in

    def hold(self, held: HeldRequest, *, has_news: bool) -> bool:
        """Hold a request if it may wait; False: it has to be answered now.

        It supersedes a held request of the same member.
        """
        member_id = held.request.member_id
        superseded = self._held.pop(member_id, None)
        self._catch_ups.forget(member_id)
        may_wait = held.may_wait or superseded is not None
        if has_news or not may_wait or member_id in self._uninformed:
            self._uninformed.discard(member_id)
            self._reconfigured.discard(member_id)
            return False
        self._held[member_id] = held
        if superseded is None:
            self._timers.set(member_id, held.until_ms)
        return True

    def holds(self, member_id: str, sender: object) -> bool:
        """Return whether a member's held request is from this sender."""
        held = self._held.get(member_id)
        return held is not None and held.sender == sender

    def make_due(self, member_id: str, sender: object, now_ms: int) -> None:
        """Answer a held request now: its client sends nothing until it has the reply."""
        if self.holds(member_id, sender):
            self._timers.set(member_id, now_ms)

    def release(self, member_id: str) -> HeldRequest | None:
        """Remove and return a member's held request; None: there is none."""
        self._reconfigured.discard(member_id)
        return self._held.pop(member_id, None)

    # -- clients of Kafka

    def hold_client(
        self, call: HeldRequest, longest_ms: int, *, has_news: bool
    ) -> list[AddressedReply]:
        """Hold a client's heartbeat if it may wait; return the answers to send now.

        That is itself, or the one that it supersedes. `longest_ms` is the longest interval of its
        heartbeats.
        """
        assert call.reply is not None  # noqa: S101  # it was decided
        hold_ms = self._client_hold_times.hold_ms(call.request, call.arrived_ms, longest_ms)
        answers = self.end(call.request.member_id)
        may_wait = hold_ms > 0 and not has_news and len(self._held) < MOST_HELD
        held = replace(call, until_ms=call.arrived_ms + hold_ms, may_wait=may_wait)
        if not self.hold(held, has_news=has_news):
            answers.append(AddressedReply(call.sender, call.reply))
        return answers

    def end(self, member_id: str) -> list[AddressedReply]:
        """Remove a member's held heartbeat and return its answer, if there is one."""
        held = self.release(member_id)
        if held is None or held.reply is None:
            return []
        return [AddressedReply(held.sender, held.reply)]

    def end_number(self, number: int) -> list[AddressedReply]:
        """Return the answer to the held heartbeat of this number: its client waits with more."""
        for member_id, held in self._held.items():
            numbers = (getattr(each, "number", None) for each in (held.reply, held.sender))
            if number in numbers:
                return self.end(member_id)
        return []

    # -- news

    def announce_interval(self, members: Iterable[str]) -> None:
        """Answer the next request of each of these members at once: the interval has changed."""
        self._uninformed = set(members)

    def follow(self, group: Group, records: Sequence[Record], *, catches_up: bool) -> None:
        """Mark the members for which these records may be news; `group` is the one before them.

        A member that is removed by force is not answered any more.
        """
        if self._held:
            unmoved = find_unmoved(group, records) if catches_up else ()
            self._catch_ups.add(unmoved)
            self._marked.update(
                each for each in find_affected(group, records) if each not in unmoved
            )
            self._reconfigured.update(self._held.keys() & {*find_reconfigured(group, records)})
            self._marked |= self._reconfigured
        for record in records:
            if isinstance(record, ClassicGroup):
                self.mark_all()
            elif isinstance(record, Operator) and record.removing and not record.gently:
                self.release(record.removing)
            elif isinstance(record, Tombstone) and record.kind is MemberMetadata:
                self._forget(str(record.key[0]))

    def mark(self, member_id: str) -> None:
        """Decide the held request of one member again before the next append."""
        if member_id in self._held:
            self._marked.add(member_id)

    def mark_all(self) -> None:
        """Decide all held requests again before the next append."""
        self._marked.update(self._held)

    def take_marked(self, now_ms: int, *, is_overtaken: bool) -> Iterator[HeldRequest]:
        """Yield the held requests that may have news, until there are none; they stay held.

        They come in the order of the member ids, so that the same log leads to the same records.
        Members that catch up come last; `is_overtaken` tells whether another target is due already.
        """
        while turns := self._next_turns(now_ms, is_overtaken=is_overtaken):
            for member_id in turns:
                if held := self._held.get(member_id):
                    yield held

    def _next_turns(self, now_ms: int, *, is_overtaken: bool) -> Sequence[str]:
        if not self._marked:
            return [*self._catch_ups.turns(self._held, now_ms, is_overtaken=is_overtaken)]
        marked, self._marked = sorted(self._marked), set()
        return marked

    def releases(self, held: HeldRequest, *, has_news: bool) -> bool:
        """Return whether a held request, decided again, is to be answered; else it stays held."""
        member_id = held.request.member_id
        is_answered = has_news or member_id in self._reconfigured
        self._reconfigured.discard(member_id)
        if is_answered:
            self._held.pop(member_id, None)
        return is_answered

    def due(self, now_ms: int) -> Iterator[HeldRequest]:
        """Remove and yield the held requests whose time is over."""
        for member_id in self._timers.due(now_ms):
            if held := self.release(member_id):
                yield held

    def _forget(self, member_id: str) -> None:
        """Remove a member that left the group: its leave is answered, its held join is not."""
        held = self._held.get(member_id)
        request = held.request if held is not None else None
        if isinstance(request, Heartbeat) and request.member_epoch == JOIN_EPOCH:
            del self._held[member_id]
        self._reconfigured.discard(member_id)
        self._uninformed.discard(member_id)


class ClientHoldTimes:
    """The hold times of clients' heartbeats: 80 % of the interval that each client keeps."""

    def __init__(self) -> None:
        self._last_ms: dict[str, int] = {}
        """When the last heartbeat of each member came, by member id."""

    def hold_ms(self, call: Heartbeat | ClientHeartbeat, now_ms: int, longest_ms: int) -> int:
        """Record a heartbeat; return how long it may be held, 0: it is answered at once."""
        member_id = call.member_id
        if len(member_id) > LONGEST_MEMBER_ID:
            return 0
        gap_ms = now_ms - self._last_ms.get(member_id, now_ms)
        if len(self._last_ms) > 2 * MOST_HELD:
            self._last_ms.clear()
        self._last_ms[member_id] = now_ms
        is_join = not isinstance(call, ClassicHeartbeat) and call.member_epoch <= JOIN_EPOCH
        if gap_ms < SHORTEST_MS or is_join:
            return 0
        return min(gap_ms, longest_ms) * HELD_PERCENT // 100


class CatchUps:
    """The members that wait for a new epoch in an answer, and those that are to confirm one."""

    def __init__(self) -> None:
        self._waiting: dict[str, None] = {}
        """The member ids in the order of their turns."""
        self._awaited: dict[str, int] = {}
        """Until when the next heartbeat of each is awaited, by member id; steady clock."""

    def add(self, member_ids: Iterable[str]) -> None:
        """Queue members that are to catch up, unless they wait for their turn already."""
        self._waiting.update(dict.fromkeys(sorted(member_ids)))

    def next_ms(self) -> int | None:
        """Return when the wait for an answered member ends, steady clock."""
        return min(self._awaited.values(), default=None) if self._waiting else None

    def forget(self, member_id: str) -> None:
        """Remove a member that sent a heartbeat: it has taken its step."""
        self._waiting.pop(member_id, None)
        self._awaited.pop(member_id, None)

    def turns(self, held: Container[str], now_ms: int, *, is_overtaken: bool) -> Iterator[str]:
        """Yield the members whose turn it is; those without a held request need none.

        `is_overtaken` tells whether another target is due already.
        """
        for member_id in [each for each, until_ms in self._awaited.items() if now_ms >= until_ms]:
            del self._awaited[member_id]
        if is_overtaken and len(self._waiting) > AT_ONCE:
            return
        while self._waiting and len(self._awaited) < AT_ONCE:
            member_id = next(iter(self._waiting))
            del self._waiting[member_id]
            if member_id in held:
                self._awaited[member_id] = now_ms + HELD_UP_MS
                yield member_id


# -- for whom records are news


def find_affected(group: Group, records: Iterable[Record]) -> Collection[str]:
    """Return the members whose heartbeats would have a different result now (PROTOCOL §3).

    `group` is the group before the records. A new target affects every member; a step or a removal
    affects the member itself, and the members to which the target gives what it releases. Which
    member has to compute is in the soft state.
    """
    affected: set[str] = set()
    for record in records:
        match record:
            case TargetAssignment():
                return group.members.keys()
            case CurrentAssignment(member_id):
                affected.add(member_id)
                kept = record.assigned.keys() | record.pending.keys()
                affected.update(_find_waiting(group, member_id, kept))
            case Tombstone(kind, (str() as member_id,)) if kind is MemberMetadata:
                affected.add(member_id)
                affected.update(_find_waiting(group, member_id, frozenset()))
            case _:
                pass
    return affected


def _find_waiting(group: Group, member_id: str, kept: Collection[object]) -> Iterable[str]:
    """Yield the members that wait for what this one releases."""
    member = group.members.get(member_id)
    if member is None:
        return
    for grants in (member.current.assigned, member.current.pending):
        for resource in grants:
            if resource not in kept and (owner := group.target_owner.get(resource)):
                yield owner


def find_reconfigured(group: Group, records: Iterable[Record]) -> Iterator[str]:
    """Yield the ids of members that hold a connector that these records change, or its tasks."""
    for record in records:
        if isinstance(record, ConnectorConfig | TaskConfigs | TargetState):
            name = record.connector
            tasks = (Resource(name, number) for number in group.task_numbers(name))
            for resource in (Resource(name), *tasks):
                if (owner := group.owner.get(resource)) is not None:
                    yield owner


def find_unmoved(group: Group, records: Iterable[Record]) -> Collection[str]:
    """Return the members whose share a new target leaves as it is.

    `group` is the group before the records. Without a new target there are none.
    """
    target = next((each for each in records if isinstance(each, TargetAssignment)), None)
    if target is None:
        return ()
    return {
        member_id
        for member_id, member in group.members.items()
        if member.current.state is MemberState.STABLE
        and frozenset(member.current.assigned) == target.members.get(member_id, NOTHING)
    }
