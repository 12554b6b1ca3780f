"""The coordinator of one connect group, without its process; see `typed_shard`.

Many requests share one append. Each is decided on the state after the ones before it, and is
answered only once it is durable: see `shard` for the order. The rules are those of `decide`. This
module keeps the soft state beside them: which requests are new, which members send too many, which
requests are held, and what is due when.
"""

import logging
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace

from ...events.entries.codec import UnwritableRecordError, encode
from ...events.evolve import evolve
from ...events.group import Group, epoch_warning
from ...events.log.space import NoRoomError, Room
from ...events.record_parts import Layout, lay_out
from ...events.records import MemberMetadata, Tombstone
from ..messages.commands import Command, CommandReply, Reply, Traffic
from ..messages.computing import Install, InstallReply
from ..messages.errors import SUCCESS, Error
from ..messages.members import (
    JOIN_EPOCH,
    LEAVE_EPOCH,
    NO_COORDINATOR_EPOCH,
    CommitOffsets,
    CommitReply,
    Heartbeat,
    HeartbeatReply,
)
from ..messages.orders import FROM_PEOPLE
from ..timing import Now
from .commit import OffsetLedger
from .computing.compute import is_due
from .computing.install import KEPT, is_news
from .decide import decide
from .due import DueCommands
from .legality import Legality
from .long_poll import HeldRequest, LongPoll
from .members.admission import refuse_heartbeat, refuse_stale
from .members.request_filter import Quota, RequestFilter
from .orders.configuration import open_soft_state
from .shard import ENOUGH_ROOM, LOOK_FOR_ROOM_MS, Address, AddressedReply, Outbox, Ready
from .state.settings import GroupSettings
from .state.soft_state import Computation, Decision, Rule, SoftState
from .state.workers import is_silenced

LOGGER = logging.getLogger(__name__)

Rules = Callable[[Group, SoftState, Command, int], Decision]


