"""One group's coordinator without its process: it decides, and others write and speak.

Many requests share one append. `take` decides each against the state that the ones before
it led to; nothing of it may be said before the records are durable: `offset_entries` and then
`entries` are to be appended, then `outbox` may go out.
"""

import logging
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

from ...events.entries.codec import UnwritableRecordError, encode
from ...events.evolve import evolve
from ...events.group import Group
from ...events.log.frame import NewEntry
from ...events.log.space import Room
from ...events.records import (
    CurrentAssignment,
    MemberMetadata,
    Operator,
    Record,
    Tombstone,
)
from ...events.shards import Laid, lay_out
from ..messages.commands import Command, CommandReply, GroupCommand, Reply, Traffic
from ..messages.computing import Install, InstallReply
from ..messages.errors import SUCCESS, Error
from ..messages.heartbeat import (
    JOIN_EPOCH,
    NO_COORDINATOR_EPOCH,
    Heartbeat,
    HeartbeatReply,
)
from ..messages.orders import ConfigureGroup, DeleteGroup, EndMember, OperatorCommand
from ..messages.timers import ContinueMoves, FinishDeletion, FreeSeat, ReleaseParked, RetryAssignor
from ..messages.work import (
    CommitOffsets,
    CommitReply,
    CommitVerdict,
    DeleteConnector,
    PutConnector,
)
from .affected import affected
from .computing.compute import is_news
from .computing.install import KEPT
from .computing.recompute import is_next_move_due, is_retry_due
from .decide import decide
from .legality import Legality
from .members.heartbeat import refusal, stale
from .members.quota import Quota
from .members.request_filter import RequestFilter
from .orders.configuration import open_soft_state
from .orders.delete_group import unfinished
from .orders.remove import removed_by_now
from .state.in_force import is_silenced
from .state.settings import GroupSettings
from .state.soft_state import Decision
from .timers import ComputationTimer, MemberTimers, ParkingTimers, TimerQueue
from .work.commit import commit_offsets
from .work.ledger import OffsetLedger

Address = Any
LOGGER = logging.getLogger(__name__)

FROM_PEOPLE = PutConnector | DeleteConnector | ConfigureGroup | DeleteGroup | OperatorCommand
"""What is refused while room is low: it can be asked for again, and nothing depends on it."""


class OutOfRoomError(Exception):
    """A decision would have to be written down, and there is no room: nothing was changed."""


@dataclass(frozen=True, slots=True)
class Now:
    """One moment on two clocks, in milliseconds: the wall's for records, the other for timers."""

    wall_ms: int
    steady_ms: int


@dataclass(frozen=True, slots=True)
class Asked:
    """A request and who waits for its answer."""

    request: Heartbeat
    sender: Address
    arrived_ms: int = 0
    """When it came, steady clock; known of what is held."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What may be said to whom once the records are durable."""

    to: Address
    reply: Reply


