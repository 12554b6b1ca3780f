"""What is told of a group: a report for each group epoch, and the history, a line for each.

Values only; `reader.py` reads them out of the log. Times are wall clock, in milliseconds.
"""

from dataclasses import dataclass
from typing import NamedTuple

from ...events.records import GroupMetadata
from ..documents import Document
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
        return None if change is None else max(0, change.time_ms - self.bump.time_ms)

    def to_json(self) -> Document:
        """Return the report in plain data."""
        bump, change = self.bump, self.target_change
        return {
            "group_epoch": bump.group_epoch,
            "cause": bump.cause.why.value,
            "subject": bump.cause.subject,
            "actor": bump.actor,
            "time_ms": bump.time_ms,
            "took_ms": self.took_ms,
            "attempts": [dict(each._asdict()) for each in self.attempts],
            "target_change": None if change is None else change.to_json(),
        }


@dataclass(frozen=True, slots=True)
class History:
    """The latest epochs of a group, the last one last, and how far back its log tells.

    Both bounds are None where the log tells of no epoch.
    """

    group_id: str
    first_epoch: int | None
    last_epoch: int | None
    is_trimmed: bool
    """Whether there was more before the first epoch, which is not in the log any more."""
    epochs: tuple[Document, ...]
    """See `line_of`."""

    def to_json(self) -> Document:
        """Return the history in plain data."""
        return {
            "group_id": self.group_id,
            "first_epoch": self.first_epoch,
            "last_epoch": self.last_epoch,
            "is_trimmed": self.is_trimmed,
            "epochs": list(self.epochs),
        }


def line_of(report: EpochReport) -> Document:
    """Return what one epoch led to, in short.

    What a target changed is counted at the last of the epochs that it answers; the counts of
    the others are None.
    """
    bump, change = report.bump, report.target_change
    told: Document = {
        "group_epoch": bump.group_epoch,
        "time_ms": bump.time_ms,
        "cause": bump.cause.why.value,
        "subject": bump.cause.subject,
        "actor": bump.actor,
        "assignment_epoch": change.assignment_epoch if change else None,
        "failed_attempts": len(report.attempts),
        "settled_after_ms": None,
    }
    if change and change.settled_ms is not None:
        told["settled_after_ms"] = max(0, change.settled_ms - bump.time_ms)
    its_own = change if change and change.assignment_epoch == bump.group_epoch else None
    return {
        **told,
        "moved": len(its_own.moved) if its_own else None,
        "returned": len(its_own.returned) if its_own else None,
        "placed": len(its_own.placed) if its_own else None,
        "kept": its_own.kept_count if its_own else None,
        "parked": len(its_own.parked) if its_own else None,
        "unplaceable": len(its_own.unplaceable) if its_own else None,
        "displaced": len(its_own.displaced) if its_own else None,
        "retired": len(its_own.retired) if its_own else None,
    }
