"""The difference that a target makes: what it keeps, moves, returns, places, parks and retires.

It is found by comparing the target with the members that had each resource last.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, partial
from typing import NamedTuple

from ...events.group import Group
from ...events.model import NOTHING, Grants, Resource, Resources
from ...events.placement import Directory, directory_of, workers_in
from ...events.records import GroupMetadata, MemberMetadata, TargetAssignment
from .reasons import Reason, reason_of, why_displaced


class Owner(NamedTuple):
    """A member, by its worker's url (or, where it has none, its id) and its member id."""

    worker: str
    member_id: str


class Transfer(NamedTuple):
    """A resource that changes its owner; `previous_owner` is None if it never had one."""

    resource: Resource
    previous_owner: Owner | None
    new_owner: Owner


@dataclass(frozen=True, slots=True)
class TargetChange:
    """An installed target, as the changes from the target before.

    All that was configured when it was computed, and still is, is in exactly one of `kept`,
    `moved`, `returned`, `placed`, `parked` and `unplaceable`. Times are wall clock in milliseconds.
    """

    assignment_epoch: int
    time_ms: int
    """When the target was computed."""
    assignor: str
    computed_by: Owner | None
    """The member that computed it, None where the coordinator did so itself."""
    kept: Mapping[Owner, Resources]
    """What stays where it is, by the member that has it."""
    moved: tuple[Transfer, ...]
    """From one worker to another, which may be gone."""
    returned: tuple[Transfer, ...]
    """Back to the worker that had it before: in a new seat, or after it had no place."""
    placed: tuple[Transfer, ...]
    """For the first time."""
    parked: Grants
    """Each with the deadline until when it waits for its worker."""
    unplaceable: Mapping[Resource, str]
    """Each with the assignor's reason."""
    retired: Resources
    """What had a place, and is not configured any more."""
    settled_ms: int | None = None
    """When every member had reached this target; None if another came first, or not yet."""
    reasons: Mapping[Resource, Reason] = field(default_factory=dict[Resource, Reason])
    """Why each of `moved` goes to another worker, and each of `displaced` stops."""
    next_moves_at_ms: int | None = None
    """When the rest of the moves is to be made; None if this is all of them."""
    displaced: Mapping[Resource, Owner] = field(default_factory=dict[Resource, Owner])
    """Those of `unplaceable` that had a place until this target, each with its last member."""

    @property
    def kept_count(self) -> int:
        """How many resources stay where they are."""
        return sum(map(len, self.kept.values()))


def owners_in(group: Group) -> Iterator[tuple[Resource, MemberMetadata]]:
    """Yield each resource of the group's target with the member that it is assigned to."""
    for member_id, share in group.target_of.items():
        member = group.members.get(member_id)
        metadata = member.metadata if member else MemberMetadata(member_id)
        yield from ((resource, metadata) for resource in share)


class Owners:
    """The last owner of each resource, from target to target, even if that member is gone."""

    def __init__(self, group: Group) -> None:
        self.last: dict[Resource, MemberMetadata] = dict(owners_in(group))
        """The member that each configured resource was given to last."""
        self._placed = frozenset(self.last)
        """What the latest target gives to anybody."""
        self._of: dict[str, list[Resource]] | None = None
        """`last` by member id; None until somebody asks after a change."""

    def compare(
        self,
        group: Group,
        record: TargetAssignment,
        time_ms: int,
        bumps: Sequence[GroupMetadata],
    ) -> TargetChange:
        """Compare the group's new target with the last owners; call `move` afterwards."""
        return change_of(group, record, self.last, time_ms, bumps, self._placed)

    def move(self, group: Group) -> None:
        """Record the owners by the group's new target."""
        for resource in self.last.keys() - group.configured:
            del self.last[resource]
        owners = dict(owners_in(group))
        self.last.update(owners)
        self._placed = frozenset(owners)
        self._of = None

    def succeed(self, group: Group, successor: MemberMetadata) -> None:
        """Move the share of a member to its successor under another id."""
        share = group.share_of(successor.member_id)
        self.last.update(dict.fromkeys(share, successor))
        self._of = None

    def clear(self) -> None:
        """Forget all owners: they belong to an earlier life of the group."""
        self.last, self._placed, self._of = {}, NOTHING, None

    def of(self, member_id: str) -> Sequence[Resource]:
        """Return the resources last assigned to a member, which may be gone."""
        if self._of is None:
            self._of = {}
            for resource, owner in self.last.items():
                self._of.setdefault(owner.member_id, []).append(resource)
        return self._of.get(member_id, ())

    def has_place(self, resource: Resource) -> bool:
        """Return whether the latest target assigns a resource to any member."""
        return resource in self._placed


