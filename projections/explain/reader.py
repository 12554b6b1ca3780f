"""Reads the epochs of a group from its control log alone, in one pass.

The history, explanations and stories all come from this fold, online and offline (`cache.py` keeps
its results). In a log that was trimmed, the epochs begin after the first target that is left: what
that one changed is not known any more. Of what is gone there is a summary.

`EpochReader` evolves the group, begins an epoch with each rise, and answers epochs with the target
that comes for them. `LogNotes` follows everything else, for what explains epochs later. Each record
goes to several folds, each of which answers one question: when and why an epoch rose (`causes`),
who was away (`absences`), how work changed hands (`following`), which generations of classic
members there were (`generations`), and who the members are (`causes/clients`).
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Final, Protocol

from ...events.entries.codec import decode, restore
from ...events.evolve import evolve
from ...events.group import Group
from ...events.log.frame import Entry
from ...events.log.reader import Slice
from ...events.model import GroupState, GroupType, Why
from ...events.record_parts import RecordParts
from ...events.records import (
    ClassicGroup,
    CurrentAssignment,
    GroupMetadata,
    MemberMetadata,
    Record,
    ScheduledRebalance,
    TargetAssignment,
    TaskStatus,
    Tombstone,
)
from .absences import Absences
from .causes.changes import EpochChanges
from .causes.clients import GoneMembers, KafkaClient, client_of
from .causes.detection import Detection, Detector
from .causes.owners import OwnerTerm, OwnerTerms
from .causes.settings import SettingChanges
from .diff import Owners, TargetChange
from .epochs import Attempt, EpochReading, EpochReport
from .following import Handovers
from .generations import Generations, ReadShares, read_no_shares
from .handovers import FollowedHandover, Handover

OnRecord = Callable[[Record, TargetChange | None, int], None]
"""Gets each record after the group has evolved by it, the last target's change, and the time."""


def ignore_record(_: Record, __: TargetChange | None, ___: int) -> None:
    """Ignore a record."""


FIRST_EPOCH: Final = 1
"""The epoch with which each life of a group begins."""


class EpochLog(Protocol):
    """A control log, or the part of one group in a shared log."""

    @property
    def log_id(self) -> str:
        """The id of the log, which names its group or shard."""
        ...

    def low(self) -> int:
        """Return the offset of the first entry that was not trimmed."""
        ...

    def load(self) -> Slice:
        """Return the latest entry of every key."""
        ...

    def tail(self, start: int) -> Iterator[list[Entry]]:
        """Yield entries from an offset on, in batches."""
        ...


UPGRADED: Final = (
    "converted from the classic protocol, because {} joined by the {} protocol; members that"
    " keep {}: {}, from generation {}"
)
OF_CONSUMERS: Final = ("consumer", "their partitions")
OF_WORKERS: Final = ("connect", "their work")


class LogNotes:
    """Facts of a group beside its epochs and targets, as far as its log was read."""

    def __init__(self, group: Group, owners: Owners, read_shares: ReadShares) -> None:
        """Start empty; the owner of `group` and `owners` changes them."""
        self._group, self._owners = group, owners
        urls: dict[str, str] = {}
        self._urls = urls
        """The url of a member, by member id; its id where it has none."""
        self._detector = Detector(urls)
        self._changed, self._settings = EpochChanges(), SettingChanges()
        self.owners = OwnerTerms()
        self.absences = Absences(urls)
        self.handovers = Handovers(owners, urls)
        self._generations = Generations(group.classic, read_shares)
        self._gone = GoneMembers(urls, self._generations.clients, *self._detector.by_name)
        self._protocol, self._kept = OF_WORKERS
        """The group's own protocol, and what its members keep in a conversion."""

    @property
    def clients(self) -> Mapping[str, KafkaClient]:
        """The group's present Kafka clients, and those that left it last, by member id."""
        return self._generations.clients

    @property
    def put_together(self) -> Collection[str]:
        """The connectors that raised the epoch that was explained last, if they are several."""
        return self._changed.put_together

    def apply_latest(self, entries: Iterable[Entry]) -> None:
        """Apply the latest entry of each key; raises `CodecError`."""
        parts = RecordParts()
        for entry in entries:
            record = decode(entry)
            whole = None if record is None else parts.assemble(record)
            if whole is not None:
                self.apply(whole, entry.timestamp_ms)
        self._settings.take()  # of which epoch they are is not known

    def apply(self, record: Record, now_ms: int) -> None:
        """Apply the next record, after the group has evolved by it."""
        if isinstance(record, TaskStatus):
            self._detector.apply_status(record, now_ms)
            self.handovers.apply_status(record)
            return
        if isinstance(record, Tombstone) and record.kind is ClassicGroup:
            self._owners.last.update(self._generations.end())
        self._gone.apply(record)
        if isinstance(record, MemberMetadata):
            self._urls[record.member_id] = record.worker_url
            if client := client_of(record):
                self._generations.clients[record.member_id] = client
        self._detector.apply(record, now_ms)
        self._changed.apply(record)
        self._settings.apply(record)
        self.owners.apply(record, now_ms)
        self.absences.apply(record, now_ms)
        self.handovers.apply(record, now_ms)

    def explain_rise(self, bump: GroupMetadata) -> tuple[Detection, str]:
        """Return how the cause of an epoch was detected, and what had changed."""
        told = filter(None, (self._describe(bump), self._settings.take()))
        return self._detector.detect(bump), "; ".join(told)

    def _describe(self, bump: GroupMetadata) -> str:
        if bump.cause.why is not Why.GROUP_UPGRADED:
            return self._changed.describe(bump)
        who, count = bump.cause.subject, len(self._group.translated)
        client = self.clients.get(who)
        who = client.name(who) if client else who
        return UPGRADED.format(who, self._protocol, self._kept, count, self._generations.ended)

    def form_generation(self, record: ClassicGroup) -> EpochReading | None:
        """Apply a generation; return its epoch if it begins, None if it is now assigned."""
        is_of_consumers = record.protocol_type == OF_CONSUMERS[0]
        self._protocol, self._kept = OF_CONSUMERS if is_of_consumers else OF_WORKERS
        if record.cause.why is Why.GROUP_DOWNGRADED:
            self._generations.inherit(self._owners.last)
        begun = self._generations.apply(record, self._detector, self._protocol)
        if begun is not None and (changed := self._settings.take()):
            begun.changed = "; ".join(filter(None, (begun.changed, changed)))
        return begun


