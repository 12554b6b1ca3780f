"""The phases of a rebalance, and how long each took: where the time went.

They follow each other, each up to the last resource that it concerns: detect (what happened
until the epoch rose), compute (until the target), revoke (until the last one acknowledged),
release (until the last one was granted), start (until the last one ran).

How long it took to notice the cause is known as far as the log tells. A request raises the epoch
at the moment at which it is taken. For a timer, the log says when it was due. The record that
raised the epoch says when a member was last heard of, and when a process ended, unless an older
release wrote it, or the group was restarted in between.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from ...events.group import AWAY_EPOCH
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
from ..moves import between
from .diff import TargetChange
from .epochs import EpochReport
from .handovers import Handover

_NOTHING_MOVED = "nothing moved"


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
    """A fold of the whole log that tells, of each epoch, how its cause was noticed."""

    def __init__(self) -> None:
        self._urls: dict[str, str] = {}
        """The url of every member that there ever was, by member id."""
        self._last_word_ms: dict[str, int] = {}
        """When each member was last heard of, by its url and by its member id."""
        self._last_step_ms: dict[str, int] = {}
        """When each member last took a step, by its url and by its member id."""
        self._away: set[str] = set()
        """The urls and member ids of those that left for a while."""
        self._schedule = ScheduledRebalance()
        self._due_ms: int | None = None
        """The deadline of the parked resources that fired last."""
        self._again_at_ms: int | None = None
        """When more moves were due by the schedule before the last one."""
        self._retry_at_ms: int | None = None
        """When a failed computation was to be tried again."""

    def take(self, record: Record, now_ms: int) -> None:
        """Take the next record of the log but for statuses, which `take_status` takes."""
        match record:
            case CurrentAssignment():
                self._take_step(record, now_ms)
            case MemberMetadata():
                self._urls[record.member_id] = record.url
            case ScheduledRebalance():
                fired = record.fired - self._schedule.fired
                self._due_ms = min((record.parked[each] for each in fired), default=self._due_ms)
                self._again_at_ms = self._schedule.again_at_ms or None
                self._schedule = record
            case TargetAssignment():
                self._retry_at_ms = record.retry_at_ms or None
            case _:
                pass

    def take_status(self, status: TaskStatus, now_ms: int) -> None:
        """Take the next status of the log."""
        self._last_word_ms[status.worker] = now_ms

    def _take_step(self, step: CurrentAssignment, now_ms: int) -> None:
        for name in {step.member_id, self._urls.get(step.member_id, "")}:
            self._last_word_ms[name] = self._last_step_ms[name] = now_ms
            if step.member_epoch == AWAY_EPOCH:
                self._away.add(name)
            else:
                self._away.discard(name)

    def detect(self, bump: GroupMetadata) -> Detection:
        """Return what is known of the cause of an epoch."""
        name, since_ms = bump.cause.subject, bump.since_ms or None
        last_word_ms = self._last_word_ms.get(name)
        known = {
            Why.SESSION_EXPIRED: Detection(since_ms, last_word_ms, name in self._away),
            Why.REBALANCE_EXPIRED: Detection(self._last_step_ms.get(name), last_word_ms),
            Why.DELAY_EXPIRED: Detection(self._due_ms),
            Why.MOVES_DUE: Detection(self._again_at_ms),
            Why.ASSIGNOR_RETRY: Detection(self._retry_at_ms),
            Why.UNKNOWN: Detection(),
        }
        return known.get(bump.cause.why, Detection(since_ms or bump.time_ms))


class Phase(NamedTuple):
    """One phase; wall clock in milliseconds, None for what the log does not tell (yet)."""

    name: str
    from_ms: int | None = None
    until_ms: int | None = None
    note: str = ""

    @property
    def took_ms(self) -> int | None:
        """How long it took; clocks that jump count as no time."""
        return between(self.from_ms, self.until_ms)


def phases_of(
    report: EpochReport, detection: Detection, handovers: Sequence[Handover]
) -> tuple[Phase, ...]:
    """Return the phases of an epoch in order, always all five."""
    detect = _detect(report, detection)
    change = report.target_change
    if change is None:
        compute = Phase("compute", report.bump.time_ms, note="not answered")
        return (detect, compute, Phase("revoke"), Phase("release"), Phase("start"))
    compute = Phase("compute", report.bump.time_ms, change.time_ms, _attempts(report))
    revoke = _revoke(change, handovers)
    taken = [each for each in handovers if each.taker is not None]
    release = _until_last(
        "release", revoke.until_ms or change.time_ms, taken, lambda each: each.granted_ms
    )
    granted = [each for each in taken if each.granted_ms]
    start = _until_last("start", release.until_ms, granted or taken, _up)
    return (detect, compute, revoke, release, start)


def _up(each: Handover) -> int | None:
    return each.up_ms


def _detect(report: EpochReport, detection: Detection) -> Phase:
    bump, note = report.bump, ""
    if detection.was_away:
        note = "its place was kept for its return"
    elif bump.cause.why is Why.SESSION_EXPIRED and detection.since_ms is not None:
        note = "since the member was last heard of"
    elif bump.cause.why is Why.SESSION_EXPIRED:
        note = "when the member was last heard of is not in the log"
        if detection.last_word_ms is not None:
            age_ms = max(0, bump.time_ms - detection.last_word_ms)
            note += f"; its last record is {age_ms / 1000:.3f} s older"
    elif detection.since_ms is None:
        note = "not in the log"
    return Phase("detect", detection.since_ms, bump.time_ms, note)


def _attempts(report: EpochReport) -> str:
    count = len(report.attempts)
    return f"{count} failed attempt{'s' if count > 1 else ''} before" if count else ""


def _revoke(change: TargetChange, handovers: Sequence[Handover]) -> Phase:
    asked = [each for each in handovers if each.asked_ms or each.revoked_ms]
    if not asked:
        return Phase("revoke", note="nobody had to give up anything")
    phase = _until_last("revoke", change.time_ms, asked, lambda each: each.revoked_ms)
    last_ms = max((each.asked_ms for each in asked if each.asked_ms), default=None)
    if phase.note or last_ms is None:
        return phase
    waited_ms = max(0, last_ms - change.time_ms)
    return phase._replace(note=f"all were asked after {waited_ms / 1000:.3f} s")


def _until_last(
    name: str,
    from_ms: int | None,
    handovers: Sequence[Handover],
    moment: Callable[[Handover], int | None],
) -> Phase:
    """Return a phase that ends when the last of the handovers has come to a moment.

    One that another target took over is not waited for.
    """
    moments = [(each, moment(each)) for each in handovers]
    done = [at_ms for _, at_ms in moments if at_ms is not None]
    open_ones = [each for each, at_ms in moments if at_ms is None]
    if not handovers:
        return Phase(name, from_ms, note=_NOTHING_MOVED)
    if any(each.superseded_by is None for each in open_ones):
        return Phase(name, from_ms, note=f"{len(done)} of {len(handovers)} so far")
    superseded = f"{len(open_ones)} of {len(handovers)} superseded" if open_ones else ""
    return Phase(name, from_ms, max(done, default=None), superseded)