@dataclass(slots=True)
class Changes:
    """The changes of a target, or of a generation, resource by resource."""

    kept: dict[Owner, set[Resource]] = field(default_factory=dict[Owner, set[Resource]])
    moved: list[Transfer] = field(default_factory=list[Transfer])
    returned: list[Transfer] = field(default_factory=list[Transfer])
    placed: list[Transfer] = field(default_factory=list[Transfer])
    reasons: dict[Resource, Reason] = field(default_factory=dict[Resource, Reason])

    def add(
        self,
        resource: Resource,
        previous_owner: MemberMetadata | None,
        new_owner: MemberMetadata,
        *,
        is_kept: bool,
    ) -> None:
        """Add the new owner of a resource; `is_kept`: it had the resource before."""
        seat = owner_of(new_owner)
        if previous_owner is None:
            self.placed.append(Transfer(resource, None, seat))
        elif is_kept:
            self.kept.setdefault(seat, set()).add(resource)
        elif is_same_worker(previous_owner, new_owner):
            self.returned.append(Transfer(resource, owner_of(previous_owner), seat))
        else:
            self.moved.append(Transfer(resource, owner_of(previous_owner), seat))

    def kept_by_seat(self) -> dict[Owner, Resources]:
        """Return the resources that stay, by the member that has them."""
        return {seat: frozenset(resources) for seat, resources in self.kept.items()}


def change_of(
    group: Group,
    record: TargetAssignment,
    owners: Mapping[Resource, MemberMetadata],
    time_ms: int,
    bumps: Sequence[GroupMetadata],
    placed: Resources,
) -> TargetChange:
    """Compare a target, already in the group, with the members that had everything before it.

    `bumps` are what it answers, `time_ms` is wall clock; `placed` has had a place until now.
    """
    directory = cache(partial(directory_of, workers_in(group)))
    displaced = sorted(placed & record.unplaceable.keys())
    changes = _changes(group, owners, bumps, placed, directory)
    for each in displaced:
        changes.reasons[each] = why_displaced(group, each, owners[each], bumps, directory)
    computed_by = group.members.get(record.computed_by)
    return TargetChange(
        record.assignment_epoch,
        time_ms,
        record.assignor,
        owner_of(computed_by.metadata) if computed_by else None,
        changes.kept_by_seat(),
        tuple(changes.moved),
        tuple(changes.returned),
        tuple(changes.placed),
        group.schedule.parked,
        record.unplaceable,
        frozenset(owners.keys() - group.configured),
        reasons=changes.reasons,
        next_moves_at_ms=group.schedule.again_at_ms or None,
        displaced={each: owner_of(owners[each]) for each in displaced},
    )


def _changes(
    group: Group,
    owners: Mapping[Resource, MemberMetadata],
    bumps: Sequence[GroupMetadata],
    placed: Resources,
    directory: Callable[[], Directory],
) -> Changes:
    changes = Changes()
    for resource, new_owner in sorted(owners_in(group), key=lambda owner: owner[0]):
        previous_owner = owners.get(resource)
        is_kept = (
            previous_owner is not None
            and _is_same_seat(previous_owner, new_owner)
            and resource in placed
        )
        changes.add(resource, previous_owner, new_owner, is_kept=is_kept)
    for resource, _, _ in changes.moved:
        changes.reasons[resource] = reason_of(group, resource, owners[resource], bumps, directory)
    return changes


def owner_of(metadata: MemberMetadata) -> Owner:
    """Return where a member sits."""
    return Owner(metadata.worker_url, metadata.member_id)


def _is_same_seat(one: MemberMetadata, other: MemberMetadata) -> bool:
    return (one.member_id, one.joined_epoch) == (other.member_id, other.joined_epoch)


def is_same_worker(one: MemberMetadata, other: MemberMetadata) -> bool:
    """Return whether two members are one worker: by member id, instance id or url."""
    return (
        one.member_id == other.member_id
        or (one.instance_id is not None and one.instance_id == other.instance_id)
        or (one.url != "" and one.url == other.url)
    )
