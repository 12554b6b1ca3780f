"""Replies about the moves of one resource between workers, from epoch to epoch.

Times are wall clock, in milliseconds; None if the log does not have them.
"""

from msgspec import Struct

from ....projections.explain.causes.clients import KafkaClient
from ....projections.explain.lists import Move, MoveList
from .epochs import clients_named
from .handovers import HandoverInfo, describe_handover


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


def describe_moves(group_id: str, name: str, found: MoveList) -> ResourceHistory:
    """Return the moves of a resource as a reply."""
    moves = [_move(each) for each in found.moves]
    handovers = [each.handover for each in found.moves]
    owners = (owner for each in handovers for owner in (each.previous_owner, each.new_owner))
    named = {owner.member_id for owner in owners if owner}
    named = named.union(*(each.subjects for each in found.moves))
    return ResourceHistory(group_id, name, moves, clients_named(found.clients, named))


def _move(each: Move) -> ResourceMove:
    revoked_in = each.handover.freed_by or each.group_epoch
    handover = describe_handover(each.handover, revoked_in)
    return ResourceMove(each.group_epoch, each.time_ms, each.causes, each.subjects, handover)