class Coordinator:
    """Decides for one connect group; beside the group: soft state, timers and held requests."""

    def __init__(
        self,
        group: Group,
        settings: GroupSettings,
        ledger: OffsetLedger,
        steady_ms: int,
        new_id: Callable[[], str] = str,
        coordinator_epoch: int = NO_COORDINATOR_EPOCH,
    ) -> None:
        """Coordinate a group; `new_id` makes member ids for clients that have none.

        No other process of the group may ever have had the same `coordinator_epoch`.
        """
        self.rules: Rules = decide
        """Decides a command."""
        self.holds_heartbeats = True  # if they have no news; else each is answered at once
        self.group = group
        """The group as decided: ahead of the log by what its host has not written yet."""
        self.out = Outbox()
        self._room = ENOUGH_ROOM
        """How much may be written, as of the last look at the disk."""
        self._filter = RequestFilter(group.members, coordinator_epoch)
        facts = ledger.facts(self._filter.has_acknowledged)
        self._soft: SoftState = open_soft_state(settings, group, coordinator_epoch, facts)
        self._ledger = ledger
        self._new_id = new_id
        self.legality = Legality()
        self._quota = Quota()
        self.long_poll = LongPoll(group.members)
        self._heartbeats = 0
        """How many were taken, late copies included."""
        self.due: DueCommands = DueCommands(group, self._soft.settings, steady_ms)

    @property
    def coordinator_epoch(self) -> int:
        """The number of this process, which newcomers must name; members may have an older one."""
        return self._filter.coordinator_epoch

    @property
    def warning(self) -> str:
        """A warning about the group's epoch, or nothing."""
        told = epoch_warning(self.group.group_epoch)
        return told and f"group {self.group.group_id} is at {told}"

    @property
    def settings(self) -> GroupSettings:
        """The group's current settings."""
        return self._soft.settings

    @property
    def computation(self) -> Computation | None:
        """The computation in flight; None: there is none."""
        return self._soft.computation

    def traffic(self) -> Traffic:
        """Return how many heartbeats were taken, and how many are held."""
        return Traffic(self._heartbeats, len(self.long_poll))

    # -- what goes out

    def ready(self, now: Now) -> Ready:
        """Hand out what was decided, with the answers to held requests that have news by it."""
        self._call_for_computation()
        for asked in self.long_poll.take_marked(now.steady_ms, is_overtaken=is_due(self.group)):
            with suppress(NoRoomError):  # it stays held
                decision = self._decide_heartbeat(asked, now)
                if self.long_poll.releases(asked, has_news=decision.news):
                    self._answer(asked.sender, decision.reply)
                self._call_for_computation()
        return self.out.hand_out(self._ledger.hand_out())

    def advance(self, ready: Ready) -> None:
        """Take note that this is durable."""
        if ready.offset_entries:
            self._ledger.advance()

    def _answer(self, to: Address, reply: Reply) -> None:
        self.out.answers.append(AddressedReply(to, reply))

    # -- what comes in

    def see_room(self, room: Room, now: Now) -> None:
        """Take note of how much may be written; with room again, members have full sessions."""
        was_out = self._room.is_out
        self._room = room
        if was_out and not room.is_out:
            self.due.grant_sessions(self._soft.settings, now.steady_ms)

    def take(self, request: Command | CommitOffsets, sender: Address, now: Now) -> None:
        """Decide a request; a heartbeat without news is held for up to a heartbeat interval."""
        if isinstance(request, Heartbeat):
            self._take_heartbeat(request, sender, now)
        elif isinstance(request, CommitOffsets):
            self._answer(sender, self._commit(request, now))
        elif self._room.is_low and isinstance(request, FROM_PEOPLE):
            self._answer(sender, self._refuse_for_room())
        else:
            self._answer(sender, self._decide_or_refuse(request, now))

    def _take_heartbeat(self, request: Heartbeat, sender: Address, now: Now) -> None:
        self._heartbeats += 1
        if request.member_epoch == JOIN_EPOCH and not request.member_id:
            request = replace(request, member_id=self._new_id())
        if request.member_epoch != LEAVE_EPOCH and is_silenced(self.group, request.member_id):
            return
        if self._filter.is_stale(request):
            self._answer(sender, refuse_stale(self._soft, request))
        elif self._filter.admits(request):
            self._soft = self._soft.with_coordinator_epoch(self._filter.coordinator_epoch)
            with suppress(NoRoomError):  # unanswered, the member asks again
                self._carry_out(HeldRequest(request, sender, now.steady_ms), now)

    def _carry_out(self, asked: HeldRequest, now: Now) -> None:
        """Decide a heartbeat that is new, and answer it unless it may be held."""
        request, settings = asked.request, self._soft.settings
        decision = self._decide_heartbeat(asked, now)
        reply, seat = decision.reply, self.group.members.get(request.member_id)
        if seat is not None and seat.metadata.incarnation != request.incarnation:
            # Another process, which was refused: the member itself may have a request held.
            self._answer(asked.sender, reply)
            return
        if seat is not None:
            reply = self._quota.weigh(reply, settings, now.steady_ms)
        is_news = decision.news or reply is not decision.reply or not self.holds_heartbeats
        if not self.long_poll.hold(asked, settings.heartbeat_interval_ms, has_news=is_news):
            self._answer(asked.sender, reply)

    def _commit(self, command: CommitOffsets, now: Now) -> CommitReply:
        """Decide which batches count; while room is low none does, and the member retries."""
        if self._room.is_low:
            return CommitReply((), command.number, Error.COORDINATOR_NOT_AVAILABLE, self._room.why)
        return self._ledger.commit(self.group, command, now.wall_ms)

    # -- time

    def excuse(self, late_ms: int) -> None:
        """Extend all timers by the time for which this process was held up."""
        self.due.excuse(late_ms)
        self.long_poll.excuse(late_ms)

    def pass_time(self, now: Now) -> None:
        """Do what is due by now; what would have to be written waits until there is room."""
        if not self._room.is_out:
            settings = self._soft.settings
            for command in self.due.commands(settings, now.wall_ms, now.steady_ms):
                try:
                    self._decide(command, now)
                except UnwritableRecordError as error:
                    # The epochs may be used up. Nothing is changed, and the group goes on.
                    LOGGER.critical("%s is not carried out: %s", type(command).__name__, error)
        for asked in self.long_poll.due(now.steady_ms):
            with suppress(NoRoomError):  # unanswered, the member asks again
                self._answer(asked.sender, self._decide_heartbeat(asked, now).reply)

    def next_tick_ms(self, now: Now) -> int:
        """Return when time must pass next, steady clock, unless something is taken before."""
        due_ms, held_ms = self.due.next_ms(now.steady_ms), self.long_poll.next_ms()
        if self._room.is_out:
            due_ms = now.steady_ms + LOOK_FOR_ROOM_MS
        return due_ms if held_ms is None else min(due_ms, held_ms)

    # -- one decision

    def _decide(self, command: Command, now: Now) -> Decision:
        at_ms = now.wall_ms
        return self.carry_out(lambda group, soft: self.rules(group, soft, command, at_ms), now)

    def carry_out(self, rule: Rule, now: Now) -> Decision:
        """Decide, and evolve the group; raises `UnwritableRecordError`, with nothing changed."""
        decision = rule(self.group, self._soft)
        laid_out = lay_out(self.group.record_parts, decision.records)
        entries = [encode(part) for laid in laid_out for part in laid.parts]
        if entries and self._room.is_out:
            raise NoRoomError(self._room.refusal())
        self._ledger.write(decision.offset_records)
        if decision.soft.settings is not self._soft.settings:
            self.long_poll.tell_interval_anew(self.group.members)
        self._soft = self.due.see_soft_state(decision.soft, now.steady_ms)
        if not entries:
            return decision
        begin = self.group.end
        self._write(laid_out, now)
        self.due.see_promises(now.wall_ms, now.steady_ms)
        self.out.entries += entries
        return decision.at_end(begin, self.group.end)

    def hear(self, member_id: str, now: Now) -> None:
        """Renew a member's session."""
        if member := self.group.members.get(member_id):
            self.due.members.keep_alive(member, self._soft.settings, now.steady_ms)

    def _decide_heartbeat(self, asked: HeldRequest, now: Now) -> Decision:
        """Decide a heartbeat; the session that it renews is counted from its arrival."""
        request = asked.request
        try:
            decision = self._decide(request, now)
        except UnwritableRecordError as error:  # no rule refused what is not encodable
            return refuse_heartbeat(self._soft, request, Error.INVALID_REQUEST, str(error))
        reply, settings = decision.reply, self._soft.settings
        if isinstance(reply, HeartbeatReply) and reply.error in SUCCESS:
            member = self.group.members.get(request.member_id)
            if member is not None:
                self.due.members.keep_alive(member, settings, asked.arrived_ms)
                if request.member_epoch == JOIN_EPOCH:
                    self.due.members.time_revocation_anew(member, settings, now.steady_ms)
        return decision

    def _decide_or_refuse(self, command: Command, now: Now) -> Reply:
        """Decide a command; one whose records are not encodable is refused."""
        try:
            return self._decide(command, now).reply
        except NoRoomError:
            refused = self._refuse_for_room()
            is_install = isinstance(command, Install)
            return InstallReply(refused.error, refused.message) if is_install else refused
        except UnwritableRecordError as error:
            if isinstance(command, Install):
                return self._fail(command, str(error), now)
            return CommandReply(Error.INVALID_REQUEST, str(error))

    def _refuse_for_room(self) -> CommandReply:
        return CommandReply(Error.COORDINATOR_NOT_AVAILABLE, self._room.refusal())

    def _fail(self, command: Install, error: str, now: Now) -> InstallReply:
        """Record a computation as failed whose result is not encodable."""
        with suppress(NoRoomError):  # unrecorded, the computation is timed out
            self._decide(replace(command, assignment=None, error=error), now)
        return InstallReply(Error.INVALID_ASSIGNMENT, f"{error}; {KEPT}")

    def _write(self, laid_out: Sequence[Layout], now: Now) -> None:
        self.long_poll.see(self.group, [laid.whole for laid in laid_out])
        for record, parts in laid_out:
            self.legality.check(self.group, record)
            for part in (*parts[:-1], record):  # the whole one, which its head only names
                evolve(self.group, part, self.group.end)
            self.due.see_record(record, now.steady_ms)
            if isinstance(record, Tombstone) and record.kind is MemberMetadata:
                self._filter.forget(str(record.key[0]))
                self._quota.forget(str(record.key[0]))

    def _call_for_computation(self) -> None:
        """Answer the held request of the member that has to compute, if it has one."""
        if self._soft.computation and is_news(self._soft, self.group.group_epoch):
            self.long_poll.mark(self._soft.computation.member_id)
