"""Classic members in a group of the connect type: the rules of their calls, and their deadlines.

Their calls are decided and answered at once. A classic member is told to rejoin
(REBALANCE_IN_PROGRESS) when it is behind the assignment epoch, when it has to revoke something, and
when everything is free that it waits for. SyncGroup tells it what it may run. Only its JoinGroup
says what it owns (see `joins`).

`MixedMembers` keeps the soft state beside that: which ids were given out, and when calls are due.
Once a member was told to rejoin it has to send JoinGroup within its rebalance timeout, and
SyncGroup within as long after each JoinGroup. Their sessions are timed with those of all members.
"""

from collections.abc import Iterator, Sequence
from enum import Enum
from typing import NamedTuple

from ....events.group import Group, Member
from ....events.model import MemberState, Why
from ....events.records import Record
from ...classic.bytes.primitives import UnreadableError, UnwritableError
from ...classic.rules import MOST_PENDING_JOINS
from ...classic.state import ClassicSettings
from ...messages.classic import (
    ClassicCall,
    ClassicHeartbeat,
    ClassicHeartbeatReply,
    ClassicReply,
    JoinGroup,
    JoinGroupReply,
    LeaveGroup,
    LeaveGroupReply,
    Leaver,
    LeaverReply,
    SyncGroup,
    SyncGroupReply,
)
from ...messages.errors import Error
from ...timing import Now, TimerQueue
from ..computing.compute import with_target
from ..members.depart import (
    Departure,
    close_seats,
    depart,
    departure_of_leaver,
    losses,
    silent_departure,
)
from ..members.outside_configs import change_of, configured_by, flaw_in_configs, newer_configs
from ..state.soft_state import Decision, Rule, SoftState, bump
from ..state.workers import removal_of
from .joins import Joining, JoinSettings, join
from .protocol import Translation, assignment_content


class AwaitedCall(Enum):
    """A call that a member has to send in time."""

    FIRST_JOIN = "to join with the id that it was given"
    JOIN = "to join anew"
    SYNC = "to ask for its assignment"


class CallDeadline(NamedTuple):
    """The member that has to send a call."""

    awaited: AwaitedCall
    member_id: str


class MixedMembers:
    """The soft state of one group's classic members while it is of the connect type."""

    def __init__(self, group: Group, translation: Translation) -> None:
        """Begin with nothing remembered, so that every member has its full time."""
        self._group, self._translation = group, translation
        self._expected: dict[str, None] = {}
        """The member ids that were given out and have not joined yet."""
        self._called: set[str] = set()
        """The ids of the members that were told to rejoin and have not yet."""
        self._deadlines: TimerQueue[CallDeadline] = TimerQueue()
        """Until when each awaited call has to come."""

    def clear(self) -> None:
        """Forget everything: the group is classic now, and may be mixed again later."""
        self._expected.clear()
        self._called.clear()
        self._deadlines = TimerQueue()

    def extend_timers(self, late_ms: int) -> None:
        """Extend all deadlines by this time."""
        self._deadlines.extend(late_ms)

    def expect(self, member_id: str, session_ms: int, steady_ms: int) -> None:
        """Reserve an id for a new member, which has to join with it within its session."""
        if len(self._expected) >= MOST_PENDING_JOINS:
            del self._expected[next(iter(self._expected))]
        self._expected[member_id] = None
        self._deadlines.set(CallDeadline(AwaitedCall.FIRST_JOIN, member_id), steady_ms + session_ms)

    def rule_of(
        self, call: ClassicCall, fresh: str, settings: ClassicSettings, now_ms: int
    ) -> Rule:
        """Return the rule that decides a call; `fresh` is an id that was never used."""
        translation = self._translation
        if isinstance(call, JoinGroup):
            joining = Joining(call, fresh, call.member_id in self._expected)
            terms = JoinSettings(settings, translation)
            return lambda group, soft: join(group, soft, joining, terms, now_ms)
        if isinstance(call, SyncGroup):
            if call.member_id in call.assignments:
                return lambda group, soft: end_own_round(group, soft, call, translation, now_ms)
            return lambda group, soft: sync(group, soft, call, translation)
        if isinstance(call, ClassicHeartbeat):
            return lambda group, soft: heartbeat(group, soft, call, translation)
        return lambda group, soft: leave(group, soft, call, now_ms)

    def apply(self, call: ClassicCall, reply: ClassicReply, now: Now) -> str:
        """Start the timers that an answer implies; return the member whose session restarts.

        "" if it is nobody's.
        """
        if isinstance(call, JoinGroup) and isinstance(reply, JoinGroupReply):
            return self._apply_join(call, reply, now.steady_ms)
        if isinstance(call, SyncGroup | ClassicHeartbeat):
            return self._apply_sign_of_life(call, reply.error, now.steady_ms)
        return ""

    def _apply_join(self, call: JoinGroup, reply: JoinGroupReply, steady_ms: int) -> str:
        member_id = reply.member_id
        if reply.error is Error.MEMBER_ID_REQUIRED:
            self.expect(member_id, call.session_timeout_ms, steady_ms)
            return ""
        if reply.error is not Error.NONE:
            return ""
        self._expected.pop(member_id, None)
        self._called.discard(member_id)
        self._deadlines.cancel(CallDeadline(AwaitedCall.JOIN, member_id))
        sync_deadline = CallDeadline(AwaitedCall.SYNC, member_id)
        self._deadlines.set(sync_deadline, steady_ms + call.rebalance_timeout_ms)
        return member_id

    def _apply_sign_of_life(
        self, call: SyncGroup | ClassicHeartbeat, error: Error, steady_ms: int
    ) -> str:
        member_id = call.member_id
        member = self._group.members.get(member_id)
        if member is None or error not in {Error.NONE, Error.REBALANCE_IN_PROGRESS}:
            return ""
        if error is Error.REBALANCE_IN_PROGRESS and member_id not in self._called:
            self._called.add(member_id)
            until_ms = steady_ms + member.metadata.rebalance_timeout_ms
            self._deadlines.set(CallDeadline(AwaitedCall.JOIN, member_id), until_ms)
        elif error is Error.NONE and isinstance(call, SyncGroup):
            self._deadlines.cancel(CallDeadline(AwaitedCall.SYNC, member_id))
        return member_id

    def due(self, now: Now) -> Iterator[Rule]:
        """Yield the due rules; decide each before asking for the next."""
        for awaited, member_id in self._deadlines.due(now.steady_ms):
            if awaited is AwaitedCall.FIRST_JOIN:
                self._expected.pop(member_id, None)
            else:
                self._called.discard(member_id)
                yield _expiry_of(member_id, now.wall_ms)

    def next_ms(self) -> int | None:
        """Return when something may be due next, steady clock."""
        return self._deadlines.next_ms()


