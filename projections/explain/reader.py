"""Reads the epochs of a group from its control log alone, in one pass: the one history.

The history, explanations and stories are all told by this fold, online and offline (`cache.py`
keeps what it told). A control log keeps its history for ever by default, so that this works for
epochs of long ago. Of a log that was trimmed, the epochs begin behind the first target that is
left: what that one changed cannot be known any more.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from operator import attrgetter
from typing import Final

from ...events.connectors import TaskStatus
from ...events.entries.codec import decode, restore
from ...events.evolve import evolve
from ...events.group import Group
from ...events.log.frame import Entry
from ...events.log.reader import LogReader
from ...events.model import GroupState, Why
from ...events.records import (
    ClassicGroup,
    CurrentAssignment,
    GroupMetadata,
    MemberMetadata,
    Record,
    ScheduledRebalance,
    TargetAssignment,
)
from ...events.shards import Shards
from .absences import Absence, Absences
from .causes import Changed, Detection, Detector
from .diff import Homes, TargetChange
from .epochs import Attempt, EpochReport, Explanation, GenerationReport
from .following import Handovers
from .handovers import FollowedHandover, Handover

UPGRADED: Final = (
    "converted from the classic protocol, because {} joined by the connect protocol; members that"
    " keep their work: {}, from generation {}"
)
CONVERTED: Final = (
    "converted to the classic protocol, because {} was the last that spoke the connect protocol"
)


@dataclass(slots=True)
class EpochReading:
    """One group epoch as far as the log was read: records that follow go on adding to it."""

    report: EpochReport
    detection: Detection
    changed: str
    handovers: Sequence[FollowedHandover] = ()
    """Of the target that answers it."""
    absences: Sequence[Absence] = ()
    """Under the target that answers it."""

    def explain(self) -> Explanation:
        """Return what is known of the epoch by now."""
        handovers = sorted((each.handover for each in self.handovers), key=attrgetter("resource"))
        return Explanation(
            self.report, self.detection, tuple(handovers), self.changed, tuple(self.absences)
        )


class EpochReader:
    """Folds a control log entry by entry into readings of its epochs."""

    def __init__(self, group_id: str = "", before: Iterable[Entry] = (), low: int = 0) -> None:
        """`before` is what is left of the entries before `low`: the latest of each key.

        Raises `CodecError`.
        """
        earlier = list(before)
        self._group = restore(group_id, earlier, low) if low else Group(group_id)
        self._homes = Homes(self._group)
        self._knows_homes = not low or self._group.assignment_epoch > 0
        self._urls: dict[str, str] = {}
        """The url of every member that there ever was, by member id; its id where it has none."""
        self._detector = Detector(self._urls)
        self._changed = Changed()
        self._absences = Absences(self._urls)
        self._handovers = Handovers(self._homes, self._urls)
        self._unanswered: list[EpochReading] = []
        """In order."""
        self._answered: list[EpochReading] = []
        """Answered by `_change`, which the group has not settled on yet."""
        self._done: list[EpochReading] = []
        self._generation = self._group.classic.generation if self._group.classic else 0
        """The last generation of classic members that the log tells of."""
        self._formed: EpochReading | None = None
        """That generation; None where it lies before what is read."""
        self._converted = ""
        """How the group has become classic, until the next generation tells of it."""
        self._change: TargetChange | None = None
        self._aimed_at = -1
        """The offset of the record that `_change` was read from."""
        shards = Shards()
        for entry in earlier:
            record = decode(entry)
            whole = None if record is None else shards.take(record)
            if whole is not None:
                self._note(whole, entry)

    @classmethod
    def of(cls, log: LogReader, low: int) -> "EpochReader":
        """Return what reads a log that begins at `low`; raises `LogError`, `CodecError`."""
        if not low:
            return cls(log.log_id)
        before = (entry for entry in log.load().entries if entry.offset < low)
        return cls(log.log_id, before, low)

    def take(self, entry: Entry) -> list[EpochReading]:
        """Take the next entry; return the epochs of which the group is done with the target.

        Their readings go on: a worker's word may come late. Raises `CodecError`, and is then as
        it was.
        """
        record = decode(entry)
        if isinstance(record, TaskStatus):  # most entries are, and change no epoch
            self._note(record, entry)
        elif record is not None:
            self._hear(record, entry)
        done, self._done = self._done, []
        return done

    def rest(self) -> list[EpochReading]:
        """Return the epochs that were not returned yet, as they are now."""
        return [*self._answered, *self._unanswered]

    def handovers(self) -> Iterator[Handover]:
        """Yield the latest handovers of the group, in order, each as far as it is known now."""
        return (each.handover for each in self._handovers.latest)

    def _hear(self, record: Record, entry: Entry) -> None:
        group = self._group
        whole = group.log_shards.take(record)
        evolve(group, record, entry.offset)
        if whole is None:
            return
        self._note(whole, entry)
        if isinstance(whole, GroupMetadata):
            detection, changed = self._detector.detect(whole), self._describe(whole)
            self._unanswered.append(EpochReading(EpochReport(whole), detection, changed))
        elif isinstance(whole, ClassicGroup):
            self._form(whole)
        elif isinstance(whole, TargetAssignment):
            self._aim(group.target, entry)
        elif isinstance(whole, ScheduledRebalance) and entry.offset == self._aimed_at + 1:
            self._park(whole)
        elif isinstance(whole, MemberMetadata) and whole.succession is not None:
            self._homes.succeed(group, whole)
        elif isinstance(whole, CurrentAssignment):
            self._settle(entry)

    def _note(self, record: Record, entry: Entry) -> None:
        """Take down what may explain an epoch later."""
        now_ms = entry.timestamp_ms
        if isinstance(record, TaskStatus):
            self._detector.take_status(record, now_ms)
            self._handovers.take_status(record)
            return
        if isinstance(record, MemberMetadata):
            self._urls[record.member_id] = record.worker_url
        self._detector.take(record, now_ms)
        self._changed.take(record)
        self._absences.take(record, now_ms)
        self._handovers.take(record, now_ms)

    def _describe(self, bump: GroupMetadata) -> str:
        if bump.cause.why is not Why.GROUP_UPGRADED:
            return self._changed.describe(bump)
        members = len(self._group.translated)
        return UPGRADED.format(bump.cause.subject, members, self._generation)

    def _form(self, record: ClassicGroup) -> None:
        """Begin a generation, or learn that its leader has assigned.

        No target answers the epochs before it any more: the members that there are, are others. The
        one that a connect group leaves behind is no epoch of its own: the next one tells of it.
        """
        if record.cause.why is Why.GROUP_DOWNGRADED:
            self._generation, self._formed = record.generation, None
            self._converted = CONVERTED.format(record.cause.subject)
        elif record.generation > self._generation:
            self._generation = record.generation
            bump = GroupMetadata(record.generation, record.cause, record.time_ms)
            report = EpochReport(bump, generation=_generation_of(record))
            self._formed = EpochReading(report, self._detector.detect(bump), self._converted)
            self._converted = ""
            self._done += self.rest()
            self._answered, self._unanswered, self._change = [], [self._formed], None
        elif self._formed is not None:
            report = self._formed.report
            told = _generation_of(record, report.generation)
            self._formed.report = replace(report, generation=told)

    def _aim(self, target: TargetAssignment, entry: Entry) -> None:
        time_ms = target.time_ms or entry.timestamp_ms
        if target.error:
            self._fail(Attempt(target.assignment_epoch, time_ms, target.error))
            return
        self._done += self._answered
        epoch = target.assignment_epoch
        answered = [each for each in self._unanswered if each.report.group_epoch <= epoch]
        self._unanswered = self._unanswered[len(answered) :]
        self._done += [each for each in answered if each.report.generation is not None]
        answered = [each for each in answered if each.report.generation is None]
        bumps = [each.report.bump for each in answered]
        group, homes = self._group, self._homes
        change = homes.compare(group, target, time_ms, bumps) if self._knows_homes else None
        absences = self._absences.aim(target, entry.timestamp_ms)
        handovers = self._handovers.aim(target, change)
        homes.move(group)
        self._handovers.forget(target)
        for each in answered:
            each.handovers, each.absences = handovers, absences
        self._answered = answered if self._knows_homes else []
        self._knows_homes = True
        self._aimed_at = entry.offset
        self._answer_with(change)

    def _fail(self, attempt: Attempt) -> None:
        for each in self._unanswered:
            is_older = each.report.group_epoch <= attempt.assignment_epoch
            if is_older and each.report.generation is None:
                attempts = (*each.report.attempts, attempt)
                each.report = replace(each.report, attempts=attempts)

    def _answer_with(self, change: TargetChange | None) -> None:
        self._change = change
        for each in self._answered:
            each.report = replace(each.report, target_change=change)

    def _park(self, record: ScheduledRebalance) -> None:
        """Take what is left for later from the record that follows the target in its batch."""
        if self._change is not None:
            at_ms = record.again_at_ms or None
            self._answer_with(replace(self._change, parked=record.parked, next_moves_at_ms=at_ms))

    def _settle(self, entry: Entry) -> None:
        group, change = self._group, self._change
        if change is None or group.state is not GroupState.STABLE:
            return
        if group.assignment_epoch == change.assignment_epoch:
            self._answer_with(replace(change, settled_ms=entry.timestamp_ms))
            self._done += self._answered
            self._answered, self._change = [], None


def _generation_of(
    record: ClassicGroup, before: GenerationReport | None = None
) -> GenerationReport:
    """Return a generation as its latest record tells it; it was assigned when the first said so."""
    assigned_ms = before.assigned_ms if before else None
    if assigned_ms is None and (record.is_synced or not record.members):
        assigned_ms = record.time_ms
    names = tuple(sorted(each.instance_id or each.member_id for each in record.members))
    return GenerationReport(
        record.protocol_type, record.protocol, record.leader, names, assigned_ms
    )


def read_epochs(entries: Iterable[Entry]) -> Iterator[EpochReading]:
    """Yield the epochs of a log that was never trimmed, in order; raises `CodecError`."""
    reader = EpochReader()
    for entry in entries:
        yield from reader.take(entry)
    yield from reader.rest()


def read_reports(log: LogReader) -> Iterator[EpochReport]:
    """Yield the reports of a log, as far back as it goes; raises `LogError`, `CodecError`."""
    low = log.low()
    reader = EpochReader.of(log, low)
    for entries in log.tail(low):
        for entry in entries:
            yield from (each.report for each in reader.take(entry))
    yield from (each.report for each in reader.rest())
