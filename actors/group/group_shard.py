"""One group of any kind, without its process: requests in, records and answers out.

Theory of operation. `GroupShard` is the shell of a group. It keeps what the rules need beside the
group (the soft state), and what no log has: which requests are new, which members send too many,
which heartbeats are held, what is due when. Below it are the rules, which are pure, and the state
machines of the two protocols. Whatever these decide comes back to the shell as a value (records,
answers, timers), and nothing below it calls up.

    submit ─┬─ heartbeats, commands ── the kind's rules (`decide`) ─────────┐
            ├─ calls of classic members ── `classic_members` ───────────────┼─▶ records, answers
            └─ what only the kind knows (offsets, topics) ── `calls` ───────┘

* *Many requests share one append.* Each is decided on the state after the ones before it, and is
  answered only once it is durable; see `host` for the order.
* *One group, one protocol at a time.* An empty group takes members of either protocol, and is of
  their type from then on. While it has members, a join by the modern protocol upgrades a classic
  group if that is allowed; a modern group takes classic members, whose calls are translated, and is
  downgraded when only these are left (PROTOCOL §16). The members move to the other state machine
  once the records of the conversion are decided.
* *A full disk.* A decision whose records find no space is not carried out. People are refused; a
  heartbeat stays unanswered, or is refused if its sender needs an answer; what is due waits. With
  space again, members have full sessions.
* *Held heartbeats* are in `long_poll`, with its own theory.
"""

import logging
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any, Final, cast

from ...events.entries.codec import UnwritableRecordError
from ...events.group import Group, epoch_warning
from ...events.log.space import DiskSpace, NoSpaceError
from ..assignors.built_in.catalogue import Computes
from ..classic.coordinator import MemberEnded
from ..classic.refusals import refusal_of
from ..classic.state import PendingCall, RoundPhase
from ..messages.asks import MemberAsk
from ..messages.classic import (
    ClassicCall,
    ClassicHeartbeat,
    ClassicHeartbeatReply,
)
from ..messages.commands import (
    Address,
    AddressedReply,
    AnswerHeld,
    Command,
    CommandReply,
    Reply,
    Traffic,
)
from ..messages.computing import Install, InstallReply
from ..messages.consumers import ConsumerGroupHeartbeat, ConsumerGroupHeartbeatReply
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
from ..messages.orders import FROM_PEOPLE, ConfigureGroup, DeleteGroup, EndMember
from ..timing import Now, earliest
from .classic_members import ClassicMembers
from .computing.compute import HOST, is_due, is_news
from .computing.install import KEPT
from .evolving_group import EvolvingGroup, HostComputation, Outbox
from .host import LOOK_FOR_SPACE_MS, Ready
from .kind import GroupKind
from .members.admission import refuse_heartbeat, refuse_stale
from .members.asks import answer_ask
from .members.commit import OffsetLedger
from .members.long_poll import LONGEST_MS, HeldRequest
from .state.settings import GroupSettings
from .state.soft_state import Decision
from .state.workers import is_silenced

LOGGER = logging.getLogger(__name__)

IDLE_MS: Final = 60_000
"""The longest time between two looks at a group that waits for nothing."""


@dataclass(frozen=True, slots=True)
class CoordinatorProcess:
    """The identity of one process of a group, which distinguishes it from all earlier ones."""

    epoch: int = NO_COORDINATOR_EPOCH
    """The coordinator epoch, which no other process of the group may ever have had."""
    new_id: Callable[[], str] = str
    """Makes member ids for clients that have none."""
    assignors: Mapping[str, Computes] = field(default_factory=dict[str, Computes])
    """The server assignors of users that it can run, by name."""


