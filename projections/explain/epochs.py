"""What is told of a group: a report for each group epoch, and the history, a line for each.

Values only; `reader.py` reads them out of the log. Times are wall clock, in milliseconds.
"""

from dataclasses import dataclass
from typing import NamedTuple

from ...events.records import GroupMetadata
from ..moves import between
from .diff import TargetChange


class Attempt(NamedTuple):
    """A computation that failed: for which epoch, when, and why."""

    assignment_epoch: int
    time_ms: int
    error: str


@dataclass(frozen=True, slots=True)
class EpochReport:
    """One group epoch: what raised it, and which target answered it, if one did."""

    bump: GroupMetadata
    """The record that raised the epoch."""
    attempts: tuple[Attempt, ...] = ()
    """The computations that failed before one succeeded, in order."""
    target_change: TargetChange | None = None
    """What the target changed that answered the epoch, and perhaps earlier ones with it.

    None as long as there is none, and where the group lost its last member before.
    """

    @property
    def group_epoch(self) -> int:
        """The epoch that this report is about."""
        return self.bump.group_epoch

    @property
    def took_ms(self) -> int | None:
        """From the cause to the target that answers it; clocks that jump count as no time."""
        change = self.target_change
        return between(self.bump.time_ms, change.time_ms if change else None)


@dataclass(frozen=True, slots=True)
class EpochLine:
    """One epoch in short; the counts are told at the last of the epochs that a target answers."""

    group_epoch: int
    time_ms: int
    cause: str
    subject: str
    actor: str | None
    """The principal who asked for it, where that is known."""
    assignment_epoch: int | None
    """The target that answered it."""
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


@dataclass(frozen=True, slots=True)
class EpochList:
    """The last epochs of a group, and how far back its log tells."""

    group_id: str
    first_epoch: int | None
    """The first that the log tells of; None where it tells of none, and so is the last."""
    last_epoch: int | None
    is_trimmed: bool
    """Whether there were epochs before the first one."""
    epochs: list[EpochLine]
    """In order, the latest one last."""


def line_of(report: EpochReport) -> EpochLine:
    """Return what one epoch led to, in short."""
    bump, change = report.bump, report.target_change
    settled_ms = change.settled_ms if change else None
    counted = change if change and change.assignment_epoch == bump.group_epoch else None
    return EpochLine(
        bump.group_epoch,
        bump.time_ms,
        bump.cause.why.value,
        bump.cause.subject,
        bump.actor,
        change.assignment_epoch if change else None,
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
    )