def _expiry_of(member_id: str, now_ms: int) -> Rule:
    return lambda group, soft: expire(group, soft, member_id, now_ms)


# -- the rules


def sync(group: Group, soft: SoftState, call: SyncGroup, translation: Translation) -> Decision:
    """Return a classic member's assignment; no record is written."""
    member = _member(group, call.member_id, call.instance_id, call.generation)
    if isinstance(member, Error):
        return Decision(soft, reply=SyncGroupReply(member))
    classic = member.metadata.classic
    protocol = classic.protocol if classic else ""
    has = translation.protocol_type, protocol
    named = call.protocol_type, call.protocol
    if any(each is not None and each != own for each, own in zip(named, has, strict=True)):
        message = f"the member was told to speak {' '.join(has)}"
        error = Error.INCONSISTENT_GROUP_PROTOCOL
        return Decision(soft, reply=SyncGroupReply(error, message=message))
    is_behind = member.current.member_epoch < group.assignment_epoch
    if is_behind and member.state is not MemberState.UNREVOKED:
        return Decision(soft, reply=SyncGroupReply(Error.REBALANCE_IN_PROGRESS))
    try:
        assignment = translation.assignment(
            protocol, assignment_content(group, member, translation)
        )
    except (UnreadableError, UnwritableError) as error:
        message = f"what {member.member_id} is to run cannot be told in {protocol}: {error}"
        error_code = Error.INCONSISTENT_GROUP_PROTOCOL
        return Decision(soft, reply=SyncGroupReply(error_code, message=message))
    return Decision(soft, reply=SyncGroupReply(Error.NONE, *has, assignment))


def end_own_round(
    group: Group, soft: SoftState, call: SyncGroup, translation: Translation, now_ms: int
) -> Decision:
    """Record what a member has assigned in a round of its own, which it was asked to lead.

    It has to join anew. The epoch rises whatever it says (see `outside`).
    """
    member = _member(group, call.member_id, call.instance_id, call.generation)
    if isinstance(member, Error):
        return Decision(soft, reply=SyncGroupReply(member))
    try:
        if translation.metadata_to_lead(group, member) is None:
            return sync(group, soft, call, translation)
        led = translation.read_led(group, member, call)
    except UnreadableError as error:
        return _refuse_led(soft, f"what {member.member_id} assigns cannot be read: {error}")
    cause: tuple[Why, str] | None = None
    records: list[Record] = []
    if led is not None and (read := newer_configs(group, led)):
        if flaw := flaw_in_configs(read):
            return _refuse_led(soft, flaw)
        cause = change_of(group, read.configured)
        records.append(configured_by(read))
    records.append(
        bump(group, *(cause or (Why.REBALANCE_REQUESTED, member.metadata.worker_url)), now_ms)
    )
    reply = SyncGroupReply(Error.REBALANCE_IN_PROGRESS)
    return with_target(group, Decision(soft, tuple(records), reply), now_ms)


