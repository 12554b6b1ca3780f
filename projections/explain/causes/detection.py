"""When the cause of an epoch came about, and how it was noticed.

A request raises the epoch at the moment at which it is taken. For a timer, the log says when it
was due. The record that raised the epoch says when a member was last heard of, and when a process
ended, unless an older release wrote it, or the group was restarted in between.
"""

from collections.abc import Mapping, MutableMapping, Sequence
from dataclasses import dataclass
from typing import Any

from ....events.group import AWAY_EPOCH
from ....events.model import Why
from ....events.records import (
    CurrentAssignment,
    GroupMetadata,
    Record,
    ScheduledRebalance,
    TargetAssignment,
    TaskStatus,
)


@dataclass(frozen=True, slots=True)
class Detection:
    """When the cause of an epoch came about, and the last word of the member that it is about.

    Wall clock in milliseconds; None for what the log does not tell.
    """

    since_ms: int | None = None
    """When the cause came about."""
    last_word_ms: int | None = None
    """When the member that the cause is about wrote its last record."""
    was_away: bool = False
    """Whether it had left for a while, so that its silence was no surprise."""


class Detector:
    """A fold of the whole log that records how the cause of each epoch was detected."""

    def __init__(self, urls: Mapping[str, str]) -> None:
        """`urls` are those of the members, by member id."""
        self._urls = urls
        self._last_word_ms: dict[str, int] = {}
        """When each member was last heard of, by its url and by its member id."""
        self._last_step_ms: dict[str, int] = {}
        """When each member last took a step, by its url and by its member id."""
        self._away: dict[str, None] = {}
        """The urls and member ids of those that left for a while."""
        self._schedule = ScheduledRebalance()
        self._due_ms: int | None = None
        """The deadline of the parked resources that fired last."""
        self._again_at_ms: int | None = None
        """When more moves were due by the schedule before the last one."""
        self._retry_at_ms: int | None = None
        """When a failed computation was to be tried again."""

    @property
    def by_name(self) -> Sequence[MutableMapping[str, Any]]:
        """All known members, each by url or member id."""
        return self._last_word_ms, self._last_step_ms, self._away

    def apply(self, record: Record, now_ms: int) -> None:
        """Apply the next record of the log but for statuses, which `apply_status` takes."""
        match record:
            case CurrentAssignment():
                self._apply_step(record, now_ms)
            case ScheduledRebalance():
                fired = record.fired - self._schedule.fired
                self._due_ms = min((record.parked[each] for each in fired), default=self._due_ms)
                self._again_at_ms = self._schedule.again_at_ms or None
                self._schedule = record
            case TargetAssignment():
                self._retry_at_ms = record.retry_at_ms or None
            case _:
                pass

    def apply_status(self, status: TaskStatus, now_ms: int) -> None:
        """Apply the next status of the log."""
        self._last_word_ms[status.worker] = now_ms

    def _apply_step(self, step: CurrentAssignment, now_ms: int) -> None:
        for name in {step.member_id, self._urls.get(step.member_id, step.member_id)}:
            self._last_word_ms[name] = self._last_step_ms[name] = now_ms
            if step.member_epoch == AWAY_EPOCH:
                self._away[name] = None
            else:
                self._away.pop(name, None)

    def detect(self, bump: GroupMetadata) -> Detection:
        """Return how the cause of an epoch was detected."""
        name, since_ms = bump.cause.subject, bump.since_ms or None
        last_word_ms = self._last_word_ms.get(name)
        by_cause = {
            Why.SESSION_EXPIRED: Detection(since_ms, last_word_ms, name in self._away),
            Why.REBALANCE_EXPIRED: Detection(self._last_step_ms.get(name), last_word_ms),
            Why.DELAY_EXPIRED: Detection(self._due_ms),
            Why.MOVES_DUE: Detection(self._again_at_ms),
            Why.ASSIGNOR_RETRY: Detection(self._retry_at_ms),
            Why.UNKNOWN: Detection(),
        }
        return by_cause.get(bump.cause.why, Detection(since_ms or bump.time_ms))
