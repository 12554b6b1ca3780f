"""How long it took to notice what raised an epoch, as far as the log tells.

A request raises the epoch in the moment in which it is taken. Of what is noticed by a timer,
the log knows when it was due. When a member was last heard of, and when a process ended, the
record that raised the epoch says, unless it is an old one, or the group was restarted meanwhile.
"""

from dataclasses import dataclass

from ...events.group import AWAY_EPOCH
from ...events.log.frame import Entry
from ...events.model import Why
from ...events.records import (
    CurrentAssignment,
    GroupMetadata,
    MemberMetadata,
    Record,
    ScheduledRebalance,
    TargetAssignment,
    TaskStatus,
)


@dataclass(frozen=True, slots=True)
class Detection:
    """When the cause of an epoch came about, and the last word of the member it is about.

    Wall clock in milliseconds; None for what the log does not tell.
    """

    since_ms: int | None = None
    last_word_ms: int | None = None
    was_away: bool = False
    """Whether it had left for a while, so that its silence was no surprise."""


class Detecting:
    """A fold of the log up to the record that raised an epoch."""

    def __init__(self, bump: GroupMetadata) -> None:
        self._bump = bump
        self._is_over = False
        self._is_about_silence = bump.cause.why in (Why.SESSION_EXPIRED, Why.REBALANCE_EXPIRED)
        self._urls: dict[str, str] = {}
        self._last_word_ms: int | None = None
        self._last_step_ms: int | None = None
        self._is_away = False
        self._schedule = ScheduledRebalance()
        self._due_ms: int | None = None
        self._again_at_ms: int | None = None
        self._retry_at_ms: int | None = None

    @property
    def listens(self) -> bool:
        """Whether statuses matter to it: to learn when a member was last heard of."""
        return self._is_about_silence and not self._is_over

    def fold(self, record: Record, entry: Entry) -> None:
        """Take the next record of the log."""
        if self._is_over:
            return
        match record:
            case GroupMetadata():
                self._is_over = record.group_epoch >= self._bump.group_epoch
            case MemberMetadata():
                self._urls[record.member_id] = record.url
            case CurrentAssignment() | TaskStatus():
                self._hear(record, entry.timestamp_ms)
            case ScheduledRebalance():
                fired = record.fired - self._schedule.fired
                self._due_ms = min((record.parked[each] for each in fired), default=self._due_ms)
                self._again_at_ms = self._schedule.again_at_ms or None
                self._schedule = record
            case TargetAssignment():
                self._retry_at_ms = record.retry_at_ms or None
            case _:
                pass

    def _hear(self, record: CurrentAssignment | TaskStatus, now_ms: int) -> None:
        subject = self._bump.cause.subject
        if isinstance(record, TaskStatus):
            if record.worker == subject:
                self._last_word_ms = now_ms
        elif subject in (record.member_id, self._urls.get(record.member_id)):
            self._last_word_ms = self._last_step_ms = now_ms
            self._is_away = record.member_epoch == AWAY_EPOCH

    @property
    def found(self) -> Detection:
        """What is known of the cause."""
        told = {
            Why.SESSION_EXPIRED: Detection(
                self._bump.since_ms or None, self._last_word_ms, self._is_away
            ),
            Why.REBALANCE_EXPIRED: Detection(self._last_step_ms, self._last_word_ms),
            Why.DELAY_EXPIRED: Detection(self._due_ms),
            Why.MOVES_DUE: Detection(self._again_at_ms),
            Why.ASSIGNOR_RETRY: Detection(self._retry_at_ms),
            Why.UNKNOWN: Detection(),
        }
        since_ms = self._bump.since_ms or self._bump.time_ms
        return told.get(self._bump.cause.why, Detection(since_ms))
