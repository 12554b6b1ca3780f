"""The topics of a snapshot, with their partitions and subscribers."""

from collections.abc import Mapping, Sequence

from ....events.model import Resource, Resources
from ...messages.computing import Assignment, Snapshot

NOBODY_SUBSCRIBES = "no member subscribes to its topic"


def find_subscribers(snapshot: Snapshot) -> Mapping[str, Sequence[str]]:
    """Return the member ids of the subscribers of each topic; both in the order of names."""
    subscribers: dict[str, list[str]] = {
        topic: [] for topic in sorted({each.connector for each in snapshot.configured})
    }
    for member_id in by_name(snapshot):
        for topic in snapshot.members[member_id].topics or ():
            if topic in subscribers:
                subscribers[topic].append(member_id)
    return subscribers


def by_name(snapshot: Snapshot) -> Sequence[str]:
    """Return the member ids, sorted by instance id, which outlasts a process, or by member id."""
    members = snapshot.members
    return sorted(members, key=lambda each: (members[each].instance_id or each, each))


def partitions_of(snapshot: Snapshot) -> Mapping[str, Sequence[Resource]]:
    """Return the partitions of each topic, in order."""
    partitions: dict[str, list[Resource]] = {}
    for resource in sorted(snapshot.configured):
        partitions.setdefault(resource.connector, []).append(resource)
    return partitions


def as_assignment(snapshot: Snapshot, shares: Mapping[str, Resources]) -> Assignment:
    """Build the assignment; partitions without a subscriber are unplaceable."""
    left = snapshot.configured.difference(*shares.values())
    return Assignment(
        {each: shares.get(each, frozenset()) for each in sorted(snapshot.members)},
        unplaceable=dict.fromkeys(sorted(left), NOBODY_SUBSCRIBES),
    )
