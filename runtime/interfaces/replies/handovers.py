"""A resource that changed hands: why, between whom, and for how long nobody had it.

Times are wall clock, in milliseconds; None where the log does not tell, or not yet.
"""

from msgspec import Struct, field

from ....projections.explain.diff import Seat
from ....projections.explain.handovers import Handover


class SeatInfo(Struct, frozen=True):
    """A member, by its worker's URL (its member id where it has none) and its member id."""

    worker: str
    member_id: str


class HandoverInfo(Struct, frozen=True, omit_defaults=True):
    """A resource that changed hands: why, between whom, and for how long no worker ran it."""

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
    """The later epoch that gave it to another worker before it ran."""
    freed_by: int | None = None
    """The other epoch that took it from its worker, and tells the downtime."""


def describe_handover(each: Handover, group_epoch: int) -> HandoverInfo:
    """Return a handover as one of the epochs that it answers tells it.

    An epoch that did not free the resource does not tell for how long nobody ran it.
    """
    is_told = each.freed_by in {None, group_epoch}
    return HandoverInfo(
        str(each.resource),
        each.reason.kind.value,
        each.reason.detail,
        seat_info(each.giver),
        seat_info(each.taker),
        each.asked_ms,
        each.stopped_ms,
        each.gone_ms,
        each.revoked_ms,
        each.granted_ms,
        each.running_ms,
        each.first_batch_ms,
        each.downtime_ms if is_told else None,
        each.downtime_at_least_ms if is_told else None,
        each.downtime_at_most_ms if is_told else None,
        each.superseded_by,
        None if is_told else each.freed_by,
    )


def seat_info(seat: Seat | None) -> SeatInfo | None:
    """Return where a member sits, as it is answered; None: nobody does."""
    return None if seat is None else SeatInfo(*seat)
