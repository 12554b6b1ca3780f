"""Makes spans of the epochs in a control log: each epoch a trace, its handovers the children.

The epoch's span goes from the record that raised the epoch until all members have reached its
target. A handover's span comes when the new owner runs what it was given, or when another target
gives that to somebody else; both may be after the end of the epoch's own span.
"""

from collections.abc import Iterator
from operator import attrgetter
from typing import NamedTuple

from ...events.log.frame import Entry
from ...events.model import Resource
from ...events.records import Record, TargetAssignment, TaskStatus
from ..explain.diff import TargetChange
from ..explain.epochs import EpochReading, EpochReport
from ..explain.handovers import FollowedHandover, Handover
from ..explain.reader import EpochLog, EpochReader
from .spans import SpanContext, SpanEvent, TraceSpan, about, attributes, epoch_context


class _OpenHandover(NamedTuple):
    """A handover that is not over, and the span of the epoch that it belongs to."""

    epoch: SpanContext
    followed: FollowedHandover


class EpochSpans:
    """A fold of the control log of one group, from an offset on."""

    def __init__(self, cluster_id: str, log: EpochLog, start: int) -> None:
        """Start at an offset; raises `LogError`, `CodecError`."""
        self._cluster_id, self._group_id = cluster_id, log.log_id
        self._reader = EpochReader.of(log, start, on_record=self._hear)
        self._open: dict[Resource, _OpenHandover] = {}
        """The handovers whose new owner does not run them yet, the latest of each resource."""
        self._made: list[TraceSpan] = []
        """The spans that the present entry has completed so far."""

    def apply(self, entry: Entry) -> list[TraceSpan]:
        """Apply the next entry; return the spans that it completes. Raises `CodecError`."""
        for reading in self._reader.apply(entry):
            self._finish(reading, entry.timestamp_ms)
        made, self._made = self._made, []
        return made

    def _hear(self, record: Record, _: TargetChange | None, __: int) -> None:
        """Complete the handovers of which a record tells the end."""
        if isinstance(record, TaskStatus):
            self._complete(record.resource)
        elif isinstance(record, TargetAssignment):
            for resource in list(self._open):
                self._complete(resource)

    def _finish(self, reading: EpochReading, now_ms: int) -> None:
        """Add the span of an epoch that all members have reached, or that another one ended."""
        report = reading.report
        context = epoch_context(self._cluster_id, self._group_id, report.group_epoch)
        self._made.append(_span_of_epoch(self._group_id, context, report, now_ms))
        change = report.target_change
        if change is not None and change.assignment_epoch == report.group_epoch:
            for each in reading.handovers:
                if each.handover.new_owner is not None:
                    self._open[each.handover.resource] = _OpenHandover(context, each)
                    self._complete(each.handover.resource)

    def _complete(self, resource: Resource) -> None:
        """Add the span of a resource's handover if that is at its end."""
        waiting = self._open.get(resource)
        if waiting is not None and not waiting.followed.is_pending:
            del self._open[resource]
            handover = waiting.followed.handover
            self._made += _spans_of_handover(self._group_id, waiting.epoch, handover)


def _span_of_epoch(
    group_id: str, context: SpanContext, report: EpochReport, now_ms: int
) -> TraceSpan:
    """Return the span of an epoch; one that another target ended goes until that."""
    change, cause = report.target_change, report.bump.cause
    settled_ms = change.settled_ms if change else None
    if report.generation is not None:
        settled_ms = report.generation.assigned_ms
    facts: dict[str, str | int | None] = {
        "group": group_id,
        "epoch": report.group_epoch,
        "cause": cause.why.value,
        "subject": cause.subject or None,
        "principal": report.bump.actor,
        "failed_attempts": len(report.attempts) or None,
        "superseded": "true" if settled_ms is None else None,
    }
    if change is not None:
        facts |= {
            "assignment_epoch": change.assignment_epoch,
            "assignor": change.assignor or None,
            "moved": len(change.moved),
            "returned": len(change.returned),
            "placed": len(change.placed),
            "unplaceable": len(change.unplaceable),
        }
    start_ms, end_ms = report.bump.time_ms, now_ms if settled_ms is None else settled_ms
    events = (SpanEvent("target", change.time_ms),) if change else ()
    ended = max(start_ms, end_ms)  # clocks may jump back
    return TraceSpan("epoch", context, start_ms, ended, attributes(facts), events=events)


def _spans_of_handover(
    group_id: str, epoch: SpanContext, handover: Handover
) -> Iterator[TraceSpan]:
    """Yield the span of a handover, if anything is known of its times."""
    times = {
        "asked": handover.asked_ms,
        "gone": handover.gone_ms,
        "stopped": handover.stopped_ms,
        "revoked": handover.revoked_ms,
        "assigned": handover.granted_ms,
        "running": handover.up_ms,
    }
    events = [SpanEvent(name, time_ms) for name, time_ms in times.items() if time_ms is not None]
    events.sort(key=attrgetter("time_ms"))
    facts: dict[str, str | int | None] = {
        "reason": str(handover.reason),
        "from": handover.previous_owner.worker if handover.previous_owner else None,
        "to": handover.new_owner.worker if handover.new_owner else None,
        "downtime_ms": handover.downtime_ms,
        "downtime_at_least_ms": handover.downtime_at_least_ms,
        "superseded": "true" if handover.superseded_by is not None else None,
    }
    if events:
        yield TraceSpan(
            "handover",
            epoch.child("handover", handover.resource),
            events[0].time_ms,
            events[-1].time_ms,
            {**about(group_id, handover.resource), **attributes(facts)},
            epoch,
            tuple(events),
        )
