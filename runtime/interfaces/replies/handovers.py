"""Replies about handovers, and about all moves of one resource: why, between whom, how long.

Times are wall clock, in milliseconds; None if the log does not have them, or not yet.
"""

from collections.abc import Iterable, Mapping

from msgspec import Struct, field

from ....projections.explain.causes.clients import KafkaClient
from ....projections.explain.diff import Owner
from ....projections.explain.handovers import Handover
from ....projections.explain.lists import Move, MoveList


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


class ResourceMove(Struct, frozen=True):
    """A move of a resource to another worker, or its stop."""

    group_epoch: int
    time_ms: int
    causes: list[str]
    """The causes of all epochs that led to the target that moved it, the latest last."""
    subjects: list[str]
    """The member, connector or topic that each cause is about."""
    handover: HandoverInfo


class ResourceHistory(Struct, frozen=True):
    """The moves of a connector, a task or a partition, the latest last."""

    group_id: str
    id: str
    moves: list[ResourceMove]
    clients: dict[str, KafkaClient]
    """The Kafka clients that occur here, by member id."""


def describe_moves(group_id: str, name: str, history: MoveList) -> ResourceHistory:
    """Return the moves of a resource as a reply."""
    moves = [_move(each) for each in history.moves]
    handovers = [each.handover for each in history.moves]
    owners = (owner for each in handovers for owner in (each.previous_owner, each.new_owner))
    named = {owner.member_id for owner in owners if owner}
    named = named.union(*(each.subjects for each in history.moves))
    return ResourceHistory(group_id, name, moves, clients_named(history.clients, named))


def _move(each: Move) -> ResourceMove:
    revoked_in = each.handover.freed_by or each.group_epoch
    handover = describe_handover(each.handover, revoked_in)
    return ResourceMove(each.group_epoch, each.time_ms, each.causes, each.subjects, handover)


def clients_named(known: Mapping[str, KafkaClient], names: Iterable[str]) -> dict[str, KafkaClient]:
    """Return the clients whose member ids are in `named`; other names are ignored."""
    named = {each.partition(" and ")[0] for each in names}
    return {each: known[each] for each in sorted(named) if each in known}