def _refuse_led(soft: SoftState, message: str) -> Decision:
    error = Error.INCONSISTENT_GROUP_PROTOCOL
    return Decision(soft, reply=SyncGroupReply(error, message=message))


def heartbeat(
    group: Group, soft: SoftState, call: ClassicHeartbeat, translation: Translation
) -> Decision:
    """Answer a classic member, with an error if it has to rejoin; no record is written."""
    member = _member(group, call.member_id, call.instance_id, call.generation)
    if isinstance(member, Error):
        return Decision(soft, reply=ClassicHeartbeatReply(member))
    must_rejoin = _must_rejoin(group, member) or _must_lead(group, member, translation)
    error = Error.REBALANCE_IN_PROGRESS if must_rejoin else Error.NONE
    return Decision(soft, reply=ClassicHeartbeatReply(error))


def _must_lead(group: Group, member: Member, translation: Translation) -> bool:
    """Return whether a member has to say what is to run."""
    try:
        return translation.metadata_to_lead(group, member) is not None
    except UnreadableError:  # its next JoinGroup is refused
        return False


def _must_rejoin(group: Group, member: Member) -> bool:
    """Return whether a member has to rejoin to reach its target."""
    current = member.current
    if current.member_epoch < group.assignment_epoch or current.state is MemberState.UNREVOKED:
        return True
    if current.state is not MemberState.UNRELEASED:
        return False
    awaited = group.share_of(member.member_id) - current.assigned.keys()
    return awaited.isdisjoint(group.owner)


def _member(
    group: Group, member_id: str, instance_id: str | None, generation: int
) -> Member | Error:
    """Return the classic member that sent a call, or why the call is refused."""
    owner = None if instance_id is None else group.instances.get(instance_id)
    if owner is not None and owner != member_id:
        return Error.FENCED_INSTANCE_ID
    member = group.members.get(member_id)
    if member is None or member.metadata.classic is None or (instance_id and owner is None):
        return Error.UNKNOWN_MEMBER_ID
    return member if member.current.member_epoch == generation else Error.ILLEGAL_GENERATION


def leave(group: Group, soft: SoftState, call: LeaveGroup, now_ms: int) -> Decision:
    """Remove members, with one epoch bump for all; the answer has a result for each.

    Operators remove a static member by its instance id alone, whichever protocol it speaks, and any
    member of a group of consumers by its member id, as at Kafka's broker.
    """
    gone: dict[str, Member] = {}
    results = [
        LeaverReply(each.member_id, each.instance_id, _leave(group, each, gone))
        for each in call.leavers
    ]
    reply = LeaveGroupReply(Error.NONE, tuple(results))
    if not gone:
        return Decision(soft, reply=reply)
    seats = [*gone.values()]
    records: list[Record] = close_seats(group, seats)
    if len(seats) < len(group.members):
        records += losses(group, soft, _by_themselves(group, soft, call, seats, now_ms), now_ms)
    records.append(bump(group, Why.MEMBER_LEFT, _subject(seats), now_ms))
    return with_target(group, Decision(soft, tuple(records), reply), now_ms)


def _leave(group: Group, leaver: Leaver, gone: dict[str, Member]) -> Error:
    owner = None if leaver.instance_id is None else group.instances.get(leaver.instance_id)
    if leaver.member_id and owner not in {None, leaver.member_id}:
        return Error.FENCED_INSTANCE_ID
    member = group.members.get(leaver.member_id or owner or "")
    is_operators = not leaver.member_id
    is_unknown = leaver.instance_id is not None and owner is None
    if member is None or is_unknown or member.member_id in gone:
        return Error.UNKNOWN_MEMBER_ID
    if member.metadata.classic is None and group.topics is None and not is_operators:
        return Error.UNKNOWN_MEMBER_ID
    gone[member.member_id] = member
    return Error.NONE


def _by_themselves(
    group: Group, soft: SoftState, call: LeaveGroup, seats: Sequence[Member], now_ms: int
) -> list[Departure]:
    """Return the departures of those that leave by themselves and are not being removed."""
    own = {each.member_id for each in call.leavers}
    return [
        departure_of_leaver(group, soft, each, now_ms)
        for each in seats
        if each.member_id in own and removal_of(group, each) is None
    ]


def _subject(seats: Sequence[Member]) -> str:
    first = Departure(seats[0], Why.MEMBER_LEFT).cause.subject
    return first + (f" and {len(seats) - 1} more" if len(seats) > 1 else "")


def expire(group: Group, soft: SoftState, member_id: str, now_ms: int) -> Decision:
    """Remove a classic member that did not rejoin, or did not send SyncGroup, in time.

    Its work is lost, as with an expired session. Nothing happens to one that is gone, or that
    speaks the connect protocol by now.
    """
    member = group.members.get(member_id)
    if member is None or member.metadata.classic is None:
        return Decision(soft)
    departure = silent_departure(group, soft, member, Why.REBALANCE_EXPIRED)
    return with_target(group, depart(group, soft, departure, now_ms), now_ms)