class Coordinator:
    """Decides for one group; beside it: soft state, request filter, timers, held requests."""

    def __init__(
        self,
        group: Group,
        settings: GroupSettings,
        ledger: OffsetLedger,
        steady_ms: int,
        new_id: Callable[[], str] = str,
        coordinator_epoch: int = NO_COORDINATOR_EPOCH,
    ) -> None:
        """Take up a group; `new_id` names members of clients that leave that to the group.

        No other process of the group may ever have had the same `coordinator_epoch`.
        """
        self.group = group
        self.room: Room | None = None
        """How much may be written, as of the last look at the disk; None: as much as comes."""
        self.entries: list[NewEntry] = []
        self.offset_entries: list[NewEntry] = []
        self.outbox: list[Answer] = []
        self._soft = open_soft_state(settings, group, coordinator_epoch)
        self._ledger = ledger
        self._new_id = new_id
        self._computation_timer = ComputationTimer()
        self._parking_timers = ParkingTimers()
        self._has_new_orders = True
        """Whether orders changed since `parking` saw them last."""
        self._filter = RequestFilter(group.members, coordinator_epoch)
        self._legality = Legality()
        self._quota = Quota()
        self._held: dict[str, Asked] = {}
        self._untold = set(group.members)
        """Who does not know yet by what interval it is held: it may give up before that."""
        self._heartbeats = 0
        self._stirred: set[str] = set()
        self._holds: TimerQueue[str] = TimerQueue()
        self._member_timers = MemberTimers(group, self._soft.settings, steady_ms)
        self._to_free = [each for each in group.members_away() if each.current.assigned]
        """Seats to which an earlier version left what they held."""

    # -- what comes in

    def see_room(self, room: Room, now: Now) -> None:
        """Learn how much may be written; who could not be heard meanwhile has its time anew."""
        was_out = self.room is not None and self.room.is_out
        self.room = room
        if was_out and not room.is_out:
            self._member_timers = MemberTimers(self.group, self._soft.settings, now.steady_ms)

    def take(self, command: GroupCommand, sender: Address, now: Now) -> None:
        """Decide a command that somebody waits for."""
        if isinstance(command, Heartbeat):
            self.beat(Asked(command, sender), now)
            return
        if self.room and self.room.is_low and isinstance(command, FROM_PEOPLE):
            self.outbox.append(Answer(sender, _unwritten(self.room)))
            return
        if isinstance(command, EndMember):
            acknowledged = self._filter.has_acknowledged(command.member_id)
            command = replace(command, acknowledged=acknowledged)
        if isinstance(command, PutConnector) and command.connector not in self.group.connectors:
            command = replace(command, offsets=self._ledger.count(command.connector))
        self.outbox.append(Answer(sender, self._decide_or_refuse(command, now)))

    @property
    def coordinator_epoch(self) -> int:
        """The number that a request of a newcomer must carry; members may have an earlier one."""
        return self._filter.coordinator_epoch

    def traffic(self) -> Traffic:
        """Return what went through since the start."""
        return Traffic(self._heartbeats, len(self._held))

    def beat(self, asked: Asked, now: Now) -> None:
        """Decide a heartbeat; what has no news is held for up to a heartbeat interval."""
        self._heartbeats += 1
        if asked.request.member_epoch == JOIN_EPOCH and not asked.request.member_id:
            asked = replace(asked, request=replace(asked.request, member_id=self._new_id()))
        request = asked.request
        if is_silenced(self.group, request):
            return
        if self._filter.is_stale(request):
            self.outbox.append(Answer(asked.sender, stale(self._soft, request)))
        elif self._filter.admits(request):
            self._soft = self._soft.numbered(self._filter.coordinator_epoch)
            with suppress(OutOfRoomError):  # unanswered, the member asks again
                self._carry_out(asked, now)

    def _carry_out(self, asked: Asked, now: Now) -> None:
        """Decide a heartbeat that is new, and answer it if there is anything to say."""
        request, member_id = asked.request, asked.request.member_id
        decision = self._decide_heartbeat(request, now.steady_ms, now)
        reply = decision.reply
        seat = self.group.members.get(member_id)
        if seat is not None and seat.metadata.incarnation != request.incarnation:
            self.outbox.append(Answer(asked.sender, reply))
            return  # another process, refused: who sits there has a request of its own waiting
        superseded = self._held.pop(member_id, None)
        if seat is not None:
            reply = self._quota.weigh(reply, self._soft.settings, now.steady_ms)
        may_wait = superseded is not None or not request.is_full
        may_wait = may_wait or request.member_epoch == JOIN_EPOCH
        may_wait = may_wait and member_id not in self._untold
        if may_wait and not decision.news and reply is decision.reply:
            self._held[member_id] = Asked(request, asked.sender, now.steady_ms)
            if superseded is None:  # else the member may ask anew for ever, and be told nothing
                interval_ms = self._soft.settings.heartbeat_interval_ms
                self._holds.set(member_id, now.steady_ms + interval_ms)
        else:
            self._untold.discard(member_id)
            self.outbox.append(Answer(asked.sender, reply))

    def commit(self, command: CommitOffsets, sender: Address, now: Now) -> None:
        """Decide which batches count; none does while room is low, and each is asked again."""
        if self.room and self.room.is_low:
            error, why = Error.COORDINATOR_NOT_AVAILABLE, self.room.why
            self.outbox.append(Answer(sender, CommitReply((), command.number, error, why)))
            return
        decision = commit_offsets(self.group, self._ledger, command, now.wall_ms)
        reply = decision.reply
        try:
            entries = [encode(record) for record in decision.records]
        except UnwritableRecordError as error:
            refused = (
                CommitVerdict(each.commit_id, Error.FENCED, str(error)) for each in command.commits
            )
            reply = CommitReply(tuple(refused), command.number)
        else:
            self._ledger.lay(decision.records)
            self.offset_entries += entries
        self.outbox.append(Answer(sender, reply))

    def pass_time(self, now: Now) -> None:
        """Do what is due by now; what would have to be written waits until there is room."""
        if self.room is None or not self.room.is_out:
            self._pass_written_time(now)
        for member_id in self._holds.due(now.steady_ms):
            if asked := self._held.pop(member_id, None):
                with suppress(OutOfRoomError):  # unanswered, the member asks again
                    reply = self._decide_heartbeat(asked.request, asked.arrived_ms, now).reply
                    self.outbox.append(Answer(asked.sender, reply))

    def _pass_written_time(self, now: Now) -> None:
        while self._to_free:
            self._decide_due(FreeSeat(self._to_free.pop().member_id), now)
        for command in self._member_timers.due(self._filter, now.steady_ms):
            self._decide_due(command, now)
        for removal in [*removed_by_now(self.group, now.wall_ms)]:
            self._decide_due(removal, now)
        for due in self._computation_timer.due(now.steady_ms):
            self._decide_due(due, now)
        self._pass_wall_time(now)

    def _pass_wall_time(self, now: Now) -> None:
        group = self.group
        deadline_ms = group.next_deadline_ms
        if deadline_ms is not None and deadline_ms <= now.wall_ms:
            self._decide_due(ReleaseParked(), now)
        if is_next_move_due(group.schedule, now.wall_ms):
            self._decide_due(ContinueMoves(), now)
        self._see_promises(now)
        for due in self._parking_timers.due(now.steady_ms):
            self._decide_due(due, now)
        if is_retry_due(group, self._soft.settings, now.wall_ms):
            self._decide_due(RetryAssignor(), now)
        for name in [each.connector for each in group.connectors.values() if each.deleting]:
            if not self._ledger.has_unpublished(name):
                self._decide_due(FinishDeletion(name), now)

    def _decide_due(self, command: Command, now: Now) -> None:
        """Decide what nobody waits for; what the log could not hold is told in its process's log.

        That is so for a bump once epochs are spent. Nothing is changed, so that the group goes on.
        """
        try:
            self._decide(command, now)
        except UnwritableRecordError as error:
            LOGGER.critical("%s is not carried out: %s", type(command).__name__, error)

    def _see_promises(self, now: Now) -> None:
        self._parking_timers.see(self.group, now.wall_ms, now.steady_ms)
        if self._has_new_orders:
            self._has_new_orders = False
            self._parking_timers.see_orders(self.group, now.wall_ms, now.steady_ms)

    def settle(self, now: Now) -> None:
        """Answer the held requests that have news, until none has any more."""
        self._call_for_computation()
        while self._stirred:
            stirred, self._stirred = sorted(self._stirred), set()  # the same log, the same order
            for member_id in stirred:
                if asked := self._held.get(member_id):
                    self._reconsider(member_id, asked, now)

    def _reconsider(self, member_id: str, asked: Asked, now: Now) -> None:
        try:
            decision = self._decide_heartbeat(asked.request, asked.arrived_ms, now)
        except OutOfRoomError:
            return
        if decision.news:
            self._held.pop(member_id, None)
            self.outbox.append(Answer(asked.sender, decision.reply))
        self._call_for_computation()

    # -- one decision

    def _decide(self, command: Command, now: Now) -> Decision:
        """Decide, and change the group by it; raises `UnwritableRecordError`, nothing changed."""
        decision = decide(self.group, self._soft, command, now.wall_ms)
        laid_out = lay_out(self.group.log_shards, decision.records)
        entries = [encode(part) for laid in laid_out for part in laid.parts]
        if entries and self.room and self.room.is_out:
            raise OutOfRoomError
        if decision.soft.settings is not self._soft.settings:
            self._untold = set(self.group.members)
        self._soft = decision.soft
        self._computation_timer.see(decision.soft, now.steady_ms)
        if not entries:
            return decision
        begin = self.group.end
        self._write(laid_out, now)
        self._see_promises(now)
        self.entries += entries
        return replace(decision, reply=_resting_on(decision.reply, begin, self.group.end))

    def _decide_heartbeat(self, request: Heartbeat, arrived_ms: int, now: Now) -> Decision:
        """Decide a heartbeat; the session that its answer speaks of runs from its arrival."""
        try:
            decision = self._decide(request, now)
        except UnwritableRecordError as error:  # what no rule foresaw, and no log could hold
            return refusal(self._soft, request, Error.INVALID_REQUEST, str(error))
        reply = decision.reply
        if isinstance(reply, HeartbeatReply) and reply.error in SUCCESS:
            member = self.group.members.get(request.member_id)
            if member is not None:
                self._member_timers.keep_alive(member, self._soft.settings, arrived_ms)
                if request.member_epoch == JOIN_EPOCH:
                    settings = self._soft.settings
                    self._member_timers.time_revocation_anew(member, settings, now.steady_ms)
        return decision

    def _decide_or_refuse(self, command: GroupCommand, now: Now) -> Reply:
        """Answer a command; what the log could not hold is refused, whoever sent it."""
        if isinstance(command, DeleteGroup):
            found = unfinished(self.group, self._ledger.has_unpublished)
            if found:
                return CommandReply(Error.NON_EMPTY_GROUP, found)
        try:
            return self._decide(command, now).reply
        except OutOfRoomError:
            refused = _unwritten(self.room)
            is_install = isinstance(command, Install)
            return InstallReply(refused.error, refused.message) if is_install else refused
        except UnwritableRecordError as error:
            if isinstance(command, Install):
                return self._fail(command, str(error), now)
            return CommandReply(Error.INVALID_REQUEST, str(error))

    def _fail(self, command: Install, error: str, now: Now) -> InstallReply:
        """Record an attempt as failed whose result no log could hold; its rules foresaw it not."""
        self._decide(replace(command, assignment=None, error=error), now)
        return InstallReply(Error.INVALID_ASSIGNMENT, f"{error}; {KEPT}")

    def _write(self, laid_out: Sequence[Laid], now: Now) -> None:
        if self._held:
            self._stirred.update(affected(self.group, [laid.whole for laid in laid_out]))
        for record, parts in laid_out:
            self._legality.check(self.group, record)
            for part in (*parts[:-1], record):  # the whole one, which its head only names
                evolve(self.group, part, self.group.end)
            kind = record.kind if isinstance(record, Tombstone) else type(record)
            self._has_new_orders = self._has_new_orders or kind is Operator
            self._take_note(record, now)

    def _take_note(self, record: Record, now: Now) -> None:
        if type(record) is CurrentAssignment:
            member = self.group.members[record.member_id]
            self._member_timers.time_revocation(member, now.steady_ms)
        elif isinstance(record, Operator) and record.removing and not record.gently:
            self._held.pop(record.removing, None)  # it is answered no more
        elif isinstance(record, Tombstone) and record.kind is MemberMetadata:
            self._forget(str(record.key[0]))

    def _call_for_computation(self) -> None:
        """See that who is to compute hears of it."""
        chosen = self._soft.computation.member_id if self._soft.computation else ""
        if chosen in self._held and is_news(self._soft, self.group.group_epoch):
            self._stirred.add(chosen)

    def _forget(self, member_id: str) -> None:
        held = self._held.get(member_id)
        if held is not None and held.request.member_epoch == JOIN_EPOCH:
            del self._held[member_id]  # a join may not outlive the seat: its process asks again
        self._filter.forget(member_id)
        self._member_timers.forget(member_id)
        self._quota.forget(member_id)
        self._untold.discard(member_id)


def _resting_on(reply: Reply, begin: int, end: int) -> Reply:
    """Return a reply that rests on what was written, with the end of that: it may lie in shards."""
    if isinstance(reply, HeartbeatReply | CommandReply) and reply.log_offset > begin:
        return replace(reply, log_offset=end)
    return reply


def _unwritten(room: Room | None) -> CommandReply:
    why = room.refusal() if room else ""
    return CommandReply(Error.COORDINATOR_NOT_AVAILABLE, why)
