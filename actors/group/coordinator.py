"""One group's coordinator without its process: it decides, and others write and speak.

Many requests share one append. `take` decides each against the state that the ones before
it led to; nothing of it may be said before the records are durable: `offset_entries` and then
`entries` are to be appended, then `outbox` may go out.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any

from ...events.codec import UnwritableRecordError, encode
from ...events.evolve import evolve
from ...events.group import Group
from ...events.log.frame import NewEntry
from ...events.model import MemberState
from ...events.records import (
    CurrentAssignment,
    GroupMetadata,
    MemberMetadata,
    Record,
    Tombstone,
)
from ..messages import (
    JOIN_EPOCH,
    SUCCESS,
    Command,
    CommandReply,
    CommitOffsets,
    CommitReply,
    CommitVerdict,
    Error,
    ExpireRebalance,
    ExpireSession,
    FinishDeletion,
    GroupCommand,
    Heartbeat,
    HeartbeatReply,
    Install,
    InstallReply,
    ReleaseParked,
    Reply,
    RetryAssignor,
    TimeOutAssignor,
    Traffic,
)
from .affected import affected
from .alarms import Alarms
from .commit import commit_offsets
from .compute import commission, is_due, is_news
from .decide import decide
from .desk import Decision, Desk, Settings
from .gate import Gate
from .ledger import OffsetLedger

Address = Any


@dataclass(frozen=True, slots=True)
class Now:
    """One moment on two clocks, in milliseconds: the wall's for records, the other for timers."""

    wall_ms: int
    steady_ms: int


@dataclass(frozen=True, slots=True)
class Asked:
    """A request and who waits for its answer; a host's requests are answered together."""

    request: Heartbeat
    sender: Address
    by_host: bool = False


@dataclass(frozen=True, slots=True)
class Answer:
    """What may be said to whom once the records are durable."""

    to: Address
    reply: Reply
    by_host: bool = False


