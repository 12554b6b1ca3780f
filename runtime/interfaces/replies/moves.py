"""Where one resource has been, from epoch to epoch.

Times are wall clock, in milliseconds; None where the log does not tell.
"""

from msgspec import Struct

from ....projections.explain.causes.clients import KafkaClient
from ....projections.explain.lists import Move, MoveList
from .epochs import clients_named
from .handovers import HandoverInfo, describe_handover


class ResourceMove(Struct, frozen=True):
    """A time at which a resource changed hands, or stopped."""

    group_epoch: int
    time_ms: int
    causes: list[str]
    """Of all epochs that were answered by the target that moved it, the last one's last."""
    subjects: list[str]
    """Whom each of these is about."""
    handover: HandoverInfo


class ResourceHistory(Struct, frozen=True):
    """Where a connector, a task or a partition has been, the latest move last."""

    group_id: str
    id: str
    moves: list[ResourceMove]
    clients: dict[str, KafkaClient]
    """Those of Kafka's clients that are named here, by member id."""


def describe_moves(group_id: str, name: str, told: MoveList) -> ResourceHistory:
    """Return how a resource moved, as it is answered."""
    moves = [_move(each) for each in told.moves]
    seats = (seat for each in told.moves for seat in (each.handover.giver, each.handover.taker))
    named = {seat.member_id for seat in seats if seat}
    named = named.union(*(each.subjects for each in told.moves))
    return ResourceHistory(group_id, name, moves, clients_named(told.clients, named))


def _move(each: Move) -> ResourceMove:
    told_by = each.handover.freed_by or each.group_epoch
    handover = describe_handover(each.handover, told_by)
    return ResourceMove(each.group_epoch, each.time_ms, each.causes, each.subjects, handover)
