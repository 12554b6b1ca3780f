"""A group that evolves by decisions, with its soft state, and with what is not written yet.

This is the one place where a decision is carried out. All of it happens, or nothing:

1. its records are laid out and encoded; what cannot be written, for its size or for lack of space,
   raises here;
2. the group evolves by each of them, by the same fold as in recovery, once `Legality` has
   checked that it may follow;
3. what is soft follows: timers, held heartbeats, the newest requests of their senders.

The entries wait in the outbox until the process writes them.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Final, NamedTuple

from ...events.entries.codec import encode
from ...events.evolve import evolve
from ...events.group import Group
from ...events.log.frame import NewEntry
from ...events.log.space import DiskSpace, NoSpaceError
from ...events.record_parts import Layout, lay_out
from ...events.records import ClassicGroup, MemberMetadata, Tombstone
from ..assignors.built_in.catalogue import Computes
from ..messages.commands import Address, AddressedReply, CommandReply, Reply
from ..messages.computing import Snapshot
from ..messages.members import HeartbeatReply
from ..timing import Now
from .computing.compute import without_host
from .host import ENOUGH_SPACE
from .kind import GroupKind
from .members.commit import OffsetLedger
from .members.long_poll import LongPoll
from .members.request_filter import Quota, RequestFilter
from .orders.configuration import open_soft_state
from .state.legality import Legality
from .state.settings import GroupSettings
from .state.soft_state import Decision, SoftState
from .timers import GroupTimers

NOBODY: Final = None
"""The sender of requests that need no answer."""


@dataclass(slots=True)
class Outbox:
    """The entries and answers that were decided since the last hand-out."""

    entries: list[NewEntry] = field(default_factory=list[NewEntry])
    """For the control log, in the order in which the group has evolved by them."""
    answers: list[AddressedReply] = field(default_factory=list[AddressedReply])
    """The answers to send once all of these are durable."""


class HostComputation(NamedTuple):
    """A target that the process has to compute beside its loop."""

    number: int
    assignor: str
    computes: Computes
    snapshot: Snapshot


class EvolvingGroup:
    """A group ahead of its log by the records that are not written yet, and its soft state."""

    def __init__(
        self,
        group: Group,
        kind: GroupKind,
        settings: GroupSettings,
        ledger: OffsetLedger,
        steady_ms: int,
        coordinator_epoch: int,
    ) -> None:
        """Begin with a group that was rebuilt from its log; its members have full sessions."""
        self.group, self.kind, self.ledger = group, kind, ledger
        self.space = ENOUGH_SPACE
        """How much may be written, as of the last look at the disk."""
        self.is_full = False
        """Whether nothing may be written at all."""
        self._full_since_ms = 0
        """Since when that is so, steady clock."""
        self.outbox = Outbox()
        """What the process is handed next."""
        self.requests = RequestFilter(group.members, coordinator_epoch)
        """The newest request of each sender of heartbeats."""
        self.quota = Quota()
        """How many heartbeats each member may send."""
        if not kind.parks_lost_work:
            settings = replace(settings, max_delay_ms=0)
        facts = ledger.facts(self.requests.has_acknowledged)
        soft = open_soft_state(settings, group, coordinator_epoch, facts, kind.own_settings)
        self.soft: SoftState = replace(soft, server_assignors=kind.server_assignors)
        self.long_poll = LongPoll(group.members)
        """The held heartbeats."""
        self.timers = GroupTimers(group, self.soft.settings, steady_ms)
        """When something is due: sessions, deadlines, promises of the target."""
        self._legality = Legality()
        """Checks that a record may follow, before the group evolves by it."""

    def answer(self, to: Address, reply: Reply) -> None:
        """Queue an answer, which leaves once everything decided so far is durable."""
        if to is not NOBODY:
            self.outbox.answers.append(AddressedReply(to, reply))

    def set_disk_space(self, space: DiskSpace, now: Now) -> int:
        """Record how much may be written; with space again, members have full sessions.

        Without any, no computed target can be written: it is computed anew then. Returns for how
        long nothing could be written until now, in milliseconds.
        """
        was_full, self.space, self.is_full = self.is_full, space, space.is_out
        if self.is_full and not was_full:
            self._full_since_ms = now.steady_ms
        if self.is_full or not was_full:
            return 0
        self.timers.grant_sessions(self.soft.settings, now.steady_ms)
        self.apply(Decision(without_host(self.soft)), now)
        return now.steady_ms - self._full_since_ms

    def apply(self, decision: Decision, now: Now) -> Decision:
        """Evolve the group by a decision, and queue its records for the logs.

        Returns the decision with the end of the log in its answer. Raises `NoSpaceError` or
        `UnwritableRecordError`, with nothing changed.
        """
        laid_out = lay_out(self.group.record_parts, decision.records)
        entries = [encode(part) for laid in laid_out for part in laid.parts]
        if entries and self.is_full:
            raise NoSpaceError(self.space.refusal())
        if decision.offset_records:
            self.ledger.write(decision.offset_records)
        if decision.soft is not self.soft:
            if decision.soft.settings is not self.soft.settings:
                self.long_poll.announce_interval(self.group.members)
            self.soft = self.timers.follow_soft_state(decision.soft, now.steady_ms)
        if not entries:
            return decision
        begin = self.group.end
        self._write(laid_out, now)
        self.timers.follow_promises(now)
        self.outbox.entries += entries
        return _at_log_end(decision, begin, self.group.end)

    def _write(self, laid_out: Sequence[Layout], now: Now) -> None:
        records = [laid.whole for laid in laid_out]
        self.long_poll.follow(self.group, records, catches_up=not self.kind.is_of_clients)
        for record, parts in laid_out:
            self._legality.check(self.group, record)
            for part in (*parts[:-1], record):  # the whole one, which its head only names
                evolve(self.group, part, self.group.end)
            self.timers.follow_record(record, now.steady_ms)
            if isinstance(record, Tombstone) and record.kind is MemberMetadata:
                self.requests.forget(str(record.key[0]))
                self.quota.forget(str(record.key[0]))

    def write_generation(self, record: ClassicGroup) -> None:
        """Evolve the group by a generation, after the tombstones of its kind's former facts.

        Raises `NoSpaceError`, with nothing changed.
        """
        if self.is_full:
            raise NoSpaceError(self.space.refusal())
        for each in (*self.kind.translation.bury(self.group), record):
            entry = encode(each)
            self._legality.check(self.group, each)
            evolve(self.group, each, self.group.end)
            self.outbox.entries.append(entry)
        self.timers.members.forget_others({each.member_id for each in record.members})
        self.long_poll.mark_all()

    def renew_session(self, member_id: str, steady_ms: int) -> None:
        """Restart a member's session, if it is still in the group."""
        if member := self.group.members.get(member_id):
            self.timers.members.renew_session(member, self.soft.settings, steady_ms)

    def grant_session(self, member_id: str, steady_ms: int) -> None:
        """Restart the session of a member that has not asked for it."""
        if member := self.group.members.get(member_id):
            self.timers.members.grant_session(member, self.soft.settings, steady_ms)


def _at_log_end(decision: Decision, begin: int, end: int) -> Decision:
    """Return a decision with the log's end in its reply: a record may be several entries."""
    reply = decision.reply
    if isinstance(reply, HeartbeatReply | CommandReply) and begin < reply.log_offset != end:
        return replace(decision, reply=replace(reply, log_offset=end))
    return decision