class Coordinator:
    """Decides for one group; soft state beside it: desk, gate, timers, held requests."""

    def __init__(
        self,
        group: Group,
        settings: Settings,
        ledger: OffsetLedger,
        steady_ms: int,
        new_id: Callable[[], str] = str,
    ) -> None:
        """Take up a group; `new_id` names members of clients that leave that to the group."""
        self.group = group
        self.entries: list[NewEntry] = []
        self.offset_entries: list[NewEntry] = []
        self.outbox: list[Answer] = []
        self._settings = settings
        self._desk = Desk(settings)
        self._ledger = ledger
        self._new_id = new_id
        self._gate = Gate()
        self._held: dict[str, Asked] = {}
        self._heartbeats = 0
        self._stirred: set[str] = set()
        self._sessions: Alarms[str] = Alarms()
        self._rebalances: Alarms[tuple[str, int]] = Alarms()
        self._holds: Alarms[str] = Alarms()
        self._resume(steady_ms)

    def _resume(self, steady_ms: int) -> None:
        """Give every member of the log a full session, and each revocation its full time."""
        for member_id, member in self.group.members.items():
            self._sessions.set(member_id, steady_ms + self._settings.session_timeout_ms)
            self._time_revocation(member.current, member.offset, steady_ms)

    # -- what comes in

    def take(self, command: GroupCommand, sender: Address, now: Now) -> None:
        """Decide a command that somebody waits for."""
        if isinstance(command, Heartbeat):
            self.beat(Asked(command, sender), now)
        else:
            self.outbox.append(Answer(sender, self._decide_or_refuse(command, now)))

    def traffic(self) -> Traffic:
        """Return what went through since the start."""
        return Traffic(self._heartbeats, len(self._held))

    def beat(self, asked: Asked, now: Now) -> None:
        """Decide a heartbeat; what has no news is held for up to a heartbeat interval."""
        self._heartbeats += 1
        if asked.request.member_epoch == JOIN_EPOCH and not asked.request.member_id:
            asked = replace(asked, request=replace(asked.request, member_id=self._new_id()))
        request = asked.request
        if not self._gate.admits(request):
            return
        member_id = request.member_id
        superseded = self._held.pop(member_id, None)
        decision = self._decide(request, now)
        reply = decision.reply
        if isinstance(reply, HeartbeatReply) and reply.error in SUCCESS:
            self._keep_alive(member_id, now)
        may_wait = superseded is not None or not request.is_full
        if not decision.news and (may_wait or request.member_epoch == JOIN_EPOCH):
            self._held[member_id] = asked
            self._holds.set(member_id, now.steady_ms + self._settings.heartbeat_interval_ms)
        else:
            self.outbox.append(Answer(asked.sender, reply, asked.by_host))

    def commit(self, command: CommitOffsets, sender: Address, now: Now) -> None:
        """Decide which batches count."""
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
        """Do what is due by now."""
        for member_id in self._sessions.due(now.steady_ms):
            acknowledged = self._gate.acknowledged(member_id)
            self._decide(ExpireSession(member_id, acknowledged), now)
        for member_id, offset in self._rebalances.due(now.steady_ms):
            acknowledged = self._gate.acknowledged(member_id)
            self._decide(ExpireRebalance(member_id, offset, acknowledged), now)
        self._pass_wall_time(now)
        for member_id in self._holds.due(now.steady_ms):
            if asked := self._held.pop(member_id, None):
                reply = self._decide(asked.request, now).reply
                self.outbox.append(Answer(asked.sender, reply, asked.by_host))

    def _pass_wall_time(self, now: Now) -> None:
        group, computation = self.group, self._desk.computation
        deadline_ms = group.next_deadline_ms
        if deadline_ms is not None and deadline_ms <= now.wall_ms:
            self._decide(ReleaseParked(), now)
        if 0 < group.target.retry_at_ms <= now.wall_ms:
            self._decide(RetryAssignor(), now)
        if computation is not None and computation.deadline_ms <= now.wall_ms:
            self._decide(TimeOutAssignor(), now)
        for name in [each.connector for each in group.connectors.values() if each.deleting]:
            if not self._ledger.has_unpublished(name):
                self._decide(FinishDeletion(name), now)

    def settle(self, now: Now) -> None:
        """Answer the held requests that have news, until none has any more."""
        self._call_for_computation(now)
        while self._stirred:
            member_id = self._stirred.pop()
            asked = self._held.get(member_id)
            if asked is None:
                continue
            decision = self._decide(asked.request, now)
            if decision.news:
                self._held.pop(member_id, None)
                self.outbox.append(Answer(asked.sender, decision.reply, asked.by_host))
            self._call_for_computation(now)

    # -- one decision

    def _decide(self, command: Command, now: Now) -> Decision:
        """Decide, and change the group by it; raises `UnwritableRecordError`, nothing changed."""
        decision = decide(self.group, self._desk, command, now.wall_ms)
        entries = [encode(record) for record in decision.records]
        self._desk = decision.desk
        if entries:
            self.entries += entries
            self._write(decision.records, now)
        return decision

    def _decide_or_refuse(self, command: GroupCommand, now: Now) -> Reply:
        """Answer a command; what the log could not hold is refused, whoever sent it."""
        try:
            return self._decide(command, now).reply
        except UnwritableRecordError as error:
            if isinstance(command, Install):
                return InstallReply(Error.INVALID_REQUEST, str(error))
            return CommandReply(Error.INVALID_REQUEST, str(error))

    def _write(self, records: Iterable[Record], now: Now) -> None:
        if self._held:
            self._stirred.update(affected(self.group, records))
        for record in records:
            evolve(self.group, record, self.group.end)
            if type(record) is GroupMetadata:
                self._desk = replace(self._desk, timed_out=frozenset())
            if type(record) is CurrentAssignment:
                self._time_revocation(record, self.group.end - 1, now.steady_ms)
            elif isinstance(record, Tombstone) and record.kind is MemberMetadata:
                self._forget(str(record.key[0]))

    def _call_for_computation(self, now: Now) -> None:
        """See that somebody computes, and that it hears of it."""
        if not is_due(self.group):
            return
        self._desk = commission(self.group, self._desk, now.wall_ms)
        chosen = self._desk.computation.member_id if self._desk.computation else ""
        if chosen in self._held and is_news(self._desk, self.group.group_epoch):
            self._stirred.add(chosen)

    # -- timers

    def _keep_alive(self, member_id: str, now: Now) -> None:
        if member_id in self.group.members:
            self._sessions.set(member_id, now.steady_ms + self._settings.session_timeout_ms)

    def _time_revocation(self, current: CurrentAssignment, offset: int, steady_ms: int) -> None:
        """Time a revocation from the record that asks for it; a later record calls it off."""
        if current.state is MemberState.UNREVOKED:
            timeout_ms = self.group.members[current.member_id].metadata.rebalance_timeout_ms
            self._rebalances.set((current.member_id, offset), steady_ms + timeout_ms)

    def _forget(self, member_id: str) -> None:
        self._sessions.cancel(member_id)
        held = self._held.get(member_id)
        if held is not None and held.request.member_epoch == JOIN_EPOCH:
            del self._held[member_id]  # a join may not outlive the seat: its process asks again
        self._gate.forget(member_id)
