"""How a worker that a plan adds would join: like the worker that joined last.

It names the same assignors, or leaves the computing to the group like that one. Its url is the one
that the next worker of that node is given: where two workers have an equal claim their names
decide, and an order for a worker of that name holds for it.
"""

from collections.abc import Mapping
from dataclasses import replace

from ...actors.assignors.built_in import balanced
from ...actors.assignors.sdk import plain_metadata
from ...actors.messages.assignors import Worker
from ...actors.messages.errors import Error
from ...actors.messages.heartbeat import JOIN_EPOCH, Heartbeat
from ...events.group import Group
from ...events.model import ClientAssignor
from ...events.placement.abilities import ORDINARY, Abilities
from ...events.records import MemberMetadata
from .dry_run import DryRunAssignor, PlanError

FIRST = MemberMetadata(
    "",
    rebalance_timeout_ms=60_000,
    assignors=(ClientAssignor(balanced.NAME),),
)
"""How the first worker of a group joins."""


def join_heartbeat(
    group: Group,
    member_id: str,
    zone: str | None,
    able: Abilities,
    assignors: Mapping[str, DryRunAssignor],
) -> Heartbeat:
    """Return the heartbeat by which a worker would join, with the metadata of its assignors.

    Raises `PlanError` where the worker is to have abilities and no assignor could tell them.
    """
    members = (member.metadata for member in group.members.values())
    like = max(members, key=lambda each: (each.joined_epoch, each.member_id), default=FIRST)
    url = _free_url(group, like)
    worker = Worker(url.rpartition("/")[2], zone, able.tags, able.capacity)
    named = tuple(_describe(each, assignors.get(each.name), worker) for each in like.assignors)
    if not named and able != ORDINARY:
        text = "the group computes for the workers that are added: they have no tags or capacity"
        raise PlanError(Error.INVALID_REQUEST, text)
    return Heartbeat(
        group.group_id,
        member_id,
        JOIN_EPOCH,
        incarnation=member_id,
        rack=zone,
        url=url,
        rebalance_timeout_ms=like.rebalance_timeout_ms,
        assignors=named or None,
        server_assignor=like.server_assignor,
        owned=(),
    )


def _describe(
    like: ClientAssignor, assignor: DryRunAssignor | None, worker: Worker
) -> ClientAssignor:
    if assignor is None:
        return replace(like, reason=0, metadata=plain_metadata(worker).content)
    metadata = assignor.metadata(worker)
    return replace(
        like, version=metadata.version, reason=metadata.reason, metadata=metadata.content
    )


def _free_url(group: Group, like: MemberMetadata) -> str:
    place = like.url.rpartition("/")[0]
    taken = {member.metadata.url for member in group.members.values()}
    taken |= {loss.url for loss in group.losses.values()}  # they may come back
    number = 1
    while f"{place}/w{number}" in taken:
        number += 1
    return f"{place}/w{number}"
