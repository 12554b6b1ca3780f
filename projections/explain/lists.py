"""Lists over many epochs: one line for each, and the moves of one resource."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime

from ...events.entries.history import HistorySummary
from .causes.clients import KafkaClient
from .causes.owners import OwnerTerm
from .epochs import EpochReading, Explanation
from .handovers import Handover, between


@dataclass(frozen=True, slots=True)
class EpochLine:
    """One epoch in short; the counts stand at the last of the epochs that a target answers."""

    group_epoch: int
    time_ms: int
    cause: str
    subject: str
    actor: str | None
    """The principal who asked for it, where that is known."""
    assignment_epoch: int | None
    """The target that answered it; itself, where it is a generation of classic members."""
    failed_attempts: int
    settled_after_ms: int | None
    """From the cause until every member had reached that target."""
    moved: int | None
    returned: int | None
    placed: int | None
    kept: int | None
    parked: int | None
    unplaceable: int | None
    displaced: int | None
    retired: int | None
    changed: str = ""
    """What the change was that raised the epoch, where its cause does not say it already."""


@dataclass(frozen=True, slots=True)
class CompactedHistory:
    """The history before the first epoch of a log, which was trimmed, in numbers."""

    compacted_ms: int
    """When the last of it was trimmed."""
    first_epoch: int | None
    last_epoch: int | None
    first_ms: int
    last_ms: int
    """The times of its first and last record."""
    records: int
    rebalances: Mapping[str, int]
    """How often epochs rose, by cause, the most frequent one first."""

    @classmethod
    def of(cls, summary: HistorySummary) -> "CompactedHistory":
        """Return a summary for people."""
        bounds = summary.first_epoch, summary.last_epoch, summary.first_ms, summary.last_ms
        rebalances = dict(summary.rebalances.most_common())
        return cls(summary.compacted_ms, *bounds, summary.entries, rebalances)

    def __str__(self) -> str:
        """Return it in one sentence."""
        dates = [_date(each) for each in (self.compacted_ms, self.first_ms, self.last_ms)]
        epochs = f"epochs {self.first_epoch} to {self.last_epoch}"
        if self.first_epoch is None or self.first_epoch == self.last_epoch:
            epochs = f"epoch {self.first_epoch}" if self.first_epoch else "earlier records"
        is_one = epochs.startswith("epoch ")
        causes = ", ".join(f"{count} by {cause}" for cause, count in self.rebalances.items())
        total = sum(self.rebalances.values())
        rebalances = f"{total} rebalance{'' if total == 1 else 's'}"
        return (
            f"{epochs} {'was' if is_one else 'were'} compacted on {dates[0]}: {rebalances}"
            f"{f' ({causes})' if causes else ''} in {self.records} records"
            f" of {dates[1]} to {dates[2]}"
        )

    def describe_gap(self, first_epoch: int | None) -> str:
        """Return it in words, with the epochs that are in the log and cannot be told.

        Those are answered by the first target that is left, of which nobody knows what it changed.
        `first_epoch` is the first that is told; None: there is none.
        """
        next_epoch = (self.last_epoch or 0) + 1
        if self.last_epoch is None or (first_epoch is not None and first_epoch <= next_epoch):
            return str(self)
        untold = "later epochs"
        if first_epoch is not None:
            is_one = first_epoch == next_epoch + 1
            untold = (
                f"epoch {next_epoch}" if is_one else f"epochs {next_epoch} to {first_epoch - 1}"
            )
        return (
            f"{self}; what {untold} moved cannot be told, as the target before is compacted:"
            " `fairlead log show` has the records"
        )


def _date(time_ms: int) -> str:
    return f"{datetime.fromtimestamp(time_ms / 1000, UTC):%Y-%m-%d}"


@dataclass(frozen=True, slots=True)
class EpochList:
    """The last epochs of a group, and the first one that the log has."""

    group_id: str
    first_epoch: int | None
    """The first that the log tells of; None where it tells of none, and so is the last."""
    last_epoch: int | None
    is_trimmed: bool
    """Whether there were epochs before the first one."""
    epochs: list[EpochLine]
    """In order, the latest one last."""
    clients: Mapping[str, KafkaClient] = field(default_factory=dict[str, KafkaClient])
    """Kafka's clients among the subjects, by member id."""
    compacted: CompactedHistory | None = None
    """What was before the first one and is summed up; None where there is no summary."""
    owners: list[OwnerTerm] = field(default_factory=list[OwnerTerm])
    """The nodes that owned the group last, in order; empty where its logs lie in no store."""


@dataclass(frozen=True, slots=True)
class Move:
    """One move, or stop, of a resource."""

    group_epoch: int
    """The last of the epochs that were answered by the target that moved it."""
    time_ms: int
    causes: list[str]
    """Of all epochs that the target answered, in order."""
    subjects: list[str]
    """Whom each of these is about."""
    handover: Handover


@dataclass(frozen=True, slots=True)
class MoveList:
    """How one resource moved, the latest move last."""

    moves: list[Move]
    clients: Mapping[str, KafkaClient]
    """Kafka's clients that the group ever had, by member id."""


def line_of(reading: EpochReading | Explanation) -> EpochLine:
    """Return one epoch in short."""
    report = reading.report
    bump, change = report.bump, report.target_change
    settled_ms = change.settled_ms if change else None
    answer, changed = change.assignment_epoch if change else None, reading.changed
    if report.generation is not None:
        answer, settled_ms = bump.group_epoch, report.generation.assigned_ms
        changed = "; ".join(filter(None, (reading.changed, report.generation.summary)))
    counted = change if change and change.assignment_epoch == bump.group_epoch else None
    return EpochLine(
        bump.group_epoch,
        bump.time_ms,
        bump.cause.why.value,
        bump.cause.subject,
        bump.actor,
        answer,
        len(report.attempts),
        between(bump.time_ms, settled_ms),
        len(counted.moved) if counted else None,
        len(counted.returned) if counted else None,
        len(counted.placed) if counted else None,
        counted.kept_count if counted else None,
        len(counted.parked) if counted else None,
        len(counted.unplaceable) if counted else None,
        len(counted.displaced) if counted else None,
        len(counted.retired) if counted else None,
        changed,
    )


def moves_of(readings: Iterable[EpochReading], name: str) -> Iterator[Move]:
    """Yield the moves of a resource; a target counts once, at the last epoch that it answers."""
    answered: list[EpochReading] = []
    for reading in readings:
        report, change = reading.report, reading.report.target_change
        answered.append(reading)
        if change is None or change.assignment_epoch > report.group_epoch:
            continue
        whys = [each.report.bump.cause.why.value for each in answered]
        for each in reading.handovers:
            resource = each.handover.resource
            if str(resource) == name:
                at_ms = report.bump.time_ms
                subjects = [_subject(of, resource.connector) for of in answered]
                yield Move(report.group_epoch, at_ms, whys, subjects, each.handover)
        answered = []


def _subject(reading: EpochReading, connector: str) -> str:
    """Return the subject of an epoch; of connectors put together, the given one."""
    if connector in reading.put_together:
        return f"{connector} and {len(reading.put_together) - 1} more"
    return reading.report.bump.cause.subject