class EpochReader:
    """Folds a control log entry by entry into readings of its epochs."""

    def __init__(
        self,
        group_id: str = "",
        before: Iterable[Entry] = (),
        low: int = 0,
        read_shares: ReadShares = read_no_shares,
        on_record: OnRecord = ignore_record,
    ) -> None:
        """Start before the first entry; `before` has the latest entry of each key below `low`.

        `read_shares` reads what leaders assign; `on_record` gets each record. Raises `CodecError`.
        """
        self._on_record = on_record
        earlier = list(before)
        self._group = restore(group_id, earlier, low) if low else Group(group_id)
        self._owners = Owners(self._group)
        self._knows_owners = not low or self._group.assignment_epoch > 0
        self._notes = LogNotes(self._group, self._owners, read_shares)
        self._unanswered: list[EpochReading] = []
        """The epochs without a target yet, in order."""
        self._answered: list[EpochReading] = []
        """The epochs that `_change` answers, which not all members have reached yet."""
        self._done: list[EpochReading] = []
        """The epochs that are complete and not yet returned."""
        self._last_epoch = self.lives = 0
        """How often the group's epochs began at 1 again, after it was deleted."""
        self.is_known_before = bool(earlier)
        """Whether anything is left of what was written before `low`."""
        self._change: TargetChange | None = None
        """The change by the last target; None: there is none, or it is unknown."""
        self._target_at = -1
        """The offset of the record that `_change` was read from."""
        self._notes.apply_latest(earlier)

    @classmethod
    def of(
        cls,
        log: EpochLog,
        low: int,
        read_shares: ReadShares = read_no_shares,
        on_record: OnRecord = ignore_record,
    ) -> "EpochReader":
        """Return a reader of a log that begins at `low`; raises `LogError`, `CodecError`."""
        if not low:
            return cls(log.log_id, read_shares=read_shares, on_record=on_record)
        before = (entry for entry in log.load().entries if entry.offset < low)
        return cls(log.log_id, before, low, read_shares, on_record)

    @property
    def group(self) -> Group:
        """The group as far as its log was read, without the statuses."""
        return self._group

    @property
    def clients(self) -> Mapping[str, KafkaClient]:
        """The group's present Kafka clients, and those that left it last, by member id."""
        return self._notes.clients

    @property
    def owners(self) -> Collection[OwnerTerm]:
        """The nodes that owned the group last, in order."""
        return self._notes.owners.lines

    @property
    def followed(self) -> Collection[FollowedHandover]:
        """The latest handovers of the group, in order."""
        return self._notes.handovers.latest

    def apply(self, entry: Entry) -> list[EpochReading]:
        """Apply the next entry; return the epochs whose target all members have reached.

        Their readings may still change: a worker's status may come late. Raises `CodecError`, and
        changes nothing then.
        """
        record = decode(entry)
        if isinstance(record, TaskStatus):  # most entries are, and change no epoch
            self._notes.apply(record, entry.timestamp_ms)
            self._on_record(record, None, entry.timestamp_ms)
        elif record is not None:
            self._apply_record(record, entry)
        done, self._done = self._done, []
        return done

    def unfinished(self) -> list[EpochReading]:
        """Return the present state of the epochs that were not returned yet."""
        return [*self._answered, *self._unanswered]

    def handovers(self) -> Iterator[Handover]:
        """Yield the latest handovers of the group, in order, as far as known now."""
        return (each.handover for each in self.followed)

    def _apply_record(self, record: Record, entry: Entry) -> None:
        group = self._group
        whole = group.record_parts.assemble(record)
        evolve(group, record, entry.offset)
        if whole is None:
            return
        self._notes.apply(whole, entry.timestamp_ms)
        if isinstance(whole, GroupMetadata):
            self._apply_bump(whole)
        elif isinstance(whole, ClassicGroup):
            self._apply_generation(whole)
        elif isinstance(whole, TargetAssignment):
            self._apply_target(group.target, entry)
        elif isinstance(whole, ScheduledRebalance) and entry.offset == self._target_at + 1:
            self._apply_schedule(whole)
        elif isinstance(whole, MemberMetadata) and whole.succession is not None:
            self._owners.succeed(group, whole)
        elif isinstance(whole, CurrentAssignment):
            self._apply_step(entry)
        self._on_record(whole, self._change, entry.timestamp_ms)

    def _apply_bump(self, bump: GroupMetadata) -> None:
        self._begin_epoch(bump.group_epoch)
        detection, changed = self._notes.explain_rise(bump)
        report = EpochReport(bump, type=self._group.type)
        told, together = (report, detection, changed, self.clients), self._notes.put_together
        self._unanswered.append(EpochReading(*told, put_together=together))

    def _apply_generation(self, record: ClassicGroup) -> None:
        """Begin a generation, or record that its leader has assigned.

        A new generation ends all epochs before it, which no target will answer any more.
        """
        begun = self._notes.form_generation(record)
        if begun is not None:
            self._begin_epoch(record.generation)
            self._done += self.unfinished()
            self._answered, self._unanswered, self._change = [], [begun], None

    def _begin_epoch(self, epoch: int) -> None:
        """Begin an epoch; one out of order belongs to another life of the group."""
        if epoch <= self._last_epoch:
            self.lives += 1
            self._answered, self._unanswered, self._change = [], [], None
        if epoch <= max(self._last_epoch, FIRST_EPOCH):  # nobody has had anything before it
            self._owners.clear()
            self._knows_owners = True
        self._last_epoch = epoch

    def _apply_target(self, target: TargetAssignment, entry: Entry) -> None:
        time_ms = target.time_ms or entry.timestamp_ms
        if target.error:
            self._apply_failure(Attempt(target.assignment_epoch, time_ms, target.error))
            return
        self._done += self._answered
        epoch = target.assignment_epoch
        answered = [each for each in self._unanswered if each.report.group_epoch <= epoch]
        self._unanswered = self._unanswered[len(answered) :]
        self._done += [each for each in answered if each.report.generation is not None]
        answered = [each for each in answered if each.report.generation is None]
        bumps = [each.report.bump for each in answered]
        group, owners = self._group, self._owners
        change = owners.compare(group, target, time_ms, bumps) if self._knows_owners else None
        absences = self._notes.absences.apply_target(target, entry.timestamp_ms)
        are_partitions = group.type is GroupType.CONSUMER
        handovers = self._notes.handovers.apply_target(
            target, change, are_partitions=are_partitions
        )
        owners.move(group)
        self._notes.handovers.forget(target)
        for each in answered:
            each.handovers, each.absences = handovers, absences
        self._answered = answered if self._knows_owners else []
        self._knows_owners = True
        self._target_at = entry.offset
        self._answer_with(change)

    def _apply_failure(self, attempt: Attempt) -> None:
        for each in self._unanswered:
            is_older = each.report.group_epoch <= attempt.assignment_epoch
            if is_older and each.report.generation is None:
                attempts = (*each.report.attempts, attempt)
                each.report = replace(each.report, attempts=attempts)

    def _answer_with(self, change: TargetChange | None) -> None:
        self._change = change
        for each in self._answered:
            each.report = replace(each.report, target_change=change)

    def _apply_schedule(self, record: ScheduledRebalance) -> None:
        """Add the schedule record that follows the target in its batch."""
        if self._change is not None:
            at_ms = record.again_at_ms or None
            self._answer_with(replace(self._change, parked=record.parked, next_moves_at_ms=at_ms))

    def _apply_step(self, entry: Entry) -> None:
        group, change = self._group, self._change
        if change is None or group.state is not GroupState.STABLE:
            return
        if group.assignment_epoch == change.assignment_epoch:
            self._answer_with(replace(change, settled_ms=entry.timestamp_ms))
            self._done += self._answered
            self._answered, self._change = [], None


def read_all(log: EpochLog, read_shares: ReadShares = read_no_shares) -> Iterator[EpochReading]:
    """Yield all epochs of a log; raises `LogError`, `CodecError`."""
    low = log.low()
    reader = EpochReader.of(log, low, read_shares)
    for entries in log.tail(low):
        for entry in entries:
            yield from reader.apply(entry)
    yield from reader.unfinished()