class GroupShard:
    """Decides for one group; beside the group: soft state, timers and held requests."""

    def __init__(
        self,
        group: Group,
        kind: GroupKind,
        settings: GroupSettings,
        ledger: OffsetLedger,
        steady_ms: int,
        process: CoordinatorProcess = CoordinatorProcess(),  # it never changes
    ) -> None:
        """Coordinate a group that was rebuilt from its log; its members have full sessions."""
        self.kind = kind
        self.state = EvolvingGroup(group, kind, settings, ledger, steady_ms, process.epoch)
        """The group as decided, its soft state, and what is not written yet."""
        self.classic = ClassicMembers(self.state, steady_ms)
        """The classic members, whichever type the group has."""
        opens, classic = kind.open_calls, self.classic.coordinator
        self._calls = opens(group, classic, ledger, self.settings, steady_ms) if opens else None
        self._new_id = process.new_id
        """Makes member ids."""
        self._heartbeats = 0
        """How many heartbeats came, late copies included."""
        self._handed_out = 0
        """The number of the last computation that the process was given."""

    @property
    def group(self) -> Group:
        """The group as decided, ahead of its log by the records not written yet."""
        return self.state.group

    @property
    def coordinator_epoch(self) -> int:
        """The number of this process; a join has to name it, other requests may be older."""
        return self.state.requests.coordinator_epoch

    @property
    def warning(self) -> str:
        """A warning about the group's epoch; "" if there is none."""
        text = epoch_warning(self.group.group_epoch)
        return text and f"group {self.group.group_id} is at {text}"

    @property
    def settings(self) -> GroupSettings:
        """The group's current settings."""
        return self.state.soft.settings

    def traffic(self) -> Traffic:
        """Return how many heartbeats came, and how many are held."""
        return Traffic(self._heartbeats, len(self.state.long_poll))

    def describe_traffic(self, now: Now) -> Traffic:
        """Return the counts, with how old the last heartbeat of each worker is."""
        present = (each.member_id for each in self.group.workers() if not each.is_away)
        ages = self.state.timers.members.heartbeat_ages(present, now.steady_ms)
        interval_ms = self.settings.heartbeat_interval_ms
        return replace(self.traffic(), heartbeat_ages=ages, heartbeat_interval_ms=interval_ms)

    # -- what goes out

    def ready(self, now: Now) -> Ready:
        """Return the decisions since the last call, and answers to held requests with news."""
        self._call_for_computation()
        if len(self.state.long_poll):
            self._decide_marked(now)
        state = self.state
        out, state.outbox = state.outbox, Outbox()
        offset_entries = state.ledger.hand_out() if state.ledger.entries else ()
        return Ready(offset_entries, out.entries, out.answers)

    def advance(self, ready: Ready) -> None:
        """Record that this is durable."""
        if ready.offset_entries:
            self.state.ledger.advance()

    def _decide_marked(self, now: Now) -> None:
        is_overtaken = is_due(self.group)
        for held in self.state.long_poll.take_marked(now.steady_ms, is_overtaken=is_overtaken):
            with suppress(NoSpaceError):  # it stays held
                reply, has_news = self._decide_again(held, now)
                if self.state.long_poll.releases(held, has_news=has_news):
                    self.state.answer(held.sender, reply)
                self._call_for_computation()

    # -- what comes in

    def set_disk_space(self, space: DiskSpace, now: Now) -> None:
        """Record how much may be written; with space again, members have full sessions."""
        late_ms = self.state.set_disk_space(space, now)
        if late_ms:
            self.classic.extend_timers(late_ms)
            self.classic.coordinator.grant_sessions(now.steady_ms)

    def submit(self, request: Any, sender: Address, now: Now) -> None:  # noqa: ANN401  # see `kind`
        """Decide a request; its answer is in a `Ready`, now or later."""
        if not self.classic.is_agreed:  # a new process has to take over the members first
            self.classic.follow_conversion(now)
        if isinstance(request, ClassicCall):
            self._submit_call(request, sender, now)
        elif isinstance(request, Heartbeat):
            self._submit_heartbeat(request, sender, now)
        elif isinstance(request, ConsumerGroupHeartbeat):
            self._submit_client_heartbeat(request, sender, now)
        elif isinstance(request, CommitOffsets):
            self.state.answer(sender, self._commit(request, now))
        elif isinstance(request, MemberAsk):
            self._submit_ask(request, sender, now)
        elif isinstance(request, AnswerHeld):
            self.state.long_poll.make_due(request.member_id, sender, now.steady_ms)
        else:
            self._submit_command(request, sender, now)

    def _submit_ask(self, ask: MemberAsk, sender: Address, now: Now) -> None:
        if (reply := answer_ask(self.group, self.state.ledger, ask)) is None:
            return self.submit(ask.request, sender, now)
        return self.state.answer(sender, reply)

    def _submit_command(self, request: Any, sender: Address, now: Now) -> None:  # noqa: ANN401
        translated = self._calls and self._calls.translate(request, self.state.space, now)
        if isinstance(translated, Reply):
            self.state.answer(sender, translated)
            return
        command = cast("Command", translated or request)
        if isinstance(command, EndMember):
            with suppress(NoSpaceError):  # then its session expires as any other
                ended = MemberEnded(command.member_id)
                self.state.outbox.answers += self.classic.decide(ended, now)
        if isinstance(command, DeleteGroup) and not self.classic.coordinator.is_empty:
            # They may be in no record yet, but in the generation that is being made.
            message = "classic members are in the group: delete it once they have left"
            self.state.answer(sender, CommandReply(Error.NON_EMPTY_GROUP, message))
        elif self.state.space.is_low and isinstance(command, FROM_PEOPLE):
            self.state.answer(sender, self._refuse_for_space())
        else:
            self.state.answer(sender, self._decide_or_refuse(command, now))

    def _commit(self, command: CommitOffsets, now: Now) -> CommitReply:
        """Decide which batches count; while space is low none does, and members retry."""
        if self.state.space.is_low:
            return CommitReply(
                (), command.number, Error.COORDINATOR_NOT_AVAILABLE, self.state.space.why
            )
        return self.state.ledger.commit(self.group, command, now.wall_ms)

    def _refuse_for_space(self) -> CommandReply:
        return CommandReply(Error.COORDINATOR_NOT_AVAILABLE, self.state.space.refusal())

    # -- heartbeats

    def _submit_heartbeat(self, request: Heartbeat, sender: Address, now: Now) -> None:
        self._heartbeats += 1
        if request.member_epoch == JOIN_EPOCH and not request.member_id:
            request = replace(request, member_id=self._new_id())
        has_orders = bool(self.group.worker_orders) and request.member_epoch != LEAVE_EPOCH
        if has_orders and is_silenced(self.group, request.member_id):
            return
        if self.state.requests.is_stale(request):
            self.state.answer(sender, refuse_stale(self.state.soft, request))
        elif self.state.requests.admits(request):
            if self.state.soft.coordinator_epoch != self.coordinator_epoch:
                self.state.soft = replace(self.state.soft, coordinator_epoch=self.coordinator_epoch)
            with suppress(NoSpaceError):  # unanswered, the member asks again
                self._hold_or_answer(request, sender, now)

    def _hold_or_answer(self, request: Heartbeat, sender: Address, now: Now) -> None:
        """Decide a heartbeat that is new, and answer it unless it may be held."""
        decision = self._decide_heartbeat(request, now.steady_ms, now)
        reply, seat = decision.reply, self.group.members.get(request.member_id)
        if seat is not None and seat.metadata.incarnation != request.incarnation:
            # Another process, which was refused: the member itself may have a request held.
            self.state.answer(sender, reply)
            return
        if seat is not None:
            reply = self.state.quota.throttle(reply, self.settings, now.steady_ms)
        has_news = decision.news or reply is not decision.reply or not self.kind.holds_heartbeats
        if self.kind.is_of_clients:
            answers = self._hold_client(
                request, sender, reply, now, has_news=has_news or request.is_full
            )
            self.state.outbox.answers += answers
            return
        until_ms = now.steady_ms + self.settings.heartbeat_interval_ms
        may_wait = not has_news and (request.member_epoch == JOIN_EPOCH or not request.is_full)
        held = HeldRequest(request, sender, now.steady_ms, until_ms, may_wait)
        if not self.state.long_poll.hold(held, has_news=has_news):
            self.state.answer(sender, reply)

    def _decide_again(self, held: HeldRequest, now: Now) -> tuple[Reply, bool]:
        """Return the answer that a held request would get now, and whether that is news."""
        request = held.request
        if isinstance(request, Heartbeat):
            decision = self._decide_heartbeat(request, held.arrived_ms, now)
            return decision.reply, decision.news
        if isinstance(request, ConsumerGroupHeartbeat):
            return self._decide_client_heartbeat(request, held.arrived_ms, now)
        caller = PendingCall(held.sender, request.number)
        (answer,) = self.classic.decide_call(request, caller, self._new_id(), now)
        return answer.reply, self._is_news(answer.reply)

    def _decide_heartbeat(self, request: Heartbeat, arrived_ms: int, now: Now) -> Decision:
        """Decide a heartbeat; the session that it renews is counted from its arrival."""
        try:
            decision = self._decide(request, now)
        except UnwritableRecordError as error:  # no rule refused what is not encodable
            return refuse_heartbeat(self.state.soft, request, Error.INVALID_REQUEST, str(error))
        reply, settings = decision.reply, self.settings
        if isinstance(reply, HeartbeatReply) and reply.error in SUCCESS:
            member = self.group.members.get(request.member_id)
            if member is not None:
                self.state.timers.members.renew_session(member, settings, arrived_ms)
                if request.member_epoch == JOIN_EPOCH:
                    self.state.timers.members.time_revocation_anew(member, settings, now.steady_ms)
        return decision

    def _call_for_computation(self) -> None:
        """Mark the held request of the member that has to compute, if it has one."""
        if self.state.soft.computation and is_news(self.state.soft, self.group.group_epoch):
            self.state.long_poll.mark(self.state.soft.computation.member_id)

    # -- heartbeats of Kafka's clients, each of which needs an answer

    def repeat(
        self, call: ClassicHeartbeat | ConsumerGroupHeartbeat, sender: Address, now: Now
    ) -> list[AddressedReply] | None:
        """Answer or hold a repeated heartbeat without news; None: it has to be decided.

        This is the fast path: it writes nothing, and causes no other answers than those returned.
        """
        reply = self._repeated(call, now)
        if reply is None:
            return None
        return self._hold_client(call, sender, reply, now, has_news=False)

    def _repeated(self, call: ClassicHeartbeat | ConsumerGroupHeartbeat, now: Now) -> Reply | None:
        if isinstance(call, ConsumerGroupHeartbeat):
            if self._calls is None or (reply := self._calls.repeat(call)) is None:
                return None
            self.state.renew_session(call.member_id, now.steady_ms)
            return reply
        if self.group.members or self.classic.coordinator.phase is not RoundPhase.STABLE:
            return None
        member = call.member_id, call.instance_id, call.generation
        refused = self.classic.coordinator.renew_session(*member, now.steady_ms)
        return None if refused else ClassicHeartbeatReply(Error.NONE, number=call.number)

    def holds(self, member_id: str, sender: Address) -> bool:
        """Return whether a heartbeat of a member is held for this sender."""
        return self.state.long_poll.holds(member_id, sender)

    def end_hold(self, number: int) -> None:
        """Answer a held heartbeat at once, since its client has sent another request."""
        self.state.outbox.answers += self.state.long_poll.end_number(number)

    def _submit_client_heartbeat(
        self, call: ConsumerGroupHeartbeat, sender: Address, now: Now
    ) -> None:
        self._heartbeats += 1
        end = self.group.end
        try:
            reply, has_news = self._decide_client_heartbeat(call, now.steady_ms, now)
        except NoSpaceError:
            message = "the disk of the coordinator is full"
            reply, has_news = self._refuse_client(call, Error.COORDINATOR_NOT_AVAILABLE, message)
        if self._calls is not None and not self.settings.requests_per_second:
            self._calls.remember(call, end, reply)  # else the quota counts each
        self.state.outbox.answers += self._hold_client(call, sender, reply, now, has_news=has_news)

    def _decide_client_heartbeat(
        self, call: ConsumerGroupHeartbeat, arrived_ms: int, now: Now
    ) -> tuple[Reply, bool]:
        """Return the answer to a consumer's heartbeat, and whether it has to leave at once."""
        request = self._calls and self._calls.translate(call, self.state.space, now)
        if isinstance(request, Reply):
            return request, True
        if self._calls is None or not isinstance(request, Heartbeat):
            message = f"Group {self.group.group_id} is not a consumer group."
            return self._refuse_client(call, Error.GROUP_ID_NOT_FOUND, message)
        if not request.member_id and request.member_epoch == JOIN_EPOCH:
            request = replace(request, member_id=self._new_id())
        decision = self._decide_heartbeat(request, arrived_ms, now)
        reply = decision.reply
        if request.member_id in self.group.members:
            reply = self.state.quota.throttle(reply, self.settings, now.steady_ms)
        if not isinstance(reply, HeartbeatReply):
            raise TypeError(f"a heartbeat is answered by {type(reply).__name__}")
        is_same = reply.member_epoch == call.member_epoch and reply.assignment is None
        has_news = decision.news or reply is not decision.reply or not is_same
        return self._calls.answer(call, reply), has_news

    @staticmethod
    def _refuse_client(
        call: ConsumerGroupHeartbeat, error: Error, message: str
    ) -> tuple[Reply, bool]:
        return ConsumerGroupHeartbeatReply(error, message=message, number=call.number), True

    def _hold_client(
        self,
        call: Heartbeat | ClassicHeartbeat | ConsumerGroupHeartbeat,
        sender: Address,
        reply: Reply,
        now: Now,
        *,
        has_news: bool,
    ) -> list[AddressedReply]:
        """Hold the answer to a client's heartbeat, if it may wait; return what is to be sent."""
        if not self.kind.holds_heartbeats:
            return [AddressedReply(sender, reply)]
        is_classic = isinstance(call, ClassicHeartbeat)
        longest_ms = LONGEST_MS if is_classic else self.settings.heartbeat_interval_ms
        held = HeldRequest(call, sender, now.steady_ms, reply=reply)
        return self.state.long_poll.hold_client(held, longest_ms, has_news=has_news)

    # -- classic members

    def _submit_call(self, call: ClassicCall, sender: Address, now: Now) -> None:
        if not self.classic.admits(call):
            return
        caller = PendingCall(sender, call.number)
        try:
            answers = self.classic.decide_call(call, caller, self._new_id(), now)
        except NoSpaceError as error:
            refused = refusal_of(call, Error.COORDINATOR_NOT_AVAILABLE, str(error))
            answers = [caller.reply(refused)]
        if isinstance(call, ClassicHeartbeat) and self.kind.is_of_clients and answers:
            reply = answers[0].reply
            answers = self._hold_client(call, sender, reply, now, has_news=self._is_news(reply))
        self.state.outbox.answers += answers

    def _is_news(self, reply: Reply) -> bool:
        is_fine = isinstance(reply, ClassicHeartbeatReply) and reply.error is Error.NONE
        return not is_fine or self.classic.coordinator.phase is not RoundPhase.STABLE

    # -- time

    def extend_timers(self, late_ms: int) -> None:
        """Extend all timers by the time for which this process was held up."""
        self.state.timers.extend(late_ms)
        self.state.long_poll.extend_timers(late_ms)
        self.classic.extend_timers(late_ms)

    def grant_sessions(self, late_ms: int, now: Now) -> None:
        """Start every member's full session again, after a time without any heartbeats."""
        self.extend_timers(late_ms)
        self.state.timers.grant_sessions(self.settings, now.steady_ms)
        self.classic.coordinator.grant_sessions(now.steady_ms)

    def run_timers(self, now: Now) -> None:
        """Execute all due timers; those that need to write wait until there is space."""
        if not self.state.is_full:
            self._decide_all(self.state.timers.due(self.settings, now), now)
        for held in self.state.long_poll.due(now.steady_ms):
            with suppress(NoSpaceError):  # unanswered, the member asks again
                reply = self._decide_again(held, now)[0] if held.reply is None else held.reply
                self.state.answer(held.sender, reply)
        if not self.state.is_full:
            if not self.classic.is_agreed:
                self.classic.follow_conversion(now)
            self.classic.run_timers(now)
        if self._calls and self._calls.run_timers(self.settings, self.state.space, now):
            self._decide_all([self.kind.removal(self.group)], now)

    def _decide_all(self, due: Iterable[Command], now: Now) -> None:
        """Decide all due commands, each before asking for the next."""
        for command in due:
            try:
                self._decide(command, now)
            except UnwritableRecordError as error:
                # The epochs may be used up. Nothing is changed, and the group goes on.
                LOGGER.critical("%s is not carried out: %s", type(command).__name__, error)

    def next_tick_ms(self, now: Now) -> int:
        """Return when time must pass next, steady clock, unless something is submitted before."""
        timers, looks = self.state.timers, self.kind.looks_regularly
        timed_ms = timers.next_ms(now.steady_ms) if looks else timers.timed_ms()
        due_ms = earliest(timed_ms, self.classic.next_ms())
        if due_ms is not None and self.state.is_full:
            look_ms = now.steady_ms + LOOK_FOR_SPACE_MS
            due_ms = look_ms if looks else max(due_ms, look_ms)
        calls_ms = None if self._calls is None else self._calls.next_ms(self.settings)
        next_ms = earliest(due_ms, self.state.long_poll.next_ms(), calls_ms)
        return now.steady_ms + IDLE_MS if next_ms is None else next_ms

    # -- one decision

    def _decide(self, command: Command, now: Now) -> Decision:
        """Decide by the rules of the kind; some decisions convert the group."""
        state, classic = self.state, self.classic
        is_join = isinstance(command, Heartbeat) and command.member_epoch == JOIN_EPOCH
        if isinstance(command, Heartbeat) and is_join and not classic.coordinator.is_empty:
            decision = classic.upgrade(command, now.wall_ms)
        else:
            decision = self.kind.decide(state.group, state.soft, command, now.wall_ms)
            if state.group.translated:
                decision = classic.or_downgrade(decision, now.wall_ms)
        applied = state.apply(decision, now)
        if is_join or state.group.classic is not None:
            classic.follow_conversion(now)
        return applied

    def _decide_or_refuse(self, command: Command, now: Now) -> Reply:
        """Decide a command; one whose records are not encodable is refused."""
        try:
            return self._decide(command, now).reply
        except NoSpaceError:
            refused = self._refuse_for_space()
            is_install = isinstance(command, Install)
            return InstallReply(refused.error, refused.message) if is_install else refused
        except UnwritableRecordError as error:
            if isinstance(command, Install):
                return self._fail(command, str(error), now)
            return CommandReply(Error.INVALID_REQUEST, str(error))

    def _fail(self, command: Install, error: str, now: Now) -> InstallReply:
        """Record a computation as failed whose result is not encodable."""
        with suppress(NoSpaceError):  # unrecorded, the computation is timed out
            self._decide(replace(command, assignment=None, error=error), now)
        return InstallReply(Error.INVALID_ASSIGNMENT, f"{error}; {KEPT}")

    # -- for a process with many groups

    def remove(self, now: Now) -> CommandReply:
        """Delete a group without members, as DeleteGroups does; ids that were given out end."""
        self.classic.coordinator.hand_over()
        reply = self._decide_or_refuse(self.kind.removal(self.group), now)
        is_gone = isinstance(reply, CommandReply) and reply.error is Error.GROUP_ID_NOT_FOUND
        return CommandReply(Error.NONE) if is_gone else cast("CommandReply", reply)

    def configure(self, command: ConfigureGroup, now: Now) -> CommandReply:
        """Change settings of the group; see `configure_group`."""
        if self.state.space.is_low:
            return self._refuse_for_space()
        return cast("CommandReply", self._decide_or_refuse(command, now))

    def offload(self) -> None:
        """Leave the computing of targets to the process, which does it beside its loop."""
        self.state.soft = replace(self.state.soft, offloads=True)

    def take_computation(self) -> HostComputation | None:
        """Return the pending computation for the process, once; None: there is none."""
        begun = self.state.soft.computation
        if begun is None or begun.member_id != HOST or begun.number == self._handed_out:
            return None
        self._handed_out = begun.number
        assert begun.snapshot is not None  # noqa: S101  # it is made when it begins
        computes = self.state.soft.server_assignors[begun.assignor]
        return HostComputation(begun.number, begun.assignor, computes, begun.snapshot)
