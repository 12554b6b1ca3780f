"""Replies about handovers: why a resource moved, between which workers, and its downtime.

Times are wall clock, in milliseconds; None if the log does not have them, or not yet.
"""

from msgspec import Struct, field

from ....projections.explain.diff import Owner
from ....projections.explain.handovers import Handover


class SeatInfo(Struct, frozen=True):
    """A member: its worker's URL (its member id if it has none) and its member id."""

    worker: str
    member_id: str


class HandoverInfo(Struct, frozen=True, omit_defaults=True):
    """A resource that moved: why, between which workers, and how long no worker ran it."""

    id: str
    reason: str
    detail: str
    giver: SeatInfo | None = field(name="from")
    taker: SeatInfo | None = field(name="to")
    asked_ms: int | None
    stopped_ms: int | None
    gone_ms: int | None
    revoked_ms: int | None
    granted_ms: int | None
    running_ms: int | None
    first_batch_ms: int | None
    downtime_ms: int | None
    downtime_at_least_ms: int | None
    downtime_at_most_ms: int | None
    superseded_by: int | None
    """The later epoch that assigned it to another worker before it ran."""
    freed_by: int | None = None
    """The other epoch that revoked it from its worker, and that has the downtime."""


def describe_handover(each: Handover, group_epoch: int) -> HandoverInfo:
    """Return a handover in the report of one epoch.

    The downtime is only in the report of the epoch that revoked the resource.
    """
    has_downtime = each.freed_by in {None, group_epoch}
    return HandoverInfo(
        str(each.resource),
        each.reason.kind.value,
        each.reason.detail,
        seat_info(each.previous_owner),
        seat_info(each.new_owner),
        each.asked_ms,
        each.stopped_ms,
        each.gone_ms,
        each.revoked_ms,
        each.granted_ms,
        each.running_ms,
        each.first_batch_ms,
        each.downtime_ms if has_downtime else None,
        each.downtime_at_least_ms if has_downtime else None,
        each.downtime_at_most_ms if has_downtime else None,
        each.superseded_by,
        None if has_downtime else each.freed_by,
    )


def seat_info(seat: Owner | None) -> SeatInfo | None:
    """Return a member's worker and id as a reply; None for no member."""
    return None if seat is None else SeatInfo(*seat)
