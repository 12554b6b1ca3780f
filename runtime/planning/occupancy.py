"""Which worker has what in a group at rest, how much that is, and what no worker has."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from ...actors.group.computing.snapshot import snapshot_of
from ...events.group import Group
from ...events.model import Grants, Resource, Resources
from ...events.placement.abilities import assignor_of, is_warm
from ...events.records import MemberMetadata
from ...projections.explain.diff import homes_in
from .dry_run import DryRun
from .report import PlannedLoad, PlannedSeat

NOWHERE = "no worker is left to run it"


@dataclass(frozen=True, slots=True)
class Occupancy:
    """What a plan says of a group at one moment: a copy, since the group of a dry run changes."""

    assignor: str
    homes: Mapping[Resource, MemberMetadata]
    """The member that has each resource; others are parked or unplaceable."""
    seats: Mapping[str, PlannedSeat]
    """How a plan names each member, by member id."""
    loads: Mapping[str, PlannedLoad]
    """How much each member has, by member id."""
    tasks: Mapping[str, int]
    """How many tasks each connector has."""
    parked: Grants
    unplaceable: Mapping[Resource, str]
    cold: frozenset[PlannedSeat]
    """Members that cannot take work yet, by their own word."""


def occupancy_of(dry_run: DryRun) -> Occupancy:
    """Return the occupancy of a dry run's group; it takes as long as the group is large."""
    group, added = dry_run.group, dry_run.joiners
    weights = snapshot_of(group, group.target.assignor, dry_run.now_ms).weights
    members = {each: member.metadata for each, member in group.members.items()}
    homes = dict(homes_in(group))
    return Occupancy(
        group.target.assignor,
        homes,
        {each: _seat(metadata, added) for each, metadata in members.items()},
        {each: _load(group.share_of(each), weights) for each in members},
        {name: len(split.tasks) for name, split in group.task_configs.items()},
        group.schedule.parked,
        dict(_left_out(group, homes)),
        frozenset(_seat(each, added) for each in members.values() if _is_cold(group, each)),
    )


def _is_cold(group: Group, member: MemberMetadata) -> bool:
    return not is_warm(assignor_of(group.target.assignor, member.assignors).metadata)


def _seat(metadata: MemberMetadata, added: Mapping[str, str]) -> PlannedSeat:
    worker = metadata.url or metadata.member_id
    return PlannedSeat(added.get(worker, worker), metadata.member_id)


def _load(share: Resources, weights: Mapping[Resource, int]) -> PlannedLoad:
    tasks = sum(resource.is_task for resource in share)
    return PlannedLoad(len(share) - tasks, tasks, sum(weights.get(each, 1) for each in share))


def _left_out(
    group: Group, homes: Mapping[Resource, MemberMetadata]
) -> Iterator[tuple[Resource, str]]:
    for resource in group.configured:
        if resource not in homes and resource not in group.schedule.parked:
            reason = group.target.unplaceable.get(resource) if group.members else None
            yield resource, reason or NOWHERE
